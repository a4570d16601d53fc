package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
)

// instance is one process of a neighbour, whose behaviour a test may change at any time.
type instance struct {
	addr   string
	calls  atomic.Int64 // that reached it, probes aside
	handle atomic.Pointer[http.HandlerFunc]
	probe  atomic.Pointer[http.HandlerFunc]
	server *http.Server
	quit   chan struct{} // closed when it is killed: what hangs ends
}

// start runs an instance at addr; "" picks a port that stays free for it when it is killed.
func start(t testing.TB, addr string, h http.HandlerFunc) *instance {
	t.Helper()
	if addr == "" {
		addr = free(t)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{addr: listener.Addr().String(), quit: make(chan struct{})}
	i.handle.Store(&h)
	alive := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"ok"}`) })
	i.probe.Store(&alive)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { (*i.probe.Load())(w, r) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		i.calls.Add(1)
		(*i.handle.Load())(w, r)
	})
	i.server = &http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	// net/http repeats a request by itself when a kept connection turns out to be closed; one
	// connection a request keeps the count exact.
	i.server.SetKeepAlivesEnabled(false)
	go func() { _ = i.server.Serve(listener) }()
	t.Cleanup(i.kill)
	return i
}

func (i *instance) kill() {
	select {
	case <-i.quit:
	default:
		close(i.quit)
	}
	_ = i.server.Close()
}

// hang accepts and never answers.
func (i *instance) hang(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-i.quit:
	case <-r.Context().Done():
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func ok(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(rpc.CountHeader, "3")
	_, _ = io.WriteString(w, `{"said":"hello"}`)
}

func refuse(f *fault.Error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rpc.WriteFault(r.Context(), slog.New(slog.DiscardHandler), w, f)
	}
}

// free is an address where nobody listens, as long as the test does not.
func free(t testing.TB) string {
	t.Helper()
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// keys are the gateway's, which calls here, and theirs those of the service that it calls.
func keys(t testing.TB) *caller.Keys { t.Helper(); return callertest.Keys(t, caller.Gateway) }
func theirs(t testing.TB) *caller.Keys {
	t.Helper()
	return callertest.Keys(t, "query", caller.Gateway, "authoring")
}

func newClient(t testing.TB, concurrency int, addrs ...string) *remote.Client {
	t.Helper()
	return follow(t, concurrency, sd.FixedInstancer(addrs))
}

func follow(t testing.TB, concurrency int, instancer sd.Instancer) *remote.Client {
	t.Helper()
	c := remote.New(
		remote.Options{
			Service:     "query",
			Instancer:   instancer,
			Keys:        keys(t),
			Logger:      slog.New(slog.DiscardHandler),
			Concurrency: concurrency,
		},
	)
	t.Cleanup(c.Close)
	return c
}

var (
	read       = remote.Request{Path: "/internal/tools/x", Body: []byte(`{}`), Retry: true}
	write      = remote.Request{Path: "/internal/tools/x", Body: []byte(`{}`)}
	keyedWrite = remote.Request{Path: "/internal/tools/x", Body: []byte(`{}`), IdempotencyKey: "k"}
)

// do makes a call and reads its answer.
func do(ctx context.Context, c *remote.Client, r remote.Request) (string, error) {
	response, err := c.Do(ctx, r)
	if err != nil {
		return "", err
	}
	defer response.Data.Close()
	b, err := io.ReadAll(response.Data)
	return string(b), err
}

func TestRetryRule(t *testing.T) {
	t.Parallel()
	const all = 3
	plain := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<h1>proxy</h1>", status) }
	}
	for name, c := range map[string]struct {
		handle                http.HandlerFunc
		reads, unkeyed, keyed int64 // how often the instance sees the call
		code                  fault.Code
	}{
		"connection lost":           {hangUp, all, 1, all, fault.DB},
		"503 before any work":       {plain(503), all, all, all, fault.DB},
		"something else listens":    {plain(502), all, 1, all, fault.DB},
		"E_CONFLICT":                {refuse(fault.New(fault.Conflict, "no")), 1, 1, 1, fault.Conflict},
		"E_DB of the service":       {refuse(fault.New(fault.DB, "no")), 1, 1, 1, fault.DB},
		"E_DB_TIMEOUT":              {refuse(fault.New(fault.DBTimeout, "no")), 1, 1, 1, fault.DBTimeout},
		"E_INTERNAL":                {refuse(fault.From(errors.New("x"))), 1, 1, 1, fault.Internal},
		"E_RATE_LIMIT with a delay": {refuse(fault.New(fault.RateLimit, "no").After(time.Millisecond)), 1, 1, 1, fault.RateLimit},
		"E_VALIDATION":              {refuse(fault.New(fault.Validation, "no")), 1, 1, 1, fault.Validation},
	} {
		for kind, k := range map[string]struct {
			request remote.Request
			want    int64
		}{"read": {read, c.reads}, "write without key": {write, c.unkeyed}, "write with key": {keyedWrite, c.keyed}} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				i := start(t, "", c.handle)
				client := newClient(t, 0, i.addr)
				_, err := do(t.Context(), client, k.request)
				if !fault.Is(err, c.code) || i.calls.Load() != k.want {
					t.Errorf("%v after %d calls, want %s after %d", err, i.calls.Load(), c.code, k.want)
				}
			})
		}
	}
}

// TestRetriesHaveABudget: of a service that fails two calls of three, most callers learn it
// at once; it does not get two more calls for each.
func TestRetriesHaveABudget(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1)%3 != 0 {
			hangUp(w, r)
		}
		ok(w, r)
	})
	client := newClient(t, 0, i.addr)
	const calls = 200
	for range calls {
		_, _ = do(t.Context(), client, read)
	}
	if got := i.calls.Load(); got > calls*11/10+10 {
		t.Errorf("%d calls became %d", calls, got)
	}
}

func TestBreakerOpensAndTheProbeClosesIt(t *testing.T) {
	t.Parallel()
	i := start(t, "", hangUp)
	unwell := http.HandlerFunc(hangUp)
	well := *i.probe.Load()
	i.probe.Store(&unwell)
	client := newClient(t, 0, i.addr)
	for range 100 {
		if _, err := do(t.Context(), client, write); !fault.Is(err, fault.DB) {
			t.Fatal(err)
		}
	}
	if got := i.calls.Load(); got > 5 {
		t.Errorf("the broken instance still got %d of 100 calls", got)
	}
	h := http.HandlerFunc(ok)
	i.handle.Store(&h)
	i.probe.Store(&well)
	hubtest.Eventually(t, "the breaker closes", func() bool { _, err := do(t.Context(), client, write); return err == nil })
	for range 100 {
		if _, err := do(t.Context(), client, write); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlowCallsDoNotKeepOthersOutOfARecoveredService: the first calls after a recovery may
// take half a minute; they are no reason to refuse the others.
func TestSlowCallsDoNotKeepOthersOutOfARecoveredService(t *testing.T) {
	t.Parallel()
	i := start(t, "", hangUp)
	client := newClient(t, 0, i.addr)
	for range 10 {
		_, _ = do(t.Context(), client, write)
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(tool.KeyHeader) == "slow" {
			i.hang(w, r)
		}
		ok(w, r)
	})
	i.handle.Store(&h)
	before := i.calls.Load()
	var slow sync.WaitGroup
	defer slow.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 10 {
		slow.Go(func() {
			for ctx.Err() == nil {
				_, _ = do(ctx, client, remote.Request{Path: "/", Body: []byte(`{}`), IdempotencyKey: "slow"})
			}
		})
	}
	hubtest.Eventually(t, "ten slow calls run", func() bool { return i.calls.Load()-before >= 10 })
	for range 50 {
		if _, err := do(t.Context(), client, read); err != nil {
			t.Fatal(err)
		}
	}
}

// atOnce is far below the ten seconds that a call without a deadline gets.
const atOnce = 5 * time.Second

func TestAllDownIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	for name, addrs := range map[string][]string{"nobody listens": {free(t), free(t), free(t)}, "one": {free(t)}, "none is known": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, 0, addrs...)
			for range 50 {
				hubtest.Within(t, atOnce, "a call to nobody", func() {
					_, err := do(t.Context(), client, read)
					f := fault.From(err)
					if f.Code != fault.DB || !f.Retryable() || f.RetryAfter <= 0 || strings.Contains(f.Message, "127.0.0.1") ||
						!strings.Contains(f.Message, "query") {
						t.Fatalf("got %+v", f)
					}
				})
			}
		})
	}
}

func TestHungInstanceEndsItsCallsAndComesBack(t *testing.T) {
	t.Parallel()
	i := start(t, "", nil)
	hung := http.HandlerFunc(i.hang)
	well := *i.probe.Load()
	i.handle.Store(&hung)
	i.probe.Store(&hung)
	client := newClient(t, 0, i.addr)
	var inFlight sync.WaitGroup
	for range 5 {
		inFlight.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if _, err := do(ctx, client, write); !fault.Is(err, fault.DB) || ctx.Err() != nil {
				t.Errorf("in flight: %v, deadline %v", err, ctx.Err())
			}
		})
	}
	inFlight.Wait()
	before := i.calls.Load()
	for range 50 {
		if _, err := do(t.Context(), client, read); !fault.Is(err, fault.DB) {
			t.Fatal(err)
		}
	}
	if n := i.calls.Load() - before; n != 0 {
		t.Errorf("of 50 calls to a hung instance %d were sent", n)
	}
	h := http.HandlerFunc(ok)
	i.handle.Store(&h)
	i.probe.Store(&well)
	hubtest.Eventually(t, "it gets calls again", func() bool { _, err := do(t.Context(), client, read); return err == nil })
}

// TestAnInstanceThatMissesTwoProbesKeepsItsCalls: it was busy, and is well.
func TestAnInstanceThatMissesTwoProbesKeepsItsCalls(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
			ok(w, r)
		case <-r.Context().Done():
		}
	})
	var missed, answered atomic.Int64
	well := *i.probe.Load()
	busy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if missed.Add(1) <= 2 {
			i.hang(w, r)
			return
		}
		well(w, r)
		answered.Add(1)
	})
	client := newClient(t, 0, i.addr)
	call := make(chan error)
	go func() { _, err := do(t.Context(), client, write); call <- err }()
	hubtest.Eventually(t, "the call is in flight", func() bool { return i.calls.Load() == 1 })
	i.probe.Store(&busy)
	hubtest.Eventually(t, "it is well again", func() bool { return answered.Load() > 0 })
	close(release)
	if err := <-call; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
}

// TestHungInstanceHandsItsReadsOver: what hangs at one instance is answered by the other.
func TestHungInstanceHandsItsReadsOver(t *testing.T) {
	t.Parallel()
	a, b := start(t, "", nil), start(t, "", ok)
	hung := http.HandlerFunc(a.hang)
	a.handle.Store(&hung)
	a.probe.Store(&hung)
	client := newClient(t, 0, a.addr, b.addr)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			if _, err := do(t.Context(), client, read); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if a.calls.Load() == 0 {
		t.Error("the hung instance got no call: nothing was tried")
	}
}

func TestOneOfTwoDownReachesNoCaller(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]remote.Request{"read": read, "write without key": write, "write with key": keyedWrite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := start(t, "", ok)
			client := newClient(t, 0, free(t), up.addr)
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					for range 40 {
						if answer, err := do(t.Context(), client, r); err != nil || answer != `{"said":"hello"}` {
							t.Errorf("%q, %v", answer, err)
							return
						}
					}
				})
			}
			callers.Wait()
			if got := up.calls.Load(); got != 320 {
				t.Errorf("the other instance saw %d calls", got)
			}
		})
	}
}

// TestRollingRestartReachesNoReader restarts two instances one after the other under load.
func TestRollingRestartReachesNoReader(t *testing.T) {
	t.Parallel()
	a, b := start(t, "", ok), start(t, "", ok)
	client := newClient(t, 0, a.addr, b.addr)
	ctx, stop := context.WithCancel(t.Context())
	var answered atomic.Int64
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if _, err := do(t.Context(), client, read); err != nil {
					t.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	more := func(what string, i *instance) {
		t.Helper()
		before := i.calls.Load()
		hubtest.Eventually(t, what, func() bool { return i.calls.Load() > before+20 })
	}
	for _, i := range []*instance{a, b} {
		other := a
		if i == a {
			other = b
		}
		more("both get calls", i)
		i.kill()
		more("the other one gets them all", other)
		again := start(t, i.addr, ok)
		more("it gets calls again", again)
		*map[*instance]**instance{a: &a, b: &b}[i] = again
	}
	stop()
	readers.Wait()
	if answered.Load() < 100 {
		t.Errorf("only %d answers", answered.Load())
	}
}

// TestWhatLeavesIsCalledLast: an instance that says that it is about to stop gets no call while another one takes it, and is
// better than none.
func TestWhatLeavesIsCalledLast(t *testing.T) {
	t.Parallel()
	var leaving http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(discover.LeavingHeader, "true") }
	var staying http.HandlerFunc = func(http.ResponseWriter, *http.Request) {}
	a, b := start(t, "", ok), start(t, "", ok)
	c := newClient(t, 0, a.addr, b.addr)
	// calls are how many of a dozen each instance gets: writes, which are not tried elsewhere once they are sent.
	calls := func() (int64, int64) {
		t.Helper()
		atA, atB := a.calls.Load(), b.calls.Load()
		for range 12 {
			response, err := c.Do(t.Context(), write)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Data.Close()
		}
		return a.calls.Load() - atA, b.calls.Load() - atB
	}
	share := func(what string, wantA, wantB int64) {
		t.Helper()
		var atA, atB int64
		hubtest.Eventually(t, what, func() bool { atA, atB = calls(); return atA == wantA && atB == wantB })
	}
	share("both are called", 6, 6)
	a.probe.Store(&leaving)
	share("the one that stays is called", 0, 12)
	b.probe.Store(&leaving)
	share("both are called where both leave", 6, 6)
	a.probe.Store(&staying)
	share("the one that is back is called", 12, 0)
	b.kill()
	share("and when the other is gone", 12, 0)
	a.probe.Store(&leaving)
	share("one that leaves is better than none", 12, 0)
}

// TestAnotherServiceAtTheAddress: an instance that says that it is of another service gets no calls, until it is one of this again.
func TestAnotherServiceAtTheAddress(t *testing.T) {
	t.Parallel()
	is := func(service string) *http.HandlerFunc {
		return new(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(discover.ServiceHeader, service) }))
	}
	good, other := start(t, "", ok), start(t, "", ok)
	c := newClient(t, 0, good.addr, other.addr)
	calls := func(of *instance) int64 {
		before := of.calls.Load()
		for range 12 {
			if _, err := do(t.Context(), c, write); err != nil {
				t.Fatal(err)
			}
		}
		return of.calls.Load() - before
	}
	good.probe.Store(is("query"))
	hubtest.Eventually(t, "one that does not say counts", func() bool { return calls(other) == 6 })
	other.probe.Store(is("auth"))
	hubtest.Eventually(t, "another service is not called", func() bool { return calls(other) == 0 })
	good.probe.Store(is("auth"))
	hubtest.Eventually(t, "nor where there is no other", func() bool {
		_, err := do(t.Context(), c, write)
		return fault.Is(err, fault.DB) && strings.Contains(errors.Unwrap(err).Error(), "is the service auth")
	})
	other.probe.Store(is("query"))
	hubtest.Eventually(t, "it is this service again", func() bool { _, err := do(t.Context(), c, write); return err == nil })
	if got := calls(other); got != 12 {
		t.Errorf("%d of 12 calls", got)
	}
}

func TestConcurrencyLimit(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // the answer has begun, its body has not
		<-release
		_, _ = io.WriteString(w, "done")
	})
	client := newClient(t, 2, i.addr)
	var held []*remote.Response
	for range 2 {
		response, err := client.Do(t.Context(), write)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, response)
	}
	if _, err := client.Do(t.Context(), write); !fault.Shed(err) {
		t.Errorf("a third call: %v", err)
	}
	close(release)
	for _, response := range held {
		if b, err := io.ReadAll(response.Data); err != nil || string(b) != "done" {
			t.Errorf("%q, %v", b, err)
		}
		for range 2 { // closing twice frees one place only
			_ = response.Data.Close()
		}
	}
	for range 2 {
		response, err := client.Do(t.Context(), write)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Data.Close()
	}
	if _, err := client.Do(t.Context(), write); !fault.Shed(err) {
		t.Errorf("a third call later: %v", err)
	}
}

func TestCallerThatGoesAwayProvesNothing(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	i := start(t, "", nil)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; i.hang(w, r) })
	i.handle.Store(&h)
	client := newClient(t, 0, i.addr)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		if _, err := client.Do(ctx, read); !errors.Is(err, context.Canceled) || fault.Is(err, fault.DB) {
			t.Fatalf("got %v", err)
		}
	}
	if got := i.calls.Load(); got != 20 {
		t.Errorf("20 calls became %d", got)
	}
	h2 := http.HandlerFunc(ok)
	i.handle.Store(&h2)
	if _, err := do(t.Context(), client, write); err != nil {
		t.Errorf("the breaker has opened: %v", err)
	}
}

// due is a context whose deadline passes when the test says so.
type due struct {
	context.Context
	at     time.Time
	passed chan struct{}
}

func (d due) Deadline() (time.Time, bool) { return d.at, true }
func (d due) Done() <-chan struct{}       { return d.passed }
func (d due) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestDeadlineIsE_DB(t *testing.T) {
	t.Parallel()
	i := start(t, "", nil)
	var deadline atomic.Value
	ctx := due{t.Context(), time.Now().Add(9 * time.Second), make(chan struct{})}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline.Store(r.Header.Get(rpc.DeadlineHeader))
		close(ctx.passed)
		i.hang(w, r)
	})
	i.handle.Store(&h)
	client := newClient(t, 0, i.addr)
	if _, err := client.Do(ctx, read); !fault.Is(err, fault.DB) {
		t.Errorf("got %v", err)
	}
	if ms, _ := deadline.Load().(string); len(ms) == 0 || len(ms) > 4 {
		t.Errorf("the neighbour was given %q ms", ms)
	}
	if got := i.calls.Load(); got != 1 {
		t.Errorf("%d calls", got)
	}
}

func TestBodyStreamsAfterDoReturned(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		for range 5 {
			w.(http.Flusher).Flush()
			<-next
			_, _ = w.Write(make([]byte, 100_000))
		}
	})
	client := newClient(t, 0, i.addr)
	response, err := client.Do(t.Context(), read)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Data.Close()
	total := 0
	for range 5 {
		next <- struct{}{}
		n, err := io.ReadFull(response.Data, make([]byte, 100_000))
		if err != nil {
			t.Fatalf("after %d bytes: %v", total+n, err)
		}
		total += n
	}
	if _, err := response.Data.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestFaultSurvivesTheHop(t *testing.T) {
	t.Parallel()
	sent := fault.New(
		fault.Suppressed,
		"Two targets are suppressed.",
	).With(
		map[string]any{"targets": []int{1, 2}},
	).After(
		1500 * time.Millisecond,
	).Because(
		errors.New("SELECT secret"),
	)
	client := newClient(t, 0, start(t, "", refuse(sent)).addr)
	_, err := do(t.Context(), client, keyedWrite)
	got := fault.From(err)
	details, _ := json.Marshal(got.Details)
	if got.Code != sent.Code || got.Message != sent.Message || got.RetryAfter != sent.RetryAfter ||
		string(details) != `{"targets":[1,2]}` ||
		strings.Contains(got.Error(), "secret") {
		t.Errorf("got %+v, details %s", got, details)
	}
}

// TestACodeOfALaterReleaseIsAnAnswer: a refusal that this build has no name for opens no breaker and is not asked again, while
// other tools of the same instance are called.
func TestACodeOfALaterReleaseIsAnAnswer(t *testing.T) {
	t.Parallel()
	for status, retryable := range map[int]bool{http.StatusConflict: false, http.StatusTooManyRequests: true} {
		later := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(rpc.FaultHeader, "1")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"code":"E_LATER","message":"It is of a later release.","details":{"since":2}}`)
		}
		i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == read.Path {
				later(w, r)
			} else {
				ok(w, r)
			}
		})
		client := newClient(t, 0, i.addr)
		other := remote.Request{Path: "/internal/tools/y", Body: []byte(`{}`), Retry: true}
		const calls = 40
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range calls {
					_, err := do(t.Context(), client, read)
					f := fault.From(err)
					if details, _ := json.Marshal(
						f.Details,
					); f.Code != "E_LATER" || f.Message != "It is of a later release." || string(details) != `{"since":2}` ||
						f.Status() != status ||
						f.Retryable() != retryable {
						t.Errorf("got %+v with the status %d, retryable %t", f, f.Status(), f.Retryable())
					}
					if _, err := do(t.Context(), client, other); err != nil {
						t.Errorf("another tool of the instance: %v", err)
					}
				}
			})
		}
		all.Wait()
		if got := i.calls.Load(); got != 4*2*calls {
			t.Errorf("%d calls became %d", 4*2*calls, got)
		}
	}
}

