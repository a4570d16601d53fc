package e2e_test

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/jackc/pgx/v5"
)

// past puts a month of calls into the log, as no service may, and rolls it up.
func (s *suite) past(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.store.SuperuserURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// Each is a transaction of its own: one that held the log's lock while it rolls up would be in the way of admin's job, and that in its.
	for _, statement := range []string{
		`DO $$ DECLARE m date := date_trunc('month', now() AT TIME ZONE 'UTC' - interval '1 month')::date; BEGIN
		EXECUTE format('CREATE TABLE audit.%I PARTITION OF audit.calls FOR VALUES FROM (%L) TO (%L)', 'calls_' || to_char(m, 'YYYY_MM'),
			m || ' 00:00+00', (m + interval '1 month')::date || ' 00:00+00'); END $$`,
		`SET session_replication_role = replica`,
		`INSERT INTO audit.calls (at, request_id, trace_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, detail,
			writer)
		SELECT now() - i * i * interval '100 ms' - interval '10 seconds', 'req_' || i, md5(i::text), 'crm-bot', '', 'ak_' || i % 4,
			(ARRAY['search_brands', 'search_brands', 'get_brand', 'execute_read_sql', 'a_rather_long_name_that_an_agent_has_made_up'])[1 + i % 5],
			CASE WHEN i % 11 = 0 THEN 'E_RATE_LIMIT' WHEN i % 31 = 0 THEN 'E_DB_TIMEOUT' ELSE 'ok' END, i % 7, i % 400,
			CASE WHEN i % 5 = 3 THEN jsonb_build_object('sql', 'SELECT ''<b>bold</b>'' AS needle_' || i, 'columns', '["needle"]'::jsonb) END,
			'hub_query' FROM generate_series(1, 4000) i`,
		`RESET session_replication_role`,
		`DO $$ BEGIN WHILE audit.roll_up() LOOP END LOOP; END $$`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOverview is the administrator's home and the log behind it, in a browser, by the keyboard, without scripts, and with neighbours away.
func TestOverview(t *testing.T) {
	t.Parallel()
	installAxe(t)
	s := start(t, options{})
	s.past(t)
	root, reviewer := s.person("Grace Hopper", "admin"), s.person("Ada Lovelace", "reviewer")
	s.call("execute_read_sql", map[string]any{"sql": "SELECT 1 AS the_answer"})

	p := newPage(t, s.url)
	p.Open("/")
	p.Sees("nothing is sent that no reviewer has approved")
	p.Link("Sign in").Click()
	p.signIn(root.Email, root.Password)
	if p.Path() != "/admin" {
		t.Fatalf("an administrator lands at %s", p.URL())
	}
	t.Run("overview", func(t *testing.T) {
		p.in(t)
		p.Sees("Most called tools")
		var drawn int
		p.eventually("two plots are drawn", func() bool {
			p.Evaluate("document.querySelectorAll('.drawing canvas').length", &drawn)
			return drawn == 2
		})
		p.Inspect("overview")
		// Keys read the plot out, and the plot says what the table says.
		var said, cells string
		p.Evaluate("document.querySelector('.drawing').focus()", nil)
		p.Press(kb.End, kb.ArrowLeft)
		p.Evaluate("document.querySelector('.plot [role=status]').textContent", &said)
		p.Evaluate(
			"[...document.querySelectorAll('.plot')[0].querySelectorAll('tbody tr')].at(-2).querySelectorAll('td')[0].textContent",
			&cells,
		)
		if !strings.Contains(said, "Calls "+cells+",") {
			t.Errorf("the plot says %q, its table %q", said, cells)
		}
		for _, name := range []string{"1 hour", "7 days", "30 days", "1 year"} {
			p.Link(name).Click()
			p.Sees("Most called tools")
		}
		p.Inspect("overview-year")
	})
	t.Run("log", func(t *testing.T) {
		p.in(t)
		p.Open("/admin/audit")
		p.Inspect("audit")
		p.Field("Part of the SQL").Fill("NEEDLE_13")
		p.Button("Search").Click()
		if got := p.URL(); !strings.HasSuffix(got, "/admin/audit?sql=NEEDLE_13") {
			t.Errorf("the search is at %s", got)
		}
		p.Inspect("audit-found")
		p.Press("j", "o")
		p.Sees("<b>bold</b>")
		p.Sees("hub_query") // who wrote it, whatever service it names
		p.Inspect("audit-call")
	})
	t.Run("errors", func(t *testing.T) {
		p.in(t)
		p.Open("/admin/audit?from=yesterday")
		p.Sees("This is no time")
		var field string
		if p.Evaluate(`document.activeElement.name`, &field); field != "from" {
			t.Errorf("the focus is on %q, not on the field that is wrong", field)
		}
		p.Inspect("audit-wrong")
		p.Open("/admin/audit?tool=nobody_called_this")
		p.Sees("Nothing matches")
		p.Inspect("audit-empty")
	})
	t.Run("without scripts", func(t *testing.T) {
		p := newPage(t, s.url)
		p.WithoutJavaScript()
		p.Open("/admin")
		p.signIn(root.Email, root.Password)
		p.Sees("95th percentile")
		var height float64
		if p.Evaluate("document.querySelector('.plot table').getBoundingClientRect().height", &height); height == 0 {
			t.Error("the numbers are not to be seen")
		}
		if p.Evaluate("document.querySelector('.drawing').getBoundingClientRect().height", &height); height != 0 {
			t.Error("there is room for a drawing that never comes")
		}
	})
	t.Run("export", func(t *testing.T) {
		cookie := s.session(t, root)
		resp := attempt{method: "GET", path: "/admin/audit/export?sql=needle&within=30d"}.send(t, s.url, cookie)
		rows, err := csv.NewReader(resp.Body).ReadAll()
		if err != nil || resp.StatusCode != 200 || len(rows) < 50 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/csv") ||
			!strings.Contains(resp.Header.Get("Content-Disposition"), "attachment") {
			t.Fatalf("%d, %d rows, %v, %v", resp.StatusCode, len(rows), resp.Header, err)
		}
		if i := slices.Index(rows[0], "detail"); i < 0 || !strings.Contains(rows[1][i], "needle_") {
			t.Errorf("%v", rows[:2])
		}
	})
	t.Run("roles", func(t *testing.T) {
		cookie := s.session(t, reviewer)
		for _, path := range []string{"/admin", "/admin/audit", "/admin/audit/export", "/admin/audit/1-00000000-0000-0000-0000-000000000000"} {
			if resp := (attempt{method: "GET", path: path}).send(t, s.url, cookie); resp.StatusCode != http.StatusForbidden {
				b, _ := io.ReadAll(resp.Body)
				t.Errorf("a reviewer at %s: %d %.200s", path, resp.StatusCode, b)
			}
		}
	})
	t.Run("neighbours away", func(t *testing.T) {
		p.in(t)
		for _, name := range []string{"review-control", "query"} {
			s.process[name].Kill()
		}
		p.Open("/admin")
		p.Sees("review-control does not answer")
		p.Sees("query does not answer")
		p.Inspect("overview-alone")
	})
}
