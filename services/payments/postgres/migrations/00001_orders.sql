-- +goose Up
-- Orders of Connected Apps: what Hub knows of them. Money is in won. A row is never deleted.
CREATE TABLE payments.orders (
  id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  code             text COLLATE "C" NOT NULL CONSTRAINT orders_code UNIQUE,
  service_code     text COLLATE "C" NOT NULL,
  external_user_id text COLLATE "C" NOT NULL,
  hub_user         text        NOT NULL,
  env              text        NOT NULL CHECK (env IN ('sandbox', 'production')),
  provider         text        NOT NULL,
  credential_id    bigint      NOT NULL,
  tid              text COLLATE "C" CHECK (tid <> ''),
  status           text        NOT NULL CHECK (status IN ('READY', 'AWAITING_DEPOSIT', 'PAID', 'REFUNDED', 'CANCELED', 'EXPIRED', 'FAILED')),
  version          bigint      NOT NULL CHECK (version >= 1),
  amount           bigint      NOT NULL CHECK (amount BETWEEN 1 AND 100000000),
  supply_amount    bigint      NOT NULL CHECK (supply_amount >= 0),
  vat              bigint      NOT NULL CHECK (vat >= 0),
  tax_free         boolean     NOT NULL,
  paid_amount      bigint      NOT NULL DEFAULT 0,
  refunded_amount  bigint      NOT NULL DEFAULT 0 CHECK (refunded_amount >= 0),
  pending_refund   bigint      NOT NULL DEFAULT 0 CHECK (pending_refund >= 0),
  pay_method       text        NOT NULL CHECK (pay_method IN ('card', 'vbank')),
  client_order_id  text COLLATE "C",
  name             text        NOT NULL,
  notify_url       text        NOT NULL,
  notify_stopped   boolean     NOT NULL DEFAULT false, -- the address has answered that it wants no more
  return_url       text        NOT NULL,
  valid_hours      integer     NOT NULL,
  holder           text        NOT NULL,
  buyer            jsonb       NOT NULL,
  metadata         jsonb       NOT NULL,
  checkout_url     text        NOT NULL DEFAULT '',
  bank_code        text        NOT NULL DEFAULT '',
  bank_name        text        NOT NULL DEFAULT '',
  account_number   text COLLATE "C" NOT NULL DEFAULT '',
  account_holder   text        NOT NULL DEFAULT '',
  expires_at       timestamptz,
  attention        text        NOT NULL DEFAULT '',
  failure          jsonb,
  created_at       timestamptz NOT NULL,
  issued_at        timestamptz,
  paid_at          timestamptz,
  closed_at        timestamptz,
  looked_at        timestamptz,                        -- when a browser's return last asked the provider
  looks            integer     NOT NULL DEFAULT 0,     -- since the order moved
  look_at          timestamptz,                        -- when somebody looks next; null for what waits for nothing
  CHECK (amount = supply_amount + vat),
  CHECK (paid_amount BETWEEN 0 AND amount),
  CHECK (refunded_amount + pending_refund <= paid_amount),
  -- An order is paid, or it is not.
  CHECK ((paid_amount > 0) = (status IN ('PAID', 'REFUNDED'))),
  CHECK (status <> 'REFUNDED' OR refunded_amount = paid_amount),
  CONSTRAINT orders_client UNIQUE (service_code, client_order_id),
  CONSTRAINT orders_tid UNIQUE (provider, env, tid)
) WITH (fillfactor = 80);
CREATE INDEX orders_own ON payments.orders (service_code, external_user_id, created_at DESC, code DESC);
CREATE INDEX orders_newest ON payments.orders (created_at DESC, code DESC);
CREATE INDEX orders_attention ON payments.orders (created_at DESC, code DESC) WHERE attention <> '';
CREATE INDEX orders_waiting ON payments.orders (code) WHERE status = 'AWAITING_DEPOSIT';
CREATE INDEX orders_paid ON payments.orders (paid_at) WHERE paid_at IS NOT NULL;
CREATE INDEX orders_look ON payments.orders (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX orders_account ON payments.orders (account_number) WHERE account_number <> '';
CREATE INDEX orders_client_id ON payments.orders (client_order_id) WHERE client_order_id IS NOT NULL;

CREATE TABLE payments.refunds (
  code       text COLLATE "C" NOT NULL PRIMARY KEY,
  order_id   bigint      NOT NULL REFERENCES payments.orders (id),
  amount     bigint      NOT NULL CHECK (amount > 0),
  status     text        NOT NULL CHECK (status IN ('PENDING', 'SUCCEEDED', 'FAILED')),
  source     text        NOT NULL CHECK (source IN ('api', 'provider')),
  tid        text COLLATE "C" CONSTRAINT refunds_tid UNIQUE CHECK (tid <> ''),
  reason     text        NOT NULL,
  account    bytea,       -- sealed, bound to the code
  masked     jsonb,
  failure    jsonb,
  created_at timestamptz NOT NULL,
  settled_at timestamptz,
  CHECK ((status = 'PENDING') = (settled_at IS NULL))
);
CREATE INDEX refunds_order ON payments.refunds (order_id, created_at, code);

CREATE TABLE payments.deposits (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_id     bigint      NOT NULL REFERENCES payments.orders (id),
  tid          text COLLATE "C" NOT NULL,
  amount       bigint      NOT NULL CHECK (amount > 0),
  deposited_at timestamptz NOT NULL,
  state        text        NOT NULL CHECK (state IN ('APPLIED', 'MISMATCH', 'UNAPPLIED', 'REVERSED', 'RETURNED')),
  CONSTRAINT deposits_once UNIQUE (order_id, tid, deposited_at, amount)
);
CREATE UNIQUE INDEX deposits_applied ON payments.deposits (order_id) WHERE state = 'APPLIED';
CREATE INDEX deposits_open ON payments.deposits (id) WHERE state IN ('MISMATCH', 'UNAPPLIED');

CREATE TABLE payments.order_events (
  order_id    bigint      NOT NULL REFERENCES payments.orders (id),
  seq         bigint      NOT NULL CHECK (seq >= 1),
  from_status text        NOT NULL,
  to_status   text        NOT NULL,
  trigger     text        NOT NULL,
  about       text        NOT NULL,
  actor       text        NOT NULL,
  request_id  text        NOT NULL,
  at          timestamptz NOT NULL,
  PRIMARY KEY (order_id, seq)
);

-- Messages to apps: the bytes as they were at the step, sent again unchanged.
CREATE TABLE payments.notices (
  id         text COLLATE "C" NOT NULL PRIMARY KEY,
  order_id   bigint      NOT NULL REFERENCES payments.orders (id),
  seq        bigint      NOT NULL,
  type       text        NOT NULL,
  body       bytea       NOT NULL CHECK (octet_length(body) <= 262144),
  state      text        NOT NULL CHECK (state IN ('PENDING', 'DELIVERED', 'DEAD', 'SKIPPED', 'STOPPED')),
  failed     integer     NOT NULL DEFAULT 0,
  next_at    timestamptz,
  created_at timestamptz NOT NULL,
  CONSTRAINT notices_step UNIQUE (order_id, seq)
) WITH (fillfactor = 90);
CREATE INDEX notices_pending ON payments.notices (coalesce(next_at, created_at)) WHERE state = 'PENDING';
CREATE INDEX notices_dead ON payments.notices (created_at DESC) WHERE state = 'DEAD';

CREATE TABLE payments.notice_attempts (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  notice_id text COLLATE "C" NOT NULL REFERENCES payments.notices (id),
  at        timestamptz NOT NULL,
  status    integer     NOT NULL,
  delivered boolean     NOT NULL,
  error     text        NOT NULL,
  answer    text        NOT NULL,
  took_ms   bigint      NOT NULL
);
CREATE INDEX notice_attempts_notice ON payments.notice_attempts (notice_id, id);

CREATE TABLE payments.webhooks (
  provider    text        NOT NULL,
  env         text        NOT NULL,
  event_key   text COLLATE "C" NOT NULL,
  tid         text COLLATE "C" NOT NULL,
  code        text COLLATE "C" NOT NULL,
  claims      text        NOT NULL, -- the status that it claims, which nothing is done upon
  raw         bytea       NOT NULL CHECK (octet_length(raw) <= 65536),
  received_at timestamptz NOT NULL,
  outcome     text        NOT NULL DEFAULT '' CHECK (outcome IN ('', 'APPLIED', 'IGNORED', 'UNMATCHED', 'ABANDONED')),
  attempts    integer     NOT NULL DEFAULT 0,
  settled_at  timestamptz,
  PRIMARY KEY (provider, env, event_key)
);
CREATE INDEX webhooks_code ON payments.webhooks (code, received_at);
CREATE INDEX webhooks_open ON payments.webhooks (received_at) WHERE outcome IN ('', 'UNMATCHED');

CREATE TABLE payments.sweeps (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  started_at timestamptz NOT NULL,
  ended_at   timestamptz NOT NULL,
  checked    integer NOT NULL,
  moved      integer NOT NULL,
  drifted    integer NOT NULL,
  failed     integer NOT NULL
);

GRANT USAGE ON SCHEMA payments TO hub_payments;
GRANT SELECT, INSERT ON payments.orders, payments.refunds, payments.deposits, payments.order_events, payments.notices,
  payments.notice_attempts, payments.webhooks, payments.sweeps TO hub_payments;
-- Whose order it is, and what it costs, never changes.
GRANT UPDATE (tid, status, version, paid_amount, refunded_amount, pending_refund, notify_stopped, checkout_url, bank_code, bank_name,
  account_number, account_holder, expires_at, attention, failure, issued_at, paid_at, closed_at, looked_at, looks, look_at)
  ON payments.orders TO hub_payments;
GRANT UPDATE (status, tid, failure, settled_at) ON payments.refunds TO hub_payments;
GRANT UPDATE (state) ON payments.deposits TO hub_payments;
GRANT UPDATE (state, failed, next_at) ON payments.notices TO hub_payments;
GRANT UPDATE (outcome, attempts, settled_at) ON payments.webhooks TO hub_payments;
