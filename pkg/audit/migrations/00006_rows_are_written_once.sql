-- +goose Up
-- A process that does not know whether its row was stored writes it again: with an id that it has drawn itself, that makes
-- no second one. Nobody learns another's ids, so nobody can be before it; and a row that is there is never changed.
GRANT INSERT (id) ON audit.calls TO hub_service;
