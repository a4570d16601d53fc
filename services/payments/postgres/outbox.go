package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
)

// notificationColumns are those of notificationMembers. The URL is the order's: a message has none of its own.
const notificationColumns = `n.id, o.code, o.service_code, n.seq, n.type, o.notify_url, n.state, n.failed, n.next_at, n.created_at`

// notificationMembers are where a notification is read to. Its body is not among them: who sends it reads that, and nobody else.
func notificationMembers(n *payments.Notification) []any {
	return []any{&n.ID, &n.Order, &n.ServiceCode, &n.Seq, &n.Type, &n.URL, &n.State, &n.Failed, &n.NextAt, &n.CreatedAt}
}

// scanNotification reads a notification without its body.
func scanNotification(row pgx.CollectableRow) (n payments.Notification, err error) {
	err = row.Scan(notificationMembers(&n)...)
	return n, err
}

// Notification returns a message.
func (s *Store) Notification(ctx context.Context, id string) (payments.Notification, error) {
	n, err := postgres.One(ctx, s.pool, func(row pgx.CollectableRow) (n payments.Notification, err error) {
		err = row.Scan(append(notificationMembers(&n), &n.Body)...)
		return n, err
	}, `SELECT `+notificationColumns+`, n.body
		FROM payments.notices n JOIN payments.orders o ON o.id = n.order_id WHERE n.id = $1`, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return n, noSuchNotification(id)
	}
	return n, explain(err)
}

// noSuchNotification is E_NOT_FOUND for an id that the order does not have.
func noSuchNotification(id string) error {
	return fault.New(fault.NotFound, "The order has no notification %q.", id)
}

// TakeAttempt takes the next attempt of a message, as it was read, until a moment; false when somebody else has it, or asked for it
// again since.
func (s *Store) TakeAttempt(ctx context.Context, n payments.Notification, until time.Time) (bool, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE payments.notices SET next_at = $4
		WHERE id = $1 AND state = 'PENDING' AND failed = $2 AND next_at IS NOT DISTINCT FROM $3`, n.ID, n.Failed, n.NextAt, until)
	return err == nil && tag.RowsAffected() > 0, explain(err)
}

// RecordAttempt keeps an attempt and what it makes of the message.
func (s *Store) RecordAttempt(ctx context.Context, n payments.Notification, a payments.Attempt) error {
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO payments.notice_attempts (notice_id, at, status, delivered, error, answer, took_ms) VALUES ($1, $2, $3, $4,
		$5, $6, $7)`,
		n.ID, a.At, a.Status, a.Delivered, a.Error, a.Answer, a.Took.Milliseconds())
	// A failure counts for the message as it was when it was sent: one that was asked for again meanwhile begins anew.
	batch.Queue(`UPDATE payments.notices SET state = $2, failed = $3, next_at = $4
		WHERE id = $1 AND state = 'PENDING' AND ($2 NOT IN ('PENDING', 'DEAD') OR failed = $3 - 1)`, n.ID, string(n.State), n.Failed, n.NextAt)
	if a.Gone {
		batch.Queue(`UPDATE payments.orders SET notify_stopped = true WHERE code = $1`, n.Order)
		batch.Queue(`UPDATE payments.notices SET state = 'STOPPED', next_at = NULL
			WHERE order_id = (SELECT id FROM payments.orders WHERE code = $1) AND state = 'PENDING'`, n.Order)
	}
	return s.atomically(ctx, func(tx *postgres.Tx) error { return tx.SendBatch(ctx, batch).Close() })
}

// redeliverWithin is how soon the job of a message that is asked for again has to be due, so that it needs no other one.
const redeliverWithin = 10 * time.Second

