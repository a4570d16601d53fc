package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// store is a database with the audit schema.
type store struct {
	hubtest.WriteStoreDB
	service, owner, super *pgxpool.Pool
}

func newStore(t testing.TB, db hubtest.WriteStoreDB) store {
	t.Helper()
	if err := audit.Migrate(t.Context(), db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	return opened(t, db)
}

// migrated is newStore in a database of its own.
func migrated(t testing.TB) store {
	t.Helper()
	return opened(t, hubtest.MigratedStore(t, "audit", audit.Migrate))
}

func opened(t testing.TB, db hubtest.WriteStoreDB) store {
	t.Helper()
	return store{db, pool(t, db.URL("auth")), pool(t, db.OwnerURL), pool(t, db.SuperuserURL)}
}

func pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := postgres.Open(postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func newLog(t testing.TB, p *pgxpool.Pool, logger *slog.Logger) *audit.Log {
	t.Helper()
	l := audit.NewLog(p, logger)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// rows counts what the log holds; only a superuser may look.
func (s store) rows(t testing.TB) (n int) {
	t.Helper()
	if err := s.super.QueryRow(context.Background(), "SELECT count(*) FROM audit.calls").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func entry(request string) audit.Entry {
	return audit.Entry{At: time.Now(), Caller: caller.Caller{Service: "svc", ExternalUserID: "ext", CredentialID: "ak_1", RequestID: request},
		Tool: "execute_read_sql", Outcome: audit.OK, Count: 3, Took: 1500 * time.Microsecond, InputHash: audit.HashInput([]byte("{}")), Detail: map[string]any{"sql": "SELECT 1"}}
}

func TestRowHoldsWhatHappened(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	l := newLog(t, s.service, quiet)
	e := entry("req_1")
	if err := l.Write(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), s.service, func(tx pgx.Tx) error { return audit.Append(t.Context(), tx, e) }); err != nil {
		t.Fatal(err)
	}
	rows, err := s.super.Query(t.Context(), "SELECT at, request_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, input_hash, detail->>'sql' FROM audit.calls")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var (
			at                                                     time.Time
			request, service, user, credential, tool, outcome, sql string
			count, took                                            int
			hash                                                   []byte
		)
		if err := rows.Scan(&at, &request, &service, &user, &credential, &tool, &outcome, &count, &took, &hash, &sql); err != nil {
			t.Fatal(err)
		}
		if at.Sub(e.At).Abs() > time.Millisecond || request != "req_1" || service != "svc" || user != "ext" || credential != "ak_1" || tool != "execute_read_sql" ||
			outcome != "ok" || count != 3 || took != 1 || !bytes.Equal(hash, e.InputHash) || sql != "SELECT 1" {
			t.Errorf("row %d: %v %s %s %s %s %s %s %d %d %x %s", n, at, request, service, user, credential, tool, outcome, count, took, hash, sql)
		}
	}
	if n != 2 || rows.Err() != nil {
		t.Errorf("%d rows, %v", n, rows.Err())
	}
}

func TestAppendIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	_ = pgx.BeginFunc(t.Context(), s.service, func(tx pgx.Tx) error {
		return errors.Join(audit.Append(t.Context(), tx, entry("req_1")), errors.New("the effect failed"))
	})
	if n := s.rows(t); n != 0 {
		t.Errorf("%d rows of an effect that was rolled back", n)
	}
}

// TestLogIsAppendOnly tries every way to change it, as a service, as the owner, on the
// table and on its partitions.
func TestLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	l := newLog(t, s.service, quiet)
	if err := l.Write(t.Context(), entry("req_1")); err != nil {
		t.Fatal(err)
	}
	var partition string
	if err := s.super.QueryRow(t.Context(), "SELECT tableoid::regclass::text FROM audit.calls").Scan(&partition); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"audit.calls", partition} {
		for _, sql := range []string{
			"UPDATE %s SET outcome = 'E_DB'", "UPDATE %s SET at = at + interval '40 days'", "DELETE FROM %s", "TRUNCATE %s", "TRUNCATE %s CASCADE", "DELETE FROM ONLY %s WHERE request_id = 'req_1'; DELETE FROM %[1]s",
			"WITH gone AS (DELETE FROM %s RETURNING *) SELECT count(*) FROM gone", "INSERT INTO %s SELECT * FROM %[1]s ON CONFLICT (id, at) DO UPDATE SET outcome = 'x'",
			"MERGE INTO %s c USING (SELECT 1) x ON true WHEN MATCHED THEN DELETE", "MERGE INTO %s c USING (SELECT 1) x ON true WHEN MATCHED THEN UPDATE SET tool = 'x'",
		} {
			sql := fmt.Sprintf(sql, table)
			for who, p := range map[string]*pgxpool.Pool{"the service": s.service, "the owner": s.owner} {
				if _, err := p.Exec(t.Context(), sql); err == nil {
					t.Errorf("%s may: %s", who, sql)
				}
			}
		}
		for _, sql := range []string{"SELECT * FROM %s", "DROP TABLE %s", "ALTER TABLE %s DISABLE TRIGGER ALL", "ALTER TABLE %s ADD COLUMN x int", "SET session_replication_role = replica; DELETE FROM %s",
			"ALTER TABLE audit.calls DETACH PARTITION %s", "CREATE TABLE audit.x AS SELECT * FROM %s", "CREATE RULE r AS ON INSERT TO %s DO INSTEAD NOTHING", "LOCK %s IN ACCESS EXCLUSIVE MODE"} {
			if _, err := s.service.Exec(t.Context(), fmt.Sprintf(sql, table)); err == nil {
				t.Errorf("the service may: %s", fmt.Sprintf(sql, table))
			}
		}
	}
	if n := s.rows(t); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestPartitionsAreThereBeforeTheirMonth(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	ahead := func() (n int) {
		t.Helper()
		if err := s.super.QueryRow(t.Context(), "SELECT count(*) FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := ahead()
	if all < 13 {
		t.Errorf("%d partitions after the migration", all)
	}
	// A year later most have to be made: drop those that hold nothing yet, and start a service.
	if _, err := s.super.Exec(t.Context(), "DO $$ DECLARE p text; BEGIN FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass LOOP EXECUTE 'DROP TABLE ' || p; END LOOP; END $$"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // replicas start together
		newLog(t, s.service, quiet)
	}
	hubtest.Eventually(t, "a service makes the coming ones", func() bool { return ahead() >= 4 })
	l := newLog(t, s.service, quiet)
	if err := l.Write(t.Context(), entry("now")); err != nil {
		t.Error(err)
	}
	var next string
	if err := s.super.QueryRow(t.Context(), "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass").Scan(&next); err != nil {
		t.Fatal(err)
	}
	if _, err := s.owner.Exec(t.Context(), "TRUNCATE "+next); err == nil {
		t.Error("a partition made by a service may be truncated")
	}
}

// TestWriteReturnsWhenItsRowIsCommitted asks for each row from another connection.
func TestWriteReturnsWhenItsRowIsCommitted(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	l := newLog(t, s.service, quiet)
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			for i := range 10 {
				request := fmt.Sprintf("req_%d_%d", w, i)
				if err := l.Write(t.Context(), entry(request)); err != nil {
					t.Error(err)
					return
				}
				var n int
				if err := s.super.QueryRow(t.Context(), "SELECT count(*) FROM audit.calls WHERE request_id = $1", request).Scan(&n); err != nil || n != 1 {
					t.Errorf("%s: %d rows, %v", request, n, err)
				}
			}
		})
	}
	writers.Wait()
}

