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

const (
	// troubledFor is how far back mails count that went wrong.
	troubledFor = 24 * time.Hour
	// countedUnsynced bounds what is counted.
	countedUnsynced = 10_000
)

// unsynced reads the index reviews_unsynced.
// LIMIT bounds what a sample costs when authoring has been away for long.
const unsynced = `SELECT count(*) FROM (SELECT FROM review_control.reviews WHERE synced < version AND status <> 'draft' LIMIT $1) u`

// Sample is what waits for reviewers, for the mail server and for authoring. Run it as a background task.
// The numbers are of the store, not of this process.
func (s *Store) Sample(logger *slog.Logger, now func() time.Time) *telemetry.Sample {
	return &telemetry.Sample{Name: "review", Logger: logger, Gauges: []telemetry.Gauge{
		{Name: "hub.review.drafts.waiting", Description: "Drafts in review."},
		{Name: "hub.review.mails.waiting", Description: "Mails that wait, by what for: decision, delivery, or the end of their hand-over."},
		{Name: "hub.review.lag", Unit: "s", Description: "How long the draft has been in review that came first; 0 without one."},
		{Name: "hub.review.mails.troubled", Description: "Mails of drafts that have changed within 24 hours, by outcome: failed, or unknown."},
		{Name: "hub.review.unsynced", Description: "Reviews of which authoring does not know the newest state; at most 10,000 are counted."},
	}, Ask: func(ctx context.Context) ([]telemetry.Reading, error) { return s.waiting(ctx, now()) }}
}

// waiting reads the gauges at a moment.
func (s *Store) waiting(ctx context.Context, now time.Time) ([]telemetry.Reading, error) {
	b, err := s.Backlog(ctx, now.Add(-troubledFor))
	if err != nil {
		return nil, err
	}
	unsynced, err := postgres.One(ctx, s.pool, pgx.RowTo[int64], unsynced, countedUnsynced)
	if err != nil {
		return nil, explain(err)
	}
	var lag time.Duration
	if b.Oldest != nil {
		lag = max(now.Sub(*b.Oldest), 0)
	}
	with := func(name, value string) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String(name, value)}
	}
	return []telemetry.Reading{
		{Gauge: "hub.review.drafts.waiting", Value: float64(b.Drafts)},
		{Gauge: "hub.review.mails.waiting", Value: float64(b.Mails), Attributes: with("for", "decision")},
		{Gauge: "hub.review.mails.waiting", Value: float64(b.ToSend - b.Sending), Attributes: with("for", "delivery")},
		{Gauge: "hub.review.mails.waiting", Value: float64(b.Sending), Attributes: with("for", "handover")},
		{Gauge: "hub.review.lag", Value: lag.Seconds()},
		{Gauge: "hub.review.mails.troubled", Value: float64(b.Failed), Attributes: with("outcome", "failed")},
		{Gauge: "hub.review.mails.troubled", Value: float64(b.Unknown), Attributes: with("outcome", "unknown")},
		{Gauge: "hub.review.unsynced", Value: float64(unsynced)},
	}, nil
}
