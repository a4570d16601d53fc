package sqlguard_test

import (
	"strings"
	"testing"
	"time"
)

// TestNested calls each function with itself as an argument, as deep as the guard lets it.
func TestNested(t *testing.T) {
	if testing.Short() {
		t.Skip("needs MariaDB")
	}
	r := newCrashRun(t)
	r.source.DB().SetMaxOpenConns(1000) // a statement that does not end keeps its own
	try := func(open, end string) {
		for _, leaf := range []string{"1", "'a'"} {
			text := leaf
			for range 60 {
				deeper := open + text + end
				if _, err := guard.Parse("SELECT " + deeper); err != nil {
					break
				}
				text = deeper
			}
			conn, id, err := r.connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.current[0].Store(&flight{0, id, "SELECT " + text})
			r.run(t.Context(), conn, id, 0, "SELECT "+text)
			conn.Close()
			select {
			case <-r.server.Done():
			case <-time.After(5 * time.Millisecond):
			}
			if !r.alive() {
				t.Errorf("the server went down on SELECT %s", text)
				r.restart()
			}
		}
	}
	for _, name := range r.gen.names {
		for _, arity := range r.gen.arities[name] {
			for at := range arity {
				for _, beside := range []string{"1", "'a'", "'$'"} {
					try(name+"("+strings.Repeat(beside+", ", at), strings.Repeat(", "+beside, arity-at-1)+")")
				}
			}
		}
	}
	for _, f := range nestable {
		open, end, _ := strings.Cut(f, "...")
		try(open, end)
	}
}
