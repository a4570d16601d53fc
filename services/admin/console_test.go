package admin_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
)

// session is what the gateway says of a signed-in user.
func session(email string, roles ...string) caller.Caller {
	return caller.Caller{
		Kind:           caller.User,
		Service:        "console",
		ExternalUserID: email,
		CredentialID:   "ses_1",
		HubUser:        "usr_" + email,
		Email:          email,
		Roles:          roles,
		RequestID:      "req_3",
	}
}

var (
	ada     = session("ada@hub.example", "admin")
	rev     = session("rev@hub.example", "reviewer")
	noRole  = session("new@hub.example")
	visitor = caller.Caller{Kind: caller.Visitor, Service: "console"}
)

func (h *house) visit(who caller.Caller, method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header = callertest.Header(h.t, "admin", who)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	return w
}

// see opens a page as an administrator and wants it to be there.
func (h *house) see(path string) string {
	h.t.Helper()
	w := h.visit(ada, "GET", path, nil)
	if w.Code != http.StatusOK {
		h.t.Fatalf("GET %s: %d %s\n%s", path, w.Code, w.Body, h.logs)
	}
	return w.Body.String()
}

// post sends a form as an administrator and returns where it leads, and what the next page says.
func (h *house) post(path string, form url.Values) (to, flash string, w *httptest.ResponseRecorder) {
	h.t.Helper()
	w = h.visit(ada, "POST", path, form)
	for _, c := range w.Result().Cookies() {
		if c.Name == "__Host-hub-flash" && c.MaxAge >= 0 {
			page := h.visit(ada, "GET", "/admin/menus", nil, "Cookie", c.Name+"="+c.Value).Body.String()
			if m := regexp.MustCompile(
				`<p class="notice (?:done|wrong)" role="(?:status|alert)">([^<]*)</p>`,
			).FindStringSubmatch(
				page,
			); m != nil {
				flash = html.UnescapeString(m[1])
			}
		}
	}
	return w.Header().Get("Location"), flash, w
}

// has fails for each text that a page lacks, or has when the text begins with "!".
func has(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if bare, without := strings.CutPrefix(text, "!"); strings.Contains(page, bare) == without {
			t.Errorf("the page: %s", text)
		}
	}
}

// reports makes a group with two items, of which the first has a page.
func (h *house) reports(sections ...any) {
	h.t.Helper()
	h.ok("create_menu_group", object{"name": "Reports", "slug": "reports", "icon": "📊"})
	h.ok("create_menu_item", object{"groupSlug": "reports", "name": "Weekly", "slug": "weekly"})
	h.ok("create_menu_item", object{"groupSlug": "reports", "name": "Later", "slug": "later"})
	h.write("weekly", "Week one", sections...)
}

func (h *house) write(item, title string, sections ...any) object {
	h.t.Helper()
	if sections == nil {
		sections = []any{}
	}
	return h.ok(
		"upsert_dynamic_page",
		object{"groupSlug": "reports", "itemSlug": item, "title": title, "sections": sections, "createdBy": "agent"},
	)
}

