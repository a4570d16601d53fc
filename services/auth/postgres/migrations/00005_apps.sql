-- +goose Up
-- Connected Apps: services that call the API for their users. A row is never deleted: the audit log, orders and links
-- name it.
CREATE TABLE auth.connected_apps (
  service_code       text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(service_code) BETWEEN 1 AND 40),
  name               text        NOT NULL,
  status             text        NOT NULL CHECK (status IN ('ACTIVE', 'SUSPENDED', 'REVOKED')),
  reason             text        NOT NULL DEFAULT '',
  redirect_urls      text[]      NOT NULL,
  origins            text[]      NOT NULL,
  scopes             text[]      NOT NULL,
  link_mode          text        NOT NULL CHECK (link_mode IN ('consent', 'confirm')),
  user_per_minute    integer     NOT NULL CHECK (user_per_minute > 0),
  user_burst         integer     NOT NULL CHECK (user_burst > 0),
  service_per_minute integer     NOT NULL CHECK (service_per_minute > 0),
  service_burst      integer     NOT NULL CHECK (service_burst > 0),
  version            integer     NOT NULL,
  created_by         text        NOT NULL,
  created_at         timestamptz NOT NULL,
  updated_at         timestamptz NOT NULL
);

-- What apps sign their tokens with. Sealed with a keyset that is not in the store, and bound to the row; the seal of
-- one that was destroyed is gone.
CREATE TABLE auth.app_secrets (
  id           text COLLATE "C" NOT NULL PRIMARY KEY,
  service_code text COLLATE "C" NOT NULL REFERENCES auth.connected_apps (service_code),
  sealed       bytea,
  created_by   text        NOT NULL,
  created_at   timestamptz NOT NULL,
  expires_at   timestamptz,
  revoked_at   timestamptz,
  CHECK ((sealed IS NULL) = (revoked_at IS NOT NULL))
);
CREATE INDEX app_secrets_held ON auth.app_secrets (service_code, id) WHERE revoked_at IS NULL;
CREATE INDEX app_secrets_expires ON auth.app_secrets (expires_at) WHERE revoked_at IS NULL;

-- Whose account is linked to a user of which app.
CREATE TABLE auth.identity_links (
  id               text COLLATE "C" NOT NULL PRIMARY KEY,
  service_code     text COLLATE "C" NOT NULL REFERENCES auth.connected_apps (service_code),
  external_user_id text        NOT NULL,
  hub_user_id      text COLLATE "C" NOT NULL REFERENCES auth.users (id),
  scopes           text[]      NOT NULL,
  consent_version  integer     NOT NULL,
  status           text        NOT NULL CHECK (status IN ('PENDING', 'ACTIVE', 'REVOKED')),
  linked_at        timestamptz NOT NULL,
  revoked_at       timestamptz,
  ip               text        NOT NULL,
  ua               text        NOT NULL
);
CREATE UNIQUE INDEX identity_links_pair ON auth.identity_links (service_code, external_user_id) WHERE status <> 'REVOKED';
CREATE INDEX identity_links_active ON auth.identity_links (service_code) WHERE status = 'ACTIVE';

GRANT SELECT, INSERT ON auth.connected_apps, auth.app_secrets TO hub_auth;
GRANT UPDATE (name, status, reason, redirect_urls, origins, scopes, link_mode, user_per_minute, user_burst, service_per_minute,
  service_burst, version, updated_at) ON auth.connected_apps TO hub_auth;
-- A secret can be ended and destroyed, but not exchanged.
GRANT UPDATE (sealed, expires_at, revoked_at) ON auth.app_secrets TO hub_auth;
GRANT SELECT ON auth.identity_links TO hub_auth;
GRANT UPDATE (status, revoked_at) ON auth.identity_links TO hub_auth;
