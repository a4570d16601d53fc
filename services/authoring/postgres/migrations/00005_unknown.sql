-- +goose Up
-- Mails of which nobody knows whether they have arrived, as review-control counts them.
ALTER TABLE authoring.drafts ADD COLUMN unknown integer NOT NULL DEFAULT 0;
GRANT UPDATE (unknown) ON authoring.drafts TO hub_authoring;