// TestAnswerAndRequestTravelWhole uses the real other end: rpc.Handler.
func TestAnswerAndRequestTravelWhole(t *testing.T) {
	t.Parallel()
	k := theirs(t)
	who := caller.Caller{
		Kind:           caller.Key,
		Service:        "svc",
		ExternalUserID: "ext",
		CredentialID:   "ak_1",
		Scopes:         []string{"query"},
		RequestID:      "req_1",
	}
	mux := http.NewServeMux()
	mux.Handle("POST /internal/tools/x", rpc.Handler(func(ctx context.Context, request any) (any, error) {
		call := request.(*tool.Call)
		deadline, has := ctx.Deadline()
		if left := time.Until(deadline); !has || left > 10*time.Second || left < 5*time.Second {
			return nil, fmt.Errorf("deadline %v, %v", left, has)
		}
		if got := caller.From(ctx); got.CredentialID != "ak_1" || got.RequestID != "req_1" || !got.Holds("query") {
			return nil, fmt.Errorf("caller %+v", got)
		}
		return &tool.Result{
			Head: tool.Head{Count: 7, Replayed: true},
			Data: fmt.Appendf(nil, `{"key":%q,"input":%s}`, call.IdempotencyKey, call.Input),
		}, nil
	}, "x", caller.Agents(), 1<<20, k, slog.New(slog.DiscardHandler)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := newClient(t, 0, strings.TrimPrefix(server.URL, "http://"))
	response, err := client.Do(
		caller.With(t.Context(), who),
		remote.Request{Path: rpc.ToolPath("x"), Body: []byte(`{"a": 1}`), IdempotencyKey: "k 1"},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Data.Close()
	b, err := io.ReadAll(response.Data)
	if err != nil || string(b) != `{"key":"k 1","input":{"a": 1}}` || response.Count != 7 || !response.Replayed ||
		response.Length != int64(len(b)) {
		t.Errorf("%s, %+v, %v", b, response, err)
	}
}

// TestATokenThatIsNotBelieved is no refusal of whoever calls: they have nothing to mend, and
// another instance may have been told of the key already.
func TestATokenThatIsNotBelieved(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	answer := func(k *caller.Keys) http.HandlerFunc {
		return rpc.Authenticated(k, caller.Agents(), quiet, http.HandlerFunc(ok)).ServeHTTP
	}
	ctx := caller.With(t.Context(), caller.Caller{Kind: caller.Key})
	deaf := start(t, "", answer(callertest.Keys(t, "query", "authoring")))
	for name, r := range map[string]remote.Request{"read": read, "write": write} {
		if _, err := do(
			ctx,
			newClient(t, 0, deaf.addr),
			r,
		); !fault.Is(err, fault.DB) ||
			strings.Contains(fault.From(err).Message, "token") {
			t.Errorf("%s: %v", name, err)
		}
	}
	both := newClient(t, 0, deaf.addr, start(t, "", answer(theirs(t))).addr)
	for range 6 {
		if _, err := do(ctx, both, write); err != nil {
			t.Error(err)
		}
	}
	if status, body := get(
		t,
		front(t, newClient(t, 0, deaf.addr), nil),
	); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "E_DB") {
		t.Errorf("a page: %d %s", status, body)
	}
}

// TestWhoeverACallIsForIsShownWhenAsked: and not otherwise.
func TestWhoeverACallIsForIsShownWhenAsked(t *testing.T) {
	t.Parallel()
	type out struct{ Kind, ID, Request string }
	mux, quiet := http.NewServeMux(), slog.New(slog.DiscardHandler)
	who := func(ctx context.Context, _ any) (out, error) {
		c := caller.From(ctx)
		return out{c.Kind, c.CredentialID, c.RequestID}, nil
	}
	rpc.Server{
		Mux:    mux,
		Keys:   theirs(t),
		Logger: quiet,
	}.Operation(
		rpc.New(rpc.Declaration{Path: "/internal/who", Takes: caller.Rule{"authoring": {caller.Service, caller.Key}}}, who),
	)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	authoring := callertest.Keys(t, "authoring", caller.Gateway)
	c := remote.New(
		remote.Options{
			Service:   "query",
			Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
			Keys:      authoring,
			Logger:    quiet,
		},
	)
	t.Cleanup(c.Close)
	agent := caller.Caller{Kind: caller.Key, CredentialID: "ak_1", RequestID: "req_1"}
	ctx, err := authoring.Accept(t.Context(), callertest.Header(t, "authoring", agent), caller.Agents())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (remote.Operation[any, out]{Path: "/internal/who", Repeatable: true, ForCaller: true}).Call(
		ctx,
		c,
		nil,
	); err != nil ||
		got != (out{caller.Key, "ak_1", "req_1"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := (remote.Operation[any, out]{Path: "/internal/who", Repeatable: true}).Call(
		ctx,
		c,
		nil,
	); err != nil ||
		got != (out{caller.Service, "authoring", "req_1"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := (remote.Operation[any, out]{Path: "/internal/who", Repeatable: true, ForCaller: true}).Call(
		t.Context(),
		c,
		nil,
	); err != nil ||
		got != (out{caller.Service, "authoring", ""}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	type out struct{ Said string }
	i := start(t, "", ok)
	client := newClient(t, 0, i.addr)
	if got, err := (remote.Operation[any, out]{Path: "/x", Repeatable: true}).Call(
		t.Context(),
		client,
		nil,
	); err != nil ||
		got.Said != "hello" {
		t.Errorf("%+v, %v", got, err)
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"said":`) })
	i.handle.Store(&h)
	if _, err := (remote.Operation[any, out]{Path: "/x", Repeatable: true}).Call(t.Context(), client, nil); !fault.Is(err, fault.DB) {
		t.Errorf("half an answer: %v", err)
	}
	sent := make(chan int, 1)
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.WriteString(w, `{"said":"`)
		for err == nil {
			var more int
			more, err = w.Write(bytes.Repeat([]byte("a"), 64<<10))
			n += more
		}
		sent <- n
	})
	i.handle.Store(&endless)
	if _, err := (remote.Operation[any, out]{Path: "/x", Most: 1 << 20}).Call(t.Context(), client, nil); !fault.Is(err, fault.DB) {
		t.Errorf("an endless answer: %v", err)
	}
	if n := <-sent; n > 32<<20 {
		t.Errorf("%d bytes were taken of an endless answer", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h2 := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"said":`)
		w.(http.Flusher).Flush()
		cancel()
		i.hang(w, r)
	})
	i.handle.Store(&h2)
	if _, err := (remote.Operation[any, out]{Path: "/x", Repeatable: true}).Call(ctx, client, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller went away in the middle of the answer: %v", err)
	}
}

// TestFirstCallFindsItsInstance: a client that New has returned knows its instances.
func TestFirstCallFindsItsInstance(t *testing.T) {
	t.Parallel()
	i := start(t, "", ok)
	over, cancel := context.WithTimeout(t.Context(), 0) // cannot be sent
	defer cancel()
	for n := range 2000 {
		c := remote.New(
			remote.Options{Service: "query", Instancer: sd.FixedInstancer{i.addr}, Keys: keys(t), Logger: slog.New(slog.DiscardHandler)},
		)
		_, err := c.Do(over, read)
		c.Close()
		if err == nil || strings.Contains(err.Error(), "no endpoints") {
			t.Fatalf("client %d: %v", n, err)
		}
	}
}

// TestInstancesComeAndGo: what discovery says is followed.
func TestInstancesComeAndGo(t *testing.T) {
	t.Parallel()
	a, b := start(t, "", ok), start(t, "", ok)
	told := &told{}
	client := follow(t, 0, told)
	told.say(a.addr)
	hubtest.Eventually(t, "the first is called", func() bool { _, err := do(t.Context(), client, read); return err == nil })
	told.say(b.addr)
	hubtest.Eventually(t, "the second is called", func() bool { _, _ = do(t.Context(), client, read); return b.calls.Load() > 0 })
	before := a.calls.Load()
	for range 10 {
		if _, err := do(t.Context(), client, read); err != nil {
			t.Fatal(err)
		}
	}
	if a.calls.Load() != before {
		t.Error("an instance that is gone still gets calls")
	}
	told.fail(errors.New("consul is away")) // the last known instances stay
	if _, err := do(t.Context(), client, read); err != nil {
		t.Error(err)
	}
}

// told is an instancer that a test speaks for.
type told struct {
	mu    sync.Mutex
	last  sd.Event
	hears map[chan<- sd.Event]bool
}

func (s *told) Register(ch chan<- sd.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hears == nil {
		s.hears = map[chan<- sd.Event]bool{}
	}
	s.hears[ch] = true
	ch <- s.last
}
func (s *told) Deregister(chan<- sd.Event) {}
func (s *told) Stop()                      {}
func (s *told) say(addrs ...string)        { s.event(sd.Event{Instances: addrs}) }
func (s *told) fail(err error)             { s.event(sd.Event{Err: err}) }
func (s *told) event(e sd.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = e
	for ch := range s.hears {
		ch <- e
	}
}
