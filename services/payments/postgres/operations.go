package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

// Operate changes an order, and keeps the row of the audit log.
func (s *Store) Operate(ctx context.Context, code string, by payments.Actor, do func(*order.Aggregate) (audit.Entry,
	error)) (a *order.Aggregate,
	err error) {
	err = s.atomically(ctx, func(tx *postgres.Tx) error {
		var entry audit.Entry
		a, err = s.change(ctx, tx, code, by, func(a *order.Aggregate) (err error) {
			entry, err = do(a)
			return err
		})
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, entry)
	})
	return a, err
}

// Webhooks returns the inbox of an order, newest first.
func (s *Store) Webhooks(ctx context.Context, code string, limit int) ([]payments.Webhook, error) {
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByPos[payments.Webhook],
		`SELECT provider, env, event_key, tid, code, claims, raw, received_at,
		outcome, attempts FROM payments.webhooks WHERE code = $1 ORDER BY received_at DESC LIMIT $2`, code, limit)
	return list, explain(err)
}

// AttentionCounts counts the orders that need an operator.
func (s *Store) AttentionCounts(ctx context.Context, readySince time.Time) (c payments.AttentionCounts, err error) {
	err = s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM payments.orders WHERE attention <> ''),
		(SELECT count(*) FROM payments.orders WHERE status = 'READY' AND created_at < $1),
		(SELECT count(DISTINCT order_id) FROM payments.notices WHERE state = 'DEAD')`, readySince).Scan(&c.Flagged, &c.Stuck, &c.Undelivered)
	return c, explain(err)
}

// Totals are the sums of the orders that a filter leaves, by status.
func (s *Store) Totals(ctx context.Context, f payments.Filter) ([]payments.StatusTotal, error) {
	where, args := conditions(f)
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByPos[payments.StatusTotal],
		`SELECT status, count(*), sum(amount)::bigint, sum(paid_amount)::bigint,
		sum(refunded_amount)::bigint, sum(pending_refund)::bigint FROM payments.orders WHERE `+where+` GROUP BY status`, args)
	return list, explain(err)
}

// Days are what was paid and paid back of the orders that a filter leaves, by Korean day.
func (s *Store) Days(ctx context.Context, f payments.Filter, from time.Time) ([]payments.DailyTotal, error) {
	// When an order was made is not when it was paid.
	f.CreatedAfter, f.CreatedBefore = time.Time{}, time.Time{}
	where, args := conditions(f)
	join := ``
	if where != "true" {
		join = `JOIN (SELECT id FROM payments.orders WHERE ` + where + `) o ON o.id = m.order_id`
	}
	args["from"] = from
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByPos[payments.DailyTotal],
		fmt.Sprintf(`SELECT day AT TIME ZONE 'Asia/Seoul', sum(paid)::bigint, sum(back)::bigint FROM (
			SELECT date_trunc('day', m.deposited_at AT TIME ZONE 'Asia/Seoul') AS day, m.amount AS paid, 0 AS back
			FROM payments.deposits m %[1]s WHERE m.state = 'APPLIED' AND m.deposited_at >= @from
			UNION ALL SELECT date_trunc('day', m.settled_at AT TIME ZONE 'Asia/Seoul'), 0, m.amount
			FROM payments.refunds m %[1]s WHERE m.status = 'SUCCEEDED' AND m.settled_at >= @from) AS moves
		GROUP BY day ORDER BY day`, join), args)
	return list, explain(err)
}

// Export hands over the orders that a filter leaves.
func (s *Store) Export(ctx context.Context, f payments.Filter, limit int, row func(order.Order) error) (more bool, err error) {
	// Page after page by its keyset: no transaction is open while a slow browser takes the rows.
	const page = 1000
	for n := 0; ; {
		f.Limit = min(page, limit-n) + 1
		where, args := conditions(f)
		aggregates, err := postgres.All(ctx, s.pool, scanOrder,
			`SELECT `+orderColumns+` FROM payments.orders WHERE `+where+` ORDER BY created_at DESC, code DESC LIMIT @limit`, args)
		if err != nil {
			return false, explain(err)
		}
		full := len(aggregates) == f.Limit
		if full {
			aggregates = aggregates[:len(aggregates)-1]
		}
		for _, a := range aggregates {
			if err := row(a.Order); err != nil {
				return false, err
			}
			f.Before = payments.Position{At: a.Order.CreatedAt, Code: a.Order.Code}
		}
		if n += len(aggregates); !full || n >= limit {
			return full, nil
		}
	}
}

// ledgerTables are the sums of deposits and refunds beside each order. What was received stands in deposits alone, what the
// order says of it in orders: two sources that have to agree.
const ledgerTables = `FROM payments.orders o
	LEFT JOIN (SELECT order_id, sum(amount)::bigint AS received,
			coalesce(sum(amount) FILTER (WHERE state = 'APPLIED'), 0)::bigint AS applied,
			coalesce(sum(amount) FILTER (WHERE state IN ('MISMATCH', 'UNAPPLIED')), 0)::bigint AS open,
			coalesce(sum(amount) FILTER (WHERE state = 'RETURNING'), 0)::bigint AS asked,
			coalesce(sum(amount) FILTER (WHERE state = 'RETURNED'), 0)::bigint AS returned,
			coalesce(sum(amount) FILTER (WHERE state = 'REVERSED'), 0)::bigint AS reversed
		FROM payments.deposits GROUP BY order_id) d ON d.order_id = o.id
	LEFT JOIN (SELECT order_id, coalesce(sum(amount) FILTER (WHERE status = 'SUCCEEDED'), 0)::bigint AS done,
			coalesce(sum(amount) FILTER (WHERE status = 'PENDING'), 0)::bigint AS pending
		FROM payments.refunds GROUP BY order_id) r ON r.order_id = o.id`

// Ledger is what was received, and what became of it, by app and environment.
func (s *Store) Ledger(ctx context.Context) ([]payments.LedgerAccount, error) {
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByPos[payments.LedgerAccount],
		`SELECT o.service_code, '', o.env, count(*), coalesce(sum(received), 0)::bigint,
		coalesce(sum(applied), 0)::bigint, coalesce(sum(open), 0)::bigint, coalesce(sum(asked), 0)::bigint, coalesce(sum(returned), 0)::bigint,
		coalesce(sum(reversed), 0)::bigint, sum(paid_amount)::bigint, sum(refunded_amount)::bigint, sum(pending_refund)::bigint,
		coalesce(sum(done), 0)::bigint, coalesce(sum(pending), 0)::bigint `+ledgerTables+` GROUP BY o.service_code, o.env
		ORDER BY o.service_code, o.env`)
	return list, explain(err)
}

// Unbalanced are the orders whose ledger does not balance.
func (s *Store) Unbalanced(ctx context.Context, limit int) ([]payments.LedgerAccount, error) {
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByPos[payments.LedgerAccount],
		`SELECT o.service_code, o.code, o.env, 1::bigint, coalesce(received, 0),
		coalesce(applied, 0), coalesce(open, 0), coalesce(asked, 0), coalesce(returned, 0), coalesce(reversed, 0), paid_amount, refunded_amount,
		pending_refund, coalesce(done, 0), coalesce(pending, 0) `+ledgerTables+`
		WHERE coalesce(received, 0) <> coalesce(applied + open + asked + returned + reversed, 0) OR coalesce(applied, 0) <> paid_amount
			OR coalesce(done, 0) <> refunded_amount OR coalesce(pending, 0) <> pending_refund
		ORDER BY o.created_at DESC, o.code DESC LIMIT $1`, limit)
	return list, explain(err)
}

// Sweeps are the reports of the last sweeps.
func (s *Store) Sweeps(ctx context.Context, limit int) ([]payments.SweepReport, error) {
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByPos[payments.SweepReport],
		`SELECT started_at, ended_at, checked, moved, drifted, failed
		FROM payments.sweeps ORDER BY id DESC LIMIT $1`, limit)
	return list, explain(err)
}
