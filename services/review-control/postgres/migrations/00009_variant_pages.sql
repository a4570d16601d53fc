-- +goose Up
-- The targets of one variant, page by page.
CREATE INDEX targets_variant ON review_control.targets (draft_id, variant, position) WHERE variant > 0;
