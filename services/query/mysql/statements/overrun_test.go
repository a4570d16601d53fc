package statements

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// fate is a Turn that tells when it was told.
type fate struct{ overdue, ended chan struct{} }

func newFate() *fate { return &fate{overdue: make(chan struct{}), ended: make(chan struct{})} }

func (f *fate) Overdue() { close(f.overdue) }
func (f *fate) End()     { close(f.ended) }

func is(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func wait(t *testing.T, c chan struct{}, what string) {
	t.Helper()
	hubtest.Eventually(t, what, func() bool { return is(c) })
}

// TestTurnEndsWithTheStatement: what can be stopped is off the server before its turn ends,
// and within a second.
func TestTurnEndsWithTheStatement(t *testing.T) {
	f := newFixture(t, ReaderOptions{Timeout: 300 * time.Millisecond})
	f.value(t, "SELECT 1")
	statements := map[string]string{"whole": "SELECT 1", "failed": "SELECT 1 FROM nowhere", "cut": "SHOW COLLATION"}
	for name, text := range endless {
		statements[name] = text
		statements[name+", caller gone"] = text
	}
	for name, text := range statements {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if strings.HasSuffix(name, "gone") {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			turn := newFate()
			_ = f.reader.ReadStatement(ctx, query.Statement{Text: text, Turn: turn}, &collected{limit: 3})
			wait(t, turn.ended, "the turn ends")
			// A server that has answered may show the statement until its thread gets a processor again.
			hubtest.Eventually(t, "the statement has left the server", func() bool {
				return !slices.ContainsFunc(f.busy(t), func(line string) bool { return strings.Contains(line, text) })
			})
		})
	}
}

