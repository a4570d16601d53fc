-- +goose Up
-- API keys, without the keys. A row is never deleted: the audit log names it.
CREATE TABLE auth.api_keys (
  id                 text COLLATE "C" NOT NULL PRIMARY KEY,
  name               text        NOT NULL,
  service            text        NOT NULL,
  hash               bytea       NOT NULL CONSTRAINT api_keys_hash UNIQUE CHECK (octet_length(hash) = 32),
  pepper_id          text        NOT NULL,
  head               text        NOT NULL CHECK (length(head) = 8),
  tail               text        NOT NULL CHECK (length(tail) = 4),
  scopes             text[]      NOT NULL CHECK (cardinality(scopes) > 0),
  user_per_minute    integer     NOT NULL CHECK (user_per_minute > 0),
  user_burst         integer     NOT NULL CHECK (user_burst > 0),
  service_per_minute integer     NOT NULL CHECK (service_per_minute > 0),
  service_burst      integer     NOT NULL CHECK (service_burst > 0),
  created_by         text        NOT NULL,
  created_at         timestamptz NOT NULL,
  expires_at         timestamptz,
  revoked_at         timestamptz,
  revoke_reason      text        NOT NULL DEFAULT '',
  rotated_from       text COLLATE "C" CONSTRAINT api_keys_rotated_from UNIQUE REFERENCES auth.api_keys (id),
  rotated_to         text COLLATE "C" CONSTRAINT api_keys_rotated_to UNIQUE REFERENCES auth.api_keys (id),
  last_used_at       timestamptz
) WITH (fillfactor = 80); -- room for last_used_at to change in place

GRANT USAGE ON SCHEMA auth TO hub_auth;
GRANT SELECT, INSERT ON auth.api_keys TO hub_auth;
-- What a key is made of never changes, whatever the service does.
GRANT UPDATE (scopes, expires_at, revoked_at, revoke_reason, rotated_to, last_used_at) ON auth.api_keys TO hub_auth;
