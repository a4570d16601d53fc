-- +goose Up
-- How many tests people have sent themselves lately: what is left of them at next_at is none.
CREATE TABLE review_control.tests (
  user_id text        PRIMARY KEY,
  next_at timestamptz NOT NULL
) WITH (fillfactor = 50);
GRANT SELECT, INSERT, UPDATE (next_at) ON review_control.tests TO hub_review_control;
