-- +goose Up
-- All at once: calls that use both would else wait for one while this waits for the other.
LOCK TABLE authoring.drafts, authoring.draft_targets IN ACCESS EXCLUSIVE MODE;
-- Who has had, or is about to have, which mail: asked by text, by address and by partner when another one is saved and reviewed. The
-- hashes are those of pkg repeat: of a target's texts and values, and of its address; NULL for what earlier releases have stored.
ALTER TABLE authoring.draft_targets ADD COLUMN text_hash bigint, ADD COLUMN address_hash bigint;
CREATE INDEX draft_targets_text ON authoring.draft_targets (text_hash, draft_id) INCLUDE (position) WHERE text_hash IS NOT NULL;
CREATE INDEX draft_targets_address ON authoring.draft_targets (address_hash, draft_id) INCLUDE (position) WHERE address_hash IS NOT NULL;
CREATE INDEX draft_targets_partner ON authoring.draft_targets (external_id, draft_id) INCLUDE (position);

-- When a draft came into its status; NULL for a change that an earlier release has made.
ALTER TABLE authoring.drafts ADD COLUMN moved_at timestamptz;
GRANT UPDATE (moved_at) ON authoring.drafts TO hub_authoring;
CREATE INDEX drafts_sent ON authoring.drafts (coalesce(moved_at, queued_at)) WHERE status = 'sent';
