-- +goose Up
-- Links with which somebody gives a user a password, one a user at most. Whoever was invited has the secret; hash is
-- its SHA-256.
CREATE TABLE auth.invitations (
  user_id    text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES auth.users (id),
  hash       bytea       NOT NULL CONSTRAINT invitations_hash UNIQUE CHECK (octet_length(hash) = 32),
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX invitations_expires ON auth.invitations (expires_at);

GRANT SELECT, INSERT, DELETE ON auth.invitations TO hub_auth;
GRANT UPDATE (hash, created_at, expires_at) ON auth.invitations TO hub_auth;