// TestPoisonTakesNobodyAlong mixes rows that a store cannot hold, or only cleaned, with good ones.
func TestPoisonTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	l := newLog(t, s.service, quiet)
	cleaned := map[string]func(*audit.Entry){
		"NUL":                      func(e *audit.Entry) { e.Caller.ExternalUserID = "a\x00b" },
		"invalid UTF-8":            func(e *audit.Entry) { e.Caller.Service = "a\xff\xfe"; e.Tool = "\xed\xa0\x80" },
		"longer than any":          func(e *audit.Entry) { e.Caller.ExternalUserID = strings.Repeat("é", 1<<20) },
		"NUL in detail":            func(e *audit.Entry) { e.Detail = map[string]string{"sql": "SELECT '\x00\x00'"} },
		"its escape in detail":     func(e *audit.Entry) { e.Detail = json.RawMessage(`{"sql":"\u0000","\u0000":1}`) },
		"backslash u in detail":    func(e *audit.Entry) { e.Detail = map[string]string{"sql": `SELECT '\u0000 \\u0000'`} },
		"odd backslashes":          func(e *audit.Entry) { e.Detail = json.RawMessage(`{"sql":"\\\u0000\\\\u0000\\"}`) },
		"invalid UTF-8 in detail":  func(e *audit.Entry) { e.Detail = map[string]string{"sql": "\xff"} },
		"huge numbers":             func(e *audit.Entry) { e.Count = 1 << 40; e.Took = 1 << 62 },
		"negative numbers":         func(e *audit.Entry) { e.Count = -1; e.Took = -1 },
		"no detail, no hash":       func(e *audit.Entry) { e.Detail, e.InputHash = nil, nil },
		"by a clock that is ahead": func(e *audit.Entry) { e.At = time.Now().AddDate(3, 0, 0) },
		"before a long outage":     func(e *audit.Entry) { e.At = time.Now().Add(-time.Hour) },
		"by no clock":              func(e *audit.Entry) { e.At = time.Time{} },
	}
	refused := map[string]func(*audit.Entry){
		"lone surrogate in detail": func(e *audit.Entry) { e.Detail = json.RawMessage(`{"sql":"\ud800"}`) },
		"number beyond numeric":    func(e *audit.Entry) { e.Detail = json.RawMessage(`{"n":1e999999}`) },
		"no JSON at all":           func(e *audit.Entry) { e.Detail = func() {} },
	}
	var writers sync.WaitGroup
	write := func(request string, change func(*audit.Entry), kept bool) {
		writers.Go(func() {
			e := entry(request)
			change(&e)
			if err := l.Write(t.Context(), e); (err == nil) != kept {
				t.Errorf("%s: %v, want kept %v", request, err, kept)
			}
		})
	}
	for range 5 {
		for name, change := range cleaned {
			write(name, change, true)
		}
		for name, change := range refused {
			write(name, change, false)
		}
		for range 20 {
			write("good", func(*audit.Entry) {}, true)
		}
	}
	writers.Wait()
	if got, want := s.rows(t), 5*(len(cleaned)+20); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
	var dated string
	if err := s.super.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE at <= clock_timestamp() AND at > clock_timestamp() - interval '5 minutes') || ' of ' || count(*) FROM audit.calls`).Scan(&dated); err != nil ||
		dated != fmt.Sprintf("%d of %[1]d", 5*(len(cleaned)+20)) {
		t.Errorf("%s rows are dated when they were written, %v", dated, err)
	}
	for request, want := range map[string]string{"NUL in detail": "SELECT '\ufffd\ufffd'", "backslash u in detail": `SELECT '\u0000 \\u0000'`, "odd backslashes": `\` + "\ufffd" + `\\u0000\`} {
		var sql string
		if err := s.super.QueryRow(t.Context(), "SELECT detail->>'sql' FROM audit.calls WHERE request_id = $1 LIMIT 1", request).Scan(&sql); err != nil || sql != want {
			t.Errorf("%s: %q, %v, want %q", request, sql, err, want)
		}
	}
}

// dropped counts the rows that a log says it dropped.
type dropped struct{ n atomic.Int64 }

func (d *dropped) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(writer(func(line []byte) {
		var l struct {
			Msg  string `json:"msg"`
			Rows int64  `json:"rows"`
		}
		if json.Unmarshal(line, &l) == nil && l.Msg == "audit rows dropped" {
			d.n.Add(l.Rows)
		}
	}), nil))
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestCloseFlushesAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	var d dropped
	l := audit.NewLog(s.service, d.logger())
	const each = 400
	var queuers sync.WaitGroup
	for range 4 {
		queuers.Go(func() {
			for range each {
				l.Queue(entry("queued"))
			}
		})
	}
	hubtest.Eventually(t, "some rows are queued", func() bool { return s.rows(t) > 0 })
	if err := l.Close(t.Context()); err != nil { // while others still queue
		t.Fatal(err)
	}
	queuers.Wait()
	kept := s.rows(t)
	if int64(kept)+d.n.Load() != 4*each {
		t.Errorf("%d kept, %d dropped, %d queued", kept, d.n.Load(), 4*each)
	}
	l.Queue(entry("late"))
	if got := int64(kept) + d.n.Load(); got != 4*each+1 {
		t.Errorf("a row queued after Close was not counted: %d", got)
	}
	if err := l.Write(t.Context(), entry("late")); !fault.Is(err, fault.DB) {
		t.Errorf("Write after Close: %v", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if s.rows(t) != kept {
		t.Error("rows came after Close")
	}
}

// TestCloseLosesNoAwaitedRow closes while others write: each Write is told the truth.
func TestCloseLosesNoAwaitedRow(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	l := audit.NewLog(s.service, quiet)
	var ok atomic.Int64
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for {
				err := l.Write(context.Background(), entry("w"))
				if err != nil {
					if !fault.Is(err, fault.DB) {
						t.Error(err)
					}
					return
				}
				ok.Add(1)
			}
		})
	}
	hubtest.Eventually(t, "writers write", func() bool { return ok.Load() > 50 })
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	if got := int64(s.rows(t)); got != ok.Load() {
		t.Errorf("%d rows, %d were promised", got, ok.Load())
	}
}

// TestFullQueueDropsAndCounts hangs the store, so that nothing drains.
func TestFullQueueDropsAndCounts(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	s := newStore(t, hubtest.WriteStoreOn(t, server))
	var d dropped
	l := newLog(t, s.service, d.logger())
	if err := l.Write(t.Context(), entry("before")); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	const queued = 25_000
	start := time.Now()
	for range queued {
		l.Queue(entry("queued"))
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("25,000 rows to a hung store took %v: Queue has waited", took)
	}
	if d.n.Load() == 0 {
		t.Error("nothing was dropped")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := l.Write(ctx, entry("awaited")); !fault.Is(err, fault.DB) || fault.From(err).RetryAfter <= 0 {
		t.Errorf("Write to a hung store: %v", err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "each row was kept or counted", func() bool {
		return int64(s.rows(t))+d.n.Load() >= queued+1
	})
}

func TestStoreThatIsDownIsE_DB(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	s := newStore(t, hubtest.WriteStoreOn(t, server))
	l := newLog(t, s.service, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err := l.Write(t.Context(), entry("before")); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	for range 5 {
		if err := l.Write(t.Context(), entry("while")); !fault.Is(err, fault.DB) || fault.From(err).RetryAfter <= 0 {
			t.Fatalf("got %v", err)
		}
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "rows are kept again", func() bool { return l.Write(t.Context(), entry("after")) == nil })
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	if audit.Outcome(nil) != "ok" || audit.Outcome(fault.New(fault.Scope, "x")) != "E_SCOPE" || audit.Outcome(errors.New("x")) != "E_INTERNAL" {
		t.Error("outcomes")
	}
}

func BenchmarkLog(b *testing.B) {
	s := newStore(b, hubtest.WriteStore(b))
	b.Run("write", func(b *testing.B) {
		l := newLog(b, s.service, quiet)
		b.SetParallelism(32) // calls in flight for each core
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := l.Write(b.Context(), entry("req_1")); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("write alone", func(b *testing.B) {
		l := newLog(b, s.service, quiet)
		for b.Loop() {
			if err := l.Write(b.Context(), entry("req_1")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("queue", func(b *testing.B) {
		l := newLog(b, s.service, quiet)
		for b.Loop() {
			l.Queue(entry("req_1"))
		}
	})
}
