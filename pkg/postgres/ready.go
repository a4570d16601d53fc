package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// readyFor is how long an answer is used: probes and neighbours ask often.
	readyFor = time.Second
	// readyWithin bounds the wait for one.
	readyWithin = 2 * time.Second
)

// Readiness tells whether a service's store can be reached and has its tables. A Store embeds it.
type Readiness struct {
	pool         *Pool
	service, sql string
	mu           sync.Mutex
	at           time.Time
	err          error
}

// NewReadiness returns the readiness of a service's store: sql reads its tables, and no row.
func NewReadiness(pool *Pool, service, sql string) *Readiness {
	return &Readiness{pool: pool, service: service, sql: sql}
}

// Ready returns the answer of the last second, or asks the store. Who asks meanwhile waits for the
// same answer. It returns what Explain makes of the store's.
func (r *Readiness) Ready(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) > readyFor {
		// The answer is for all who ask in the next second: who asked first and has gone does not cut it off.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
		defer cancel()
		_, err := r.pool.Exec(ctx, r.sql)
		r.at, r.err = time.Now(), Explain(err, r.service)
	}
	return r.err
}
