-- +goose Up
-- What Hub signs its notifications to apps with. Sealed as the secrets that apps sign with, and bound to the row.
CREATE TABLE auth.app_webhook_secrets (
  id           text COLLATE "C" NOT NULL PRIMARY KEY,
  service_code text COLLATE "C" NOT NULL REFERENCES auth.connected_apps (service_code),
  sealed       bytea,
  created_by   text        NOT NULL,
  created_at   timestamptz NOT NULL,
  expires_at   timestamptz,
  revoked_at   timestamptz,
  CHECK ((sealed IS NULL) = (revoked_at IS NOT NULL))
);
CREATE INDEX app_webhook_secrets_held ON auth.app_webhook_secrets (service_code, id) WHERE revoked_at IS NULL;
CREATE INDEX app_webhook_secrets_expires ON auth.app_webhook_secrets (expires_at) WHERE revoked_at IS NULL;

-- The tokens of apps that were used, until they are good for nothing any more.
CREATE TABLE auth.jwt_replay (
  service_code text COLLATE "C" NOT NULL,
  jti_hash     bytea       NOT NULL CHECK (length(jti_hash) = 32),
  exp          timestamptz NOT NULL,
  PRIMARY KEY (service_code, jti_hash)
);
CREATE INDEX jwt_replay_exp ON auth.jwt_replay (exp);

GRANT SELECT, INSERT ON auth.app_webhook_secrets TO hub_auth;
-- A secret can be ended and destroyed, but not exchanged.
GRANT UPDATE (sealed, expires_at, revoked_at) ON auth.app_webhook_secrets TO hub_auth;
-- A token that was used stays used: its row can be deleted when it has expired, and not be changed.
GRANT SELECT, INSERT, DELETE ON auth.jwt_replay TO hub_auth;