// Redeliver lets a message be sent again, by the schedule from its beginning. A job that is due soon is enough for all who ask
// meanwhile. One that runs may be at its end, and one that is due later finds the message sent.
func (s *Store) Redeliver(ctx context.Context, order, id string, by payments.Actor) error {
	return s.atomically(ctx, func(tx *postgres.Tx) error {
		n, err := postgres.One(ctx, tx, scanNotification, `SELECT `+notificationColumns+`
			FROM payments.notices n JOIN payments.orders o ON o.id = n.order_id WHERE n.id = $1 AND o.code = $2 FOR UPDATE OF n`, id, order)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return noSuchNotification(id)
		case err != nil:
			return err
		case n.URL == "":
			return fault.New(fault.Conflict, "The order %s has no payment_notify_url, so there is nowhere to send it.", order)
		}
		if _, err := tx.Exec(ctx, `UPDATE payments.notices SET state = 'PENDING', failed = 0, next_at = NULL WHERE id = $1`, id); err != nil {
			return err
		}
		entry := audit.Entry{At: by.Now, Caller: caller.From(ctx), Tool: "pay.notifications.redeliver", Outcome: audit.OK, Count: 1,
			Detail: map[string]any{"order": order, "notification": id}}
		if err := audit.Append(ctx, tx, entry); err != nil {
			return err
		}
		var waits bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM payments.river_job
			WHERE kind = 'notify' AND args @> jsonb_build_object('id', $1::text)
				AND state IN ('available', 'scheduled', 'retryable') AND scheduled_at <= now() + $2::interval)`,
			id, redeliverWithin).Scan(&waits); err != nil || waits {
			return err
		}
		return s.jobs.Add(ctx, tx, Notify{id})
	})
}

// maxWebhooksOfPayment is how many webhooks of one payment are kept. What else its sender claims is not signed, and so costs nothing to
// make: who has seen one that is signed, as a payer has, could fill the inbox.
const maxWebhooksOfPayment = 200

// Receive stores a webhook with the job that looks into it, or has the order checked soon where enough are kept.
func (s *Store) Receive(ctx context.Context, w payments.Webhook) error {
	return s.atomically(ctx, func(tx *postgres.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO payments.webhooks (provider, env, event_key, tid, code, claims, raw, received_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8
			WHERE (SELECT count(*) FROM (SELECT FROM payments.webhooks WHERE tid = $4 LIMIT $9) AS kept) < $9
			ON CONFLICT DO NOTHING`, w.Provider, w.Env, w.Key, w.TID, w.Code, w.Claims, w.Raw, w.ReceivedAt, maxWebhooksOfPayment)
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 1:
			return s.jobs.Add(ctx, tx, ProcessWebhook{w.Provider, w.Env, w.Key})
		}
		return s.checkSoon(ctx, tx, w)
	})
}

// checkWithin is how soon an order is looked at that a webhook which is not kept was about.
const checkWithin = 10 * time.Second

// checkSoon lets the order that has the payment be looked at soon, once for all webhooks until then. One that was kept before needs
// nothing; E_RATE_LIMIT for a payment of no order. A look that runs already does not count: it may have asked before the news.
func (s *Store) checkSoon(ctx context.Context, tx pgx.Tx, w payments.Webhook) error {
	var kept, waits bool
	var code string
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM payments.webhooks WHERE provider = $1 AND env = $2 AND event_key = $3),
			coalesce(o.code, ''), EXISTS (SELECT FROM payments.river_job WHERE kind = 'resolve_order'
				AND args @> jsonb_build_object('code', o.code, 'asked', true) AND state IN ('available', 'scheduled', 'retryable'))
		FROM (SELECT) AS one LEFT JOIN payments.orders o ON o.provider = $1 AND o.env = $2 AND o.tid = $4`,
		w.Provider, w.Env, w.Key, w.TID).Scan(&kept, &code, &waits)
	switch {
	case err != nil || kept || waits:
		return err
	case code == "":
		return fault.New(fault.RateLimit, "There are enough webhooks of this payment already.").After(checkWithin)
	}
	return s.jobs.AddAt(ctx, tx, w.ReceivedAt.Add(checkWithin), Resolve{Code: code, Asked: true})
}

// Webhook returns a webhook.
func (s *Store) Webhook(ctx context.Context, provider string, env credentials.Env, key string) (payments.Webhook, error) {
	w, err := postgres.One(ctx, s.pool, pgx.RowToStructByPos[payments.Webhook], `SELECT provider, env, event_key, tid, code, claims, raw,
		received_at,
		outcome, attempts FROM payments.webhooks WHERE provider = $1 AND env = $2 AND event_key = $3`, provider, env, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return w, fault.New(fault.NotFound, "There is no such webhook.")
	}
	return w, explain(err)
}

// Settle keeps what became of a webhook, and counts the attempt.
func (s *Store) Settle(ctx context.Context, w payments.Webhook, o payments.WebhookOutcome) error {
	_, err := s.pool.Exec(ctx, `UPDATE payments.webhooks SET outcome = $4, attempts = attempts + 1, settled_at = CASE WHEN $4 = 'UNMATCHED'
		THEN NULL ELSE now() END
		WHERE provider = $1 AND env = $2 AND event_key = $3`, w.Provider, w.Env, w.Key, string(o))
	return explain(err)
}

// CheckedSince tells whether an order was checked since a moment. If not, now is stored as its last check, in one statement:
// of two callers one alone does the check.
func (s *Store) CheckedSince(ctx context.Context, code string, since, now time.Time) (bool, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE payments.orders SET looked_at = $3 WHERE code = $1 AND (looked_at IS NULL OR looked_at < $2)`,
		code, since, now)
	return err == nil && tag.RowsAffected() == 0, explain(err)
}

