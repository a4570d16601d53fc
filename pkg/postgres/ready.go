package postgres

import (
	"sync"
	"time"
)

// readyFor is how long an answer is used: probes and neighbours ask often.
const readyFor = time.Second

// Readiness remembers for a second whether a store can be used. The zero value is ready to ask.
type Readiness struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// Ask returns what ask answered within the last second, or asks it now. Who asks meanwhile
// waits for the same answer.
func (r *Readiness) Ask(ask func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) > readyFor {
		err := ask()
		r.at, r.err = time.Now(), err
	}
	return r.err
}
