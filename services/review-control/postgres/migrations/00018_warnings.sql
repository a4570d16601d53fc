-- +goose Up
-- What the answer of queue_for_review warns of: whoever ends a call that broke off answers it, too.
ALTER TABLE review_control.reviews ADD COLUMN warnings jsonb NOT NULL DEFAULT '[]';
