-- +goose Up
-- What of a mail is good to know and keeps it out of nothing; flags has the rest. See triage.Hints.
ALTER TABLE review_control.targets ADD COLUMN hints integer NOT NULL DEFAULT 0;
GRANT UPDATE (hints) ON review_control.targets TO hub_review_control;
