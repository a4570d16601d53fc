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

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "")
}

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
	return audit.Entry{
		At:        time.Now(),
		Caller:    caller.Caller{Service: "svc", ExternalUserID: "ext", CredentialID: "ak_1", RequestID: request},
		Tool:      "execute_read_sql",
		Outcome:   audit.OK,
		Count:     3,
		Took:      1500 * time.Microsecond,
		InputHash: audit.HashInput([]byte("{}")),
		Detail:    map[string]any{"sql": "SELECT 1"},
	}
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
	rows, err := s.super.Query(
		t.Context(),
		"SELECT at, request_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, input_hash, detail->>'sql' "+
			"FROM audit.calls",
	)
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
		if at.Sub(e.At).Abs() > time.Millisecond || request != "req_1" || service != "svc" || user != "ext" || credential != "ak_1" ||
			tool != "execute_read_sql" ||
			outcome != "ok" || count != 3 || took != 1 ||
			!bytes.Equal(hash, e.InputHash) ||
			sql != "SELECT 1" {
			t.Errorf(
				"row %d: %v %s %s %s %s %s %s %d %d %x %s",
				n,
				at,
				request,
				service,
				user,
				credential,
				tool,
				outcome,
				count,
				took,
				hash,
				sql,
			)
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
			"UPDATE %s SET outcome = 'E_DB'", "UPDATE %s SET at = at + interval '40 days'", "DELETE FROM %s", "TRUNCATE %s",
			"TRUNCATE %s CASCADE", "DELETE FROM ONLY %s WHERE request_id = 'req_1'; DELETE FROM %[1]s",
			"WITH gone AS (DELETE FROM %s RETURNING *) SELECT count(*) FROM gone",
			"INSERT INTO %s SELECT * FROM %[1]s ON CONFLICT (id, at) DO UPDATE SET outcome = 'x'",
			"MERGE INTO %s c USING (SELECT 1) x ON true WHEN MATCHED THEN DELETE",
			"MERGE INTO %s c USING (SELECT 1) x ON true WHEN MATCHED THEN UPDATE SET tool = 'x'",
		} {
			sql := fmt.Sprintf(sql, table)
			for who, p := range map[string]*pgxpool.Pool{"the service": s.service, "the owner": s.owner} {
				if _, err := p.Exec(t.Context(), sql); err == nil {
					t.Errorf("%s may: %s", who, sql)
				}
			}
		}
		for _, sql := range []string{"SELECT * FROM %s", "DROP TABLE %s", "ALTER TABLE %s DISABLE TRIGGER ALL",
			"ALTER TABLE %s ADD COLUMN x int", "SET session_replication_role = replica; DELETE FROM %s",
			"ALTER TABLE audit.calls DETACH PARTITION %s", "CREATE TABLE audit.x AS SELECT * FROM %s",
			"CREATE RULE r AS ON INSERT TO %s DO INSTEAD NOTHING", "LOCK %s IN ACCESS EXCLUSIVE MODE"} {
			if _, err := s.service.Exec(t.Context(), fmt.Sprintf(sql, table)); err == nil {
				t.Errorf("the service may: %s", fmt.Sprintf(sql, table))
			}
		}
	}
	if n := s.rows(t); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// months is how many months of the log have a table.
func (s store) months(t *testing.T) (n int) {
	t.Helper()
	if err := s.super.QueryRow(
		t.Context(),
		"SELECT count(*) FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass",
	).Scan(
		&n,
	); err != nil {
		t.Fatal(err)
	}
	return n
}

// withoutMonths drops all but the month that is.
func (s store) withoutMonths(t *testing.T) {
	t.Helper()
	if _, err := s.super.Exec(
		t.Context(),
		`DO $$ DECLARE p text; BEGIN FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass
		AND inhrelid::regclass::text <> to_char(now() AT TIME ZONE 'UTC', '"audit.calls_"YYYY_MM') LOOP EXECUTE 'DROP TABLE ' || p; END LOOP;
			END $$`,
	); err != nil {
		t.Fatal(err)
	}
}

