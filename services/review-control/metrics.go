package reviewcontrol

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are what an operator watches: how reviews and mails go.
type metrics struct {
	deliveries, decisions metric.Int64Counter
	handOver              metric.Float64Histogram
}

func newMetrics() metrics {
	meter := otel.Meter("hub.internal/services/review-control")
	deliveries, err1 := meter.Int64Counter("hub.review.deliveries",
		metric.WithDescription("Ends of deliveries by outcome; queued is a mail that was put off."))
	decisions, err2 := meter.Int64Counter("hub.review.decisions", metric.WithDescription("Decisions of reviewers by choice."))
	handOver, err3 := meter.Float64Histogram("hub.review.handover.duration", metric.WithUnit("s"),
		metric.WithDescription("Time to hand a mail over to the SMTP server, or to fail."),
		metric.WithExplicitBucketBoundaries(.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30))
	if err := errors.Join(err1, err2, err3); err != nil {
		otel.Handle(err)
	}
	return metrics{deliveries, decisions, handOver}
}

func (m metrics) delivered(ctx context.Context, outcome DeliveryState) {
	m.deliveries.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", string(outcome))))
}

func (m metrics) decided(ctx context.Context, choice Choice, n int) {
	m.decisions.Add(ctx, int64(n), metric.WithAttributes(attribute.String("choice", string(choice))))
}

func (m metrics) handedOver(ctx context.Context, took time.Duration) {
	m.handOver.Record(ctx, took.Seconds())
}
