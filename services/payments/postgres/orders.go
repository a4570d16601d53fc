package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// orderColumns are what scanOrder reads, in this order.
const orderColumns = `id, code, service_code, external_user_id, hub_user, env, provider, credential_id, coalesce(tid, ''), status, version,
	amount, supply_amount, vat, tax_free, paid_amount, refunded_amount, pending_refund, pay_method, coalesce(client_order_id, ''), name,
		notify_url,
	return_url, valid_hours, holder, buyer, metadata, checkout_url, bank_code, bank_name, account_number, account_holder, expires_at,
		attention,
	failure, created_at, issued_at, paid_at, closed_at`

// scanOrder reads the order itself. Its refunds and deposits are readRefundsAndDeposits'.
func scanOrder(row pgx.CollectableRow) (*order.Aggregate, error) {
	var o order.Order
	var account provider.VirtualAccount
	var expires *time.Time
	err := row.Scan(&o.ID, &o.Code, &o.ServiceCode, &o.ExternalUserID, &o.HubUser, &o.Env, &o.Provider, &o.CredentialID, &o.TID, &o.Status,
		&o.Version, &o.Amounts.Amount, &o.Supply, &o.VAT, &o.TaxFree, &o.PaidAmount, &o.RefundedAmount, &o.PendingRefund, &o.PayMethod,
		&o.ClientOrderID, &o.Name, &o.NotifyURL, &o.ReturnURL, &o.ValidHours, &o.Holder, &o.Buyer, &o.Metadata, &o.CheckoutURL,
		&account.BankCode, &account.BankName, &account.Number, &account.Holder, &expires,
		&o.Attention, &o.Failure, &o.CreatedAt, &o.IssuedAt, &o.PaidAt, &o.ClosedAt)
	if err != nil {
		return nil, err
	}
	if account.Number != "" && expires != nil {
		account.ExpiresAt = *expires
		o.Account = &account
	}
	return &order.Aggregate{Order: o}, nil
}

// Order returns an order as it is.
func (s *Store) Order(ctx context.Context, code string) (*order.Aggregate, error) {
	var found []*order.Aggregate
	// One snapshot: an order and its refunds have to fit.
	err := postgres.Atomically(ctx, s.pool, snapshot, func(tx *postgres.Tx) error {
		queueOrder(tx, code, ``, &found)
		return nil
	})
	if err != nil {
		return nil, explain(err)
	}
	return theOrder(found, code)
}

// snapshot reads all as it is at one moment.
var snapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// theOrder is the one that was found.
func theOrder(found []*order.Aggregate, code string) (*order.Aggregate, error) {
	if len(found) == 0 {
		return nil, payments.NoSuchOrder(code)
	}
	return found[0], nil
}

// readOrder reads an order with all that belongs to it. The lock of its row, FOR UPDATE, is what makes the aggregate a
// unit: whoever changes an order, a refund or a deposit of it holds that lock.
func readOrder(ctx context.Context, tx *postgres.Tx, code, lock string) (*order.Aggregate, error) {
	var found []*order.Aggregate
	queueOrder(tx, code, lock, &found)
	if err := tx.Send(ctx); err != nil {
		return nil, err
	}
	return theOrder(found, code)
}

// queueOrder queues what readOrder reads, in one round trip.
func queueOrder(tx *postgres.Tx, code, lock string, found *[]*order.Aggregate) {
	postgres.Collect(tx.Queue(`SELECT `+orderColumns+` FROM payments.orders WHERE code = $1 `+lock, code), scanOrder, found)
	queueRefundsAndDeposits(tx, `SELECT id FROM payments.orders WHERE code = $1`, code, found)
	past := tx.Queue(`SELECT e.seq, e.from_status, e.to_status, e.trigger, e.about, e.note
		FROM payments.order_events e JOIN payments.orders o ON o.id = e.order_id WHERE o.code = $1 AND e.trigger = ANY ($2)
		ORDER BY e.seq`, code, order.PastTriggers())
	postgres.Collect(past, func(row pgx.CollectableRow) (e order.Event, err error) {
		if err = row.Scan(&e.Seq, &e.From, &e.To, &e.Trigger, &e.Subject, &e.Note); err == nil {
			(*found)[0].Past = append((*found)[0].Past, e)
		}
		return e, err
	}, new([]order.Event))
}

