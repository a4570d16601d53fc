package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "")
}

// greet is a job of the tests; wave is one with a queue of its own.
type greet struct {
	Name string `json:"name"`
}

func (greet) Kind() string { return "greet" }

type wave struct{}

func (wave) Kind() string  { return "wave" }
func (wave) Queue() string { return "waves" }

// house is a service with jobs.
type house struct {
	*pgxpool.Pool
	t     *testing.T
	adder *jobs.Adder
}

func newHouse(t *testing.T) house {
	t.Helper()
	store := hubtest.WriteStore(t)
	if err := postgres.Migrate(
		t.Context(),
		store.OwnerURL,
		"authoring",
		fstest.MapFS{"00001_none.sql": {Data: []byte("-- +goose Up\nSELECT 1;")}},
	); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := jobs.Migrate(t.Context(), store.OwnerURL, "authoring"); err != nil {
			t.Fatal(err)
		}
	}
	pool, err := postgres.Open(postgres.Config{URL: store.URL("authoring"), MaxConns: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return house{pool, t, jobs.NewAdder(pool, "authoring")}
}

// add adds jobs in one transaction, which fails when said is not nil.
func (h house) add(at time.Time, said error, list ...jobs.Job) {
	h.t.Helper()
	err := pgx.BeginFunc(h.t.Context(), h, func(tx pgx.Tx) error {
		return errors.Join(h.adder.AddAt(h.t.Context(), tx, at, list...), said)
	})
	if !errors.Is(err, said) || (said == nil) != (err == nil) {
		h.t.Fatal(err)
	}
}

// run runs jobs until the test ends, or stop is called, which returns what Run did.
func (h house) run(r jobs.Runner) (stop func() error) {
	r.Pool, r.Service, r.Schema, r.Logger = h.Pool, "authoring", "authoring", slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	h.t.Cleanup(func() { _ = stop() })
	return stop
}

func (h house) count(where string, args ...any) (n int) {
	h.t.Helper()
	if err := h.QueryRow(h.t.Context(), `SELECT count(*) FROM authoring.river_job WHERE `+where, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestJobsRunWhenTheirTransactionCommits(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var seen sync.Map
	var waves atomic.Int64
	h.run(jobs.Runner{
		Kinds: []jobs.Kind{
			jobs.On(func(_ context.Context, j greet) error { seen.Store(j.Name, true); return nil }),
			jobs.On(func(context.Context, wave) error { waves.Add(1); return nil }),
		},
		Queues: []jobs.Queue{{Name: "waves", Workers: 2, Pause: 10 * time.Millisecond}},
	})
	h.add(time.Time{}, errors.New("rolled back"), greet{"never"})
	h.add(time.Now().Add(time.Hour), nil, greet{"later"})
	many := []jobs.Job{wave{}}
	for i := range 300 {
		many = append(many, greet{fmt.Sprint(i)})
	}
	h.add(time.Time{}, nil, many...)
	hubtest.Eventually(t, "all have run", func() bool {
		_, last := seen.Load("299")
		return last && waves.Load() == 1 && h.count(`finalized_at IS NULL`) == 1
	})
	for _, name := range []string{"never", "later"} {
		if _, ran := seen.Load(name); ran {
			t.Errorf("%s ran", name)
		}
	}
	if n := h.count(`kind = 'wave' AND queue = 'waves'`); n != 1 {
		t.Errorf("%d jobs in their own queue", n)
	}
}

func TestFailedAndPostponedJobsRunAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var tries atomic.Int64
	h.run(jobs.Runner{Kinds: []jobs.Kind{jobs.On(func(_ context.Context, j greet) error {
		switch tries.Add(1) {
		case 1:
			return errors.New("broken")
		case 2:
			return jobs.Later(time.Millisecond)
		}
		return nil
	})}})
	h.add(time.Time{}, nil, greet{"a"})
	hubtest.Eventually(t, "three tries", func() bool { return tries.Load() == 3 && h.count(`state = 'completed'`) == 1 })
	if n := h.count(`array_length(errors, 1) = 1`); n != 1 {
		t.Error("what is postponed counts as failed")
	}
}

// TestStopEndsWaits: a job that only waits hears that the process stops, one that works may end.
func TestStopEndsWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var began atomic.Int64
	worked := make(chan struct{})
	stop := h.run(jobs.Runner{Kinds: []jobs.Kind{
		jobs.On(func(ctx context.Context, _ greet) error {
			began.Add(1)
			<-jobs.Stopping(ctx)
			if ctx.Err() != nil {
				t.Error("a job that waits is cancelled before it can postpone itself")
			}
			return jobs.Later(time.Hour)
		}),
		jobs.On(func(ctx context.Context, _ wave) error {
			began.Add(1)
			<-jobs.Stopping(ctx)
			time.Sleep(50 * time.Millisecond) // the end of what it was doing
			close(worked)
			return ctx.Err()
		}),
	}, Queues: []jobs.Queue{{Name: "waves", Workers: 1}}})
	h.add(time.Time{}, nil, greet{"a"}, wave{})
	hubtest.Eventually(t, "both run", func() bool { return began.Load() == 2 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	<-worked
	if h.count(`kind = 'greet' AND state = 'scheduled'`) != 1 || h.count(`kind = 'wave' AND state = 'completed'`) != 1 {
		t.Error("the jobs did not come to their own ends")
	}
	if jobs.Stopping(t.Context()) != nil {
		t.Error("outside a job nothing stops")
	}
}

// TestTheSameInstanceTakesOver: what a dead process had in hand is put in order and runs at
// once; another instance's is left alone.
func TestTheSameInstanceTakesOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.add(time.Time{}, nil, greet{"mine"}, greet{"theirs"})
	if _, err := h.Exec(
		t.Context(),
		`UPDATE authoring.river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = ARRAY['x', `+
			`CASE args ->> 'name' WHEN 'mine' THEN 'me' ELSE 'they' END]`,
	); err != nil {
		t.Fatal(err)
	}
	var abandoned, ran sync.Map
	h.run(jobs.Runner{Instance: "me", Kinds: []jobs.Kind{jobs.On(func(_ context.Context, j greet) error {
		if _, ok := abandoned.Load(j.Name); !ok {
			t.Errorf("%s ran before it was put in order", j.Name)
		}
		ran.Store(j.Name, true)
		return nil
	}, jobs.Abandoned(func(_ context.Context, j greet) error { abandoned.Store(j.Name, true); return nil }))}})
	hubtest.Eventually(t, "mine has run", func() bool { _, ok := ran.Load("mine"); return ok })
	if _, ok := abandoned.Load("theirs"); ok || h.count(`state = 'running' AND args ->> 'name' = 'theirs'`) != 1 {
		t.Error("another instance's job was taken")
	}
}

func TestPeriodicJobsBeginAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var ran atomic.Int64
	h.run(jobs.Runner{Kinds: []jobs.Kind{jobs.On(func(context.Context, wave) error { ran.Add(1); return nil })},
		Queues: []jobs.Queue{{Name: "waves", Workers: 1}}, Periodic: []jobs.Periodic{{Every: time.Hour, Job: wave{}}}})
	hubtest.Eventually(t, "it has run", func() bool { return ran.Load() == 1 })
}

func TestSpanOfAJobIsAConsumers(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	defer otel.SetTracerProvider(before)
	h := newHouse(t)
	h.run(jobs.Runner{Kinds: []jobs.Kind{jobs.On(func(ctx context.Context, _ greet) error {
		_, err := h.Exec(ctx, "SELECT 1")
		return err
	})}})
	h.add(time.Time{}, nil, greet{"a"})
	hubtest.Eventually(t, "its span, and that of its statement", func() bool {
		found := map[string]trace.SpanKind{}
		for _, s := range spans.Ended() {
			found[s.Name()] = s.SpanKind()
		}
		return found["job.greet"] == trace.SpanKindConsumer && found["SELECT"] == trace.SpanKindClient
	})
}

// TestQueuesTellHowTheyAre: what is due and does not run is late, whatever state it is in; what is for later is not.
func TestQueuesTellHowTheyAre(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.add(time.Time{}, nil, greet{"1"}, greet{"2"}, greet{"3"}, greet{"4"}, wave{})
	h.add(time.Now().Add(time.Hour), nil, wave{})
	for _, sql := range []string{
		`UPDATE authoring.river_job SET scheduled_at = now() - interval '5 minutes' WHERE args ->> 'name' = '1'`,
		`UPDATE authoring.river_job SET state = 'retryable', scheduled_at = now() - interval '10 minutes', priority = 3 ` +
			`WHERE args ->> 'name' = '2'`,
		`UPDATE authoring.river_job SET state = 'running', scheduled_at = now() - interval '20 minutes' WHERE args ->> 'name' = '3'`,
		`UPDATE authoring.river_job SET state = 'discarded', finalized_at = now() WHERE args ->> 'name' = '4'`,
		`INSERT INTO authoring.river_leader (name, leader_id, elected_at, expires_at) VALUES ('default', 'me', now(), now() ` +
			`+ interval '1 minute')`,
	} {
		if _, err := h.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	r := jobs.Runner{Pool: h.Pool, Schema: "authoring", Queues: []jobs.Queue{{Name: "waves"}, {Name: "empty"}}}
	readings, err := r.Sample().Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, r := range readings {
		name := r.Gauge
		for _, a := range r.Attributes {
			name += " " + a.Value.AsString()
		}
		got[name] = float64(int(r.Value/10) * 10)
		if !strings.HasPrefix(name, "hub.jobs.lag") {
			got[name] = r.Value
		}
	}
	want := map[string]float64{
		"hub.jobs.leader":            1,
		"hub.jobs.lag default":       600,
		"hub.jobs.due default":       2,
		"hub.jobs.running default":   1,
		"hub.jobs.discarded default": 1,
		"hub.jobs.lag waves":         0,
		"hub.jobs.due waves":         1,
		"hub.jobs.running waves":     0,
		"hub.jobs.discarded waves":   0,
		"hub.jobs.lag empty":         0,
		"hub.jobs.due empty":         0,
		"hub.jobs.running empty":     0,
		"hub.jobs.discarded empty":   0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
