package overview_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/web"
	"hub.internal/services/admin"
	"hub.internal/services/admin/auditlog"
	"hub.internal/services/admin/overview"
	"hub.internal/services/admin/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// office is the pages on a log of their own, with neighbours that a test decides on.
type office struct {
	t       *testing.T
	mux     *http.ServeMux
	log     *pgxpool.Pool
	db      hubtest.WriteStoreDB
	records *audit.Log
	backlog func() (admin.Backlog, error)
	source  func() (admin.SourceHealth, error)
	names   func(ids []string) (map[string]string, error)
}

var errAway = errors.New("away")

func newOffice(t *testing.T) *office {
	t.Helper()
	db := hubtest.MigratedStore(t, "audit", audit.Migrate)
	o := &office{t: t, mux: http.NewServeMux(), log: hubtest.Pool(t, db.SuperuserURL), db: db}
	o.backlog = func() (admin.Backlog, error) { return admin.Backlog{}, nil }
	o.source = func() (admin.SourceHealth, error) { return admin.SourceHealth{Reachable: true, Slots: 8}, nil }
	o.names = func([]string) (map[string]string, error) { return nil, errAway }
	reader, err := postgres.OpenReader(db.AuditURL(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	logger := slog.New(slog.DiscardHandler)
	o.records = audit.NewLog(hubtest.Pool(t, db.URL("admin")), logger)
	t.Cleanup(func() { _ = o.records.Close(context.Background()) })
	keys := callertest.Keys(t, "admin", caller.Gateway)
	pages, err := overview.New(
		overview.Config{
			Log: reader, TraceURL: "https://traces.example/{trace}?x",
			Records: o.records,
			Owners: auditlog.Owners{
				"review.":          "hub_review_control",
				"audit.":           "hub_admin",
				"search_brands":    "hub_query",
				"get_brand":        "hub_admin",
				"list_menu_groups": "hub_admin",
			},
			Backlog: func(context.Context, time.Time) (admin.Backlog, error) { return o.backlog() },
			Source:  func(context.Context) (admin.SourceHealth, error) { return o.source() },
			Names:   func(_ context.Context, ids []string) (map[string]string, error) { return o.names(ids) },
		},
		func(options web.Options) (*web.Site, error) {
			options.Service, options.Keys, options.Logger = "admin", keys, logger
			return web.New(options)
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	pages.Mount(o.mux)
	return o
}

// write puts rows into the log as a service does.
func (o *office) write(entries ...audit.Entry) {
	o.t.Helper()
	for _, e := range entries {
		if e.At.IsZero() {
			e.At = time.Now()
		}
		if err := o.records.Write(o.t.Context(), e); err != nil {
			o.t.Fatal(err)
		}
	}
}

var (
	root = caller.Caller{
		Kind:           caller.User,
		Service:        "console",
		ExternalUserID: "root@example.com",
		CredentialID:   "ses_1",
		HubUser:        "usr_1",
		Email:          "root@example.com",
		Roles:          []string{"admin"},
		RequestID:      "req_admin",
	}
	reviewer = caller.Caller{
		Kind:         caller.User,
		Service:      "console",
		CredentialID: "ses_2",
		HubUser:      "usr_2",
		Email:        "ada@example.com",
		Roles:        []string{"reviewer"},
	}
	agent = caller.Caller{Service: "crm", CredentialID: "ak_1", ExternalUserID: "u1", RequestID: "req_1"}
)

func (o *office) as(who caller.Caller, path string) *httptest.ResponseRecorder {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), "GET", path, nil)
	r.Header = callertest.Header(o.t, "admin", who)
	w := httptest.NewRecorder()
	o.mux.ServeHTTP(w, r)
	return w
}

// sees opens a page as an administrator, and wants the texts to be in it, or not where they begin with "no: ".
func (o *office) sees(path string, status int, texts ...string) string {
	o.t.Helper()
	w := o.as(root, path)
	body := w.Body.String()
	if w.Code != status {
		o.t.Fatalf("%s: %d, want %d\n%.2000s", path, w.Code, status, body)
	}
	for _, text := range texts {
		not, absent := strings.CutPrefix(text, "no: ")
		if absent == strings.Contains(body, not) {
			o.t.Errorf("%s: want %q in\n%s", path, text, body)
		}
	}
	return body
}

// kept are the rows that reading has left, as tool and detail.
func (o *office) kept(tool string) (details []string) {
	o.t.Helper()
	rows, err := o.log.Query(
		o.t.Context(),
		`SELECT external_user_id || ' ' || coalesce(detail::text, '') FROM audit.calls WHERE tool = $1 ORDER BY at`,
		tool,
	)
	if err != nil {
		o.t.Fatal(err)
	}
	if details, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		o.t.Fatal(err)
	}
	return details
}

func TestWhomThePagesAreFor(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, path := range []string{"/admin", "/admin/audit", "/admin/audit/export", "/admin/audit/1-00000000-0000-0000-0000-000000000000"} {
		for who, c := range map[string]caller.Caller{"a visitor": {Kind: caller.Visitor, Service: "console"}, "a reviewer": reviewer} {
			if w := o.as(c, path); w.Code != http.StatusForbidden && w.Code != http.StatusUnauthorized {
				t.Errorf("%s at %s: %d", who, path, w.Code)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header = callertest.Header(
			t,
			"admin",
			caller.Caller{Kind: caller.Key, CredentialID: "ak_1", Roles: []string{"admin"}, Scopes: []string{"admin:read"}},
		)
		w := httptest.NewRecorder()
		if o.mux.ServeHTTP(w, r); w.Code < 400 {
			t.Errorf("an agent at %s: %d", path, w.Code)
		}
	}
	if n := len(o.kept("audit.export")); n != 0 {
		t.Errorf("%d exports of nobody", n)
	}
}

func TestOverviewOfNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.sees(
		"/admin",
		200,
		"No tool was called.",
		"No call failed.",
		"Nobody called.",
		"No caller reached a rate limit.",
		"nothing waits",
		"Reachable",
		"no: not all counted",
	)
	o.sees("/admin/audit", 200, "The log is empty")
}

func TestOverviewShowsWhatHappened(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.names = func(ids []string) (map[string]string, error) {
		return map[string]string{"ak_1": `<script>alert("name")</script>`}, nil
	}
	oldest := time.Now().Add(-3 * time.Hour)
	o.backlog = func() (admin.Backlog, error) {
		return admin.Backlog{Drafts: 2, Mails: 1234, Oldest: &oldest, ToSend: 5, Sending: 1, Failed: 7, Unknown: 3}, nil
	}
	o.source = func() (admin.SourceHealth, error) {
		return admin.SourceHealth{TookMS: 700, Running: 8, Slots: 8, Waiting: 4, Runaway: 1}, nil
	}
	for range 3 {
		o.write(audit.Entry{Caller: agent, Tool: "search_brands", Outcome: audit.OK, Took: 4 * time.Millisecond})
	}
	o.write(
		audit.Entry{Caller: agent, Tool: `<img src=x>`, Outcome: "E_NOT_FOUND"},
		audit.Entry{Caller: agent, Tool: "search_brands", Outcome: "E_RATE_LIMIT"},
	)
	for _, g := range auditlog.Ranges()[:1] {
		o.sees(
			"/admin?range="+g.Name,
			200,
			">5</a>",
			"40 % of all calls",
			`&lt;img src=x&gt;`,
			"&lt;script&gt;alert",
			"E_RATE_LIMIT",
			"1,234 mails",
			"waiting",
			"3 h",
			"Unreachable",
			"1 being sent",
			`/admin/audit?outcome=E_RATE_LIMIT&amp;within=1h`,
			"no: <img src=x>",
			"no: <script>alert",
		)
	}
	// What is younger than the roll-ups is there in each range, and an unknown one is a day.
	for _, path := range []string{"/admin", "/admin?range=7d", "/admin?range=30d", "/admin?range=365d", "/admin?range=%00"} {
		o.sees(path, 200, "search_brands", `aria-current="true"`)
	}
}

// TestOverviewWithoutNeighbours: one that is away, or that is slow, costs its own part of the page.
func TestOverviewWithoutNeighbours(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.write(audit.Entry{Caller: agent, Tool: "search_brands", Outcome: audit.OK})
	o.backlog = func() (admin.Backlog, error) { return admin.Backlog{}, fault.New(fault.DB, "away") }
	o.source = func() (admin.SourceHealth, error) { return admin.SourceHealth{}, errAway }
	o.sees("/admin", 200, "review-control does not answer", "query does not answer", "search_brands", "ak_1")
}

func TestLogIsSearchedByItsAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.write(
		audit.Entry{
			Caller:  agent,
			Tool:    "execute_read_sql",
			Outcome: audit.OK,
			Took:    time.Second,
			Detail:  map[string]any{"sql": "SELECT '<b>' AS x -- Needle"},
			TraceID: "0123456789abcdef0123456789abcdef",
		},
		audit.Entry{
			Caller:  caller.Caller{CredentialID: "ses_9", ExternalUserID: "eve@example.com", RequestID: "req_2"},
			Tool:    "review.decide",
			Outcome: audit.OK,
			Detail:  map[string]any{"draft_id": "42"},
		},
		audit.Entry{Caller: agent, Tool: "get_brand", Outcome: "E_DB_TIMEOUT"},
	)
	for query, want := range map[string]string{"tool=get_brand": "get_brand", "caller=ak_1&outcome=ok": "execute_read_sql",
		"person=eve%40example.com": "review.decide", "draft=42": "review.decide",
		"outcome=failed": "get_brand", "outcome=E_DB_TIMEOUT": "get_brand", "request=req_2": "review.decide",
		"sql=needle": "execute_read_sql", "within=1h&sql=%27%3Cb%3E": "execute_read_sql"} {
		body := o.sees("/admin/audit?"+query, 200, want)
		if n := strings.Count(body, `<tr data-item>`); n != 1 {
			t.Errorf("%s finds %d rows", query, n)
		}
	}
	o.sees("/admin/audit?tool=%3Cscript%3E", 200, "Nothing matches", `value="&lt;script&gt;"`)
	o.sees("/admin/audit?from=2001-01-01&to=2001-01-02+10:00", 200, "Nothing matches")
	o.sees("/admin/audit?to=never", 422, "This is no time")
	o.sees("/admin/audit/export?to=never", 400, "From and to")
	// An empty field is not a part of the address that is kept.
	w := o.as(root, "/admin/audit?within=&tool=+get_brand&sql=&after=")
	if w.Code != 303 || w.Header().Get("Location") != "/admin/audit?tool=get_brand" {
		t.Errorf("%d %s", w.Code, w.Header().Get("Location"))
	}
	// Whoever looked is in the log, with what they looked for.
	hubtest.Eventually(t, "the searches are kept", func() bool { return len(o.kept("audit.search")) == 11 })
	if got := strings.Join(o.kept("audit.search"), "\n"); !strings.Contains(got, `root@example.com {"sql": "needle"}`) {
		t.Errorf("%s", got)
	}
}

// TestTheLogTells: a refusal says what its caller was told, a row what it was about, with the way there, and a trace where it is shown.
func TestTheLogTells(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.write(
		audit.Entry{Caller: agent, Tool: "execute_read_sql", Outcome: "E_SCOPE", TraceID: "0123456789abcdef0123456789abcdef",
			Detail: audit.Refusal{Refused: audit.ToldOf(fault.New(fault.Scope, "The key lacks <sql>, says boss@shop.example.").
				With(map[string]string{"scope": "sql"}))}},
		audit.Entry{Caller: agent, Tool: "review.decide", Outcome: audit.OK,
			Detail: map[string]any{"draft_id": "15", "index": 11, "to_email": "kim@shop.example"}},
		audit.Entry{Caller: agent, Tool: "pay.orders.refund", Outcome: audit.OK,
			Detail: map[string]any{"order": "ord_1/2", "status": "PAID"}},
		audit.Entry{Caller: agent, Tool: "queue_for_review", Outcome: audit.OK,
			Detail: map[string]any{"draft_id": "../x", "index": "no", "app": 7}},
	)
	o.sees("/admin/audit", 200, "The key lacks &lt;sql&gt;, says …@shop.example.",
		`<a href="/drafts/15/targets/11"><bdi>Draft 15, mail 12 · kim@shop.example</bdi></a>`,
		`<a href="/admin/orders/ord_1%2F2"><bdi>Order ord_1/2</bdi></a>`, `<time class="second"`)
	if strings.Contains(o.sees("/admin/audit", 200), "boss@") {
		t.Error("the address in a message is shown")
	}
	for tool, wants := range map[string][]string{
		"execute_read_sql": {"The caller was told", `&#34;scope&#34;: &#34;sql&#34;`,
			`href="https://traces.example/0123456789abcdef0123456789abcdef?x"`},
		"review.decide": {`<a href="/drafts/15/targets/11">`},
	} {
		_, rest, _ := strings.Cut(o.sees("/admin/audit?tool="+tool, 200), `<tr data-item>`)
		_, rest, _ = strings.Cut(rest, `<a href="`)
		href, _, _ := strings.Cut(rest, `"`)
		o.sees(href, 200, wants...)
	}
}

// TestForeignRowsAreMarked: what a role has recorded that does not own the tool says so, in the list, on its own page and in the export.
func TestForeignRowsAreMarked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	query := hubtest.Pool(t, o.db.URL("query"))
	for _, name := range []string{"review.approve", "list_menu_groups", "search_brands", "agents.own.name"} {
		if err := audit.Append(t.Context(), query, audit.Entry{At: time.Now(), Caller: agent, Tool: name, Outcome: audit.OK}); err != nil {
			t.Fatal(err)
		}
	}
	o.write(audit.Entry{Caller: agent, Tool: "list_menu_groups", Outcome: audit.OK})
	const mark = "Recorded by hub_query, which does not own this"
	for path, marks := range map[string]int{"/admin/audit": 2, "/admin/audit?recorder=foreign": 2,
		"/admin/audit?recorder=foreign&tool=review.approve": 1, "/admin/audit?tool=search_brands": 0,
		"/admin/audit/export": 2, "/admin/audit/export?recorder=foreign": 2} {
		if n := strings.Count(o.sees(path, 200), mark); n != marks {
			t.Errorf("%s has %d marks, want %d", path, n, marks)
		}
	}
	body := o.sees("/admin/audit?recorder=foreign", 200, "review.approve", "list_menu_groups", "no: search_brands", "no: agents.own.name")
	_, link, _ := strings.Cut(body, `<td><a href="`)
	link, _, _ = strings.Cut(link, `"`)
	o.sees(link, 200, mark)
}

