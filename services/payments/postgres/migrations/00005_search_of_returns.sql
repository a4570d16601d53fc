-- +goose Up
-- The provider's id of a deposit's return, by which an operator looks for the order; its code has the index of deposits_return.
CREATE INDEX deposits_return_tid ON payments.deposits (return_tid) WHERE return_tid IS NOT NULL;
