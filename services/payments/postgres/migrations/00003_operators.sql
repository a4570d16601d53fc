-- +goose Up
-- What operators do: notes with events, deposits that the provider is asked to pay back, and indexes for what they look for.
ALTER TABLE payments.order_events ADD COLUMN note text NOT NULL DEFAULT '' CHECK (char_length(note) <= 2000);

ALTER TABLE payments.deposits
  ADD COLUMN return_code    text COLLATE "C" CONSTRAINT deposits_return UNIQUE CHECK (return_code <> ''),
  ADD COLUMN return_tid     text COLLATE "C",
  ADD COLUMN return_account bytea,       -- sealed, bound to the code
  ADD COLUMN return_masked  jsonb,
  ADD COLUMN return_failure jsonb,
  ADD COLUMN return_settled timestamptz,
  DROP CONSTRAINT deposits_state_check,
  ADD CONSTRAINT deposits_state_check CHECK (state IN ('APPLIED', 'MISMATCH', 'UNAPPLIED', 'REVERSED', 'RETURNING', 'RETURNED')),
  -- Nothing is asked of the provider under no code.
  ADD CONSTRAINT deposits_returning CHECK (state <> 'RETURNING' OR return_code IS NOT NULL);
DROP INDEX payments.deposits_open;
CREATE INDEX deposits_open ON payments.deposits (id) WHERE state IN ('MISMATCH', 'UNAPPLIED', 'RETURNING');
CREATE INDEX deposits_tid ON payments.deposits (tid);
CREATE INDEX deposits_day ON payments.deposits (deposited_at) WHERE state = 'APPLIED';
CREATE INDEX refunds_day ON payments.refunds (settled_at) WHERE status = 'SUCCEEDED';

CREATE INDEX orders_by_tid ON payments.orders (tid) WHERE tid IS NOT NULL;
CREATE INDEX orders_status ON payments.orders (status, created_at DESC, code DESC);
CREATE INDEX orders_app ON payments.orders (service_code, created_at DESC, code DESC);
CREATE INDEX notices_dead_order ON payments.notices (order_id) WHERE state = 'DEAD';

GRANT UPDATE (return_code, return_tid, return_account, return_masked, return_failure, return_settled) ON payments.deposits TO hub_payments;
