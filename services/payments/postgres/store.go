// Package postgres keeps payments' tables: the SQL beside the method that runs it, and the migrations. It refuses to
// judge: rules are the domain's.
package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/payments"
)

//go:embed migrations/*.sql
var migrations embed.FS

// service is the discovery name, and schema its part of the write store.
const (
	service = "payments"
	schema  = "payments"
)

// Migrate brings the audit schema, payments' own and River's tables in it up to date, as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	return postgres.MigrateAll(ctx, ownerURL, service, audit.Tables, postgres.Files(migrations), write.Migrate, jobs.Migrate)
}

// Store is payments' part of the write store.
type Store struct {
	*postgres.Readiness
	pool *postgres.Pool
	keys *write.Keys
	// lease is how long who claimed a key has it for themselves.
	lease time.Duration
	// jobs adds jobs in the transactions of what they follow from.
	jobs *jobs.Adder
}

var _ payments.Store = (*Store)(nil)

// Options are what a Store can be made otherwise; the zero Options are those of a service that runs.
type Options struct {
	// Lease is how long who claimed a key has it for themselves; 0 is payments.Lease. It has to be longer than a call to the
	// provider may take.
	Lease time.Duration
}

// New returns the store behind a pool of role hub_payments. It touches no database.
func New(pool *postgres.Pool) *Store { return NewWith(pool, Options{}) }

// NewWith is New with options.
func NewWith(pool *postgres.Pool, o Options) *Store {
	return &Store{Readiness: postgres.NewReadiness(pool, service,
		`SELECT FROM payments.orders, payments.credentials, payments.river_job LIMIT 0`),
		pool: pool, lease: cmp.Or(o.Lease, payments.Lease),
		keys: write.New(pool, write.Options{Service: service, Kept: payments.KeysKept, Reused: payments.KeyReused}),
		jobs: jobs.NewAdder(pool, schema)}
}

// Keys are those of payments' writes.
func (s *Store) Keys() *write.Keys { return s.keys }

// Answered returns the answer of an earlier call with the key, if there is one.
func (s *Store) Answered(ctx context.Context, key write.Key) (tool.Result, bool, error) {
	if key.Key == "" {
		return tool.Result{}, false, nil
	}
	return s.keys.Stored(ctx, key)
}

// Release frees a claim without an answer.
func (s *Store) Release(ctx context.Context, c write.Claim) error {
	return s.keys.Release(ctx, s.pool, c)
}

// Record keeps an audit row.
func (s *Store) Record(ctx context.Context, entry audit.Entry) error {
	return explain(audit.Append(ctx, s.pool, entry))
}

// Left returns claims that nobody works on any more.
func (s *Store) Left(ctx context.Context, limit int) ([]write.Claim, error) {
	return s.keys.ExpiredClaims(ctx, limit)
}

// Take takes a claim over that Left has returned.
func (s *Store) Take(ctx context.Context, left write.Claim) (write.Claim, bool, error) {
	return s.keys.TakeOver(ctx, left, s.lease)
}

// Open claims the key and stores a new order.
func (s *Store) Open(ctx context.Context, key write.Key, b *payments.Book) (write.Claim, error) {
	return s.keys.Begin(ctx, key, s.lease, func(ctx context.Context, tx pgx.Tx) (string, error) {
		stored, err := insertOrder(ctx, tx, b.Order)
		if errors.Is(err, pgx.ErrNoRows) {
			var code string
			err := tx.QueryRow(ctx, `SELECT code FROM payments.orders WHERE service_code = $1 AND client_order_id = $2`,
				b.Order.ServiceCode, b.Order.ClientOrderID).Scan(&code)
			return payments.Known + code, err
		}
		if err != nil {
			return "", err
		}
		b.Order.ID = stored
		return b.Order.Code, s.keep(ctx, tx, &payments.Book{Order: b.Order}, b, payments.Actor{Name: "app:" + b.Order.ServiceCode, Now: b.Now,
			RequestID: payments.RequestOf(ctx)})
	})
}

// Claim claims the key and changes an order.
func (s *Store) Claim(ctx context.Context, key write.Key, code string, by payments.Actor,
	do func(*payments.Book) (string, error)) (write.Claim, error) {
	return s.keys.Begin(ctx, key, s.lease, func(ctx context.Context, tx pgx.Tx) (resource string, err error) {
		_, err = s.change(ctx, tx, code, by, func(b *payments.Book) error {
			resource, err = do(b)
			return err
		})
		return resource, err
	})
}

// Change changes an order.
func (s *Store) Change(ctx context.Context, code string, by payments.Actor, do func(*payments.Book) error,
	end *payments.Ending) (b *payments.Book, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		if b, err = s.change(ctx, tx, code, by, do); err != nil || end == nil {
			return err
		}
		answer, entry, err := end.Answer(b)
		if err != nil {
			return err
		}
		if err := s.keys.Finish(ctx, tx, end.Claim, answer); err != nil {
			return err
		}
		return audit.Append(ctx, tx, entry)
	})
	return b, err
}

// change locks an order, lets do change it, and keeps the difference.
func (s *Store) change(ctx context.Context, tx pgx.Tx, code string, by payments.Actor, do func(*payments.Book) error) (*payments.Book,
	error) {
	b, err := readBook(ctx, tx, code, `FOR UPDATE`)
	if err != nil {
		return nil, err
	}
	before := b.Copy()
	b.Now = by.Now
	if err := do(b); err != nil {
		return nil, err
	}
	return b, s.keep(ctx, tx, before, b, by)
}

func (s *Store) atomically(ctx context.Context, do func(pgx.Tx) error) error {
	return explain(pgx.BeginFunc(ctx, s.pool, do))
}

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, service) }
