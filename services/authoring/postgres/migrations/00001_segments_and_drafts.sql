-- +goose Up
-- What agents prepare. Nothing here is ever deleted, and of a draft only its status and
-- counters change: the grants say so.
--
-- Targets have no foreign key to their parent: a trigger for each of 50,000 rows costs more
-- than the rows, and both are written by one statement's transaction and never again.
CREATE TABLE authoring.segments (
  id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name             text        NOT NULL,
  kind             text        NOT NULL CHECK (kind IN ('partner', 'brand', 'campaign')),
  description      text,
  created_by       text,
  created_at       timestamptz NOT NULL,
  target_count     integer     NOT NULL CHECK (target_count >= 0),
  service          text        NOT NULL,
  external_user_id text        NOT NULL,
  credential_id    text        NOT NULL,
  hub_user         text        NOT NULL
);
CREATE INDEX segments_kind ON authoring.segments (kind, id DESC);

-- snapshot is json and not jsonb: evidence stays byte for byte as it was sent.
CREATE TABLE authoring.segment_targets (
  segment_id  bigint  NOT NULL,
  position    integer NOT NULL,
  external_id bigint  NOT NULL,
  snapshot    json    NOT NULL,
  PRIMARY KEY (segment_id, external_id)
);

CREATE TABLE authoring.drafts (
  id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name             text        NOT NULL,
  status           text        NOT NULL CHECK (status IN ('draft', 'in_review', 'approved', 'rejected', 'sent', 'cancelled')),
  segment_id       bigint      NOT NULL REFERENCES authoring.segments (id),
  subject_template text        NOT NULL,
  body_template    text        NOT NULL,
  sender_name      text,
  sender_email     text,
  created_by       text,
  created_at       timestamptz NOT NULL,
  queued_at        timestamptz,
  target_count     integer     NOT NULL CHECK (target_count >= 0),
  service          text        NOT NULL,
  external_user_id text        NOT NULL,
  credential_id    text        NOT NULL,
  hub_user         text        NOT NULL,
  progress_version bigint      NOT NULL DEFAULT 0,
  pending          integer     NOT NULL,
  approved         integer     NOT NULL DEFAULT 0,
  rejected         integer     NOT NULL DEFAULT 0,
  sent             integer     NOT NULL DEFAULT 0,
  failed           integer     NOT NULL DEFAULT 0,
  suppressed       integer     NOT NULL DEFAULT 0
) WITH (fillfactor = 80); -- room for the counters to change in place
CREATE INDEX drafts_status ON authoring.drafts (status, id DESC);

CREATE TABLE authoring.draft_targets (
  draft_id    bigint  NOT NULL,
  position    integer NOT NULL,
  external_id bigint  NOT NULL,
  to_email    text    NOT NULL,
  to_name     text    NOT NULL,
  subject     text    NOT NULL,
  body        text    NOT NULL,
  context     json,
  PRIMARY KEY (draft_id, position)
);

-- Each change of a status, once for its operation: the history of a draft, and what lets
-- review-control repeat a request whose answer it did not hear.
CREATE TABLE authoring.draft_transitions (
  operation_id     text        NOT NULL PRIMARY KEY,
  draft_id         bigint      NOT NULL REFERENCES authoring.drafts (id),
  from_status      text        NOT NULL,
  to_status        text        NOT NULL,
  queued_at        timestamptz,
  at               timestamptz NOT NULL,
  service          text        NOT NULL,
  external_user_id text        NOT NULL,
  credential_id    text        NOT NULL,
  hub_user         text        NOT NULL
);
CREATE INDEX draft_transitions_draft ON authoring.draft_transitions (draft_id, at);

-- As pkg/postgres.OnceTable has it; a test compares.
CREATE TABLE authoring.idempotency_keys (
  credential_id text        NOT NULL,
  tool          text        NOT NULL,
  key           text        NOT NULL,
  fingerprint   bytea       NOT NULL,
  count         integer     NOT NULL DEFAULT 0,
  data          bytea,
  created_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (credential_id, tool, key)
);
CREATE INDEX idempotency_keys_created_at ON authoring.idempotency_keys (created_at);

GRANT USAGE ON SCHEMA authoring TO hub_authoring;
GRANT SELECT, INSERT ON authoring.segments, authoring.segment_targets, authoring.drafts, authoring.draft_targets, authoring.draft_transitions TO hub_authoring;
GRANT UPDATE (status, queued_at, progress_version, pending, approved, rejected, sent, failed, suppressed) ON authoring.drafts TO hub_authoring;
GRANT SELECT, INSERT, UPDATE, DELETE ON authoring.idempotency_keys TO hub_authoring;
