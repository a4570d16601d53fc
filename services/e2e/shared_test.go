package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/hubtest"
)

// shared is a suite that several tests use: it starts with the first of them and ends with the test binary. Each test has people,
// keys and drafts of its own there. Tests that stop a process run one after the other, and find all of them running.
type shared struct {
	options options

	once    sync.Once
	lasting lasting
	suite   *suite
}

var (
	// unhurt is for tests that ask, and change nothing that others could notice. Its statements and its bodies have bounds of few
	// seconds and of 8 MiB.
	unhurt = &shared{options: options{env: []string{"MCP_QUERY_TIMEOUT_MS=4000", "HUB_BODY_BYTES=8MiB"}}}
	// hurt is for tests that kill and pause what runs, two gateways among it, and mend it.
	hurt = &shared{options: options{gateways: 2}}
	// desk is where people look at drafts, in windows of their own and beside one another.
	desk = &shared{options: options{released: true, env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c", "HUB_SEND_DELAY=2m"}}}
)

// of is the suite as a test uses it: what fails there fails that test.
func (x *shared) of(t *testing.T) *suite {
	t.Helper()
	x.once.Do(func() {
		x.lasting.TB = t
		x.suite = start(&x.lasting, x.options)
	})
	if x.suite == nil {
		t.Fatal("the suite that this test shares with others did not start")
	}
	s := *x.suite
	s.t, s.guest = t, fmt.Sprint(".", s.calls.Add(1))
	from := len(s.logs.String())
	t.Cleanup(func() {
		s.mend()
		if strings.Contains(s.logs.String()[from:], "WARNING: DATA RACE") {
			t.Errorf("a service has a data race:\n%s", s.logs.String()[from:])
		}
		if t.Failed() && testing.Verbose() {
			t.Logf("logs of the services:\n%s", s.logs.String()[from:])
		}
	})
	return &s
}

// mend starts again what has ended or was paused, and waits until all of it works together.
func (s *suite) mend() {
	s.t.Helper()
	select {
	case <-s.redis.Done():
		if err := s.redis.Start(context.Background()); err != nil {
			s.t.Fatal(err)
		}
	default:
		_ = s.redis.Resume()
	}
	for name, p := range s.process {
		select {
		case <-p.Done():
			s.start(name)
		default:
			_ = p.Resume()
		}
	}
	for name := range s.process {
		s.ready(name)
		if programOf(name) != "gateway" {
			continue
		}
		hubtest.Eventually(s.t, name+" answers", func() bool {
			r, err := s.send(context.Background(), "http://"+s.addr[name], "POST", "/api/tools/get_brand", `{"brandId":1}`)
			return err == nil && r.OK
		})
	}
}

// endShared ends the suites that tests have shared, with what went wrong once no test could tell any more.
func endShared() (err error) {
	for _, x := range []*shared{unhurt, hurt, desk} {
		err = errors.Join(err, x.lasting.end())
	}
	return err
}

// lasting is the test of what outlives the test that asked for it first.
type lasting struct {
	testing.TB // that test, which what does not start fails

	mu       sync.Mutex
	cleanups []func()
	wrong    []error
}

func (l *lasting) Context() context.Context { return context.Background() }

func (l *lasting) Cleanup(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, f)
}

func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "hub-e2e-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			l.Error(err)
		}
	})
	return dir
}

// What follows is called when the last test has ended, and its TB takes nothing any more.

func (l *lasting) Helper()        {}
func (l *lasting) Error(a ...any) { l.Errorf("%s", fmt.Sprint(a...)) }

func (l *lasting) Errorf(format string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Errorf(format, a...))
}

func (l *lasting) Failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.wrong) > 0
}

func (l *lasting) Log(a ...any)                 { fmt.Fprintln(os.Stderr, a...) }
func (l *lasting) Logf(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }

// end cleans up, last first.
func (l *lasting) end() error {
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
	return errors.Join(l.wrong...)
}

// asked are the connections by which tests ask a store. They are kept: a new one costs more than most questions.
type asked struct {
	once sync.Once
	pool *pgxpool.Pool
	err  error
}

// ask asks the write store as its administrator.
func (s *suite) ask(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	s.asked.once.Do(func() {
		s.asked.pool, s.asked.err = pgxpool.New(context.Background(), s.store.SuperuserURL)
	})
	if s.asked.err != nil {
		return nil, s.asked.err
	}
	return s.asked.pool.Query(ctx, sql, args...)
}

// close ends what was asked by.
func (a *asked) close() {
	if a.pool != nil {
		a.pool.Close()
	}
}
