package replicas_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/replicas"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
	"hub.internal/services/query/sqlguard"
)

// TestWrongStatements sends each server what callers get wrong: every error is theirs, in words that mend it. None is a server
// that is not available, and with two of them none is moved, and neither is doubted.
func TestWrongStatements(t *testing.T) {
	text, err := os.ReadFile("../testdata/wrong.tsv")
	if err != nil {
		t.Fatal(err)
	}
	before := otel.GetMeterProvider()
	defer otel.SetMeterProvider(before)
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		metrics := sdkmetric.NewManualReader()
		otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(metrics)))
		adminDSN, dsn := hubtest.SourceDBOn(t, on)
		brokenViews(t, on, adminDSN)
		o := replicas.Options{Every: time.Hour, Reader: statements.ReaderOptions{Timeout: 20 * time.Second}}
		set, err := replicas.Open([]string{dsn, strings.Replace(dsn, "127.0.0.1", "localhost", 1)}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		if err := set.Prove(t.Context()); err != nil {
			t.Fatal(err)
		}
		elsewhere, err := mysql.Open(strings.Replace(dsn, ")/", ")/no_", 1), server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer elsewhere.Close()
		if err := elsewhere.Prove(t.Context()); fault.From(err).Code != fault.DB || !server.Lost(err) {
			t.Errorf("a data source name whose database is not there: %v, which has to be a server that is not available", err)
		}
		guard := sqlguard.Default(16 << 20)
		wrong, kinds := 0, map[string]int{}
		for line := range strings.Lines(string(text)) {
			kind, written, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if !ok || strings.HasPrefix(line, "#") {
				continue
			}
			st, err := guard.Parse(written)
			if err != nil {
				continue // never seen by a server
			}
			capped, _ := st.Capped(11)
			err = set.ReadStatement(t.Context(), query.Statement{Text: capped, Written: written}, &answer{})
			if err == nil {
				continue
			}
			wrong++
			kinds[kind]++
			f := fault.From(err)
			if f.Code != fault.Validation || strings.Contains(f.Message, "hub_ro") {
				t.Errorf("%s: %.200s\nis %s: %s (%v)", kind, written, f.Code, f.Message, f.Unwrap())
			}
			if words, _, told := strings.Cut(f.Message, "refused the statement: "); told &&
				len(strings.Fields(f.Message))-len(strings.Fields(words)) < 7 ||
				!strings.ContainsAny(f.Message, ":;?") {
				t.Errorf("%s: %.200s\nhas few words: %s", kind, written, f.Message)
			}
		}
		t.Logf("%d wrong statements: %v", wrong, kinds)
		if wrong < 300 {
			t.Errorf("only %d statements are wrong here", wrong)
		}
		if n := moves(t, metrics); n != 0 {
			t.Errorf("%d statements were moved", n)
		}
		if health := set.Replicas(); slices.ContainsFunc(health, func(h query.ReplicaHealth) bool { return !h.Up || !h.Asked }) {
			t.Errorf("a server is doubted: %+v", health)
		}
	})
}

// brokenViews makes views that cannot be read any more, each for a reason of its own.
func brokenViews(t *testing.T, on *localserver.SourceServer, adminDSN string) {
	t.Helper()
	_, schema, _ := strings.Cut(adminDSN, ")/")
	schema, _, _ = strings.Cut(schema, "?")
	admin, err := on.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	admin.SetMaxOpenConns(1)
	t.Cleanup(func() {
		admin, err := on.Admin()
		if err != nil {
			t.Error(err)
			return
		}
		defer admin.Close()
		for _, q := range []string{"DROP USER IF EXISTS poor@'%'", "DROP DATABASE IF EXISTS kept_apart"} {
			if _, err := admin.Exec(q); err != nil {
				t.Error(err)
			}
		}
	})
	for _, q := range []string{
		"USE " + schema,
		"CREATE DEFINER = gone@'%' SQL SECURITY DEFINER VIEW v_orphan AS SELECT brand_id FROM brand",
		"CREATE TABLE short_lived (a INT, b INT)", "CREATE TABLE shrinking (a INT, b INT)",
		"CREATE VIEW v_broken AS SELECT a FROM short_lived", "CREATE VIEW v_lost_column AS SELECT a, b FROM shrinking",
		"DROP TABLE short_lived", "ALTER TABLE shrinking DROP COLUMN b",
		"CREATE USER poor@'%'", "CREATE DATABASE kept_apart", "CREATE TABLE kept_apart.t (brand_id INT)",
		"CREATE DEFINER = poor@'%' SQL SECURITY DEFINER VIEW v_denied AS SELECT brand_id FROM kept_apart.t",
	} {
		if _, err := admin.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// moves is the sum of hub.source.replica.moves.
func moves(t *testing.T, from *sdkmetric.ManualReader) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := from.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "hub.source.replica.moves" {
				found = true
				for _, p := range sum.DataPoints {
					n += p.Value
				}
			}
		}
	}
	if !found {
		t.Error("nobody counts the moves")
	}
	return n
}
