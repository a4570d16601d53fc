package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// persist queues what was done to an order since before, with its events, its messages and the jobs that follow.
func (s *Store) persist(ctx context.Context, tx *postgres.Tx, before, a *order.Aggregate, by payments.Actor) error {
	orderID := int64(a.Order.ID)
	persistOrder(tx, before, a)
	for _, r := range a.Refunds {
		persistRefund(tx, orderID, before.Refunds, r)
	}
	for _, d := range a.Deposits {
		persistDeposit(tx, orderID, before.Deposits, d)
	}
	var follow []jobs.Job
	for _, step := range a.Events {
		tx.Queue(`INSERT INTO payments.order_events (order_id, seq, from_status, to_status, trigger, about, note, actor, request_id, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			orderID, step.Seq, step.From, step.To, step.Trigger, step.Subject, step.Note, by.Name, by.RequestID, by.Now)
		if step.Notification == "" {
			continue
		}
		id := "msg_" + ulid.Make().String()
		tx.Queue(`INSERT INTO payments.notices (id, order_id, seq, type, body, state, created_at)
			SELECT $1, $2, $3, $4, $5, CASE WHEN notify_url = '' THEN 'SKIPPED' WHEN notify_stopped THEN 'STOPPED' ELSE 'PENDING' END, $6
			FROM payments.orders WHERE id = $2`, id, orderID, step.Seq, step.Notification, step.Payload, by.Now)
		follow = append(follow, Notify{id})
	}
	if err := s.jobs.Add(ctx, tx, follow...); err != nil {
		return err
	}
	return s.scheduleCheck(ctx, tx, a, by.Now)
}

// scheduleCheck schedules the reconciliation of an order that has moved, with its job, when the order waits for something.
func (s *Store) scheduleCheck(ctx context.Context, tx *postgres.Tx, a *order.Aggregate, now time.Time) error {
	if len(a.Events) == 0 {
		return nil
	}
	a.Now = now
	at, ok := a.NextCheck(0)
	if !ok {
		tx.Queue(`UPDATE payments.orders SET looks = 0, look_at = NULL WHERE id = $1 AND look_at IS NOT NULL`, int64(a.Order.ID))
		return nil
	}
	tx.Queue(`UPDATE payments.orders SET looks = 0, look_at = $2 WHERE id = $1`, int64(a.Order.ID), at)
	return s.jobs.AddAt(ctx, tx, at, Resolve{Code: a.Order.Code})
}

// persistOrder updates the columns that can change after the order was made.
func persistOrder(tx *postgres.Tx, before, a *order.Aggregate) {
	o := a.Order
	if o.Unchanged(before.Order) {
		return
	}
	var account provider.VirtualAccount
	var expires *time.Time
	if o.Account != nil {
		account, expires = *o.Account, &o.Account.ExpiresAt
	}
	tx.Queue(`UPDATE payments.orders SET tid = nullif($2, ''), status = $3, version = $4, paid_amount = $5, refunded_amount = $6,
			pending_refund = $7, checkout_url = $8, bank_code = $9, bank_name = $10, account_number = $11, account_holder = $12, expires_at = $13,
			attention = $14, failure = $15, issued_at = $16, paid_at = $17, closed_at = $18 WHERE id = $1`,
		int64(o.ID), o.TID, o.Status, o.Version, o.PaidAmount, o.RefundedAmount, o.PendingRefund, o.CheckoutURL, account.BankCode,
		account.BankName, account.Number, account.Holder, expires, o.Attention, o.Failure, o.IssuedAt, o.PaidAt, o.ClosedAt)
}

// persistRefund inserts a refund that is new, and updates one whose state has changed.
func persistRefund(tx *postgres.Tx, orderID int64, before []order.Refund, r order.Refund) {
	i := slices.IndexFunc(before, func(known order.Refund) bool { return known.Code == r.Code })
	switch {
	case i < 0:
		tx.Queue(`INSERT INTO payments.refunds (code, order_id, amount, status, source, tid, reason, account, masked, failure, created_at,
			settled_at)
			VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10, $11, $12)`,
			r.Code, orderID, r.Amount, r.Status, r.Source, r.TID, r.Reason, r.Account, r.Masked, r.Failure, r.CreatedAt, r.SettledAt)
	case before[i].Status != r.Status || before[i].TID != r.TID:
		tx.Queue(`UPDATE payments.refunds SET status = $2, tid = nullif($3, ''), failure = $4, settled_at = $5 WHERE code = $1`,
			r.Code, r.Status, r.TID, r.Failure, r.SettledAt)
	}
}

// persistDeposit inserts a deposit that is new, and updates one whose state has changed, with how it is paid back.
func persistDeposit(tx *postgres.Tx, orderID int64, before []order.Deposit, d order.Deposit) {
	i := slices.IndexFunc(before, func(known order.Deposit) bool { return known.ID == d.ID })
	switch {
	case d.ID == 0:
		tx.Queue(`INSERT INTO payments.deposits (order_id, tid, amount, deposited_at, state) VALUES ($1, $2, $3, $4, $5)`,
			orderID, d.TID, d.Amount, d.At, d.State)
	case i >= 0 && before[i].State != d.State:
		r := d.Return
		if r == nil {
			r = &order.DepositReturn{}
		}
		tx.Queue(`UPDATE payments.deposits SET state = $2, return_code = nullif($3, ''), return_tid = nullif($4, ''), return_account = $5,
			return_masked = $6, return_failure = $7, return_settled = $8 WHERE id = $1`, int64(d.ID), d.State, r.Code, r.TID, r.Account,
			r.Masked, r.Failure, r.SettledAt)
	}
}
