package postgres_test

import (
	"context"
	"crypto/md5" //nolint:gosec // as above
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/localserver"
	pgkit "hub.internal/pkg/postgres"
	"hub.internal/services/admin/auditlog"
	"hub.internal/services/admin/postgres"
)

const (
	auditDays = 400 // over which the rows are spread
	// searchLimit and summaryLimit are for the 95th percentile.
	searchLimit  = 200 * time.Millisecond
	summaryLimit = 300 * time.Millisecond
	// auditRuns is how often each search is made.
	auditRuns = 40
)

// auditRow makes row i of the log: what a year of agents and people looks like, with some of everything that is searched for.
const auditRow = `INSERT INTO audit.calls
	(at, request_id, trace_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, input_hash, detail)
SELECT $1::timestamptz + (i::float8 / $4) * ($2::timestamptz - $1::timestamptz), 'req_' || md5(i::text || $3), md5(i::text), 'crm-bot',
	CASE WHEN i % 3 = 0 THEN 'person' || (i * 7919 % 300) || '@company.example' ELSE '' END, 'ak_' || md5((i * i % 211)::text), tool,
	CASE WHEN i % 23 <> 0 THEN 'ok' WHEN i % 4003 = 0 THEN 'E_DB_TIMEOUT' WHEN i % 46 = 0 THEN 'E_RATE_LIMIT' ELSE 'E_VALIDATION' END,
	i % 50, (2 + 1000 / (1 + i % 997))::int, sha256(i::text::bytea), CASE
		WHEN tool = 'execute_read_sql' THEN jsonb_build_object('sql',
			'SELECT id, name FROM partner WHERE country = ''DE'' AND created > ''2024-01-01'' AND id > ' || i
			|| CASE WHEN i % 400009 = 0 THEN ' /* needle */' ELSE '' END || ' ORDER BY id LIMIT 200',
			'columns', '["id","name"]'::jsonb, 'row_count', 200, 'truncated', false)
		WHEN tool IN ('queue_for_review', 'review.decide') THEN jsonb_build_object('draft_id', (i / 5000)::text, 'index', i % 100) END
FROM (SELECT i, (ARRAY['search_brands', 'search_brands', 'search_brands', 'get_brand', 'get_brand', 'list_categories',
	'search_campaigns', 'search_partner_contacts', 'get_campaign_performance', 'execute_read_sql', 'execute_read_sql', 'describe_schema',
	'create_segment', 'save_message_draft', 'review.decide', 'list_drafts', 'list_segments', 'search_brands', 'get_ddl',
	CASE WHEN i % 500 = 19 THEN 'queue_for_review' ELSE 'get_brand' END])[1 + i % 20] AS tool
	FROM generate_series(1::bigint, $4::bigint) i) x`

// reportFile is where BenchmarkAuditLog leaves its report; it is printed in any case.
var reportFile = flag.String("audit.report", "", "the file that the report of BenchmarkAuditLog goes to")

