-- +goose Up
-- What one person decided at once is an action, numbered from 1 in each review: it can be undone as
-- a whole. Decisions that earlier releases took belong to none.
ALTER TABLE review_control.reviews
  ADD COLUMN actions   integer NOT NULL DEFAULT 0,
  -- How often an undo has brought the review back.
  ADD COLUMN reopened  integer NOT NULL DEFAULT 0,
  -- When the mails of an approved draft may leave; null for one that an earlier release approved.
  ADD COLUMN leaves_at timestamptz;
ALTER TABLE review_control.targets
  ADD COLUMN action integer NOT NULL DEFAULT 0,
  ADD COLUMN reason text    NOT NULL DEFAULT '';
-- previous is the revision of the decision that held before, 0 without one. A decision that an undo
-- brought back is a row of its own, with who undid what came between.
ALTER TABLE review_control.decisions
  ADD COLUMN action    integer NOT NULL DEFAULT 0,
  ADD COLUMN previous  integer NOT NULL DEFAULT 0,
  ADD COLUMN reason    text    NOT NULL DEFAULT '',
  ADD COLUMN undone_by text    NOT NULL DEFAULT '';
ALTER TABLE review_control.decisions DROP CONSTRAINT decisions_choice_check;
ALTER TABLE review_control.decisions ADD CONSTRAINT decisions_choice_check CHECK (choice IN ('pending', 'approved', 'rejected')) NOT VALID;
CREATE INDEX targets_action ON review_control.targets (draft_id, action) WHERE action > 0;
GRANT UPDATE (actions, reopened, leaves_at) ON review_control.reviews TO hub_review_control;
GRANT UPDATE (action, reason) ON review_control.targets TO hub_review_control;
