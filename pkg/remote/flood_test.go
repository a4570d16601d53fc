package remote_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/quota"
	"hub.internal/pkg/remote"
)

// hands is how many calls a service does at once.
const hands = 8

// saturating is a service that has this to do for each call: what is more than it has hands for waits inside it.
func saturating(t testing.TB, takes time.Duration) (addr string) {
	t.Helper()
	free := make(chan struct{}, hands)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == read.Path {
			free <- struct{}{}
			time.Sleep(takes)
			<-free
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// flooded is what became of the calls in a flood.
type flooded struct {
	mu              sync.Mutex
	let, quiet      []time.Duration // what took how long that was answered
	shed, quietShed int             // what was not
}

func (f *flooded) count(quiet bool, took time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	let, shed := &f.let, &f.shed
	if quiet {
		let, shed = &f.quiet, &f.quietShed
	}
	if err != nil {
		*shed++
		return
	}
	*let = append(*let, took)
}

// flood has 20 callers together call ten times as often as the service can answer, and one more a call at a time. The first and the
// last fifth of the time are not counted.
func flood(t testing.TB, call func(ctx context.Context) error, takes, long time.Duration) *flooded {
	t.Helper()
	f, each := &flooded{}, 10*hands/takes.Seconds()/20
	as := func(key string) context.Context {
		return caller.With(t.Context(), caller.Caller{Kind: caller.Key, CredentialID: key})
	}
	var ends time.Time
	one := func(quiet bool, ctx context.Context) {
		began := time.Now()
		err := call(ctx)
		if began.After(ends.Add(-long*4/5)) && began.Before(ends.Add(-long/5)) {
			f.count(quiet, time.Since(began), err)
		}
	}
	for range 50 {
		if err := call(as("quiet")); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	ends = time.Now().Add(long)
	all.Go(func() {
		for ctx := as("quiet"); time.Now().Before(ends); time.Sleep(10 * takes) {
			one(true, ctx)
		}
	})
	for i := range 20 {
		all.Go(func() {
			ctx, began, made := as(fmt.Sprint("flood ", i)), time.Now(), 0
			for time.Now().Before(ends) {
				for ; float64(made) < each*time.Since(began).Seconds(); made++ {
					all.Go(func() { one(false, ctx) })
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return f
}

// TestAFloodLeavesOthersTheirAnswers: while 20 callers call ten times as often as the service can answer, a caller with one call at
// a time gets each of its answers.
func TestAFloodLeavesOthersTheirAnswers(t *testing.T) {
	const takes = 20 * time.Millisecond
	client := newClient(t, 0, saturating(t, takes))
	f := flood(t, func(ctx context.Context) error { _, err := do(ctx, client, read); return err }, takes, 2*time.Second)
	if f.quietShed > 0 || len(f.quiet) == 0 || f.shed == 0 {
		t.Errorf("of the quiet caller's calls %d were answered and %d shed; of the others' %d and %d",
			len(f.quiet), f.quietShed, len(f.let), f.shed)
	}
	if _, err := do(t.Context(), client, read); err != nil {
		t.Errorf("after the flood: %v", err)
	}
}

// TestWhatIsASignOfOverload: what a service answers that could not do it lets fewer calls in; a refusal does not.
func TestWhatIsASignOfOverload(t *testing.T) {
	for name, c := range map[string]struct {
		answer *fault.Error
		sign   bool
	}{
		"a timeout":            {fault.New(fault.DBTimeout, "no"), true},
		"a service that sheds": {fault.Full("no"), true},
		"a defect":             {fault.New(fault.Internal, "no"), false},
		"a refusal":            {fault.New(fault.Validation, "no"), false},
		"a limit":              {fault.New(fault.RateLimit, "no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, 0, start(t, "", refuse(c.answer)).addr)
			if _, err := do(t.Context(), client, read); err == nil || remote.Overloaded(err) != c.sign {
				t.Errorf("%v is taken for %t", err, !c.sign)
			}
		})
	}
	for name, c := range map[string]struct {
		err  error
		sign bool
	}{
		"asked, and no answer": {remote.Unreachable(io.ErrUnexpectedEOF, false), true},
		"nothing was sent":     {remote.Unreachable(io.ErrUnexpectedEOF, true), false},
		"the caller went away": {remote.Unreachable(context.Canceled, false), false},
	} {
		if remote.Overloaded(c.err) != c.sign {
			t.Errorf("%s: %v is taken for %t", name, c.err, !c.sign)
		}
	}
}

// BenchmarkFlood is a flood of ten times what a service can answer, through a client (admission), and with a fixed number of places
// of which one caller has half at most (halves). Run it with -benchtime 1x.
func BenchmarkFlood(b *testing.B) {
	const takes, long = 5 * time.Millisecond, 5 * time.Second
	for _, way := range []string{"halves", "admission"} {
		b.Run(way, func(b *testing.B) {
			client := newClient(b, 0, saturating(b, takes))
			call := func(ctx context.Context) error { _, err := do(ctx, client, read); return err }
			if way == "halves" {
				places, alone := quota.New(256), b.Context()
				call = func(ctx context.Context) error {
					loan := places.Open(caller.From(ctx).Account())
					defer loan.Close()
					if !loan.TryTake(1) {
						return fault.Full("full")
					}
					_, err := do(alone, client, read)
					return err
				}
			}
			for b.Loop() {
				f := flood(b, call, takes, long)
				percentile := func(took []time.Duration, p float64) float64 {
					if len(took) == 0 {
						return 0
					}
					slices.Sort(took)
					return float64(took[int(p*float64(len(took)-1))].Microseconds()) / 1000
				}
				b.ReportMetric(float64(len(f.let))/(long*3/5).Seconds(), "goodput/s")
				b.ReportMetric(float64(f.shed)/(long*3/5).Seconds(), "shed/s")
				b.ReportMetric(percentile(f.let, .5), "p50-ms")
				b.ReportMetric(percentile(f.let, .99), "p99-ms")
				b.ReportMetric(100*float64(len(f.quiet))/float64(len(f.quiet)+f.quietShed), "quiet-%")
				b.ReportMetric(percentile(f.quiet, .5), "quiet-p50-ms")
				b.ReportMetric(percentile(f.quiet, .99), "quiet-p99-ms")
			}
		})
	}
}
