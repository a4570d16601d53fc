package service

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/quota"
)

const (
	// bodyRemainderTimeout is how long what the handler did not read of a body may take to arrive, so that
	// the connection serves another request.
	bodyRemainderTimeout = 5 * time.Second
	// bodyMemoryWait is how long a body waits for memory.
	bodyMemoryWait = 2 * time.Second
)

// bodies makes the bodies of requests arrive at this pace, and counts what handlers keep of
// them against held. Each is waited for only while it is read, and no deadline outlives its
// request.
func (p pace) bodies(held *quota.Quota, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, held: held, deadline: http.NewResponseController(w).SetReadDeadline, patience: p.patience(),
			place: slotOf(r)}
		if b.place.of.crowded() {
			b.patience = p.hurried().patience()
		}
		defer b.finish()
		r.Body = b
		next.ServeHTTP(w, r)
	})
}

// body is a request's.
type body struct {
	io.ReadCloser
	held     *quota.Quota
	loan     *quota.Loan // nil until something is kept
	deadline func(time.Time) error
	patience allowance // of the one who reads
	place    *slot

	mu sync.Mutex
	// over is set at the body's end and at the handler's: the connection is not the body's then.
	over bool
}

// Read reads what has arrived, and waits for no longer than the client may keep its body waiting.
func (b *body) Read(p []byte) (int, error) {
	if err := b.expect(); err != nil {
		return 0, err
	}
	waits := b.place.wait()
	n, err := b.ReadCloser.Read(p)
	if waits && !b.place.begin() {
		return 0, net.ErrClosed
	}
	b.patience.end(n)
	if err != nil {
		b.mu.Lock()
		b.over = true
		b.mu.Unlock()
	}
	return n, err
}

// expect sets the deadline of the read that begins now, while the connection is the body's.
func (b *body) expect() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := b.patience.begin()
	if b.over {
		return nil
	}
	return b.deadline(until)
}

// Hold counts n more bytes of the body as kept until its request is over: pkg/tool's ReadBody
// tells what it is about to keep. It waits a moment for memory, and then answers E_RATE_LIMIT
// with details.scope body. What is passed on as it comes needs none.
func (b *body) Hold(ctx context.Context, n int64) error {
	if b.loan == nil {
		b.loan = b.held.Open(caller.From(ctx).Account())
	}
	ctx, cancel := context.WithTimeout(ctx, bodyMemoryWait)
	defer cancel()
	if err := b.loan.Take(ctx, n); err != nil {
		return fault.New(fault.RateLimit, "There are too many large requests at once. Try again in a second, or send less at a time.").
			With(map[string]any{"scope": "body", "retryAfter": 1}).After(time.Second).Because(err)
	}
	return nil
}

// finish gives back what was held, and leaves the rest of the body to net/http.
func (b *body) finish() {
	if b.loan != nil {
		b.loan.Close()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		b.place.rest()
		_ = b.deadline(time.Now().Add(bodyRemainderTimeout)) // it fails with the connection alone
	}
}
