package main

import (
	"context"
	"crypto/md5" //nolint:gosec // as above
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/postgres"
)

// auditName is the part that measures the audit log. It takes minutes to load, so it runs only where it is named.
const auditName = "audit"

const (
	auditDays = 400 // over which the rows are spread
	// searchLimit and summaryLimit are for the 95th percentile.
	searchLimit  = 200 * time.Millisecond
	summaryLimit = 300 * time.Millisecond
	// auditRuns is how often each search is made.
	auditRuns = 40
)

// auditRows is how many rows the log has at a scale.
func auditRows(scale float64) int { return int(5_000_000 * scale) }

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

// runAudit measures the audit log: the report goes to out and to audit.md in o.dir.
func runAudit(ctx context.Context, o options, out, progress io.Writer) error {
	var text strings.Builder
	err := benchAudit(ctx, o, io.MultiWriter(out, &text), func(format string, args ...any) { fmt.Fprintf(progress, format+"\n", args...) })
	return errors.Join(err, os.WriteFile(filepath.Join(o.dir, "audit.md"), []byte(text.String()), 0o644))
}

// benchAudit loads a log of its own, on a server of its own, and measures the reader that the console has.
func benchAudit(ctx context.Context, o options, out io.Writer, say func(string, ...any)) (err error) {
	dir := filepath.Join(o.dir, "audit")
	if err := localserver.RemoveDir(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(o.dir, "audit.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server, err := localserver.StartPostgres(ctx, localserver.Options{Dir: dir, Output: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	const password = "only-for-a-minute"
	if err := postgres.Bootstrap(ctx, server.SuperuserURL("postgres"), "hub",
		map[string]postgres.Login{postgres.Owner: {Password: password}, postgres.AuditReader: {Password: password}}); err != nil {
		return err
	}
	if err := audit.Migrate(ctx, server.URL(postgres.Owner, password, "hub")); err != nil {
		return err
	}
	super, err := pgx.Connect(ctx, server.SuperuserURL("hub"))
	if err != nil {
		return err
	}
	defer super.Close(ctx)
	now, rows := time.Now(), auditRows(o.scale)
	say("loading %d rows of the audit log", rows)
	loaded := time.Now()
	if err := loadAudit(ctx, super, now, rows); err != nil {
		return err
	}
	took := time.Since(loaded)
	link := server.URL(postgres.AuditReader, password, "hub")
	reader, err := audit.OpenReader(link, time.Now)
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
	p("# The audit log at %d rows over %d days\n\n%s\n\nLoaded in %.0f s, %s with its indexes; %d days rolled up in %.0f s.\n\n",
		rows, auditDays, describeMachine(o.root), took.Seconds(), size, auditDays, time.Since(rolled).Seconds())
	searches := auditSearches(now)
	if err := measureAudit(ctx, reader, searches, p); err != nil {
		return err
	}
	p("\n## Plans\n\nThe last window of each search, as auto_explain has logged it.\n")
	return auditPlans(ctx, super, link, log.Name(), searches, p)
}

// measureAudit reports how long searches, the overview and an export take.
func measureAudit(ctx context.Context, reader *audit.Reader, searches []auditSearch, p func(string, ...any)) error {
	p("| Search | rows | p50 ms | p95 ms | max ms | ≤ %.0f ms |\n|---|---|---|---|---|---|\n", ms(searchLimit))
	for _, s := range searches {
		var page audit.Page
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
	for _, g := range audit.Ranges() {
		var sum audit.Summary
		m, err := repeated(auditRuns, func(int) (err error) { sum, err = reader.Summary(ctx, g); return err })
		if err != nil {
			return fmt.Errorf("%s: %w", g.Text, err)
		}
		p("| %s | %d | %s |\n", g.Text, sum.Total.Calls, within(m, summaryLimit))
	}
	began, n := time.Now(), 0
	if _, _, err := reader.Export(ctx, audit.Filter{}, 200_000, func(audit.Call) error { n++; return nil }); err != nil {
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
		if _, err := super.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS audit.%s PARTITION OF audit.calls FOR VALUES FROM ('%s') TO ('%s')`,
			month.Format("calls_2006_01"), month.Format(time.RFC3339), month.AddDate(0, 1, 0).Format(time.RFC3339))); err != nil {
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
	filter func(i int) audit.Filter
	before audit.Position
}

func auditSearches(now time.Time) []auditSearch {
	always := func(f audit.Filter) func(int) audit.Filter { return func(int) audit.Filter { return f } }
	long := audit.Position{At: now.AddDate(0, 0, -200)}
	return []auditSearch{
		{"the newest", always(audit.Filter{}), audit.Position{}},
		{"older than 200 days", always(audit.Filter{}), long},
		{"between two times", always(audit.Filter{From: now.AddDate(0, 0, -300), To: now.AddDate(0, 0, -299)}), audit.Position{}},
		{"a frequent tool", always(audit.Filter{Tool: "search_brands"}), audit.Position{}},
		{"a rare tool", always(audit.Filter{Tool: "queue_for_review"}), long},
		{"no such tool", always(audit.Filter{Tool: "never_called"}), audit.Position{}},
		{"a caller", func(i int) audit.Filter { return audit.Filter{Caller: aKey(i)} }, audit.Position{}},
		{"a person", func(i int) audit.Filter { return audit.Filter{Person: fmt.Sprintf("person%d@company.example", i)} }, audit.Position{}},
		{"a draft", func(i int) audit.Filter { return audit.Filter{Draft: fmt.Sprint(i)} }, audit.Position{}},
		{"any failure", always(audit.Filter{Outcome: audit.Failed}), audit.Position{}},
		{"a rare code", always(audit.Filter{Outcome: "E_DB_TIMEOUT"}), audit.Position{}},
		{"a request", func(i int) audit.Filter { return audit.Filter{RequestID: "req_" + md5Of(fmt.Sprint(i*1000+1, "-3"))} }, audit.Position{}},
		{"frequent SQL", always(audit.Filter{SQL: "from PARTNER"}), audit.Position{}},
		{"rare SQL", always(audit.Filter{SQL: "NEEDLE"}), audit.Position{}},
		{"rare SQL, 200 days ago", always(audit.Filter{SQL: "NEEDLE"}), long},
		{"a tool and a code", always(audit.Filter{Tool: "get_brand", Outcome: "E_DB_TIMEOUT"}), audit.Position{}},
		{"a person and a tool", func(i int) audit.Filter {
			return audit.Filter{Person: fmt.Sprintf("person%d@company.example", i*3), Tool: "create_segment"}
		}, audit.Position{}},
		{"a caller and any failure", func(i int) audit.Filter {
			return audit.Filter{Caller: aKey(i), Outcome: audit.Failed}
		}, audit.Position{}},
		{"a caller and SQL", func(i int) audit.Filter {
			return audit.Filter{Caller: aKey(i), SQL: "needle"}
		}, audit.Position{}},
	}
}

// within is the end of a row: what the runs took, the shortest first, and whether that is within the limit.
func within(took []time.Duration, limit time.Duration) string {
	p95 := quantile(took, .95)
	return fmt.Sprintf("%.1f | %.1f | %.1f | %t", ms(took[len(took)/2]), ms(p95), ms(took[len(took)-1]), p95 <= limit)
}

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
		if _, err := super.Exec(ctx, fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", postgres.AuditReader, setting, value)); err != nil {
			return err
		}
	}
	reader, err := audit.OpenReader(link, time.Now)
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