// BenchmarkAuditLog makes the report of a log of five million rows, once, whatever the number of runs. It takes four minutes.
func BenchmarkAuditLog(b *testing.B) {
	report := auditReport(b, 5_000_000)
	fmt.Println(report)
	if *reportFile != "" {
		if err := os.WriteFile(*reportFile, []byte(report), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAuditReport makes the whole report with a few rows.
func TestAuditReport(t *testing.T) {
	report := auditReport(t, 10_000)
	for _, want := range []string{"at 10000 rows", "| the newest |", "| 1 year |", "Index Scan", "Export: 10000 rows"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

func auditReport(t testing.TB, rows int) string {
	t.Helper()
	if missing := localserver.Missing(); len(missing) > 0 {
		t.Skip("missing servers: ", missing, "; `make servers` installs them")
	}
	dir, err := os.MkdirTemp("", "hub-audit-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(localserver.RemoveDir(dir+"/audit"), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	if err := benchAudit(t.Context(), dir, rows, &report, t.Logf); err != nil {
		t.Fatal(err)
	}
	return report.String()
}

// benchAudit loads a log of its own, on a server of its own, and measures the reader that the console has.
func benchAudit(ctx context.Context, dir string, rows int, out io.Writer, say func(string, ...any)) (err error) {
	log, err := os.Create(filepath.Join(dir, "audit.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server, err := localserver.StartPostgres(ctx, localserver.Options{Dir: filepath.Join(dir, "audit"), Output: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	const password = "only-for-a-minute"
	if err := pgkit.Bootstrap(ctx, server.SuperuserURL("postgres"), "hub",
		map[string]pgkit.Login{pgkit.Owner: {Password: password}, pgkit.AuditReader: {Password: password}}); err != nil {
		return err
	}
	if err := audit.Migrate(ctx, server.URL(pgkit.Owner, password, "hub")); err != nil {
		return err
	}
	super, err := pgx.Connect(ctx, server.SuperuserURL("hub"))
	if err != nil {
		return err
	}
	defer super.Close(ctx)
	now := time.Now()
	say("loading %d rows of the audit log", rows)
	loaded := time.Now()
	if err := loadAudit(ctx, super, now, rows); err != nil {
		return err
	}
	took := time.Since(loaded)
	link := server.URL(pgkit.AuditReader, password, "hub")
	reader, err := postgres.OpenReader(link, time.Now)
	if err != nil {
		return err
	}
	defer reader.Close()
	say("rolling up")
	rolled := time.Now()
	if err := reader.RollUp(ctx); err != nil {
		return err
	}
	if _, err := super.Exec(ctx, `VACUUM ANALYZE audit.rollups, audit.rollup_callers`); err != nil {
		return err
	}
	var size string
	const sizeOf = `SELECT pg_size_pretty(sum(pg_total_relation_size(relid))) FROM pg_partition_tree('audit.calls')`
	if err := super.QueryRow(ctx, sizeOf).Scan(&size); err != nil {
		return err
	}
	p := func(format string, args ...any) { fmt.Fprintf(out, format, args...) }
	p(
		"# The audit log at %d rows over %d days\n\n%s\n\nLoaded in %.0f s, %s with its indexes; %d days rolled up in %.0f s.\n\n",
		rows,
		auditDays,
		fmt.Sprintf("%s, %s/%s, %d CPUs.", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		took.Seconds(),
		size,
		auditDays,
		time.Since(rolled).Seconds(),
	)
	searches := auditSearches(now)
	if err := measureAudit(ctx, reader, searches, p); err != nil {
		return err
	}
	p("\n## Plans\n\nThe last window of each search, as auto_explain has logged it.\n")
	return auditPlans(ctx, super, link, log.Name(), searches, p)
}

// measureAudit reports how long searches, the overview and an export take.
func measureAudit(ctx context.Context, reader *postgres.Reader, searches []auditSearch, p func(string, ...any)) error {
	p("| Search | rows | p50 ms | p95 ms | max ms | ≤ %.0f ms |\n|---|---|---|---|---|---|\n", ms(searchLimit))
	for _, s := range searches {
		var page auditlog.Page
		m, err := repeated(auditRuns, func(i int) (err error) {
			page, err = reader.Search(ctx, s.filter(i), s.before, 50)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		found := fmt.Sprint(len(page.Calls))
		if page.Unfinished {
			found += fmt.Sprintf(", back to %s", page.Next.At.Format(time.DateOnly))
		}
		p("| %s | %s | %s |\n", s.name, found, within(m, searchLimit))
	}
	p("\n| Overview | calls | p50 ms | p95 ms | max ms | ≤ %.0f ms |\n|---|---|---|---|---|---|\n", ms(summaryLimit))
	for _, g := range auditlog.Ranges() {
		var sum auditlog.Summary
		m, err := repeated(auditRuns, func(int) (err error) { sum, err = reader.Summary(ctx, g); return err })
		if err != nil {
			return fmt.Errorf("%s: %w", g.Text, err)
		}
		p("| %s | %d | %s |\n", g.Text, sum.Total.Calls, within(m, summaryLimit))
	}
	began, n := time.Now(), 0
	if _, _, err := reader.Export(ctx, auditlog.Filter{}, 200_000, func(auditlog.Call) error { n++; return nil }); err != nil {
		return err
	}
	p("\nExport: %d rows in %.1f s.\n", n, time.Since(began).Seconds())
	return nil
}

// loadAudit fills the log as the real table: logged, with every index and trigger but the one that dates rows.
func loadAudit(ctx context.Context, super *pgx.Conn, now time.Time, rows int) error {
	if _, err := super.Exec(ctx, `SET session_replication_role = replica; SET synchronous_commit = off`); err != nil {
		return err
	}
	from := now.AddDate(0, 0, -auditDays)
	for month := time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC); month.Before(now); month = month.AddDate(0, 1, 0) {
		if _, err := super.Exec(
			ctx,
			fmt.Sprintf(`CREATE TABLE IF NOT EXISTS audit.%s PARTITION OF audit.calls FOR VALUES FROM ('%s') TO ('%s')`,
				month.Format("calls_2006_01"), month.Format(time.RFC3339), month.AddDate(0, 1, 0).Format(time.RFC3339)),
		); err != nil {
			return err
		}
	}
	const parts = 20 // of the time, each a transaction
	for i := range parts {
		first, last := from.Add(time.Duration(i)*now.Sub(from)/parts), from.Add(time.Duration(i+1)*now.Sub(from)/parts)
		if _, err := super.Exec(ctx, auditRow, first, last, fmt.Sprint("-", i), rows/parts); err != nil {
			return err
		}
	}
	_, err := super.Exec(ctx, `VACUUM ANALYZE audit.calls`)
	return err
}

// auditSearch is a search that people make; i varies what is looked for.
type auditSearch struct {
	name   string
	filter func(i int) auditlog.Filter
	before auditlog.Position
}

func auditSearches(now time.Time) []auditSearch {
	always := func(f auditlog.Filter) func(int) auditlog.Filter { return func(int) auditlog.Filter { return f } }
	long := auditlog.Position{At: now.AddDate(0, 0, -200)}
	return []auditSearch{
		{"the newest", always(auditlog.Filter{}), auditlog.Position{}},
		{"older than 200 days", always(auditlog.Filter{}), long},
		{"between two times", always(auditlog.Filter{From: now.AddDate(0, 0, -300), To: now.AddDate(0, 0, -299)}), auditlog.Position{}},
		{"a frequent tool", always(auditlog.Filter{Tool: "search_brands"}), auditlog.Position{}},
		{"a rare tool", always(auditlog.Filter{Tool: "queue_for_review"}), long},
		{"no such tool", always(auditlog.Filter{Tool: "never_called"}), auditlog.Position{}},
		{"a caller", func(i int) auditlog.Filter { return auditlog.Filter{Caller: aKey(i)} }, auditlog.Position{}},
		{"a person", func(i int) auditlog.Filter {
			return auditlog.Filter{Person: fmt.Sprintf("person%d@company.example", i)}
		}, auditlog.Position{}},
		{"a draft", func(i int) auditlog.Filter { return auditlog.Filter{Draft: fmt.Sprint(i)} }, auditlog.Position{}},
		{"any failure", always(auditlog.Filter{Outcome: auditlog.Failed}), auditlog.Position{}},
		{"a rare code", always(auditlog.Filter{Outcome: "E_DB_TIMEOUT"}), auditlog.Position{}},
		{"a request", func(i int) auditlog.Filter {
			return auditlog.Filter{RequestID: "req_" + md5Of(fmt.Sprint(i*1000+1, "-3"))}
		}, auditlog.Position{}},
		{"frequent SQL", always(auditlog.Filter{SQL: "from PARTNER"}), auditlog.Position{}},
		{"rare SQL", always(auditlog.Filter{SQL: "NEEDLE"}), auditlog.Position{}},
		{"rare SQL, 200 days ago", always(auditlog.Filter{SQL: "NEEDLE"}), long},
		{"a tool and a code", always(auditlog.Filter{Tool: "get_brand", Outcome: "E_DB_TIMEOUT"}), auditlog.Position{}},
		{"a person and a tool", func(i int) auditlog.Filter {
			return auditlog.Filter{Person: fmt.Sprintf("person%d@company.example", i*3), Tool: "create_segment"}
		}, auditlog.Position{}},
		{"a caller and any failure", func(i int) auditlog.Filter {
			return auditlog.Filter{Caller: aKey(i), Outcome: auditlog.Failed}
		}, auditlog.Position{}},
		{"a caller and SQL", func(i int) auditlog.Filter {
			return auditlog.Filter{Caller: aKey(i), SQL: "needle"}
		}, auditlog.Position{}},
	}
}

// within is the end of a row: what the runs took, the shortest first, and whether that is within the limit.
func within(took []time.Duration, limit time.Duration) string {
	p95 := took[min(len(took)*95/100, len(took)-1)]
	return fmt.Sprintf("%.1f | %.1f | %.1f | %t", ms(took[len(took)/2]), ms(p95), ms(took[len(took)-1]), p95 <= limit)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// repeated measures n runs of do, the shortest first.
func repeated(n int, do func(i int) error) ([]time.Duration, error) {
	var took []time.Duration
	for i := range n {
		began := time.Now()
		if err := do(i); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took, nil
}

// planStart is how a plan begins in the server's log.
var planStart = regexp.MustCompile(`(?m)^.*LOG:  duration: .* plan:$`)

// auditPlans makes each search once more with auto_explain, and reports the plan of its last statement.
func auditPlans(ctx context.Context, super *pgx.Conn, link, log string, searches []auditSearch, p func(string, ...any)) error {
	for setting, value := range map[string]string{"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
		"auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on"} {
		if _, err := super.Exec(ctx, fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", pgkit.AuditReader, setting, value)); err != nil {
			return err
		}
	}
	reader, err := postgres.OpenReader(link, time.Now)
	if err != nil {
		return err
	}
	defer reader.Close()
	for _, s := range searches {
		before, err := os.Stat(log)
		if err != nil {
			return err
		}
		if _, err := reader.Search(ctx, s.filter(1), s.before, 50); err != nil {
			return err
		}
		all, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		plans := planStart.Split(string(all[before.Size():]), -1)
		p("\n### %s\n\n```\n%s\n```\n", s.name, strings.TrimSpace(strings.ReplaceAll(plans[len(plans)-1], "\n\t", "\n")))
	}
	return nil
}

// aKey is the id of a key that auditRow has.
func aKey(i int) string { return "ak_" + md5Of(fmt.Sprint(i*i%211)) }

func md5Of(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // auditRow's names, nobody's secret
	return hex.EncodeToString(sum[:])
}
