-- +goose Up
-- Both at once: a mail that takes its place uses both.
LOCK TABLE review_control.targets, review_control.pace IN ACCESS EXCLUSIVE MODE;
-- The interval that places are drawn with, and since when: when the process that says it was started. A line that begins anew has another
-- number, and a place that was kept in an earlier one is drawn again.
ALTER TABLE review_control.pace ADD COLUMN every interval, ADD COLUMN since timestamptz, ADD COLUMN line integer NOT NULL DEFAULT 0;
ALTER TABLE review_control.targets ADD COLUMN slot_line integer NOT NULL DEFAULT 0;
GRANT UPDATE (every, since, line) ON review_control.pace TO hub_review_control;
GRANT UPDATE (slot_line) ON review_control.targets TO hub_review_control;
