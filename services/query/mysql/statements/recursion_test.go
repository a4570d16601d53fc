package statements

import (
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// TestRecursionIsWhole: a recursion that is accepted answers all of its steps, and one that never ends is an error that says
// how to end it: MySQL's own, or the time limit.
func TestRecursionIsWhole(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		_, dsn := hubtest.SourceDBOn(t, on)
		source, err := server.Open(dsn, server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		reader := NewReader(source, ReaderOptions{})
		defer reader.Close()
		read := func(steps string) (string, error) {
			c := &collected{limit: 10}
			err := reader.ReadStatement(t.Context(), query.Statement{Text: "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r " +
				steps +
				") SELECT COUNT(*) FROM r"}, c)
			return strings.Join(c.rows, ","), err
		}
		if rows, err := read("WHERE n < 50000"); rows != "[50000]" || err != nil {
			t.Errorf("50,000 steps: %s, %v", rows, err)
		}
		if d, err := source.Dialect(t.Context()); d != server.MySQL || err != nil {
			return // the time limit is another test's
		}
		_, err = read("")
		if f := fault.From(err); f.Code != fault.Validation || !strings.Contains(f.Message, "1000001") || !strings.Contains(f.Message, "WHERE") {
			t.Errorf("without an end: %v", err)
		}
	})
}
