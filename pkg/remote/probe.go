package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/text"
)

const (
	probeEvery = 250 * time.Millisecond
	// idleEvery is for an instance that answered and that nobody has called since: half of the second for which one that
	// is about to stop says so (HUB_DRAIN_DELAY).
	idleEvery = 500 * time.Millisecond
	// probeMisses is how many probes in a row have to fail: a busy machine makes a process miss
	// two, and what is taken for down loses its calls in flight.
	probeMisses = 3
)

// errUnhealthy ends the calls in flight to an instance that stopped answering.
var errUnhealthy = errors.New("the instance stopped answering")

// probe asks an instance for its health. A process that hangs still accepts
// connections, so without it every call would wait for its whole deadline.
type probe struct {
	service string
	url     string
	client  *http.Client
	stop    context.CancelFunc

	// foreign is another service that the instance said, when it last answered, that it is of.
	foreign atomic.Pointer[string]
	// leaving tells that the instance said, when it last answered, that it is about to stop.
	leaving atomic.Bool
	// called tells that a call began since the last probe.
	called atomic.Bool

	mu     sync.Mutex
	misses int
	calls  map[*context.CancelCauseFunc]struct{}
}

func newProbe(transport http.RoundTripper, service, addr string, patience time.Duration, stop context.CancelFunc) *probe {
	return &probe{service: service, url: "http://" + addr + discover.AlivePath,
		client: &http.Client{Transport: transport, Timeout: patience}, stop: stop, calls: map[*context.CancelCauseFunc]struct{}{}}
}

// Close stops the probe.
func (p *probe) Close() error {
	p.stop()
	return nil
}

// run asks until ctx ends and tells each answer to heard.
func (p *probe) run(ctx context.Context, heard func(error)) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		err := p.check(ctx)
		// A refused connection is no sign of a hung process: the next call finds that out at once by itself.
		p.record(!isTimeout(err))
		heard(err)
		every := probeEvery
		if called := p.called.Swap(false); err == nil && !called {
			every = idleEvery
		}
		// All probes begin at the same moments of the clock, in all processes: one that wakes up for all its neighbours at once
		// costs less than one that does for each, and an instance has an answer of some bytes for each process that asks.
		next.Reset(time.Until(began.Truncate(every).Add(every)))
	}
}

// check returns an *unreachable when no answer came.
func (p *probe) check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return &unreachable{cause: err}
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return &unreachable{cause: err}
	}
	defer resp.Body.Close()
	// Read to its end, so that the connection serves the next probe too.
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return &unreachable{cause: err}
	}
	if name := resp.Header.Get(discover.ServiceHeader); name != "" && name != p.service {
		name = text.Shown(name, 40) // the log quotes it
		p.foreign.Store(&name)
	} else {
		p.foreign.Store(nil)
	}
	p.leaving.Store(resp.Header.Get(discover.LeavingHeader) != "")
	return nil
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func (p *probe) record(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.misses = 0
		return
	}
	if p.misses++; p.misses >= probeMisses {
		for cancel := range p.calls {
			(*cancel)(errUnhealthy)
		}
	}
}

func (p *probe) healthy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.misses < probeMisses && p.foreign.Load() == nil
}

// while returns a context that also ends when the instance turns unhealthy; release
// has to be called when the call is over.
func (p *probe) while(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	p.calls[&cancel] = struct{}{}
	p.mu.Unlock()
	p.called.Store(true)
	return ctx, func() {
		p.mu.Lock()
		delete(p.calls, &cancel)
		p.mu.Unlock()
		cancel(nil)
	}
}
