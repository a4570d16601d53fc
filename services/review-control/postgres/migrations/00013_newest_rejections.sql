-- +goose Up
-- The targets of a draft that were rejected last, for who writes them again.
CREATE INDEX targets_rejected ON review_control.targets (draft_id, decided_at DESC, position) WHERE choice = 'rejected';
