package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric/noop"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/telemetry"
)

// tracer gives statements, batches, COPY and new connections their metrics as calls of the dependency
// postgres, and spans below a recorded one. A statement is our own text with placeholders, so it holds
// no data.
type tracer struct {
	*otelpgx.Tracer
	calls *telemetry.Dependency
}

// newTracer leaves out the library's own metrics, which say less: they have no outcome.
func newTracer() tracer {
	return tracer{otelpgx.NewTracer(otelpgx.WithDisableConnectionDetailsInAttributes(), otelpgx.WithDisableAcquireTracer(),
		otelpgx.WithMeterProvider(noop.NewMeterProvider())), telemetry.NewDependency("postgres")}
}

type startKey struct{}

func withStart(ctx context.Context) context.Context {
	return context.WithValue(ctx, startKey{}, time.Now())
}

func (t tracer) done(ctx context.Context, operation string, err error) {
	if start, ok := ctx.Value(startKey{}).(time.Time); ok {
		t.calls.Done(ctx, operation, start, outcome(err))
	}
}

// outcome is ok, canceled, E_DB for a store that cannot be used now, or the class of SQLSTATE.
func outcome(err error) string {
	said := telemetry.Outcome(Fault(err))
	var pg *pgconn.PgError
	if said == string(fault.Internal) && errors.As(err, &pg) && len(pg.Code) == 5 {
		return "sqlstate_" + pg.Code[:2]
	}
	return said
}

// TraceQueryStart implements pgx.QueryTracer.
func (t tracer) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return withStart(t.Tracer.TraceQueryStart(ctx, c, data))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t tracer) TraceQueryEnd(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryEndData) {
	t.done(ctx, "query", data.Err)
	t.Tracer.TraceQueryEnd(ctx, c, data)
}

// TraceBatchStart implements pgx.BatchTracer.
func (t tracer) TraceBatchStart(ctx context.Context, c *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	return withStart(t.Tracer.TraceBatchStart(ctx, c, data))
}

// TraceBatchEnd implements pgx.BatchTracer.
func (t tracer) TraceBatchEnd(ctx context.Context, c *pgx.Conn, data pgx.TraceBatchEndData) {
	t.done(ctx, "batch", data.Err)
	t.Tracer.TraceBatchEnd(ctx, c, data)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (t tracer) TraceCopyFromStart(ctx context.Context, c *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	return withStart(t.Tracer.TraceCopyFromStart(ctx, c, data))
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (t tracer) TraceCopyFromEnd(ctx context.Context, c *pgx.Conn, data pgx.TraceCopyFromEndData) {
	t.done(ctx, "copy", data.Err)
	t.Tracer.TraceCopyFromEnd(ctx, c, data)
}

// TraceConnectStart implements pgx.ConnectTracer.
func (t tracer) TraceConnectStart(ctx context.Context, data pgx.TraceConnectStartData) context.Context {
	return withStart(t.Tracer.TraceConnectStart(ctx, data))
}

// TraceConnectEnd implements pgx.ConnectTracer.
func (t tracer) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	t.done(ctx, "connect", data.Err)
	t.Tracer.TraceConnectEnd(ctx, data)
}

// Observe shows a pool in the metrics, under a name, until forget is called.
func Observe(name string, pool *Pool) (forget func()) {
	return telemetry.ObservePool(name, func() telemetry.Pool { return poolOf(pool.Stat()) })
}

func poolOf(s *pgxpool.Stat) telemetry.Pool {
	return telemetry.Pool{Max: int64(s.MaxConns()), Used: int64(s.AcquiredConns() + s.ConstructingConns()), Idle: int64(s.IdleConns()),
		Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime()}
}
