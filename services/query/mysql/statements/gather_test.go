package statements

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// crossed is an aggregate of JSON over a cross join of eight thousand million rows.
const crossed = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 2000) " +
	"SELECT JSON_LENGTH(JSON_OBJECTAGG(a.n * 2000 + b.n, c.n)), JSON_LENGTH(JSON_ARRAYAGG(a.n)) FROM r a, r b, r c"

// TestGatheringIsShort: an aggregate of JSON over a cross join is stopped early and told what to do instead, and what
// other statements may take stays what it was.
func TestGatheringIsShort(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		_, dsn := hubtest.SourceDBOn(t, on)
		source, err := server.Open(dsn, server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		reader := NewReader(source, ReaderOptions{Timeout: 60 * time.Second})
		defer reader.Close()
		short := NewReader(source, ReaderOptions{Timeout: 60 * time.Second, HeavyTimeout: 300 * time.Millisecond})
		defer short.Close()
		read := func(text string, heavy bool) ([]string, error) {
			c := &collected{limit: 10}
			err := reader.ReadStatement(t.Context(), query.Statement{Text: text, Heavy: heavy}, c)
			return c.rows, err
		}
		err = short.ReadStatement(t.Context(), query.Statement{Text: crossed, Heavy: true}, &collected{limit: 10})
		if f := fault.From(err); f.Code != fault.DBTimeout || !strings.Contains(f.Message, "300ms") ||
			!strings.Contains(f.Message, "JSON_ARRAYAGG") {
			t.Errorf("a cross join: %v", err)
		}
		if rows, err := read("SELECT JSON_ARRAYAGG(n) FROM (SELECT 1 AS n UNION ALL SELECT 2) t", true); len(rows) != 1 || err != nil {
			t.Errorf("two rows gathered: %v, %v", rows, err)
		}
		limit := "@@max_execution_time"
		if d, err := source.Dialect(t.Context()); err != nil {
			t.Fatal(err)
		} else if d == server.MariaDB {
			limit = "ROUND(@@max_statement_time * 1000)"
		}
		for range 3 {
			if rows, err := read("SELECT "+limit, true); len(rows) != 1 || strings.Trim(rows[0], `[]"`) != "1000" || err != nil {
				t.Errorf("the limit of a heavy statement: %v, %v", rows, err)
			}
			if rows, err := read("SELECT "+limit, false); len(rows) != 1 || strings.Trim(rows[0], `[]"`) != "60000" || err != nil {
				t.Errorf("the limit of the statement after it: %v, %v", rows, err)
			}
		}
		if n := len(reader.place) + len(short.place); n != 0 {
			t.Errorf("%d places are still taken", n)
		}
	})
}

// TestGatheringWaitsItsTurn: the place is one statement's until the server is rid of it, and its turn is told.
func TestGatheringWaitsItsTurn(t *testing.T) {
	r := &Reader{place: make(chan struct{}, 1)}
	ended := make(chan struct{}, 2)
	first, err := r.enterHeavy(t.Context(), endTold{ended})
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		place, err := r.enterHeavy(t.Context(), nil)
		if err == nil {
			place.Overdue()
			place.End()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("two heavy ones run at once: %v", err)
	default:
	}
	first.End()
	<-ended
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// TestNoPlaceForAHeavyStatement: who waits in vain is told what there is too much of, and when to come again.
func TestNoPlaceForAHeavyStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reader{place: make(chan struct{}, 1)}
		if _, err := r.enterHeavy(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		_, err := r.enterHeavy(t.Context(), nil)
		f := fault.From(err)
		if want := map[string]any{"scope": "source", "retryAfter": 1}; f.Code != fault.RateLimit || !reflect.DeepEqual(f.Details, want) {
			t.Errorf("%v, with %v", err, f.Details)
		}
	})
}

type endTold struct{ told chan struct{} }

func (e endTold) Overdue() {}
func (e endTold) End()     { e.told <- struct{}{} }
