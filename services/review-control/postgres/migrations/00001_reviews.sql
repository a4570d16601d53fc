-- +goose Up
-- What people decide and what becomes of it. River's tables lie beside these; `review-control
-- migrate` makes them and grants them after this.

-- A review is in status draft while its draft is about to be queued: the intent of a call of
-- queue_for_review, which then becomes the review or is deleted.
CREATE TABLE review_control.reviews (
  draft_id      bigint      NOT NULL PRIMARY KEY,
  status        text        NOT NULL CHECK (status IN ('draft', 'in_review', 'approved', 'rejected', 'sent', 'cancelled')),
  target_count  integer     NOT NULL CHECK (target_count > 0),
  pending       integer     NOT NULL CHECK (pending >= 0),
  approved      integer     NOT NULL DEFAULT 0 CHECK (approved >= 0),
  rejected      integer     NOT NULL DEFAULT 0 CHECK (rejected >= 0),
  sent          integer     NOT NULL DEFAULT 0 CHECK (sent >= 0),
  failed        integer     NOT NULL DEFAULT 0 CHECK (failed >= 0),
  suppressed    integer     NOT NULL DEFAULT 0 CHECK (suppressed >= 0),
  unknown       integer     NOT NULL DEFAULT 0 CHECK (unknown >= 0),
  version       bigint      NOT NULL DEFAULT 1,
  -- synced is the newest version that authoring is known to have; sync_waiting tells that a
  -- job is on its way that will read the row.
  synced        bigint      NOT NULL DEFAULT 0,
  sync_waiting  boolean     NOT NULL DEFAULT false,
  attempted     boolean     NOT NULL DEFAULT false,
  changed_at    timestamptz NOT NULL DEFAULT now(),
  queued_at     timestamptz NOT NULL,
  actor         text        NOT NULL,
  note          text        NOT NULL,
  created_by    text        NOT NULL,
  hub_user      text        NOT NULL,
  external_user text        NOT NULL,
  sender_name   text        NOT NULL,
  sender_email  text        NOT NULL,
  closed_by     text        NOT NULL DEFAULT '',
  closed_at     timestamptz,
  -- The call that queued the draft.
  credential_id text        NOT NULL,
  tool          text        NOT NULL,
  key           text        NOT NULL,
  fingerprint   bytea       NOT NULL,
  caller        json        NOT NULL,
  input_hash    bytea       NOT NULL,
  CHECK (pending + approved + rejected = target_count),
  CHECK (sent + failed + suppressed + unknown <= approved)
) WITH (fillfactor = 50); -- room for the counters to change in place
-- A key has one draft at a time.
CREATE UNIQUE INDEX reviews_intent ON review_control.reviews (credential_id, tool, key) WHERE status = 'draft';
CREATE INDEX reviews_unsynced ON review_control.reviews (draft_id) WHERE synced < version AND status <> 'draft';
CREATE INDEX reviews_approved ON review_control.reviews (draft_id) WHERE status = 'approved';

-- A draft's target. Without a foreign key: a trigger for each of 10,000 rows costs more than
-- the rows, and one statement's transaction writes both.
CREATE TABLE review_control.targets (
  draft_id      bigint      NOT NULL,
  position      integer     NOT NULL,
  external_id   bigint      NOT NULL,
  to_email      text        NOT NULL,
  to_name       text        NOT NULL,
  choice        text        NOT NULL DEFAULT 'pending' CHECK (choice IN ('pending', 'approved', 'rejected')),
  revision      integer     NOT NULL DEFAULT 0,
  decided_by    text        NOT NULL DEFAULT '',
  decided_at    timestamptz,
  note          text        NOT NULL DEFAULT '',
  content_hash  text        NOT NULL DEFAULT '',
  progress      text        NOT NULL DEFAULT '' CHECK (progress IN ('', 'queued', 'sending', 'sent', 'failed', 'suppressed', 'unknown')),
  attempts      integer     NOT NULL DEFAULT 0,
  delays        integer     NOT NULL DEFAULT 0,
  since         timestamptz,
  progress_at   timestamptz,
  problem       text        NOT NULL DEFAULT '',
  message_id    text        NOT NULL DEFAULT '',
  -- slot_at is the mail's place in the line, when that is further away than its job waits.
  slot_at       timestamptz,
  unsubscribe_token bytea,
  PRIMARY KEY (draft_id, position)
) WITH (fillfactor = 70);
CREATE INDEX targets_choice ON review_control.targets (draft_id, choice, position);
CREATE INDEX targets_progress ON review_control.targets (draft_id, progress, position) WHERE progress <> '';
CREATE UNIQUE INDEX targets_token ON review_control.targets (unsubscribe_token) WHERE unsubscribe_token IS NOT NULL;

-- Every decision, for ever.
CREATE TABLE review_control.decisions (
  draft_id     bigint      NOT NULL,
  position     integer     NOT NULL,
  revision     integer     NOT NULL,
  choice       text        NOT NULL CHECK (choice IN ('approved', 'rejected')),
  by           text        NOT NULL,
  at           timestamptz NOT NULL,
  note         text        NOT NULL,
  content_hash text        NOT NULL,
  PRIMARY KEY (draft_id, position, revision)
);

-- email_key is the address in lower case. The byte order of "C" lets an index find what
-- begins with something.
CREATE TABLE review_control.suppressions (
  email_key text COLLATE "C" NOT NULL PRIMARY KEY,
  domain    text COLLATE "C" NOT NULL,
  email     text             NOT NULL,
  reason    text             NOT NULL,
  source    text             NOT NULL CHECK (source IN ('console', 'import', 'unsubscribe')),
  by        text             NOT NULL,
  at        timestamptz      NOT NULL
);
CREATE INDEX suppressions_domain ON review_control.suppressions (domain, email_key);

-- Every addition and removal, for ever.
CREATE TABLE review_control.suppression_events (
  id        bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email_key text COLLATE "C" NOT NULL,
  event     text             NOT NULL CHECK (event IN ('add', 'remove')),
  source    text             NOT NULL,
  reason    text             NOT NULL,
  by        text             NOT NULL,
  import_id bigint,
  at        timestamptz      NOT NULL
);
CREATE INDEX suppression_events_email ON review_control.suppression_events (email_key, id DESC);

-- data is emptied when the import has ended.
CREATE TABLE review_control.imports (
  id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name        text        NOT NULL,
  reason      text        NOT NULL,
  by          text        NOT NULL,
  at          timestamptz NOT NULL,
  status      text        NOT NULL CHECK (status IN ('waiting', 'running', 'done')),
  lines       integer     NOT NULL,
  done        integer     NOT NULL DEFAULT 0,
  added       integer     NOT NULL DEFAULT 0,
  known       integer     NOT NULL DEFAULT 0,
  bad         integer     NOT NULL DEFAULT 0,
  finished_at timestamptz,
  data        bytea       NOT NULL CHECK (length(data) <= 16777216)
);
CREATE INDEX imports_open ON review_control.imports (id) WHERE status IN ('waiting', 'running');

CREATE TABLE review_control.import_problems (
  import_id bigint  NOT NULL REFERENCES review_control.imports (id),
  line      integer NOT NULL,
  text      text    NOT NULL,
  reason    text    NOT NULL,
  PRIMARY KEY (import_id, line)
);

-- When the next mail may leave, of all replicas together.
CREATE TABLE review_control.pace (
  one     boolean     NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  next_at timestamptz NOT NULL
);
INSERT INTO review_control.pace (next_at) VALUES ('-infinity');

-- As pkg/postgres.OnceTable has it; a test compares.
CREATE TABLE review_control.idempotency_keys (
  credential_id text        NOT NULL,
  tool          text        NOT NULL,
  key           text        NOT NULL,
  fingerprint   bytea       NOT NULL,
  count         integer     NOT NULL DEFAULT 0,
  data          bytea,
  created_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (credential_id, tool, key)
);
CREATE INDEX idempotency_keys_created_at ON review_control.idempotency_keys (created_at);

GRANT USAGE ON SCHEMA review_control TO hub_review_control;
-- Only an intent is ever deleted; triggers hold the role to that.
GRANT SELECT, INSERT, DELETE ON review_control.reviews, review_control.targets TO hub_review_control;
GRANT UPDATE (status, pending, approved, rejected, sent, failed, suppressed, unknown, version, synced, sync_waiting, attempted, changed_at, closed_by, closed_at) ON review_control.reviews TO hub_review_control;
GRANT UPDATE (choice, revision, decided_by, decided_at, note, content_hash, progress, attempts, delays, since, progress_at, problem, message_id, slot_at, unsubscribe_token) ON review_control.targets TO hub_review_control;
GRANT SELECT, INSERT ON review_control.decisions, review_control.suppression_events, review_control.import_problems TO hub_review_control;
GRANT SELECT, INSERT, DELETE ON review_control.suppressions TO hub_review_control;
GRANT SELECT, INSERT ON review_control.imports TO hub_review_control;
GRANT UPDATE (status, done, added, known, bad, finished_at, data) ON review_control.imports TO hub_review_control;
GRANT SELECT, UPDATE (next_at) ON review_control.pace TO hub_review_control;
GRANT SELECT, INSERT, UPDATE, DELETE ON review_control.idempotency_keys TO hub_review_control;

-- +goose StatementBegin
CREATE FUNCTION review_control.keep_review() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM review_control.reviews WHERE draft_id = OLD.draft_id AND status <> 'draft') THEN
    RAISE EXCEPTION 'a review is never deleted' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER reviews_keep BEFORE DELETE ON review_control.reviews FOR EACH ROW EXECUTE FUNCTION review_control.keep_review();
CREATE TRIGGER targets_keep BEFORE DELETE ON review_control.targets FOR EACH ROW EXECUTE FUNCTION review_control.keep_review();
