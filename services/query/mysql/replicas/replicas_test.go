package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/replicas"
	"hub.internal/services/query/mysql/server"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestSplit(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"":                     nil,
		" , ":                  nil,
		"a,b , c,":             {"a", "b", "c"},
		"u:p,w@tcp(a)/d\nb\n":  {"u:p,w@tcp(a)/d", "b"},
		"  a \n":               {"a"},
		"a\r\n\r\nb":           {"a", "b"},
		"u:p@tcp(h:1)/d?tls=x": {"u:p@tcp(h:1)/d?tls=x"},
	} {
		if got := replicas.Split(list); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

func TestOpenRefusesInOneLine(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"":                                       "HUB_SOURCE_DSNS names no data source",
		"u:secret@tcp(a:1)/d,u:secret@nonsense":  "HUB_SOURCE_DSNS, entry 2 of 2, is not a data source name",
		"u:secret@tcp(a:1)/d,u:secret@tcp(a:1)/": "HUB_SOURCE_DSNS, entry 2 of 2, names no database",
		"u:secret@tcp(a:1)/d,u:secret@tcp(a:1)/d": "HUB_SOURCE_DSNS names a:1 twice",
		"u:secret@tcp(a:1)/d,u:secret@tcp(b:1)/e": "HUB_SOURCE_DSNS names the databases d and e",
	} {
		_, err := replicas.Open(replicas.Split(list), replicas.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}

// house is two servers that copy one another, and what reads from both.
type house struct {
	*testing.T
	a, b   *localserver.SourceServer
	words  words
	reader localserver.Source
	log    *hubtest.Buffer
	set    *replicas.Set
	calls  atomic.Int64 // of load
}

// open opens a Set whose looks follow one another fast: of both servers, or of what is named.
func (h *house) open(t *testing.T, o replicas.Options, dsns ...string) *replicas.Set {
	t.Helper()
	h.log = &hubtest.Buffer{}
	o.Every, o.Logger = 20*time.Millisecond, slog.New(slog.NewTextHandler(h.log, nil))
	o.Source.PoolSize = 8
	o.Reader.Timeout = 20 * time.Second
	if len(dsns) == 0 {
		for _, m := range []*localserver.SourceServer{h.a, h.b} {
			dsns = append(dsns, m.DSN(h.reader.Reader, h.reader.ReaderPassword, h.reader.Database))
		}
	}
	set, err := replicas.Open(dsns, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- set.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, set.Close()); err != nil {
			t.Error(err)
		}
	})
	return set
}

// exec runs statements as a server's administrator, in the source's database.
func (h *house) exec(m *localserver.SourceServer, statements ...string) {
	h.Helper()
	db, err := m.Admin()
	if err != nil {
		h.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range append([]string{"USE " + h.reader.Database}, statements...) {
		if _, err := db.ExecContext(h.Context(), s); err != nil {
			h.Fatalf("%s: %v", s, err)
		}
	}
}

// number is the one number that a statement answers to a server's administrator.
func (h *house) number(m *localserver.SourceServer, statement string) (n int) {
	h.Helper()
	db, err := m.Admin()
	if err != nil {
		h.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(h.Context(), statement).Scan(&n); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
	return n
}

// copied waits until b has done what a has.
func (h *house) copied() {
	h.Helper()
	db, err := h.a.Admin()
	if err != nil {
		h.Fatal(err)
	}
	defer db.Close()
	var position string
	if err := db.QueryRowContext(h.Context(), "SELECT "+h.words.position).Scan(&position); err != nil {
		h.Fatal(err)
	}
	if h.number(h.b, "SELECT "+h.words.await+"('"+position+"', 60)") != 0 {
		h.Fatal("b does not copy a")
	}
}

// answer collects what a statement answers.
type answer struct{ rows []string }

func (*answer) Arrived(int) bool               { return true }
func (*answer) Ended()                         {}
func (*answer) Warned([]tool.Warning)          {}
func (a *answer) Columns([]query.ResultColumn) { a.rows = nil }
func (a *answer) Row(e query.RowEncoder) bool {
	row, whole := e(nil, 1<<20)
	a.rows = append(a.rows, string(row))
	return whole
}

// place counts what becomes of a statement's turn.
type place struct{ ends *atomic.Int64 }

func (p place) End()     { p.ends.Add(1) }
func (p place) Overdue() {}

// read runs a statement on one of the servers.
func (h *house) read(ctx context.Context, text string, turn query.Turn) ([]string, error) {
	var a answer
	err := h.set.ReadStatement(ctx, query.Statement{Text: text, Turn: turn}, &a)
	return a.rows, err
}

// asked are the servers that answer statements now, by their numbers.
func (h *house) asked() string {
	h.Helper()
	seen := map[string]bool{}
	for range 12 {
		rows, err := h.read(h.Context(), "SELECT @@server_id", nil)
		if err != nil {
			h.Fatal(err)
		}
		seen[strings.Trim(rows[0], "[]")] = true
	}
	switch {
	case seen["1"] && seen["2"]:
		return "both"
	case seen["1"]:
		return "a"
	}
	return "b"
}

func (h *house) becomes(want string) {
	h.Helper()
	hubtest.Eventually(h, "asked: "+want, func() bool { return h.asked() == want })
}

// load calls tools and runs statements until stop is called. Each call has to succeed.
func (h *house) load() (stop func()) {
	ctx, cancel := context.WithCancel(h.Context())
	var ends, turns atomic.Int64
	var all sync.WaitGroup
	work := []func() error{
		func() error { _, err := h.set.Tables(h.Context()); return err },
		func() error {
			tree, err := h.set.CategoryTree(h.Context())
			if err == nil && len(tree) != 2 {
				err = fmt.Errorf("%d categories", len(tree))
			}
			return err
		},
		func() error {
			turns.Add(1)
			rows, err := h.read(h.Context(), "SELECT category_id FROM category WHERE SLEEP(0.02) = 0", place{&ends})
			if err == nil && len(rows) != 2 {
				err = fmt.Errorf("%d rows", len(rows))
			}
			return err
		},
		func() error {
			return h.set.ContactAddresses(h.Context(), []int64{1, 2}, func(int64, string, string) {})
		},
	}
	for i := range 12 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := work[i%len(work)](); err != nil {
					h.Errorf("call %d: %v: %v", i%len(work), err, errors.Unwrap(fault.From(err)))
				}
				h.calls.Add(1)
			}
		})
	}
	h.goOn()
	return func() {
		h.goOn()
		cancel()
		all.Wait()
		hubtest.Eventually(h, "every turn has ended once", func() bool { return ends.Load() == turns.Load() })
	}
}

