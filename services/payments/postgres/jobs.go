package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
	"hub.internal/services/payments/credentials"
)

// The jobs that transactions of this store leave behind; package jobs runs them.
type (
	// Resolve finds out what became of an order, when its check is due.
	Resolve struct {
		Code string `json:"code"`
		// Asked has the provider asked about the order once, whether a check is due or not: somebody has told of it.
		Asked bool `json:"asked,omitempty"`
	}
	// ProcessWebhook asks about what a webhook has hinted at.
	ProcessWebhook struct {
		Provider string          `json:"provider"`
		Env      credentials.Env `json:"env"`
		Key      string          `json:"key"`
	}
	// Notify tells an app of a step.
	Notify struct {
		ID string `json:"id"`
	}
	// Complete ends calls whose process has gone.
	Complete struct{}
	// AddMissing adds the jobs that are missing.
	AddMissing struct{}
	// Sweep compares orders with what the provider says.
	Sweep struct{}
)

// The queues beside the default one: what waits for an app's server holds up nothing else, nor do webhooks.
const (
	NotifyQueue  = "notify"
	WebhookQueue = "webhook"
	SweepQueue   = "sweep"
)

// Kind implements jobs.Job.
func (Resolve) Kind() string { return "resolve_order" }

// Kind implements jobs.Job.
func (ProcessWebhook) Kind() string { return "look_into_webhook" }

// Queue implements jobs.InQueue.
func (ProcessWebhook) Queue() string { return WebhookQueue }

// Kind implements jobs.Job.
func (Notify) Kind() string { return "notify" }

// Queue implements jobs.InQueue.
func (Notify) Queue() string { return NotifyQueue }

// Kind implements jobs.Job.
func (Complete) Kind() string { return "complete_calls" }

// Kind implements jobs.Job.
func (AddMissing) Kind() string { return "add_missing" }

// Kind implements jobs.Job.
func (Sweep) Kind() string { return "sweep" }

// Queue implements jobs.InQueue.
func (Sweep) Queue() string { return SweepQueue }

// overdue is how long what misses its job has waited.
const overdue = time.Minute

// AddMissing adds jobs for what waits for one and has none, such as after River gave one up or its tables were restored from an
// older backup. The rows of orders, notifications and webhooks are the truth, and jobs only make it happen: a lost job costs
// time, and nothing else.
func (s *Store) AddMissing(ctx context.Context, now time.Time) error {
	late := now.Add(-overdue)
	return s.atomically(ctx, func(tx *postgres.Tx) error {
		orders, err := postgres.All(ctx, tx, pgx.RowTo[string], `SELECT code FROM payments.orders o WHERE look_at < $1 AND NOT EXISTS (
			SELECT FROM payments.river_job WHERE finalized_at IS NULL AND kind = 'resolve_order' AND args ->> 'code' = o.code) LIMIT 1000`, late)
		if err != nil {
			return err
		}
		notices, err := postgres.All(ctx, tx, pgx.RowTo[string], `SELECT id FROM payments.notices n
			WHERE state = 'PENDING' AND coalesce(next_at, created_at) < $1 AND NOT EXISTS (
			SELECT FROM payments.river_job WHERE finalized_at IS NULL AND kind = 'notify' AND args ->> 'id' = n.id) LIMIT 1000`, late)
		if err != nil {
			return err
		}
		webhooks, err := postgres.All(ctx, tx, pgx.RowToStructByPos[ProcessWebhook], `SELECT provider, env, event_key FROM payments.webhooks w
			WHERE outcome IN ('', 'UNMATCHED') AND received_at < $1 AND NOT EXISTS (
			SELECT FROM payments.river_job WHERE finalized_at IS NULL AND kind = 'look_into_webhook'
			AND args ->> 'key' = w.event_key) LIMIT 1000`, late)
		if err != nil {
			return err
		}
		var missing []jobs.Job
		for _, code := range orders {
			missing = append(missing, Resolve{Code: code})
		}
		for _, id := range notices {
			missing = append(missing, Notify{id})
		}
		for _, w := range webhooks {
			missing = append(missing, w)
		}
		return s.jobs.Add(ctx, tx, missing...)
	})
}
