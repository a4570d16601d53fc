-- +goose Up
-- The partner that a brand or campaign of a segment belongs to, as its snapshot has it: a
-- draft writes to partners, and its reviewers want to see what the segment knows of them.
-- Targets of a segment of partners leave it NULL, and the index small: external_id says it.
ALTER TABLE authoring.segment_targets ADD COLUMN partner_id bigint;
CREATE INDEX segment_targets_partner ON authoring.segment_targets (segment_id, partner_id, position) WHERE partner_id IS NOT NULL;
