-- +goose Up
-- How many targets of the draft have the same address: reviewers see when it is more than one.
ALTER TABLE review_control.targets ADD COLUMN mailings integer NOT NULL DEFAULT 1;
