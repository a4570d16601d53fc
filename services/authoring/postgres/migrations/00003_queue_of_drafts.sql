-- +goose Up
-- Reviewers read what waits for them in the order in which it was queued.
CREATE INDEX drafts_queued ON authoring.drafts (status, queued_at, id) WHERE queued_at IS NOT NULL;