func TestOneCall(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.names = func(ids []string) (map[string]string, error) { return map[string]string{"ak_1": "Nightly import"}, nil }
	o.write(
		audit.Entry{
			Caller:    agent,
			Tool:      "execute_read_sql",
			Outcome:   audit.OK,
			Detail:    map[string]any{"sql": "SELECT '<b>'", "draft_id": "javascript:alert(1)"},
			TraceID:   "0123456789abcdef0123456789abcdef",
			InputHash: audit.HashInput(nil),
		},
	)
	body := o.sees("/admin/audit", 200, "Nightly import")
	_, link, _ := strings.Cut(body, `<td><a href="`)
	link, _, _ = strings.Cut(link, `"`)
	o.sees(
		link,
		200,
		"SELECT &#39;&lt;b&gt;&#39;",
		"0123456789abcdef0123456789abcdef",
		"Nightly import",
		"req_1",
		"hub_admin",
		"e3b0c442",
		`no: /drafts/javascript`,
	)
	hubtest.Eventually(t, "that it was read is kept", func() bool { return len(o.kept("audit.show")) == 1 })
	for _, path := range []string{"/admin/audit/x", "/admin/audit/1", "/admin/audit/1-00000000-0000-0000-0000-000000000000", link + "0"} {
		o.sees(path, 404, "no: SELECT")
	}
}

