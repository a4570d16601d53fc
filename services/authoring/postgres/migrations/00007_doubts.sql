-- +goose Up
-- What was doubted of a target when its draft was saved: its context or its name may be somebody else's.
ALTER TABLE authoring.draft_targets ADD COLUMN doubts text[] NOT NULL DEFAULT '{}';
