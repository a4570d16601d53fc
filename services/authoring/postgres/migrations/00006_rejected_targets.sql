-- +goose Up
-- The newest targets that reviewers have rejected, with what they wrote, as review-control tells them: at most 50.
ALTER TABLE authoring.drafts ADD COLUMN rejected_targets jsonb NOT NULL DEFAULT '[]';
GRANT UPDATE (rejected_targets) ON authoring.drafts TO hub_authoring;
