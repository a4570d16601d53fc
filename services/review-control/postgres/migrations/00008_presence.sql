-- +goose Up
-- Who has a draft open: a row is of use for a minute, and goes after an hour.
CREATE TABLE review_control.presence (
  draft_id bigint      NOT NULL,
  email    text        NOT NULL,
  name     text        NOT NULL,
  seen_at  timestamptz NOT NULL,
  PRIMARY KEY (draft_id, email)
) WITH (fillfactor = 50);
CREATE INDEX presence_seen ON review_control.presence (seen_at);
GRANT SELECT, INSERT, UPDATE (name, seen_at), DELETE ON review_control.presence TO hub_review_control;

-- Whose drafts are in review is asked for each list, whatever has ended.
CREATE INDEX reviews_open ON review_control.reviews (draft_id) WHERE status IN ('draft', 'in_review');
-- How many mails that nobody has decided on have flags, without a look at the others.
CREATE INDEX targets_flagged ON review_control.targets (draft_id, flags) WHERE flags <> 0 AND choice = 'pending';
