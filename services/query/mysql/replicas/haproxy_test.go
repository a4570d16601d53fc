package replicas_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/query/mysql/replicas"
)

// TestBehindHAProxy goes through what TestReplicas does, with one address of a balancer in front of the same servers: a KILL reaches
// another server than the one of its statement, a lag is not seen, and what was under way at a server that hangs or goes fails.
func TestBehindHAProxy(t *testing.T) {
	t.Parallel()
	a, b := hubtest.CopiedMariaDB(t)
	h := newHouse(t, &a.SourceServer, &b.SourceServer)
	balancer := hubtest.NewHAProxy(t, h.a, h.b)
	dsn := strings.Replace(h.a.DSN(h.reader.Reader, h.reader.ReaderPassword, h.reader.Database), h.a.Addr(), balancer.Addr(), 1)
	h.set = h.open(t, replicas.Options{}, dsn)
	h.phase("new connections go to both", func() {
		hubtest.Eventually(h, "both are found well", func() bool { return h.behind(dsn) == "1 2" })
	})
	h.phase("a KILL reaches another server", func() {
		one, two := h.connect(dsn), h.connect(dsn)
		var id, first, second int
		if err := one.QueryRowContext(h.Context(), "SELECT CONNECTION_ID(), @@server_id").Scan(&id, &first); err != nil {
			h.Fatal(err)
		}
		if err := two.QueryRowContext(h.Context(), "SELECT @@server_id").Scan(&second); err != nil || first == second {
			h.Fatalf("servers %d and %d, %v", first, second, err)
		}
		// Of a connection that the other server does not have (1094), or has given to somebody else.
		_, answer := two.ExecContext(h.Context(), fmt.Sprint("KILL ", id))
		if err := one.QueryRowContext(h.Context(), "SELECT @@server_id").Scan(&first); err != nil {
			h.Errorf("KILL of %d on server %d at server %d: %v; then %v", id, first, second, answer, err)
		}
	})
	h.phase("a lag is not seen", func() {
		h.exec(h.b, "STOP SLAVE SQL_THREAD")
		if got := h.behind(dsn); got != "1 2" {
			h.Errorf("new connections go to %s", got)
		}
		h.exec(h.b, "START SLAVE SQL_THREAD")
	})
	for name, away := range map[string]struct{ goes, back func() error }{
		"a server that hangs takes its calls along":   {h.b.Pause, h.b.Resume},
		"a server that is gone takes its calls along": {func() error { h.b.Kill(); return nil }, func() error { return h.b.Start(t.Context()) }},
	} {
		h.phase(name, func() {
			hubtest.Eventually(h, "both are found well", func() bool { return h.behind(dsn) == "1 2" })
			failed := make(chan error, 8)
			const text = "SELECT category_id FROM category WHERE SLEEP(4) = 0"
			for range cap(failed) {
				go func() { _, err := h.read(h.Context(), text, nil); failed <- err }()
			}
			hubtest.Eventually(h, "some run there", func() bool {
				return h.number(h.b, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE info = %q", text)) > 0
			})
			if err := away.goes(); err != nil {
				h.Fatal(err)
			}
			lost := 0
			for range cap(failed) {
				if err := <-failed; err != nil && fault.From(err).Code == fault.DB {
					lost++
				} else if err != nil {
					h.Error(err)
				}
			}
			if lost == 0 {
				h.Error("no call was lost")
			}
			hubtest.Eventually(h, "new connections go to the other", func() bool { return h.behind(dsn) == "1" })
			if err := away.back(); err != nil {
				h.Fatal(err)
			}
		})
	}
}

// connect is a connection of its own.
func (h *house) connect(dsn string) *sql.Conn {
	h.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		h.Fatal(err)
	}
	conn, err := db.Conn(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = conn.Close(); _ = db.Close() })
	return conn
}

// behind are the numbers of the servers that four connections to a balancer are led to.
func (h *house) behind(dsn string) string {
	h.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		h.Fatal(err)
	}
	defer db.Close()
	db.SetMaxIdleConns(-1) // each statement has a connection of its own
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	seen := map[int]bool{}
	for range 4 {
		var id int
		if err := db.QueryRowContext(ctx, "SELECT @@server_id").Scan(&id); err != nil {
			return err.Error()
		}
		seen[id] = true
	}
	var found []string
	for id := range 3 {
		if seen[id] {
			found = append(found, fmt.Sprint(id))
		}
	}
	return strings.Join(found, " ")
}
