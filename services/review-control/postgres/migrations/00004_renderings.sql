-- +goose Up
-- What a decision is bound to: SHA-256 of what the reviewer saw, which review-control renders
-- itself. content_hash is what authoring said of the content of decisions that earlier releases
-- took: nothing is sent on it any more. Earlier releases that run beside this one leave
-- rendering_hash empty, and find in content_hash nothing that they send.
ALTER TABLE review_control.targets ADD COLUMN rendering_hash text NOT NULL DEFAULT '';
ALTER TABLE review_control.decisions ADD COLUMN rendering_hash text NOT NULL DEFAULT '';
GRANT UPDATE (rendering_hash) ON review_control.targets TO hub_review_control;

-- changed: the mail was not sent, because its content is not the one that was approved. The old
-- condition is stronger, so that there is nothing to look for among the rows.
ALTER TABLE review_control.targets DROP CONSTRAINT targets_progress_check;
ALTER TABLE review_control.targets ADD CONSTRAINT targets_progress_check
  CHECK (progress IN ('', 'queued', 'sending', 'sent', 'failed', 'changed', 'suppressed', 'unknown')) NOT VALID;
