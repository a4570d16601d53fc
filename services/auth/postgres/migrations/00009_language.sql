-- +goose Up
-- The language in which a user wants the console, by its code; empty: not chosen.
ALTER TABLE auth.users ADD COLUMN language text NOT NULL DEFAULT '' CHECK (language IN ('', 'en', 'ko'));

GRANT UPDATE (language) ON auth.users TO hub_auth;
