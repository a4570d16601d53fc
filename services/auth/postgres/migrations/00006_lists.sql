-- +goose Up
-- The lists of the console by a state that few rows are in; by any other they walk along the key.
CREATE INDEX api_keys_revoked ON auth.api_keys (id) WHERE revoked_at IS NOT NULL;
CREATE INDEX users_administrators ON auth.users (lower(email)) WHERE roles @> '{admin}';
CREATE INDEX users_pending ON auth.users (lower(email)) WHERE disabled_at IS NULL AND password_hash = '' AND last_login_at IS NULL;
CREATE INDEX users_disabled ON auth.users (lower(email)) WHERE disabled_at IS NOT NULL;
CREATE INDEX connected_apps_status ON auth.connected_apps (status, service_code);
