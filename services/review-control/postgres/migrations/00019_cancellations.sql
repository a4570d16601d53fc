-- +goose Up
-- Drafts that authoring was asked to cancel, with the audit row that is still to be written.
CREATE TABLE review_control.cancellations (
  draft_id bigint NOT NULL PRIMARY KEY,
  entry    json   NOT NULL
);
GRANT SELECT, INSERT, UPDATE (entry), DELETE ON review_control.cancellations TO hub_review_control;
