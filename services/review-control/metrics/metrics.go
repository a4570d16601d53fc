// Package metrics is what an operator of review-control watches: how reviews and mails go.
package metrics

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics are what an operator watches: how reviews and mails go. Each counter grows after what it counts was committed; the names
// of the instruments are in dashboards and alerts, so that they stay.
type Metrics struct {
	deliveries, decisions, undos metric.Int64Counter
	handOver                     metric.Float64Histogram
}

// New registers the metrics, with a series for each outcome of a delivery and each choice: an alarm needs the series before
// the first of them.
func New[O, C ~string](outcomes []O, choices []C) Metrics {
	meter := otel.Meter("hub.internal/services/review-control")
	deliveries, err1 := meter.Int64Counter("hub.review.deliveries",
		metric.WithDescription("Ends of deliveries by outcome; queued is a mail that was put off."))
	decisions, err2 := meter.Int64Counter("hub.review.decisions", metric.WithDescription("Decisions of reviewers by choice."))
	undos, err4 := meter.Int64Counter("hub.review.undone", metric.WithDescription("Decisions that were undone."))
	handOver, err3 := meter.Float64Histogram("hub.review.handover.duration", metric.WithUnit("s"),
		metric.WithDescription("Time to hand a mail over to the SMTP server, or to fail."),
		metric.WithExplicitBucketBoundaries(.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		otel.Handle(err)
	}
	m := Metrics{deliveries, decisions, undos, handOver}
	for _, outcome := range outcomes {
		deliveries.Add(context.Background(), 0, metric.WithAttributes(attribute.String("outcome", string(outcome))))
	}
	for _, choice := range choices {
		decisions.Add(context.Background(), 0, metric.WithAttributes(attribute.String("choice", string(choice))))
	}
	undos.Add(context.Background(), 0)
	return m
}

// Delivered counts the end of a delivery, or its putting off.
func (m Metrics) Delivered(ctx context.Context, outcome string) {
	m.deliveries.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// Decided counts decisions.
func (m Metrics) Decided(ctx context.Context, choice string, n int) {
	m.decisions.Add(ctx, int64(n), metric.WithAttributes(attribute.String("choice", choice)))
}

// Undone counts decisions that were undone.
func (m Metrics) Undone(ctx context.Context, n int) { m.undos.Add(ctx, int64(n)) }

// HandedOver measures a hand-over to the SMTP server.
func (m Metrics) HandedOver(ctx context.Context, took time.Duration) {
	m.handOver.Record(ctx, took.Seconds())
}

// Backlog is what waits for people and for the mail server.
type Backlog struct {
	// Drafts are in review, with Mails that nobody has decided on; Oldest is when the first of them was queued.
	Drafts, Mails int
	Oldest        *time.Time
	// ToSend are approved mails on which nothing was tried yet or that are tried again, those of Sending among them.
	ToSend, Sending int
	// Failed and Unknown are mails of drafts that have changed since the moment that was asked about.
	Failed, Unknown int
}
