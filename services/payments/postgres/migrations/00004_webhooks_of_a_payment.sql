-- +goose Up
-- How many webhooks there are of a payment: its sender signs which one it is, and no more.
CREATE INDEX webhooks_tid ON payments.webhooks (tid);