// queueRefundsAndDeposits queues what reads the refunds and deposits of orders: those that the query or array ids has, of one argument.
func queueRefundsAndDeposits(tx *postgres.Tx, ids string, of any, aggregates *[]*order.Aggregate) {
	// Two statements for a whole page, whatever its length.
	byID := func(id schema.ID) *order.Aggregate {
		return (*aggregates)[slices.IndexFunc(*aggregates, func(a *order.Aggregate) bool { return a.Order.ID == id })]
	}
	refunds := tx.Queue(`SELECT order_id, code, amount, status, source, coalesce(tid, ''), reason, account, masked, failure, created_at,
			settled_at
		FROM payments.refunds WHERE order_id = ANY (`+ids+`) ORDER BY order_id, created_at, code`, of)
	postgres.Collect(refunds, func(row pgx.CollectableRow) (id schema.ID, err error) {
		var r order.Refund
		if err := row.Scan(&id, &r.Code, &r.Amount, &r.Status, &r.Source, &r.TID, &r.Reason, &r.Account, &r.Masked, &r.Failure, &r.CreatedAt,
			&r.SettledAt); err != nil {
			return id, err
		}
		byID(id).Refunds = append(byID(id).Refunds, r)
		return id, nil
	}, new([]schema.ID))
	deposits := tx.Queue(`SELECT order_id, id, tid, amount, deposited_at, state, coalesce(return_code, ''), coalesce(return_tid, ''),
			return_account, return_masked, return_failure, return_settled
		FROM payments.deposits WHERE order_id = ANY (`+ids+`) ORDER BY id`, of)
	postgres.Collect(deposits, func(row pgx.CollectableRow) (id schema.ID, err error) {
		var d order.Deposit
		var r order.DepositReturn
		err = row.Scan(&id, &d.ID, &d.TID, &d.Amount, &d.At, &d.State, &r.Code, &r.TID, &r.Account, &r.Masked, &r.Failure, &r.SettledAt)
		if err != nil {
			return id, err
		}
		if r.Code != "" {
			d.Return = &r
		}
		byID(id).Deposits = append(byID(id).Deposits, d)
		return id, nil
	}, new([]schema.ID))
}

// insertOrder stores an order; pgx.ErrNoRows when its app has one with that clientOrderId.
func insertOrder(ctx context.Context, tx *postgres.Tx, o order.Order) (id schema.ID, err error) {
	metadata := o.Metadata
	if metadata == nil {
		metadata = map[string]string{} // pgx writes a nil map as NULL
	}
	err = tx.QueryRow(ctx, `INSERT INTO payments.orders (code, service_code, external_user_id, hub_user, env, provider, credential_id,
		status, version,
			amount, supply_amount, vat, tax_free, pay_method, client_order_id, name, notify_url, return_url, valid_hours, holder, buyer,
				metadata, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, nullif($15, ''), $16, $17, $18, $19, $20, $21, $22, $23)
		ON CONFLICT (service_code, client_order_id) DO NOTHING RETURNING id`,
		o.Code, o.ServiceCode, o.ExternalUserID, o.HubUser, o.Env, o.Provider, int64(o.CredentialID), o.Status, o.Version, o.Amounts.Amount,
		o.Supply, o.VAT,
		o.TaxFree, o.PayMethod, o.ClientOrderID, o.Name, o.NotifyURL, o.ReturnURL, o.ValidHours, o.Holder, o.Buyer, metadata,
		o.CreatedAt).Scan(&id)
	return id, err
}
