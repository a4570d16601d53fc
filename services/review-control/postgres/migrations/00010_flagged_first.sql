-- +goose Up
-- The targets of a draft, those with a flag first.
CREATE INDEX targets_flagged_first ON review_control.targets (draft_id, (flags = 0), position);
