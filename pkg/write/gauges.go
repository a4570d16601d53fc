package write

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/telemetry"
)

// countedClaims bounds what is counted.
const countedClaims = 10_000

// Sample is how the leases of claims are: hub.claims.open, hub.claims.left and hub.claims.oldest. Run it as a background task.
func (k *Keys) Sample(logger *slog.Logger) *telemetry.Sample {
	return &telemetry.Sample{Name: "claims", Logger: logger, Gauges: []telemetry.Gauge{
		{Name: "hub.claims.open", Description: "Idempotency keys whose work goes on; at most 10,000 are counted."},
		{Name: "hub.claims.left", Description: "Those whose lease is over: who worked on them has gone, and nobody has taken them over yet."},
		{Name: "hub.claims.oldest", Unit: "s", Description: "How long the lease has been over that was over first; 0 without one."},
	}, Ask: k.lookAtClaims}
}

// lookAtClaims reads the index idempotency_keys_left.
func (k *Keys) lookAtClaims(ctx context.Context) ([]telemetry.Reading, error) {
	s, err := postgres.One(ctx, k.pool, pgx.RowToStructByName[struct{ Open, Left, Oldest float64 }], `
		SELECT count(*)::float8 AS open, (count(*) FILTER (WHERE lease_until < clock_timestamp()))::float8 AS left,
			greatest(coalesce(extract(epoch FROM clock_timestamp() - min(lease_until)), 0), 0)::float8 AS oldest
		FROM (SELECT lease_until FROM `+k.table+` WHERE state = 'running' ORDER BY lease_until LIMIT $1) running`, countedClaims)
	if err != nil {
		return nil, err
	}
	return []telemetry.Reading{{Gauge: "hub.claims.open", Value: s.Open}, {Gauge: "hub.claims.left", Value: s.Left},
		{Gauge: "hub.claims.oldest", Value: s.Oldest}}, nil
}
