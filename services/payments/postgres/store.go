// Package postgres keeps payments' tables: the SQL beside the method that runs it, and the migrations. It refuses to
// judge: rules are the domain's.
//
// A change of an order is one transaction. It locks the order's row, lets a method of the aggregate change the order in
// memory, and stores the difference: columns of the order, refunds, deposits, events, the notifications of those events and
// the jobs that follow. The notifications are a transactional outbox, and the webhooks of the provider an inbox: what is in
// them is worked on by jobs after the commit, at least once. What a role may touch is granted in migrations.
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
	"hub.internal/services/payments/order"
)

//go:embed migrations/*.sql
var migrations embed.FS

// service is the discovery name, and storeSchema its part of the write store.
const (
	service     = "payments"
	storeSchema = "payments"
)

// Migrate brings the audit schema, payments' own and River's tables in it up to date, as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	return postgres.MigrateAll(ctx, ownerURL, service, audit.Tables, postgres.Files(migrations), write.Migrate, jobs.Migrate)
}

// Store is payments' part of the write store. It implements payments.Store and credentials.Store. Whatever changes an order goes
// through change, which locks the order's row first, so that two changes of one order never run at once; orders do not wait
// for each other.
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
		jobs: jobs.NewAdder(pool, storeSchema)}
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

// AbandonedClaims returns claims that nobody works on any more.
func (s *Store) AbandonedClaims(ctx context.Context, limit int) ([]write.Claim, error) {
	return s.keys.ExpiredClaims(ctx, limit)
}

// TakeOverClaim takes a claim over that AbandonedClaims has returned.
func (s *Store) TakeOverClaim(ctx context.Context, left write.Claim) (write.Claim, bool, error) {
	return s.keys.TakeOver(ctx, left, s.lease)
}

// Open claims the key and stores a new order.
func (s *Store) Open(ctx context.Context, key write.Key, a *order.Aggregate) (write.Claim, error) {
	return s.keys.Begin(ctx, key, s.lease, func(ctx context.Context, tx *postgres.Tx) (string, error) {
		stored, err := insertOrder(ctx, tx, a.Order)
		if errors.Is(err, pgx.ErrNoRows) {
			var code string
			err := tx.QueryRow(ctx, `SELECT code FROM payments.orders WHERE service_code = $1 AND client_order_id = $2`,
				a.Order.ServiceCode, a.Order.ClientOrderID).Scan(&code)
			return payments.Subject{Kind: payments.KnownOrder, Code: code}.String(), err
		}
		if err != nil {
			return "", err
		}
		a.Order.ID = stored
		by := payments.Actor{Name: "app:" + a.Order.ServiceCode, RequestID: payments.RequestOf(ctx), Now: a.Now}
		return payments.Subject{Kind: payments.NewOrder, Code: a.Order.Code}.String(), s.persist(ctx, tx, &order.Aggregate{Order: a.Order}, a, by)
	})
}

// Claim claims the key and changes an order.
func (s *Store) Claim(ctx context.Context, key write.Key, code string, by payments.Actor,
	do func(*order.Aggregate) (payments.Subject, error)) (write.Claim, error) {
	return s.keys.Begin(ctx, key, s.lease, func(ctx context.Context, tx *postgres.Tx) (string, error) {
		var about payments.Subject
		_, err := s.change(ctx, tx, code, by, func(a *order.Aggregate) (err error) {
			about, err = do(a)
			return err
		})
		return about.String(), err
	})
}

// Change changes an order.
func (s *Store) Change(ctx context.Context, code string, by payments.Actor, do func(*order.Aggregate) error,
	end *payments.Completion) (a *order.Aggregate, err error) {
	err = s.atomically(ctx, func(tx *postgres.Tx) error {
		if a, err = s.change(ctx, tx, code, by, do); err != nil || end == nil {
			return err
		}
		answer, entry, err := end.Answer(a)
		if err != nil {
			return err
		}
		if err := s.keys.Finish(ctx, tx, end.Claim, answer); err != nil {
			return err
		}
		return audit.Append(ctx, tx, entry)
	})
	return a, err
}

// change locks an order, lets do change it, and stores the difference. What do returns as an error rolls everything back.
func (s *Store) change(ctx context.Context, tx *postgres.Tx, code string, by payments.Actor,
	do func(*order.Aggregate) error) (*order.Aggregate, error) {
	a, err := readOrder(ctx, tx, code, `FOR UPDATE`)
	if err != nil {
		return nil, err
	}
	before := a.Clone()
	a.Now = by.Now
	if err := do(a); err != nil {
		return nil, err
	}
	return a, s.persist(ctx, tx, before, a, by)
}

// atomically runs do in a transaction, and makes faults of what the driver says.
func (s *Store) atomically(ctx context.Context, do func(*postgres.Tx) error) error {
	return explain(postgres.Atomically(ctx, s.pool, pgx.TxOptions{}, do))
}

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, service) }