// TestPagesAreForThoseWhoMay: every page that is mounted, by each kind of visitor.
func TestPagesAreForThoseWhoMay(t *testing.T) {
	h := newHouse(t)
	h.reports(object{"type": "table", "columns": []any{object{"key": "a", "label": "A"}}, "rows": []any{object{"a": 1}}})
	h.write("weekly", "Week two")
	of := url.Values{"group": {"reports"}, "item": {"later"}, "name": {"Later"}, "by": {"up"}, "newest": {"2"}}
	mounted, err := os.ReadFile(filepath.Join("console", "console.go"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, page := range regexp.MustCompile(`site\.Handle(?:UpTo)?\(mux, "([^"]+)"`).FindAllStringSubmatch(string(mounted), -1) {
		left[page[1]] = true
	}
	for page, role := range map[string]string{
		"GET /p": "signed in", "GET /p/reports/weekly": "any", "GET /p/reports/weekly/tables/1": "any", "GET /p/reports/none": "any",
		"GET /p/reports/weekly/versions": "admin", "GET /p/reports/weekly/versions/1": "admin",
		"POST /p/reports/weekly/versions/1/restore": "admin",
		"GET /admin/menus":                          "admin", "POST /admin/menus/move": "admin", "POST /admin/menus/order": "admin",
		"GET /admin/menus/edit?group=reports": "admin",
		"POST /admin/menus/edit":              "admin", "GET /admin/menus/delete?group=reports&item=later": "admin",
		"POST /admin/menus/delete": "admin",
	} {
		method, path, _ := strings.Cut(page, " ")
		_, pattern := h.mux.Handler(httptest.NewRequest(method, path, nil))
		delete(left, pattern)
		for who, c := range map[string]struct {
			caller  caller.Caller
			refused bool
			status  int
		}{
			"nobody": {visitor, true, 401}, "a user without a role": {noRole, role != "signed in", 403},
			"a reviewer": {rev, role == "admin", 403}, "an administrator": {ada, false, 0},
		} {
			w := h.visit(c.caller, method, path, of)
			if refused := w.Code == 401 || w.Code == 403; refused != c.refused || refused && w.Code != c.status {
				t.Errorf("%s is answered %d at %s", who, w.Code, page)
			}
			if c.refused && (strings.Contains(w.Body.String(), "Week one") || w.Header().Get("Location") != "") {
				t.Errorf("%s is told too much at %s", who, page)
			}
		}
		agent := caller.Caller{Kind: caller.Key, CredentialID: "ak_1", Scopes: []string{"admin:write"}}
		if w := h.visit(agent, method, path, of); w.Code != 401 && w.Code != 403 {
			t.Errorf("a key is answered %d at %s", w.Code, page)
		}
	}
	for page := range left {
		t.Errorf("%s is mounted, and nobody tries it: add it to the list above", page)
	}
}

func TestPageShowsWhatWasWritten(t *testing.T) {
	h := newHouse(t)
	h.reports(
		object{
			"type":  "text",
			"title": "News",
			"body": `<h1>Big</h1><h3>Small</h3><h1>Next</h1><p>See <a href="/drafts?status=in_review">drafts</a> and <a ` +
				`href="https://x.example/a">x</a></p>`,
		},
		object{
			"type": "stats",
			"cards": []any{
				object{"label": "Calls", "value": 1234567, "unit": "a day", "delta": -3.5, "hint": "since May"},
				object{"label": "Word", "value": "fine", "delta": 4},
			},
		},
		object{"type": "table", "title": "Brands", "caption": "Of the week", "columns": []any{
			object{
				"key":   "brand_id",
				"label": "Id",
			},
			object{"key": "name", "label": "Name"},
			object{"key": "n", "label": "Sold"},
			object{"key": "contact.email", "label": "Mail"},
			object{
				"key":   "at",
				"label": "Last",
			},
			object{"key": "days", "label": "Days"},
			object{"key": "contact", "label": "All"},
			object{"key": "site", "label": "Site", "align": "center"},
		},
			"rows": []any{
				object{
					"brand_id": 12345,
					"name":     "beta",
					"n":        1200.5,
					"contact":  object{"email": "a@x.example", "position": "CEO"},
					"at":       "2026-01-31T09:00:00.000Z",
					"days":     []int{1, 5, 3},
					"site":     "https://x.example/",
				},
				object{
					"brand_id": 777,
					"name":     "Alpha",
					"n":        90,
					"contact":  nil,
					"at":       "2026-02-01",
					"days":     []int{},
					"site":     "javascript:alert(1)",
				},
				object{"name": "gamma", "n": nil},
			}},
		object{"type": "table", "columns": []any{object{"key": "a", "label": "A"}}, "rows": []any{}},
	)
	page := h.see("/p/reports/weekly")
	has(
		t,
		page,
		"<h1>Week one</h1>",
		"<h2 dir=\"auto\">News</h2>",
		"<h3>Big</h3><h4>Small</h4><h3>Next</h3>",
		`<a href="/drafts?status=in_review">drafts</a>`,
		`<bdi class="figure">1,234,567</bdi>`,
		"a day",
		`<span aria-hidden="true">▼</span> <bdi>-3.5</bdi>`,
		`<span aria-hidden="true">▲</span> <bdi>&#43;4</bdi>`,
		"since May",
		`<td class="number" data-key-value="12345"><bdi>12345</bdi>`,
		`<td class="number" data-key-value="1200.5"><bdi>1,200.5</bdi>`,
		`href="mailto:a@x.example"`,
		"<time datetime=\"2026-01-31T09:00:00Z\"",
		`aria-label="3 values from 1 to 5: first 1, last 3"`,
		`<path d="M3.0,25.0L60.0,3.0L117.0,14.0"/>`,
		`<span class="muted">position</span> <bdi>CEO</bdi>`,
		`<a href="https://x.example/" rel="noopener noreferrer">`,
		"!href=\"javascript",
		`<td class="middle"><bdi>javascript:alert(1)</bdi>`,
		"Of the week",
		"There are no rows.",
		`by <bdi>agent (u1)</bdi>`,
		"Version 1,",
		`href="/p/reports/weekly/versions"`,
		"3 rows",
	)
	has(t, h.see("/p"), `<a href="/p/reports/weekly" rel="noopener noreferrer"><bdi>Weekly</bdi>`)
	has(t, h.visit(noRole, "GET", "/p", nil).Body.String(), "no pages for you yet", "!Weekly")
	order := func(page string) string {
		var names []string
		for _, m := range regexp.MustCompile(`<td><bdi>(beta|Alpha|gamma)</bdi>`).FindAllStringSubmatch(page, -1) {
			names = append(names, m[1])
		}
		return strings.Join(names, " ")
	}
	for query, want := range map[string]string{"": "beta Alpha gamma", "?sort=3.1.asc": "Alpha beta gamma",
		"?sort=3.1.desc": "gamma beta Alpha", "?sort=3.2.asc": "Alpha beta gamma",
		"?sort=3.2.desc": "beta Alpha gamma", "?sort=3.99.asc": "beta Alpha gamma", "?sort=1.0.asc": "beta Alpha gamma",
		"?sort=x": "beta Alpha gamma", "?sort=-1.0.asc": "beta Alpha gamma", "?sort=3.-1.asc": "beta Alpha gamma"} {
		if got := order(h.see("/p/reports/weekly" + query)); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	has(
		t,
		h.see("/p/reports/weekly?sort=3.1.asc"),
		`aria-sort="ascending"><button class="quiet small sort" form="sort-3" name="sort" value="3.1.desc">`,
	)
	if w := h.visit(ada, "GET", "/p/reports/later", nil); w.Code != 404 || !strings.Contains(w.Body.String(), "has not been written yet") {
		t.Errorf("a page that is not there yet: %d", w.Code)
	}
	has(t, h.visit(rev, "GET", "/p/reports/weekly", nil).Body.String(), "Week one", "!/versions")
	for _, path := range []string{"/p/reports/none", "/p/none/weekly", "/p/reports/weekly/tables/1", "/p/reports/weekly/tables/9",
		"/p/reports/weekly/tables/x", "/p/reports/weekly/versions/2", "/p/reports/weekly/versions/0", "/p/reports/weekly/versions/01",
		"/p/reports/weekly/versions/99999999999"} {
		if w := h.visit(ada, "GET", path, nil); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestDrawnSections: what is drawn is also told, in a line and in a table.
func TestDrawnSections(t *testing.T) {
	h := newHouse(t)
	series := []any{object{"name": "매출 <A>", "values": []any{1200, nil, -3}}}
	h.reports(
		object{"type": "bar", "title": "By month", "labels": []any{"1월", "2월", "3월"}, "series": series, "unit": "₩", "caption": "Net"},
		object{"type": "line", "labels": []any{"1월", "2월", "3월"}, "series": series, "unit": "건"},
		object{"type": "bar", "labels": []any{}, "series": []any{object{"name": "n", "values": []any{}}}},
		object{"type": "progress", "items": []any{object{"label": "Done", "value": 3, "max": 4}}},
		object{"type": "table", "columns": []any{object{"key": "s", "label": "Share", "format": "percent"},
			object{"key": "b", "label": "Bar", "format": "bar"}, object{"key": "d", "label": "Day", "format": "date"}},
			"rows": []any{object{"s": .3248, "b": 5, "d": "2026-01-31T23:00:00Z"}, object{"s": "n/a", "b": 10}}},
	)
	has(t, h.see("/p/reports/weekly"),
		`role="img" aria-label="Bar chart, 3 points: 매출 &lt;A&gt; from -₩3 (3월) to ₩1,200 (1월)"`, `<figcaption class="muted" dir="auto">Net`,
		`<th scope="row" dir="auto">2월</th><td class="number">–</td>`, `aria-label="Chart 2"`, `<svg class="lines">`, `<bdi>건</bdi>`,
		"There is no number to draw.", `<bdi>3 / 4</bdi> <span class="muted">75 %</span>`, `role="img" aria-label="75 %"`, "!style=",
		`<td class="number" data-key-value="0.3248"><bdi>32.5 %</bdi></td>`, `<td class="number"><bdi>n/a</bdi></td>`,
		`aria-label="50.0 % of the largest"`, `<time class="day" datetime="2026-01-31T23:00:00Z"`)
	h.write("weekly", "Week one", object{"type": "line", "labels": []any{"1월"}, "series": []any{object{"name": "n", "values": []any{2}}}},
		object{"type": "progress", "items": []any{object{"label": "Done", "value": 4, "max": 4}}})
	has(t, h.see("/p/reports/weekly/versions/2"), `<del dir="auto">1월: 매출 &lt;A&gt; 1200 건</del>`, `<ins dir="auto">1월: n 2</ins>`,
		`<ins dir="auto">Done: 4 / 4</ins>`)
}

// TestPagesInKorean: what pages say is in the reader's language, what agents have written is as it is.
func TestPagesInKorean(t *testing.T) {
	h := newHouse(t)
	h.reports(
		object{"type": "bar", "labels": []any{"a", "b"}, "series": []any{object{"name": "Sold", "values": []any{5, 1}}}, "caption": "no"},
		object{"type": "table", "title": "Brands", "columns": []any{object{"key": "open", "label": "Open"}, object{"key": "n", "label": "N"}},
			"rows": []any{object{"open": true, "n": []int{1, 5, 3}}, object{"open": "yes"}}},
	)
	has(t, h.visit(ada, "GET", "/p/reports/weekly", nil, "Accept-Language", "ko").Body.String(), "<h1>Week one</h1>",
		`aria-label="막대 차트, 점 2개: Sold 최소 1(b), 최대 5(a)"`, `aria-label="값 3개, 1부터 5까지: 처음 1, 마지막 3"`, "<bdi>예</bdi>", "<bdi>yes</bdi>",
		`aria-label="Brands CSV 내려받기"`, "2행", `<figcaption class="muted" dir="auto">no</figcaption>`, "버전 1, <bdi>agent (u1)</bdi> 작성")
	refused := h.visit(ada, "GET", "/admin/menus/delete?group=reports", nil, "Accept-Language", "ko")
	has(t, refused.Body.String(), "항목이 있어 삭제할 수 없습니다.")
	has(t, h.visit(ada, "GET", "/admin/menus/delete?group=reports", nil).Body.String(), "It has items, so it cannot be deleted.")
}

// TestSectionsOfALaterRelease: what this release does not know is said, and the rest of the page stays readable.
func TestSectionsOfALaterRelease(t *testing.T) {
	h := newHouse(t)
	h.reports(object{"type": "text", "body": "x"})
	h.row(`UPDATE admin.page_versions SET sections = '[{"type":"map","title":"Shops","places":[{"x":1}]},{"type":"text","body":"stays"},
		{"type":"line"},{"type":"bar","labels":["a"],"series":[{"name":"n","values":["x",2]}]},{"type":"progress","items":[{"label":"l"}]},
		{"type":"table","columns":[{"key":"a","label":"A","format":"stars"}],"rows":[{"a":1234}]}]' RETURNING 'x'`)
	for _, path := range []string{"/p/reports/weekly", "/p/reports/weekly/versions/1"} {
		has(t, h.see(path), "Shops", "a type that this release of Hub does not show: <bdi>map</bdi>", "stays",
			"There is no number to draw.", "1,234")
	}
	h.write("weekly", "Week two", object{"type": "text", "body": "x"})
	has(t, h.see("/p/reports/weekly/versions/1"), "Section Shops (map)")
}

func TestCSV(t *testing.T) {
	h := newHouse(t)
	h.reports(object{"type": "table", "columns": []any{object{"key": "a", "label": "=A"}, object{"key": "b", "label": "B"}}, "rows": []any{
		object{
			"a": "=HYPERLINK(1)",
			"b": -5,
		},
		object{"a": "+1", "b": "-5.20"},
		object{"a": "@x", "b": "-cmd"},
		object{"a": "\tx", "b": "a,\"b\"\nc"},
		object{"a": nil, "b": object{"k": "=x"}},
		object{"a": "김", "b": true},
	}})
	w := h.visit(rev, "GET", "/p/reports/weekly/tables/1", nil)
	want := "\ufeff'=A,B\r\n'=HYPERLINK(1),-5\r\n'+1,-5.20\r\n'@x,'-cmd\r\n'\tx,\"a,\"\"b\"\"\r\nc\"\r\n,\"{\"\"k\"\":\"\"=x\"\"}" +
		"\"\r\n김,true\r\n"
	if got := w.Body.String(); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := w.Header().Get(
		"Content-Disposition",
	); got != `attachment; filename="reports-weekly-1.csv"` || w.Header().Get("Content-Type") != "text/csv; charset=utf-8" ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", w.Header())
	}
}

func TestVersions(t *testing.T) {
	h := newHouse(t)
	h.reports(object{"type": "text", "body": "<p>one</p><p>stays</p>"})
	two := h.write("weekly", "Week two", object{"type": "text", "body": "<p>two</p><p>stays</p>"})
	if two["version"] != 2.0 || two["replaced"] != true || two["url"] != "/p/reports/weekly" {
		t.Errorf("%v", two)
	}
	has(
		t,
		h.see("/p/reports/weekly/versions"),
		`/p/reports/weekly/versions/1">Version 1</a>`,
		`Version 2</a> <span class="badge good">Shown</span>`,
	)
	has(
		t,
		h.see("/p/reports/weekly/versions/1"),
		"What restoring it would change",
		`Removed: </span><del dir="auto">Title: Week two`,
		`Added: </span><ins dir="auto">one`,
		`<li dir="auto">stays`,
		`name="newest" value="2"`,
	)
	has(t, h.see("/p/reports/weekly/versions/2"), "What this version has changed", `Added: </span><ins dir="auto">two`, "!Restore version")
	// Somebody writes while an administrator looks: nothing is restored, and it is said.
	h.write("weekly", "Week three")
	if _, flash, w := h.post(
		"/p/reports/weekly/versions/1/restore",
		url.Values{"newest": {"2"}},
	); w.Code != 303 ||
		!strings.Contains(flash, "Version 3 was written while you looked at version 2") {
		t.Errorf("%d %q", w.Code, flash)
	}
	to, flash, _ := h.post("/p/reports/weekly/versions/1/restore", url.Values{"newest": {"3"}})
	if to != "/p/reports/weekly" || flash != "Version 1 is shown again, as version 4." {
		t.Errorf("%s %q", to, flash)
	}
	has(t, h.see("/p/reports/weekly"), "<h1>Week one</h1>", "Version 4, which is version 1 again, by <bdi>agent (ada@hub.example)</bdi>")
	if n := h.count(
		`SELECT count(*) FROM audit.calls WHERE tool = 'page.restore' AND external_user_id = 'ada@hub.example' AND detail->>'from' = '1' ` +
			`AND detail->>'version' = '4'`,
	); n != 1 {
		t.Errorf("%d audit rows of the restoring", n)
	}
	for form, status := range map[string]int{"": 400, "newest=4": 404} {
		v, _ := url.ParseQuery(form)
		if w := h.visit(ada, "POST", "/p/reports/weekly/versions/9/restore", v); w.Code != status {
			t.Errorf("%q: %d, want %d", form, w.Code, status)
		}
	}
	for n := range 26 {
		h.write("weekly", fmt.Sprint("More ", n))
	}
	first := h.see("/p/reports/weekly/versions")
	has(t, first, "Version 30</a>", "Version 6</a>", "!Version 5</a>", `href="/p/reports/weekly/versions?below=6"`)
	has(t, h.see("/p/reports/weekly/versions?below=6"), "Version 5</a>", "Version 1</a>", "!Older versions</a>", "Newest versions")
	for _, below := range []string{"x", "-1", "2147483648", "99999999999999999999"} { // what is no version is the begin
		has(t, h.see("/p/reports/weekly/versions?below="+below), "Version 30</a>", "!Newest versions")
	}
}

func TestMenusPage(t *testing.T) {
	h := newHouse(t)
	has(t, h.see("/admin/menus"), "There are no groups yet", "Built in")
	h.reports()
	h.ok("create_menu_group", object{"name": "Plans", "slug": "plans", "position": 0})
	order := func() string {
		var slugs []string
		for _, m := range regexp.MustCompile(`data-slug="([a-z-]+)"`).FindAllStringSubmatch(h.see("/admin/menus"), -1) {
			slugs = append(slugs, m[1])
		}
		return strings.Join(slugs, " ")
	}
	if got := order(); got != "reports weekly later plans" { // two at 0: the older comes first
		t.Errorf("%s", got)
	}
	move := func(group, item, by string) string {
		to, _, w := h.post("/admin/menus/move", url.Values{"group": {group}, "item": {item}, "by": {by}})
		if w.Code != 303 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		return to
	}
	to := move("plans", "", "up")
	if got := order(); got != "plans reports weekly later" {
		t.Errorf("%s", got)
	}
	has(t, h.see(to), `aria-label="Move Plans down" autofocus`, `aria-label="Move Plans up" disabled`)
	move("reports", "later", "up")
	move("reports", "later", "up")
	if got := order(); got != "plans reports later weekly" {
		t.Errorf("%s", got)
	}
	if _, flash, w := h.post(
		"/admin/menus/order",
		url.Values{"group": {""}, "slug": {"reports", "plans"}},
	); flash != "The order is changed." ||
		w.Header().Get("Hub-Navigation") == "" {
		t.Errorf("%q %v", flash, w.Header())
	}
	for name, slugs := range map[string][]string{"one is missing": {"plans"}, "one is too many": {"plans", "reports", "x"},
		"one is there twice": {"plans", "plans"}, "none": nil} {
		if _, flash, w := h.post(
			"/admin/menus/order",
			url.Values{"group": {""}, "slug": slugs},
		); !strings.Contains(flash, "Somebody has changed the menus") ||
			w.Header().Get("Hub-Navigation") != "" {
			t.Errorf("%s: %q", name, flash)
		}
	}
	if got := order(); got != "reports later weekly plans" {
		t.Errorf("%s", got)
	}
	// Rename, hide.
	has(t, h.see("/admin/menus/edit?group=reports&item=weekly"), `value="Weekly"`, "versions of pages are kept")
	if w := h.visit(
		ada,
		"POST",
		"/admin/menus/edit",
		url.Values{"group": {"reports"}, "item": {"weekly"}, "name": {" "}, "icon": {strings.Repeat("x", 11)}},
	); w.Code != 422 ||
		strings.Count(w.Body.String(), `class="error"`) != 2 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, flash, _ := h.post(
		"/admin/menus/edit",
		url.Values{"group": {"reports"}, "item": {"weekly"}, "name": {"Each <week>"}, "icon": {"🇰🇷"}, "hidden": {"yes"}},
	); flash != "The changes are saved." {
		t.Errorf("%q", flash)
	}
	has(t, h.see("/admin/menus"), "<bdi>Each &lt;week&gt;</bdi>", "🇰🇷", `<span class="badge warn">Hidden</span>`)
	if n := h.count(`SELECT count(*) FROM audit.calls WHERE tool = 'menu.change' AND external_user_id = 'ada@hub.example'
		AND detail->'before'->>'name' = 'Weekly' AND detail->'after'->>'name' = 'Each <week>' AND detail->>'item' = 'weekly'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	h.see("/p/reports/weekly") // still opens
	// Delete what is empty, and nothing else.
	for _, c := range []struct{ group, item, flash string }{
		{"reports", "", "This group still has items."}, {"reports", "weekly", "This item has a page"}, {"reports", "later", "It is deleted."},
		{"reports", "later", "no item"}, {"plans", "", "It is deleted."}, {"plans", "", "no menu group"},
	} {
		if _, flash, _ := h.post(
			"/admin/menus/delete",
			url.Values{"group": {c.group}, "item": {c.item}},
		); !strings.Contains(
			flash,
			c.flash,
		) {
			t.Errorf("%s %s: %q, want %q", c.group, c.item, flash, c.flash)
		}
	}
	if got := order(); got != "reports weekly" {
		t.Errorf("%s", got)
	}
	if n := h.count(
		`SELECT count(*) FROM audit.calls WHERE tool IN ('menu.delete', 'menu.arrange') AND external_user_id = 'ada@hub.example'`,
	); n != 5 {
		t.Errorf("%d audit rows of two deletions and three orders", n)
	}
	for _, path := range []string{"/admin/menus/edit?group=none", "/admin/menus/edit?group=reports&item=none", "/admin/menus/edit",
		"/admin/menus/delete?group=system"} {
		if w := h.visit(ada, "GET", path, nil); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
