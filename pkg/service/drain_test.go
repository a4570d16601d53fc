package service_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
)

// worker counts what callers of two instances are told, while one instance after the other is restarted.
type worker struct {
	client *remote.Client
	mu     sync.Mutex
	good   int
	lost   []error
}

// answered is how many calls got their answer.
func (w *worker) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.good
}

// unanswered are the failures of those that did not.
func (w *worker) unanswered() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost)
}

// work calls what must not be done twice, so that nothing can be asked again once it has been sent, until the test ends.
func (w *worker) work(t *testing.T) {
	ctx := caller.Alone(t.Context(), "gateway")
	for ctx.Err() == nil {
		response, err := w.client.Do(ctx, remote.Request{Path: "/work", Method: http.MethodPost, Body: []byte(strings.Repeat("x", 300))})
		if err == nil {
			err = response.Data.Close()
		}
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		if err == nil {
			w.good++
		} else {
			w.lost = append(w.lost, err)
		}
		w.mu.Unlock()
		time.Sleep(rand.N(4 * time.Millisecond)) // so that connections lie idle now and then
	}
}

// TestAnInstanceLeavesWithoutLosingACall restarts two instances in turn, of a fixed list that never shrinks, before callers who cannot
// ask twice.
func TestAnInstanceLeavesWithoutLosingACall(t *testing.T) {
	t.Parallel()
	instances := []running{run(t, "", keys...), run(t, "", keys...)}
	addrs := []string{instances[0].Addr(t), instances[1].Addr(t)}
	w := &worker{client: remote.New(remote.Options{Service: "tester", Instancer: sd.FixedInstancer{addrs[0], addrs[1]},
		Keys: callertest.Keys(t, "gateway", "tester"), Logger: slog.New(slog.DiscardHandler)})}
	t.Cleanup(w.client.Close)
	var callers sync.WaitGroup
	t.Cleanup(callers.Wait)
	for range 8 {
		callers.Go(func() { w.work(t) })
	}
	for round := range 4 {
		before := w.answered()
		hubtest.Eventually(t, "calls are answered", func() bool { return w.answered() > before+500 })
		if code := instances[round%2].Stop(t); code != 0 {
			t.Fatalf("exit %d", code)
		}
		instances[round%2] = run(t, "", with("HUB_ADDR="+addrs[round%2])...)
		instances[round%2].Ready(t)
		if lost := w.unanswered(); len(lost) > 0 {
			t.Fatalf("round %d: %d calls were lost, the first: %v", round, len(lost), errors.Unwrap(lost[0]))
		}
	}
}
