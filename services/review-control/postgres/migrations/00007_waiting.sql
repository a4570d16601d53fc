-- +goose Up
-- What waits for reviewers, the oldest first.
CREATE INDEX reviews_waiting ON review_control.reviews (queued_at, draft_id) WHERE status = 'in_review';
