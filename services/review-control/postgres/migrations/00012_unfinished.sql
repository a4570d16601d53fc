-- +goose Up
-- The approved mails that are not on their way yet: whether a review that has ended still has any is asked every minute.
CREATE INDEX targets_unfinished ON review_control.targets (draft_id) WHERE choice = 'approved' AND progress = '';
