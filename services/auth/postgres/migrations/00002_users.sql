-- +goose Up
-- The users of the console. A row is never deleted: the audit log and drafts name it.
CREATE TABLE auth.users (
  id            text COLLATE "C" NOT NULL PRIMARY KEY,
  email         text COLLATE "C" NOT NULL CHECK (length(email) BETWEEN 3 AND 254),
  name          text        NOT NULL,
  roles         text[]      NOT NULL CHECK (roles <@ ARRAY['reviewer', 'admin']),
  password_hash text        NOT NULL DEFAULT '', -- empty: signs in through OIDC alone
  created_by    text        NOT NULL,
  created_at    timestamptz NOT NULL,
  disabled_at   timestamptz,
  last_login_at timestamptz
);
-- One address in any case: addresses are ASCII, so lower() under "C" knows them all.
CREATE UNIQUE INDEX users_email ON auth.users (lower(email));

-- Who is signed in. The browser has the secret; hash is its SHA-256.
CREATE TABLE auth.sessions (
  id           text COLLATE "C" NOT NULL PRIMARY KEY,
  hash         bytea       NOT NULL CONSTRAINT sessions_hash UNIQUE CHECK (octet_length(hash) = 32),
  user_id      text COLLATE "C" NOT NULL REFERENCES auth.users (id),
  method       text        NOT NULL,
  address      text        NOT NULL,
  agent        text        NOT NULL,
  created_at   timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  expires_at   timestamptz NOT NULL,
  revoked_at   timestamptz
) WITH (fillfactor = 80); -- room for last_seen_at to change in place
CREATE INDEX sessions_user ON auth.sessions (user_id, last_seen_at DESC);
CREATE INDEX sessions_expires ON auth.sessions (expires_at);

-- Failed log-ins by account and address: full_at is when the bucket is full again (GCRA).
CREATE TABLE auth.throttles (
  bucket  text COLLATE "C" NOT NULL PRIMARY KEY,
  full_at timestamptz NOT NULL
);
CREATE INDEX throttles_full ON auth.throttles (full_at);

GRANT SELECT, INSERT ON auth.users TO hub_auth;
-- Who a user is never changes.
GRANT UPDATE (name, roles, password_hash, disabled_at, last_login_at) ON auth.users TO hub_auth;
GRANT SELECT, INSERT, DELETE ON auth.sessions TO hub_auth;
GRANT UPDATE (last_seen_at, revoked_at) ON auth.sessions TO hub_auth;
GRANT SELECT, INSERT, UPDATE, DELETE ON auth.throttles TO hub_auth;
