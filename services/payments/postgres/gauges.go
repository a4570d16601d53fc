package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/telemetry"
)

// countedCases bounds what is counted of each kind.
const countedCases = 10_000

// Sample is what waits: webhooks and orders for their check, open deposits for an operator, notifications for receivers. Run it as a
// background task.
func (s *Store) Sample(logger *slog.Logger, now func() time.Time) *telemetry.Sample {
	began := now()
	return &telemetry.Sample{Name: "payments", Logger: logger, Gauges: []telemetry.Gauge{
		{Name: "hub.payments.webhooks.waiting", Description: "Webhooks that are not settled, by state: new, or unmatched by any order."},
		{Name: "hub.payments.webhooks.lag", Unit: "s",
			Description: "How long the webhook has waited that came first and was not looked into; 0 without one."},
		{Name: "hub.payments.orders.attention", Description: "Orders that an operator has to look at."},
		{Name: "hub.payments.orders.lag", Unit: "s",
			Description: "How long the look at an order is overdue that should have been first; 0 without one."},
		{Name: "hub.payments.notices.waiting", Description: "Messages to apps that are not delivered."},
		{Name: "hub.payments.notices.lag", Unit: "s",
			Description: "How long the message is overdue that should have been sent first; 0 without one."},
		{Name: "hub.payments.notices.dead", Description: "Messages to apps that were given up."},
		{Name: "hub.payments.deposits.open", Description: "Deposits that are not applied and not paid back."},
		{Name: "hub.payments.sweep.age", Unit: "s", Description: "Time since the last comparison of orders with the provider."},
	}, Ask: func(ctx context.Context) ([]telemetry.Reading, error) { return s.waiting(ctx, began, now()) }}
}

// backlog is what waits at a moment. Each column reads a partial index of its own.
type backlog struct {
	WebhooksNew, WebhooksUnmatched, WebhooksLag, Attention, OrdersLag, Notices, NoticesLag, Dead, Deposits, Sweep float64
}

// waiting is what waits now; where nothing was compared with the provider yet, that is missing since began.
func (s *Store) waiting(ctx context.Context, began, now time.Time) ([]telemetry.Reading, error) {
	b, err := postgres.One(ctx, s.pool, pgx.RowToStructByPos[backlog], `SELECT
		(SELECT count(*) FROM (SELECT FROM payments.webhooks WHERE outcome IN ('', 'UNMATCHED') AND outcome = '' LIMIT $2) a)::float8,
		(SELECT count(*) FROM (SELECT FROM payments.webhooks WHERE outcome IN ('', 'UNMATCHED') AND outcome <> '' LIMIT $2) a)::float8,
		coalesce((SELECT extract(epoch FROM $1 - received_at) FROM payments.webhooks
			WHERE outcome IN ('', 'UNMATCHED') AND outcome = '' ORDER BY received_at LIMIT 1), 0)::float8,
		(SELECT count(*) FROM (SELECT FROM payments.orders WHERE attention <> '' LIMIT $2) a)::float8,
		coalesce((SELECT extract(epoch FROM $1 - look_at) FROM payments.orders WHERE look_at IS NOT NULL ORDER BY look_at LIMIT 1), 0)::float8,
		(SELECT count(*) FROM (SELECT FROM payments.notices WHERE state = 'PENDING' LIMIT $2) a)::float8,
		coalesce((SELECT extract(epoch FROM $1 - coalesce(next_at, created_at)) FROM payments.notices
			WHERE state = 'PENDING' ORDER BY coalesce(next_at, created_at) LIMIT 1), 0)::float8,
		(SELECT count(*) FROM (SELECT FROM payments.notices WHERE state = 'DEAD' LIMIT $2) a)::float8,
		(SELECT count(*) FROM (SELECT FROM payments.deposits WHERE state IN ('MISMATCH', 'UNAPPLIED', 'RETURNING') LIMIT $2) a)::float8,
		extract(epoch FROM $1 - coalesce((SELECT ended_at FROM payments.sweeps WHERE `+whatCompared+`
			ORDER BY id DESC LIMIT 1), $3))::float8`, now, countedCases, began)
	if err != nil {
		return nil, explain(err)
	}
	state := func(s string) []attribute.KeyValue { return []attribute.KeyValue{attribute.String("state", s)} }
	return []telemetry.Reading{
		{Gauge: "hub.payments.webhooks.waiting", Value: b.WebhooksNew, Attributes: state("new")},
		{Gauge: "hub.payments.webhooks.waiting", Value: b.WebhooksUnmatched, Attributes: state("unmatched")},
		{Gauge: "hub.payments.webhooks.lag", Value: max(b.WebhooksLag, 0)},
		{Gauge: "hub.payments.orders.attention", Value: b.Attention},
		{Gauge: "hub.payments.orders.lag", Value: max(b.OrdersLag, 0)},
		{Gauge: "hub.payments.notices.waiting", Value: b.Notices},
		{Gauge: "hub.payments.notices.lag", Value: max(b.NoticesLag, 0)},
		{Gauge: "hub.payments.notices.dead", Value: b.Dead},
		{Gauge: "hub.payments.deposits.open", Value: b.Deposits},
		{Gauge: "hub.payments.sweep.age", Value: max(b.Sweep, 0)},
	}, nil
}
