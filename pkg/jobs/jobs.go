// Package jobs is work that a transaction leaves behind: a job is added in the transaction of what
// it follows from (the transactional outbox), and runs later, at least once, on any replica.
// River keeps and runs the jobs in the service's own schema of PostgreSQL. This package owns
// River's migrations, spans and metrics of jobs, the gauges of its queues, the wait after a failure, the taking over of what
// a dead process of this instance had in hand, and an ordered stop. It refuses to know what a
// job does.
package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"hub.internal/pkg/postgres"
)

// Job is the arguments of a job, which are kept as JSON. Kind names the kind of job, in the table
// too: it stays as it is for as long as jobs of it are kept.
type Job interface{ Kind() string }

// InQueue is a Job that waits in a queue of its own; others wait in the queue Default.
type InQueue interface {
	Job
	Queue() string
}

// Default is the queue of what names none.
const Default = river.QueueDefault

// Adder adds jobs to a service's table.
type Adder struct{ client *river.Client[pgx.Tx] }

// NewAdder prepares an adder for the service whose pool and schema these are. It touches no
// database, and panics for a schema that River does not take.
func NewAdder(pool *pgxpool.Pool, schema string) *Adder {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(fmt.Sprintf("jobs of %s: %v", schema, err))
	}
	return &Adder{client}
}

// Add adds jobs in a transaction, to run as soon as it has committed. In a postgres.Tx they are queued, and sent with its next statement;
// in any other transaction they are sent at once, many of them by COPY.
func (a *Adder) Add(ctx context.Context, tx pgx.Tx, list ...Job) error {
	return a.AddAt(ctx, tx, time.Time{}, list...)
}

// AddAt adds jobs that run no sooner than at.
func (a *Adder) AddAt(ctx context.Context, tx pgx.Tx, at time.Time, list ...Job) error {
	if len(list) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, len(list))
	for i, job := range list {
		params[i] = river.InsertManyParams{Args: job, InsertOpts: &river.InsertOpts{Queue: queueOf(job), ScheduledAt: at}}
	}
	if t, ok := tx.(*postgres.Tx); ok {
		_, err := a.client.InsertManyTx(ctx, deferred{t}, params)
		return err
	}
	if len(list) == 1 {
		_, err := a.client.InsertTx(ctx, tx, params[0].Args, params[0].InsertOpts)
		return err
	}
	_, err := a.client.InsertManyFastTx(ctx, tx, params)
	return err
}

// deferred is a transaction that queues River's statements: nobody looks at the rows that it has inserted.
type deferred struct{ *postgres.Tx }

// Exec implements pgx.Tx.
func (d deferred) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	d.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

// Query implements pgx.Tx.
func (d deferred) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	d.Queue(sql, args...)
	return noRows{}, nil
}

// noRows are the rows of a statement that is not sent yet.
type noRows struct{ pgx.Rows }

func (noRows) Next() bool { return false }
func (noRows) Close()     {}
func (noRows) Err() error { return nil }

func queueOf(job Job) string {
	if q, ok := job.(InQueue); ok {
		return q.Queue()
	}
	return Default
}