// TestRowsThatWouldFillAPage: who looks at a row that a broken service wrote is answered, and with about as much as it has.
func TestRowsThatWouldFillAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	deep := strings.Repeat("[", 2000) + strings.Repeat("1,", 10_000) + "1" + strings.Repeat("]", 2000)
	for _, detail := range []string{deep, "[" + strings.Repeat("1,", 100_000) + "1]"} {
		o.write(audit.Entry{Caller: agent, Tool: "execute_read_sql", Outcome: audit.OK, Detail: json.RawMessage(detail)})
		_, link, _ := strings.Cut(o.sees("/admin/audit", 200), `<td><a href="`)
		link, _, _ = strings.Cut(link, `"`)
		if body := o.sees(link, 200, "1, 1, 1"); len(body) > 2*len(detail)+10_000 {
			t.Errorf("a detail of %d bytes makes a page of %d", len(detail), len(body))
		}
	}
}

// older is the link to the next page.
var older = regexp.MustCompile(`href="([^"]*)" rel="next"`)

// TestPagesOfTheLog: each row is on one page, whatever is written meanwhile.
func TestPagesOfTheLog(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 120 {
		o.write(audit.Entry{Caller: caller.Caller{RequestID: fmt.Sprint("page_", i)}, Tool: "get_brand", Outcome: audit.OK})
	}
	seen, path, pages := map[string]int{}, "/admin/audit?tool=get_brand", 0
	for path != "" && pages < 5 {
		body := o.sees(path, 200)
		for part := range strings.SplitSeq(body, `<td><a href="`) {
			if at, _, ok := strings.Cut(part, `"`); ok && strings.HasPrefix(at, "/admin/audit/") {
				seen[at]++
			}
		}
		o.write(audit.Entry{Tool: "list_drafts", Outcome: audit.OK})
		path = ""
		if m := older.FindStringSubmatch(body); m != nil {
			path = html.UnescapeString(m[1])
		}
		pages++
	}
	if len(seen) != 120 || pages != 3 {
		t.Errorf("%d rows on %d pages", len(seen), pages)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	formulas := []string{
		`=HYPERLINK("https://evil.example")`,
		"+1",
		"-1+1",
		"@SUM(A1)",
		"\tx",
		"\rx",
		"\nx",
		"＝1",
		" =1",
		"\u00a0\u200b=1",
		"\ufeff＝1",
	}
	for _, f := range formulas {
		o.write(
			audit.Entry{
				Caller:  caller.Caller{ExternalUserID: f, RequestID: `a,"b`},
				Tool:    "get_brand",
				Outcome: audit.OK,
				Detail:  map[string]string{"x": "y\nz"},
			},
		)
	}
	o.write(audit.Entry{Tool: "list_drafts", Outcome: audit.OK})
	w := o.as(root, "/admin/audit/export?tool=get_brand")
	rows, err := csv.NewReader(strings.NewReader(w.Body.String())).ReadAll()
	if err != nil || w.Code != 200 || len(rows) != 1+len(formulas) || w.Header().Get("Content-Type") != "text/csv; charset=utf-8" ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("%d %v %v: %v", w.Code, w.Header(), err, rows)
	}
	for i, row := range rows[1:] {
		if want := "'" + formulas[len(formulas)-1-i]; row[10] != want || row[2] != `a,"b` || !strings.Contains(row[13], `y\nz`) {
			t.Errorf("%q, want %q", row, want)
		}
		for _, cell := range row {
			if strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r\n") {
				t.Errorf("%q is a formula", cell)
			}
		}
	}
	if got := o.kept("audit.export"); len(got) != 1 || got[0] != `root@example.com {"tool": "get_brand"}` {
		t.Errorf("%q", got)
	}
	// Nothing leaves that is not in the log.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := o.records.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if w := o.as(
		root,
		"/admin/audit/export",
	); w.Code != 503 || strings.Contains(w.Body.String(), "get_brand") ||
		w.Header().Get("Content-Disposition") != "" {
		t.Errorf("%d %v %.300s", w.Code, w.Header(), w.Body)
	}
}

// TestAssetsAreBesideThoseOfTheOtherPages: the gateway finds them below the service's own.
func TestAssetsAreBesideThoseOfTheOtherPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	body := o.sees("/admin", 200, `src="/assets/admin/overview/`, "no: <style", "no: style=", "no: <script>")
	for part := range strings.SplitSeq(body, `src="`) {
		if at, _, ok := strings.Cut(part, `"`); ok && strings.HasPrefix(at, "/assets/") {
			if w := o.as(
				caller.Caller{Kind: caller.Visitor, Service: "console"},
				at,
			); w.Code != 200 ||
				!strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d", at, w.Code)
			}
		}
	}
}
