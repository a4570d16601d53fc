package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

// Orders returns a page of orders, newest first.
func (s *Store) Orders(ctx context.Context, f payments.Filter) (aggregates []*order.Aggregate, err error) {
	where, args := conditions(f)
	args = append(args, f.Limit)
	sql := fmt.Sprintf(`SELECT %s FROM payments.orders WHERE %s ORDER BY created_at DESC, code DESC LIMIT $%d`, orderColumns, where, len(args))
	err = postgres.Atomically(ctx, s.pool, snapshot, func(tx *postgres.Tx) error {
		if aggregates, err = postgres.All(ctx, tx, scanOrder, sql, args...); err != nil {
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

// conditions are those of a filter; placeholders count from 1.
func conditions(f payments.Filter) (where string, args []any) {
	// Each condition brings its values along, so that no text of a caller ever becomes part of a statement.
	parts := []string{"true"}
	add := func(condition string, values ...any) {
		numbers := make([]any, len(values))
		for i := range values {
			numbers[i] = len(args) + i + 1
		}
		args = append(args, values...)
		parts = append(parts, fmt.Sprintf(condition, numbers...))
	}
	if f.ServiceCode != "" {
		add(`service_code = $%d`, f.ServiceCode)
	}
	if f.ExternalUserID != "" {
		add(`external_user_id = $%d`, f.ExternalUserID)
	}
	if f.Env != "" {
		add(`env = $%d`, string(f.Env))
	}
	if len(f.Status) == 1 {
		add(`status = $%d`, f.Status[0])
	} else if len(f.Status) > 1 {
		add(`status = ANY ($%d)`, f.Status)
	}
	if f.PayMethod != "" {
		add(`pay_method = $%d`, string(f.PayMethod))
	}
	if !f.CreatedAfter.IsZero() {
		add(`created_at > $%d`, f.CreatedAfter)
	}
	if !f.CreatedBefore.IsZero() {
		add(`created_at < $%d`, f.CreatedBefore)
	}
	if f.Attention {
		add(`attention <> ''`)
	}
	if f.Search != "" {
		// Each has an index of its own, which OR would not use.
		add(`id IN (SELECT id FROM payments.orders WHERE code = $%[1]d UNION SELECT id FROM payments.orders WHERE client_order_id = $%[1]d
			UNION SELECT id FROM payments.orders WHERE tid = $%[1]d
			UNION SELECT id FROM payments.orders WHERE account_number = $%[1]d AND account_number <> ''
			UNION SELECT order_id FROM payments.deposits WHERE tid = $%[1]d
			UNION SELECT order_id FROM payments.deposits WHERE return_code = $%[1]d
			UNION SELECT order_id FROM payments.deposits WHERE return_tid = $%[1]d
			UNION SELECT order_id FROM payments.refunds WHERE code = $%[1]d UNION SELECT order_id FROM payments.refunds WHERE tid =
				$%[1]d)`, f.Search)
	}
	if !f.ReadySince.IsZero() {
		add(`status = 'READY' AND created_at < $%d`, f.ReadySince)
	}
	if f.Undelivered {
		add(`id IN (SELECT order_id FROM payments.notices WHERE state = 'DEAD')`)
	}
	if f.Before.Code != "" {
		add(`(created_at, code) < ($%d, $%d)`, f.Before.At, f.Before.Code)
	}
	return strings.Join(parts, " AND "), args
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
