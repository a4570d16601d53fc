-- +goose Up
-- What a reviewer should look at, found out once a draft is queued: for lists, filters and counts. A
-- decision is bound to what is rendered when it is taken, as before.
ALTER TABLE review_control.reviews
  -- How many of the targets were inspected.
  ADD COLUMN inspected integer NOT NULL DEFAULT 0;
ALTER TABLE review_control.targets
  ADD COLUMN subject        text    NOT NULL DEFAULT '',
  -- The hash of what was inspected; empty before that.
  ADD COLUMN inspected_hash text    NOT NULL DEFAULT '',
  ADD COLUMN flags          integer NOT NULL DEFAULT 0,
  -- The variant that the mail is one of; 0 for a mail like no other.
  ADD COLUMN variant        integer NOT NULL DEFAULT 0;
CREATE INDEX targets_uninspected ON review_control.targets (draft_id, position) WHERE inspected_hash = '';

-- Mails of a draft that differ in the values of placeholders alone.
CREATE TABLE review_control.variants (
  draft_id     bigint  NOT NULL,
  number       integer NOT NULL CHECK (number > 0),
  -- SHA-256 of the templates.
  digest       bytea   NOT NULL,
  subject      text    NOT NULL,
  placeholders text[]  NOT NULL,
  targets      integer NOT NULL,
  PRIMARY KEY (draft_id, number),
  UNIQUE (draft_id, digest)
);
GRANT UPDATE (inspected) ON review_control.reviews TO hub_review_control;
GRANT UPDATE (subject, inspected_hash, flags, variant) ON review_control.targets TO hub_review_control;
GRANT SELECT, INSERT, UPDATE (targets) ON review_control.variants TO hub_review_control;
