package sqlguard_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"
)

// TestNested puts each function, and what else can stand in itself, into itself as deep as
// the guard lets it: nothing of it brings the server down, or runs on when it is killed.
func TestNested(t *testing.T) {
	if testing.Short() {
		t.Skip("needs MariaDB")
	}
	r := newCrashRun(t)
	var conn *sql.Conn
	var id int64
	var err error
	try := func(open, leaf, end string) {
		text := leaf
		for {
			deeper := open + text + end
			if _, err := guard.Parse("SELECT " + deeper); err != nil {
				break
			}
			text = deeper
		}
		text = "SELECT " + text
		if conn == nil {
			if conn, id, err = r.connect(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		stuck := r.stuck.Load()
		if !r.run(t.Context(), conn, id, 0, text) {
			conn.Close()
			conn = nil
			select {
			case <-r.server.Done():
				t.Errorf("the server went down on %s", text)
				r.restart()
			case <-time.After(time.Second):
			}
		}
		if r.stuck.Load() > stuck {
			t.Errorf("KILL does not end %s", text)
		}
	}
	for _, name := range r.gen.names {
		for _, arity := range r.gen.arities[name] {
			for at := range arity {
				for _, leaf := range []string{"1", "'a'"} {
					try(name+"("+strings.Repeat(leaf+", ", at), leaf, strings.Repeat(", "+leaf, arity-at-1)+")")
				}
			}
		}
	}
	for _, form := range nestable {
		open, end, _ := strings.Cut(form, "...")
		try(open, "1", end)
	}
	if conn != nil {
		conn.Close()
	}
}