// goOn waits for more calls of load to end.
func (h *house) goOn() {
	h.Helper()
	enough := h.calls.Load() + 100
	hubtest.Eventually(h, "calls go on", func() bool { return h.calls.Load() > enough })
}

// words are what servers call the same thing: the right to see a lag, a server that is copied, and what it has done.
type words struct{ monitor, slave, position, await string }

var (
	wordsOfMariaDB = words{"REPLICA MONITOR", "SLAVE", "@@gtid_binlog_pos", "MASTER_GTID_WAIT"}
	wordsOfMySQL   = words{"REPLICATION CLIENT", "REPLICA", "@@GLOBAL.gtid_executed", "WAIT_FOR_EXECUTED_GTID_SET"}
)

// newHouse makes a source of two categories on two servers that copy one another.
func newHouse(t *testing.T, a, b *localserver.SourceServer) *house {
	t.Helper()
	h := &house{T: t, a: a, b: b, words: wordsOfMySQL}
	if version, err := a.Version(t.Context()); err != nil || strings.Contains(version, "MariaDB") {
		h.words = wordsOfMariaDB
	}
	schema, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "source", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	h.reader = localserver.Source{Database: "marketplace", Schema: string(schema), Owner: "owner", OwnerPassword: "o", Reader: "hub_ro",
		ReaderPassword: "r"}
	if err := h.a.CreateSource(t.Context(), h.reader); err != nil {
		t.Fatal(err)
	}
	h.exec(h.a, "CREATE TABLE beat (behind DECIMAL(9,3) NOT NULL)", "INSERT INTO beat VALUES (0)",
		"INSERT INTO category VALUES (12, 0, 1), (13, 0, 2)")
	h.copied()
	return h
}

// TestReplicas goes through what happens to two servers, MariaDB and MySQL.
func TestReplicas(t *testing.T) {
	t.Parallel()
	hubtest.CopiedServers(t, happens)
}