// Checks is how often an order has been looked at since it moved, and when it is looked at next.
func (s *Store) Checks(ctx context.Context, code string) (checks int, next *time.Time, err error) {
	err = s.pool.QueryRow(ctx, `SELECT looks, look_at FROM payments.orders WHERE code = $1`, code).Scan(&checks, &next)
	return checks, next, explain(err)
}

// TakeCheck takes the lease of a check that is due, until a moment; false when it is not due, or somebody else has it.
func (s *Store) TakeCheck(ctx context.Context, code string, now, until time.Time) (bool, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE payments.orders SET look_at = $3 WHERE code = $1 AND look_at <= $2`, code, now, until)
	return err == nil && tag.RowsAffected() > 0, explain(err)
}

// ScheduleCheck keeps when an order is looked at next, unless it has moved.
func (s *Store) ScheduleCheck(ctx context.Context, code string, version int64, checks int, at time.Time) (bool, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE payments.orders SET looks = $3, look_at = $4 WHERE code = $1 AND version = $2`,
		code, version, checks, at)
	return err == nil && tag.RowsAffected() > 0, explain(err)
}

// Unsettled returns orders after a code that wait for a deposit, or were paid since a moment.
func (s *Store) Unsettled(ctx context.Context, after string, since time.Time, limit int) ([]string, error) {
	codes, err := postgres.All(ctx, s.pool, pgx.RowTo[string], `(SELECT code FROM payments.orders WHERE status = 'AWAITING_DEPOSIT' AND
		code > $1
			ORDER BY code LIMIT $3)
		UNION (SELECT code FROM payments.orders WHERE paid_at > $2 AND code > $1 ORDER BY code LIMIT $3) ORDER BY code LIMIT
			$3`, after, since, limit)
	return codes, explain(err)
}

// whatCompared are the sweeps of which payments.SweepReport.Compared is true.
const whatCompared = `failed <= checked / 2`

// LastSweep is when the last sweep ended, and when the last one that has compared did.
func (s *Store) LastSweep(ctx context.Context) (ended, compared time.Time, err error) {
	var last, done *time.Time
	err = s.pool.QueryRow(ctx, `SELECT max(ended_at), max(ended_at) FILTER (WHERE `+whatCompared+`) FROM payments.sweeps`).Scan(&last, &done)
	if err == nil && last != nil {
		ended = *last
	}
	if err == nil && done != nil {
		compared = *done
	}
	return ended, compared, explain(err)
}

// AddSweep keeps the report of a sweep.
func (s *Store) AddSweep(ctx context.Context, r payments.SweepReport) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO payments.sweeps (started_at, ended_at, checked, moved, drifted, failed) VALUES ($1, $2, $3, $4,
		$5, $6)`,
		r.StartedAt, r.EndedAt, r.Checked, r.Moved, r.Drifted, r.Failed)
	return explain(err)
}
