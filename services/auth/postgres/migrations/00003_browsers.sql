-- +goose Up
-- Browsers that a user has signed in with: tries with one have an allowance of their own. The browser has the
-- secret; hash is its SHA-256.
CREATE TABLE auth.browsers (
  hash       bytea       NOT NULL PRIMARY KEY CHECK (octet_length(hash) = 32),
  user_id    text COLLATE "C" NOT NULL REFERENCES auth.users (id),
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX browsers_user ON auth.browsers (user_id, created_at DESC);
CREATE INDEX browsers_expires ON auth.browsers (expires_at);

GRANT SELECT, INSERT, DELETE ON auth.browsers TO hub_auth;
