package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	probeEvery   = 500 * time.Millisecond
	probeTimeout = time.Second
	// probeMisses is how many probes in a row have to fail.
	probeMisses = 2
)

// errUnhealthy ends the calls in flight to an instance that stopped answering.
var errUnhealthy = errors.New("the instance stopped answering")

// probe asks an instance for its health. A process that hangs still accepts
// connections, so without it every call would wait for its whole deadline.
type probe struct {
	url    string
	client *http.Client
	stop   context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	misses int
	calls  map[*context.CancelCauseFunc]struct{}
}

func newProbe(addr string) *probe {
	ctx, stop := context.WithCancel(context.Background())
	p := &probe{url: "http://" + addr + "/healthz", client: &http.Client{Timeout: probeTimeout}, stop: stop,
		done: make(chan struct{}), calls: map[*context.CancelCauseFunc]struct{}{}}
	go p.run(ctx)
	return p
}

// Close stops the probe.
func (p *probe) Close() error {
	p.stop()
	<-p.done
	p.client.CloseIdleConnections()
	return nil
}

func (p *probe) run(ctx context.Context) {
	defer close(p.done)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		p.record(p.ask(ctx))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *probe) ask(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return false
	}
	resp, err := p.client.Do(req)
	if err != nil {
		// A refused connection needs no probe: the call itself finds that out at once,
		// and finds out first that the instance is back.
		return !isTimeout(err)
	}
	_ = resp.Body.Close()
	return true
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
	if p.misses++; p.misses == probeMisses {
		for cancel := range p.calls {
			(*cancel)(errUnhealthy)
		}
	}
}

func (p *probe) healthy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.misses < probeMisses
}

// while returns a context that also ends when the instance turns unhealthy; release
// has to be called when the call is over.
func (p *probe) while(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	p.calls[&cancel] = struct{}{}
	p.mu.Unlock()
	return ctx, func() {
		p.mu.Lock()
		delete(p.calls, &cancel)
		p.mu.Unlock()
		cancel(nil)
	}
}