func TestStatementThatOutlivesItsKill(t *testing.T) {
	unstoppable := hubtest.Unstoppable(t, 8*time.Second)
	log := &hubtest.Buffer{}
	f := newFixture(t, ReaderOptions{Timeout: 300 * time.Millisecond, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	f.value(t, "SELECT 1")
	for _, c := range []struct {
		name     string
		patience time.Duration
		code     fault.Code
	}{{"timeout", time.Minute, fault.DBTimeout}, {"caller gone", 100 * time.Millisecond, fault.DB}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, leave := context.WithCancel(caller.With(t.Context(), caller.Caller{RequestID: "req_stuck"}))
			defer leave()
			time.AfterFunc(c.patience, leave)
			turn := newFate()
			start := time.Now()
			err := f.reader.ReadStatement(ctx, query.Statement{Text: unstoppable, Turn: turn}, &collected{limit: 1})
			if took := time.Since(start); !fault.Is(err, c.code) || took > soon {
				t.Errorf("%v after %s", err, took)
			}
			wait(t, turn.overdue, "the statement is overdue")
			if len(f.busy(t)) == 0 || is(turn.ended) {
				t.Errorf("after %s the server runs %q, and its turn is over: %t", time.Since(start), f.busy(t), is(turn.ended))
			}
			// Another session is not disturbed.
			if got := f.value(t, "SELECT 2"); got != "2" {
				t.Errorf("another statement: %s", got)
			}
			wait(t, turn.ended, "its turn ends")
			if busy := f.busy(t); len(busy) > 0 {
				t.Errorf("the turn has ended, and the server runs %q", busy)
			}
		})
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		var l struct {
			Level, Msg, Request string
			ID                  string  `json:"request_id"`
			Connection          uint64  `json:"connection"`
			Elapsed             float64 `json:"elapsed"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.ID != "req_stuck" || l.Connection == 0 || l.Elapsed < float64(time.Second) {
			t.Errorf("%v: %s", err, line)
		}
		lines = append(lines, l.Level+" "+l.Msg)
	}
	alarm := []string{"ERROR a statement outlives its KILL on the source database", "WARN a statement that outlived its KILL has ended"}
	if want := append(alarm, alarm...); !slices.Equal(lines, want) || strings.Contains(log.String(), "LOCATE") {
		t.Errorf("the log says\n%s", log)
	}
}

// TestTurnIsHeldWhileNobodyCanTell: while the server cannot be asked, the statement is taken
// to run.
func TestTurnIsHeldWhileNobodyCanTell(t *testing.T) {
	unstoppable := hubtest.Unstoppable(t, 2*time.Second)
	f := newFixture(t, ReaderOptions{Timeout: 300 * time.Millisecond})
	f.value(t, "SELECT 1")
	admin, err := f.on.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	turn := newFate()
	if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: unstoppable, Turn: turn}, &collected{limit: 1}); !fault.Is(err,
		fault.DBTimeout) {
		t.Fatal(err)
	}
	exec(t, admin, "ALTER USER "+f.user+" ACCOUNT LOCK")
	hubtest.Eventually(t, "the statement ends", func() bool {
		killIdle(t, admin, f.user)
		return len(f.busy(t)) == 0
	})
	if is(turn.ended) {
		t.Error("the turn ended while nobody could know of the statement")
	}
	exec(t, admin, "ALTER USER "+f.user+" ACCOUNT UNLOCK")
	wait(t, turn.ended, "the turn ends")
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// killIdle ends the connections of a user that run nothing.
func killIdle(t *testing.T, admin *sql.DB, user string) {
	t.Helper()
	const idle = "SELECT id FROM information_schema.processlist WHERE user = ? AND command = 'Sleep'"
	rows, err := admin.QueryContext(t.Context(), idle, user) //nolint:rowserrcheck // a list that is short fails the test all the same
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uint64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		if err := kill(t.Context(), admin, server.MariaDB, "CONNECTION", id); err != nil {
			t.Error(err)
		}
	}
}

// TestIDOfAnEarlierServer: a connection that got the id of a statement which ended with its
// server is nobody's to kill.
func TestIDOfAnEarlierServer(t *testing.T) {
	if testing.Short() {
		t.Skip("restarts a server")
	}
	m := hubtest.NewMariaDB(t)
	admin, err := m.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, q := range []string{"CREATE DATABASE d", "CREATE USER ro IDENTIFIED BY 'pw'", "GRANT SELECT ON d.* TO ro"} {
		exec(t, admin, q)
	}
	dsn := m.DSN("ro", "pw", "d")
	s := openSource(t, dsn, server.Options{})
	r := NewReader(s, ReaderOptions{})
	defer r.Close()
	for range 20 { // an id that is not the first after a restart
		if err := openDSN(t, dsn).PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	turn := newFate()
	lost := make(chan error, 1)
	start := time.Now()
	go func() {
		lost <- r.ReadStatement(t.Context(), query.Statement{Text: "SELECT SLEEP(1000)", Turn: turn}, &collected{limit: 1})
	}()
	var id int
	hubtest.Eventually(t, "the statement runs", func() bool {
		return admin.QueryRowContext(t.Context(),
			"SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(1000)'").Scan(&id) == nil
	})
	m.Kill()
	if err := <-lost; !fault.Is(err, fault.DB) || is(turn.ended) {
		t.Errorf("%v; the turn is over: %t", err, is(turn.ended))
	}
	time.Sleep(time.Until(start.Add(2 * time.Second))) // a server tells its start by the second
	if err := m.Pause(); err == nil {
		t.Fatal("the server is up already")
	}
	// Whoever comes first after the restart, the innocent connection gets the id.
	other := openDSN(t, dsn)
	other.SetMaxIdleConns(100)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var innocent *sql.Conn
	for got := 0; got < id; {
		c, err := other.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got == id {
			innocent = c
		}
	}
	wait(t, turn.ended, "the turn ends")
	if innocent == nil {
		t.Skip("another connection got the id")
	}
	if err := innocent.PingContext(t.Context()); err != nil {
		t.Errorf("the connection with the same id: %v", err)
	}
}

// TestCloseDoesNotWaitForever, not even for a statement that cannot be stopped.
func TestCloseDoesNotWaitForever(t *testing.T) {
	unstoppable := hubtest.Unstoppable(t, 6*time.Second)
	log := &hubtest.Buffer{}
	f := newFixture(t, ReaderOptions{Timeout: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
	turn := newFate()
	if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: unstoppable, Turn: turn}, &collected{limit: 1}); !fault.Is(err,
		fault.DBTimeout) {
		t.Fatal(err)
	}
	start := time.Now()
	if err := f.reader.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > closeLimit+soon/2 || is(turn.ended) || !strings.Contains(log.String(), "left running") {
		t.Errorf("closed after %s, turn over %t\n%s", took, is(turn.ended), log)
	}
	f.quiet(t)
}

// TestManyOverruns: one look at the server's processes serves them all.
func TestManyOverruns(t *testing.T) {
	f := newMariaDBFixture(t, ReaderOptions{Timeout: 300 * time.Millisecond, Sessions: 12})
	f.value(t, "SELECT 1")
	turns := make([]*fate, 8)
	answered := make(chan error)
	for i := range turns {
		turns[i] = newFate()
		text := fmt.Sprintf("SELECT LOCATE(CONCAT(REPEAT('a',%d),'b'),REPEAT('a',100000))", 30_000+i)
		go func() {
			answered <- f.reader.ReadStatement(t.Context(), query.Statement{Text: text, Turn: turns[i]}, &collected{limit: 1})
		}()
	}
	for range turns {
		if err := <-answered; !fault.Is(err, fault.DBTimeout) {
			t.Error(err)
		}
	}
	for i, turn := range turns {
		wait(t, turn.ended, fmt.Sprintf("turn %d ends", i))
	}
	f.quiet(t)
	f.reader.overruns.done.Wait() // nobody is left to follow
}