// happens opens sets on two servers, and has one after the other killed, stopped, hung, and kept from copying.
func happens(t *testing.T, a, b *localserver.SourceServer) {
	h := newHouse(t, a, b)
	h.phase("a lag that nobody may see", func() {
		h.set = h.open(h.T, replicas.Options{})
		h.becomes("both")
		if r := h.set.Replicas(); !r[0].Asked || !r[1].Asked || r[0].LagSeconds != nil ||
			strings.Count(h.log.String(), "nobody can tell its lag: grant its account REPLICA MONITOR (MariaDB)") != 2 {
			h.Errorf("%+v\n%s", r, h.log)
		}
	})
	h.exec(h.a, "GRANT "+h.words.monitor+" ON *.* TO hub_ro@'%'")
	h.phase("one server takes such an account for too mighty", func() {
		s, err := mysql.Open(h.a.DSN("hub_ro", "r", "marketplace"), server.Options{})
		if err != nil {
			h.Fatal(err)
		}
		defer s.Close()
		var grants *server.GrantsError
		if err := s.Prove(h.Context()); !errors.As(err, &grants) {
			h.Error(err)
		}
	})
	h.copied()
	h.set = h.open(t, replicas.Options{})
	h.phase("spread", func() {
		h.becomes("both")
		hubtest.Eventually(h, "lags are known", func() bool {
			r := h.set.Replicas()
			return r[0].LagSeconds != nil && r[1].LagSeconds != nil && *r[1].LagSeconds == 0
		})
	})
	h.phase("one is killed under load", func() {
		stop := h.load()
		h.b.Kill()
		hubtest.Eventually(h, "it is left out", func() bool { return !h.set.Replicas()[1].Up })
		if got := h.asked(); got != "a" {
			h.Errorf("asked: %s", got)
		}
		if err := h.b.Start(h.Context()); err != nil {
			h.Fatal(err)
		}
		h.becomes("both")
		stop()
	})
	h.phase("one stops in an orderly way under load", func() {
		stop := h.load()
		if err := h.b.Stop(h.Context()); err != nil {
			h.Fatal(err)
		}
		h.goOn()
		if err := h.b.Start(h.Context()); err != nil {
			h.Fatal(err)
		}
		h.becomes("both")
		stop()
	})
	h.phase("one hangs under load", func() {
		stop := h.load()
		if err := h.b.Pause(); err != nil {
			h.Fatal(err)
		}
		hubtest.Eventually(h, "it is left out", func() bool { return !h.set.Replicas()[1].Up })
		if err := h.b.Resume(); err != nil {
			h.Fatal(err)
		}
		h.becomes("both")
		stop()
	})
	h.phase("what is stopped is killed where it runs", func() {
		const text = "SELECT SLEEP(19), 'to be killed'"
		running := func() int {
			n := 0
			for _, m := range []*localserver.SourceServer{h.a, h.b} {
				n += h.number(m, "SELECT COUNT(*) FROM information_schema.processlist WHERE info = "+fmt.Sprintf("%q", text))
			}
			return n
		}
		ctx, leave := context.WithCancel(h.Context())
		var ends atomic.Int64
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, err := h.read(ctx, text, place{&ends}); err == nil {
					h.Error("it was answered")
				}
			})
		}
		hubtest.Eventually(h, "they run", func() bool { return running() == 6 })
		leave()
		all.Wait()
		hubtest.Eventually(h, "none runs", func() bool { return running() == 0 && ends.Load() == 6 })
		if n := h.number(h.b, "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Killed'"); n != 0 {
			h.Errorf("%d connections are being killed", n)
		}
	})
	h.phase("one no longer copies", func() {
		h.exec(h.b, "STOP "+h.words.slave+" SQL_THREAD")
		h.becomes("a")
		h.exec(h.a, "STOP "+h.words.slave+" SQL_THREAD")
		hubtest.Eventually(h, "a warning", func() bool {
			return strings.Contains(h.log.String(), "every replica of the source lags too far behind")
		})
		h.becomes("both")
		h.exec(h.b, "START "+h.words.slave+" SQL_THREAD")
		h.becomes("b")
		h.exec(h.a, "START "+h.words.slave+" SQL_THREAD")
		h.becomes("both")
	})
	h.phase("a lag that a statement tells", func() {
		h.set = h.open(h.T, replicas.Options{LagSQL: "SELECT behind FROM beat", MaxLag: 10 * time.Second})
		h.becomes("both")
		h.exec(h.b, "SET sql_log_bin = 0", "UPDATE beat SET behind = 10.5")
		h.becomes("a")
		if r := h.set.Replicas()[1]; !r.Up || r.Asked || *r.LagSeconds != 10.5 {
			h.Errorf("%+v", r)
		}
		h.exec(h.a, "SET sql_log_bin = 0", "UPDATE beat SET behind = 11")
		h.becomes("both")
		h.exec(h.a, "SET sql_log_bin = 0", "DELETE FROM beat")
		h.becomes("a") // whose lag nobody knows
	})
}

// phase is a part of the test.
func (h *house) phase(name string, what func()) {
	h.Helper()
	whole := h.T
	defer func() { h.T = whole }()
	whole.Run(name, func(t *testing.T) { h.T = t; what() })
}
