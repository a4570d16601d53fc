-- +goose Up
-- All mails to an address, over all drafts: by how it begins, the newest draft first.
CREATE INDEX targets_address ON review_control.targets (lower(to_email) COLLATE "C", draft_id DESC, position);
