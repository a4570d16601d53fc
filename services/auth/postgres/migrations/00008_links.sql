-- +goose Up
-- Links are made at /connect. Whom a link joins never changes.
GRANT INSERT ON auth.identity_links TO hub_auth;
GRANT UPDATE (scopes, consent_version, linked_at) ON auth.identity_links TO hub_auth;
CREATE INDEX identity_links_app ON auth.identity_links (service_code, id) WHERE status = 'ACTIVE';
DROP INDEX auth.identity_links_active; -- the one above has it
CREATE INDEX identity_links_user ON auth.identity_links (hub_user_id, id) WHERE status = 'ACTIVE';
CREATE INDEX identity_links_pending ON auth.identity_links (linked_at) WHERE status = 'PENDING';

-- What a user has agreed to, each time. consent_version of the link is the one that holds.
CREATE TABLE auth.link_consents (
  link_id      text COLLATE "C" NOT NULL REFERENCES auth.identity_links (id),
  version      integer     NOT NULL CHECK (version > 0),
  scopes       text[]      NOT NULL,
  consented_at timestamptz NOT NULL,
  ip           text        NOT NULL,
  ua           text        NOT NULL,
  PRIMARY KEY (link_id, version)
);

-- Tickets that were used, until long after they have expired.
CREATE TABLE auth.connect_nonces (
  nonce      bytea       NOT NULL PRIMARY KEY CHECK (octet_length(nonce) = 16),
  expires_at timestamptz NOT NULL
);
CREATE INDEX connect_nonces_expires ON auth.connect_nonces (expires_at);

-- Consents that an app has yet to confirm. Its browser has the code; hash is its SHA-256.
CREATE TABLE auth.connect_grants (
  hash       bytea       NOT NULL PRIMARY KEY CHECK (octet_length(hash) = 32),
  link_id    text COLLATE "C" NOT NULL,
  version    integer     NOT NULL,
  expires_at timestamptz NOT NULL,
  FOREIGN KEY (link_id, version) REFERENCES auth.link_consents (link_id, version)
);
CREATE INDEX connect_grants_expires ON auth.connect_grants (expires_at);

GRANT SELECT, INSERT ON auth.link_consents TO hub_auth;
GRANT SELECT, INSERT, DELETE ON auth.connect_nonces, auth.connect_grants TO hub_auth;
