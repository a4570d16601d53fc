-- +goose Up
-- How the page around the HTML of a draft's mails is written: a mail leaves as it was approved. A release that knows no layouts writes
-- the first.
ALTER TABLE review_control.reviews ADD COLUMN layout smallint NOT NULL DEFAULT 1 CHECK (layout > 0);
