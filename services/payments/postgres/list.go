package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

// Orders returns a page of orders, newest first.
func (s *Store) Orders(ctx context.Context, f payments.Filter) (aggregates []*order.Aggregate, err error) {
	where, args := conditions(f)
	sql := `SELECT ` + orderColumns + ` FROM payments.orders WHERE ` + where + ` ORDER BY created_at DESC, code DESC LIMIT @limit`
	err = postgres.Atomically(ctx, s.pool, snapshot, func(tx *postgres.Tx) error {
		if aggregates, err = postgres.All(ctx, tx, scanOrder, sql, args); err != nil {
			return err
		}
		ids := make([]int64, len(aggregates))
		for i, a := range aggregates {
			ids[i] = int64(a.Order.ID)
		}
		queueRefundsAndDeposits(tx, `$1`, ids, &aggregates)
		return nil
	})
	return aggregates, explain(err)
}

// conditions are those of a filter, with the values that they name: no text of a caller ever becomes part of a statement.
func conditions(f payments.Filter) (where string, args pgx.NamedArgs) {
	where = "true"
	and := func(holds bool, condition string) {
		if holds {
			where += " AND " + condition
		}
	}
	and(f.ServiceCode != "", `service_code = @service_code`)
	and(f.ExternalUserID != "", `external_user_id = @external_user_id`)
	and(f.Env != "", `env = @env`)
	and(len(f.Status) == 1, `status = @status`)
	and(len(f.Status) > 1, `status = ANY (@statuses)`)
	and(f.PayMethod != "", `pay_method = @pay_method`)
	and(!f.CreatedAfter.IsZero(), `created_at > @after`)
	and(!f.CreatedBefore.IsZero(), `created_at < @before`)
	and(f.Attention, `attention <> ''`)
	// Each has an index of its own, which OR would not use.
	and(f.Search != "", `id IN (SELECT id FROM payments.orders WHERE code = @search
		UNION SELECT id FROM payments.orders WHERE client_order_id = @search
		UNION SELECT id FROM payments.orders WHERE tid = @search
		UNION SELECT id FROM payments.orders WHERE account_number = @search AND account_number <> ''
		UNION SELECT order_id FROM payments.deposits WHERE tid = @search
		UNION SELECT order_id FROM payments.deposits WHERE return_code = @search
		UNION SELECT order_id FROM payments.deposits WHERE return_tid = @search
		UNION SELECT order_id FROM payments.refunds WHERE code = @search
		UNION SELECT order_id FROM payments.refunds WHERE tid = @search)`)
	and(!f.ReadySince.IsZero(), `status = 'READY' AND created_at < @ready_since`)
	and(f.Undelivered, `id IN (SELECT order_id FROM payments.notices WHERE state = 'DEAD')`)
	and(f.Before.Code != "", `(created_at, code) < (@position, @position_code)`)
	args = pgx.NamedArgs{"service_code": f.ServiceCode, "external_user_id": f.ExternalUserID, "env": string(f.Env), "statuses": f.Status,
		"pay_method": string(f.PayMethod), "after": f.CreatedAfter, "before": f.CreatedBefore, "search": f.Search,
		"ready_since": f.ReadySince, "position": f.Before.At, "position_code": f.Before.Code, "limit": f.Limit}
	if len(f.Status) == 1 {
		args["status"] = f.Status[0]
	}
	return where, args
}

// History returns the events and the messages of an order.
func (s *Store) History(ctx context.Context, code string) (h payments.History, err error) {
	h.Events, err = postgres.All(ctx, s.pool, pgx.RowToStructByPos[payments.RecordedEvent], `SELECT e.seq, e.from_status, e.to_status,
		e.trigger, e.about,
			e.note, e.actor, e.request_id, e.at
		FROM payments.order_events e JOIN payments.orders o ON o.id = e.order_id WHERE o.code = $1 ORDER BY e.seq`, code)
	if err != nil {
		return h, explain(err)
	}
	byID := map[string]int{}
	h.Notifications, err = postgres.All(ctx, s.pool, func(row pgx.CollectableRow) (payments.NotificationHistory, error) {
		n, err := scanNotification(row)
		return payments.NotificationHistory{Notification: n}, err
	}, `SELECT `+notificationColumns+`
		FROM payments.notices n JOIN payments.orders o ON o.id = n.order_id WHERE o.code = $1 ORDER BY n.seq`, code)
	if err != nil {
		return h, explain(err)
	}
	ids := make([]string, len(h.Notifications))
	for i, n := range h.Notifications {
		ids[i], byID[n.ID] = n.ID, i
	}
	_, err = postgres.All(ctx, s.pool, func(row pgx.CollectableRow) (id string, err error) {
		var a payments.Attempt
		var took int64
		if err := row.Scan(&id, &a.At, &a.Status, &a.Delivered, &a.Error, &a.Answer, &took); err != nil {
			return id, err
		}
		a.Took = time.Duration(took) * time.Millisecond
		h.Notifications[byID[id]].Attempts = append(h.Notifications[byID[id]].Attempts, a)
		return id, nil
	}, `SELECT notice_id, at, status, delivered, error, answer, took_ms FROM payments.notice_attempts WHERE notice_id = ANY ($1) ORDER BY
		notice_id, id`, ids)
	return h, explain(err)
}

// OrderOfRefund is the code of the order that a refund is of.
func (s *Store) OrderOfRefund(ctx context.Context, refund string) (code string, err error) {
	err = s.pool.QueryRow(ctx, `SELECT o.code FROM payments.refunds r JOIN payments.orders o ON o.id = r.order_id WHERE r.code = $1`,
		refund).Scan(&code)
	return code, explain(err)
}