// TestPartitionsAreThereBeforeTheirMonth: the owner makes them when it migrates, and the reader asks for them, several at
// once and while transactions write: nobody waits for another.
func TestPartitionsAreThereBeforeTheirMonth(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	if n := s.months(t); n != 14 {
		t.Errorf("%d months after the migration", n)
	}
	s.withoutMonths(t)
	if err := audit.Migrate(t.Context(), s.OwnerURL); err != nil || s.months(t) != 14 {
		t.Errorf("%d months after another migration: %v", s.months(t), err)
	}
	s.withoutMonths(t)
	tx, err := s.service.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if err := audit.Append(t.Context(), tx, entry("open")); err != nil {
		t.Fatal(err)
	}
	var asked sync.WaitGroup
	for range 3 {
		reader := connect(t, s.AuditURL())
		asked.Go(func() {
			if _, err := reader.Exec(t.Context(), `BEGIN READ WRITE; SELECT audit.extend(); COMMIT`); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	if n := s.months(t); n != 14 {
		t.Errorf("%d months after the reader has asked for them", n)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	// They are as the first one is: bounded, dated, append-only.
	var shapes int
	if err := s.super.QueryRow(t.Context(), `SELECT count(DISTINCT (
		(SELECT string_agg(format('%s %s %s', tgname, tgtype, tgenabled), ',' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = inhrelid),
		(SELECT string_agg(conname || replace(pg_get_constraintdef(oid), ' NOT VALID', ''), ',' ORDER BY conname) FROM pg_constraint
			WHERE conrelid = inhrelid AND contype = 'c'),
		(SELECT string_agg(split_part(pg_get_indexdef(indexrelid), ' USING ', 2), ',' ORDER BY split_part(pg_get_indexdef(indexrelid),
			' USING ', 2)) FROM pg_index WHERE indrelid = inhrelid),
		(SELECT format('%s %s', relacl, relowner) FROM pg_class WHERE oid = inhrelid)))
		FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass`).Scan(&shapes); err != nil || shapes != 1 {
		t.Errorf("months have %d shapes: %v", shapes, err)
	}
	var next string
	if err := s.super.QueryRow(
		t.Context(),
		"SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass",
	).Scan(
		&next,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := s.owner.Exec(t.Context(), "TRUNCATE "+next); err == nil {
		t.Error("a month that was made may be truncated")
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
				if err := s.super.QueryRow(
					t.Context(),
					"SELECT count(*) FROM audit.calls WHERE request_id = $1",
					request,
				).Scan(
					&n,
				); err != nil ||
					n != 1 {
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
	if err := s.super.QueryRow(
		t.Context(),
		`SELECT count(*) FILTER (WHERE at <= clock_timestamp() AND at > clock_timestamp() - interval '5 minutes') || ' of ' || count(*) `+
			`FROM audit.calls`,
	).Scan(
		&dated,
	); err != nil ||
		dated != fmt.Sprintf("%d of %[1]d", 5*(len(cleaned)+20)) {
		t.Errorf("%s rows are dated when they were written, %v", dated, err)
	}
	for request, want := range map[string]string{"NUL in detail": "SELECT '\ufffd\ufffd'",
		"backslash u in detail": `SELECT '\u0000 \\u0000'`, "odd backslashes": `\` + "\ufffd" + `\\u0000\`} {
		var sql string
		if err := s.super.QueryRow(
			t.Context(),
			"SELECT detail->>'sql' FROM audit.calls WHERE request_id = $1 LIMIT 1",
			request,
		).Scan(
			&sql,
		); err != nil ||
			sql != want {
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
	if audit.Outcome(nil) != "ok" || audit.Outcome(fault.New(fault.Scope, "x")) != "E_SCOPE" ||
		audit.Outcome(errors.New("x")) != "E_INTERNAL" {
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

// kept tells how many rows of the requests the log holds, and of how many requests.
func (s store) kept(t testing.TB, like string) (rows, requests int) {
	t.Helper()
	if err := s.super.QueryRow(
		context.Background(),
		"SELECT count(*), count(DISTINCT request_id) FROM audit.calls WHERE request_id LIKE $1",
		like,
	).Scan(
		&rows,
		&requests,
	); err != nil {
		t.Fatal(err)
	}
	return rows, requests
}

// TestQueuedRowsOutliveAnOutage kills the store and hangs it, again and again, while rows are queued and others are awaited: each
// queued row is there once in the end, none is dropped, and each awaited one is there that was promised.
func TestQueuedRowsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	s := newStore(t, hubtest.WriteStoreOn(t, server))
	var d dropped
	l := newLog(t, s.service, d.logger())
	ctx, stop := context.WithCancel(t.Context())
	var queued, promised, refused atomic.Int64
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.Queue(entry(fmt.Sprintf("queued_%d_%d", w, i)))
				queued.Add(1)
				time.Sleep(2 * time.Millisecond) // a bounded load: 20,000 rows may wait
			}
		})
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := l.Write(t.Context(), entry(fmt.Sprintf("awaited_%d_%d", w, i))); err == nil {
					promised.Add(1)
				} else if refused.Add(1); !fault.Is(err, fault.DB) {
					t.Errorf("an awaited row: %v", err)
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	during := func(what string, break_, mend func() error) {
		t.Helper()
		before := promised.Load()
		hubtest.Eventually(t, "rows are kept before "+what, func() bool { return promised.Load() > before+20 })
		if err := break_(); err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, "awaited rows are refused "+what, func() bool { return refused.Load() > 0 && l.Away() != nil })
		more := refused.Load() + 20
		hubtest.Eventually(t, "they are refused at once "+what, func() bool { return refused.Load() > more })
		if err := mend(); err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, "rows are kept after "+what, func() bool { return l.Away() == nil && promised.Load() > before+40 })
	}
	for range 2 {
		during("while it is gone", func() error { server.Kill(); return nil }, func() error { return server.Start(t.Context()) })
		during("while it hangs", server.Pause, server.Resume)
	}
	stop()
	writers.Wait()
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if rows, requests := s.kept(t, "queued%"); int64(rows) != queued.Load() || rows != requests {
		t.Errorf("%d rows of %d of %d queued", rows, requests, queued.Load())
	}
	if rows, requests := s.kept(t, "awaited%"); int64(rows) < promised.Load() || rows != requests {
		t.Errorf("%d rows of %d, of %d promised", rows, requests, promised.Load())
	}
	if d.n.Load() != 0 {
		t.Errorf("%d dropped", d.n.Load())
	}
}

// TestARowIsWrittenOnce: whoever writes a row again, because they have not seen the end of the first try, adds none.
func TestARowIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	const twice = `INSERT INTO audit.calls (id, at, request_id, tool, outcome) VALUES ('7f0f1c5e-6a5b-4d53-9f0b-3d1a7b5f0a11', $1, ` +
		`$2, 'x', 'ok')`
	at := time.Now()
	if _, err := s.service.Exec(t.Context(), twice, at, "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.service.Exec(t.Context(), twice, at, "second"); code(err) != "23505" {
		t.Errorf("an id twice: %v", err)
	}
	if _, err := s.service.Exec(t.Context(), twice+` ON CONFLICT DO NOTHING`, at, "second"); err != nil {
		t.Error(err)
	}
	if rows, _ := s.kept(t, "%"); rows != 1 {
		t.Errorf("%d rows", rows)
	}
	if rows, _ := s.kept(t, "first"); rows != 1 {
		t.Error("the row was changed")
	}
}

// TestCloseOfAStoreThatIsAway is over in time, and counts what is lost.
func TestCloseOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	s := newStore(t, hubtest.WriteStoreOn(t, server))
	var d dropped
	l := audit.NewLog(s.service, d.logger())
	if err := l.Write(t.Context(), entry("before")); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	defer server.Resume()
	for range 1500 {
		l.Queue(entry("queued"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	hubtest.Within(t, 10*time.Second, "the end", func() {
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
	})
	if d.n.Load() != 1500 {
		t.Errorf("%d dropped", d.n.Load())
	}
}

// TestRowsOfAMonthWithoutATable wait until somebody has made it.
func TestRowsOfAMonthWithoutATable(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	var d dropped
	l := newLog(t, s.service, d.logger())
	if err := l.Write(t.Context(), entry("before")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.super.Exec(
		t.Context(),
		"DO $$ DECLARE p text; BEGIN FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass "+
			"LOOP EXECUTE 'DROP TABLE ' || p; END LOOP; END $$",
	); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		l.Queue(entry("queued"))
	}
	hubtest.Eventually(t, "the log is known to be away", func() bool { return l.Away() != nil })
	if _, err := s.owner.Exec(t.Context(), "SELECT audit.ensure_partitions(1)"); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the rows are kept", func() bool { rows, _ := s.kept(t, "queued"); return rows == 5 })
	if d.n.Load() != 0 {
		t.Errorf("%d dropped", d.n.Load())
	}
}

// TestTheQueueIsBoundedInBytes: what fills it is a few large rows.
func TestTheQueueIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	s := newStore(t, hubtest.WriteStoreOn(t, server))
	var d dropped
	l := newLog(t, s.service, d.logger())
	if err := l.Write(t.Context(), entry("before")); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	large := entry("queued")
	large.Detail = map[string]string{"sql": strings.Repeat("x", 1<<20-100)}
	for range 40 {
		l.Queue(large)
	}
	if n := d.n.Load(); n < 8 || n > 12 {
		t.Errorf("%d of 40 rows of 1 MiB dropped", n)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "those that fit are kept", func() bool { rows, _ := s.kept(t, "queued"); return int64(rows) == 40-d.n.Load() })
}
