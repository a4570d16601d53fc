package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"hub.internal/pkg/hubtest"
)

// write calls a tool that writes, and wants it to.
func (s *suite) write(t testing.TB, tool string, input any) map[string]any {
	t.Helper()
	r := s.call(tool, input, "Idempotency-Key", fmt.Sprint("menus-", s.calls.Add(1)))
	if !r.OK {
		t.Fatalf("%s: %.500s", tool, r.raw)
	}
	var data map[string]any
	if err := json.Unmarshal(r.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data
}

type section = map[string]any

// list is the text of all that a selector finds, in order.
func (p *page) list(selector string) (texts []string) {
	p.t.Helper()
	p.Evaluate(fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.textContent.replace(/\\s+/g, ' ').trim())", selector), &texts)
	return texts
}

func (p *page) lists(selector string, want ...string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%s is %q", selector, want), func() bool { return slices.Equal(p.list(selector), want) })
}

// weekly is a page as an agent writes it, of rows that the search tools answer.
func (s *suite) weekly(t testing.TB, title string) section {
	t.Helper()
	var brands struct{ Brands []map[string]any }
	if err := json.Unmarshal(
		s.call("search_brands", `{"limit":40,"hasVerifiedContact":true}`).Data,
		&brands,
	); err != nil ||
		len(brands.Brands) < 5 {
		t.Fatalf("%d brands, %v", len(brands.Brands), err)
	}
	rows := []any{}
	for i, b := range brands.Brands {
		b["revenue"], b["by_day"], b["site"] = 1250.5*float64(
			(i*7)%11,
		), []int{
			i,
			(i * 7) % 13,
			(i * 5) % 17,
			(i * 3) % 11,
			12 - i%12,
			(i * i) % 19,
			i % 5,
		}, fmt.Sprintf(
			"https://brand%d.example/about",
			i,
		)
		rows = append(rows, b)
	}
	column := func(key, label string) any { return section{"key": key, "label": label} }
	return section{
		"groupSlug":   "reports",
		"itemSlug":    "weekly",
		"title":       title,
		"description": "Brands that ran a campaign in the last seven days, and how they did.",
		"createdBy":   "weekly report agent",
		"sections": []any{
			section{
				"type":  "stats",
				"title": "At a glance",
				"cards": []any{
					section{"label": "Applications", "value": 1234567, "delta": 8.4, "unit": "a week", "hint": "against the week before"},
					section{
						"label": "Fill rate",
						"value": "93.5",
						"unit":  "%",
						"delta": "-1.2",
					},
					section{"label": "Waiting for review", "value": 4},
					section{"label": "Best day", "value": "Tuesday"},
				},
			},
			section{
				"type":  "text",
				"title": "What happened",
				"body": `<h2>Three campaigns filled up</h2><p>The <strong>spring serum</strong> was gone within a day; ` +
					`see <a href="/drafts">the drafts</a> that write to its makers and <a href="https://news.example/serum">what was written about ` +
					`it</a>.</p><ul><li>Oat milk: slow, but steady.</li><li>Dog treats: ` +
					`<em>paused</em>.</li></ul><table><tr><th>Day</th><th>Calls</th></tr><tr><td>Monday</td><td>12</td></tr></table><script>alert(1)</` +
					`script>`,
			},
			section{
				"type":    "table",
				"title":   "Brands",
				"caption": "As search_brands answered, with what each sold.",
				"columns": []any{
					column("brand_id", "Id"),
					column("brand_name", "Brand"),
					column("country_code", "Country"),
					column(
						"contact.email",
						"Contact",
					),
					column("revenue", "Revenue"),
					column("by_day", "By day"),
					column("last_campaign_at", "Last campaign"),
					column("site", "Site"),
					column("contact", "Whole contact"),
				},
				"rows": rows,
			},
			section{"type": "table", "title": "Nothing to do", "columns": []any{column("a", "A")}, "rows": []any{}},
		},
	}
}

// everySection is a page with each kind of section, and each way to show a cell.
func everySection() section {
	dot := "data:image/gif;base64,R0lGODlhAgABAIAAAAAAAP///ywAAAAAAgABAAACAkQKADs="
	var days, orders, refunds []any
	for n := range 31 {
		days, orders, refunds = append(days, fmt.Sprintf("2026-01-%02d", n+1)), append(orders, 400+n*n-(n%7)*60), append(refunds, 90-n*5)
	}
	orders[9], orders[10], orders[12] = nil, nil, nil
	row := func(name string, rate, sold, calls, trend, at any) section {
		return section{"name": name, "rate": rate, "sold": sold, "calls": calls, "trend": trend, "at": at}
	}
	column := func(key, label, format string) any { return section{"key": key, "label": label, "format": format} }
	return section{"groupSlug": "reports", "itemSlug": "drawn", "title": "월간 보고", "sections": []any{
		section{"type": "text", "title": "요약", "body": `<p>이번 달은 <strong>좋았습니다</strong>. <img src="` + dot + `" alt="A dot" width="20"></p>`},
		section{"type": "stats", "cards": []any{section{"label": "매출", "value": 1234567, "unit": "원", "delta": 4}}},
		section{"type": "bar", "title": "카테고리별 매출", "unit": "₩", "caption": "지난 30일", "labels": []any{"스킨케어", "메이크업",
			"건강기능식품 및 다이어트 보조제 (정기배송 포함, 이름이 아주 긴 카테고리)", "없음"},
			"series": []any{section{"name": "매출", "values": []any{12345678, 8450000, 150000, nil}}}},
		section{"type": "bar", "title": "증감", "unit": "%", "labels": []any{"1월", "2월", "3월"}, "series": []any{
			section{"name": "2025", "values": []any{12, -8, 0}}, section{"name": "2026", "values": []any{4.5, -2, 15}}}},
		section{"type": "line", "title": "일별", "unit": "건", "labels": days, "series": []any{section{"name": "주문", "values": orders},
			section{"name": "환불", "values": refunds}}},
		section{"type": "progress", "title": "목표", "unit": "건", "caption": "오늘 기준", "items": []any{
			section{"label": "봄 세럼 캠페인", "value": 72, "max": 100}, section{"label": "귀리 우유 시음", "value": 1500, "max": 1000},
			section{"label": "아직 없음", "value": 0, "max": 20}}},
		section{"type": "table", "title": "브랜드", "columns": []any{section{"key": "name", "label": "브랜드"}, column("rate", "전환율", "percent"),
			column("sold", "매출", "money"), column("calls", "신청", "bar"), column("trend", "추이", "sparkline"), column("at", "마지막", "date")},
			"rows": []any{row("가나다", .3248, 1234567, 320, []any{3, 5, nil, 4, 8}, "2026-01-31"),
				row("라마바", .05, 98000, -40, []any{8, 4, 2, 1}, "2026-01-31T20:00:00Z"), row("사아자", "n/a", nil, 12, []any{4}, nil)}},
		section{"type": "line", "title": "한 점", "labels": []any{"하나"}, "series": []any{section{"name": "값", "values": []any{7}}}},
		section{"type": "bar", "title": "비어 있지 않음", "labels": days, "series": []any{section{"name": "주문", "values": orders},
			section{"name": "환불", "values": refunds}}},
	}}
}

// TestMenus goes the way of the tools, by HTTP and in the browser: group, item, page; the page replaced, restored,
// written by many at once; menus put in order.
func TestMenus(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	ada, rev := s.person("Ada Lovelace", "reviewer", "admin"), s.person("Rev Iewer", "reviewer")

	s.write(t, "create_menu_group", section{"name": "Reports", "slug": "reports", "icon": "📊", "position": 5})
	s.write(t, "create_menu_group", section{"name": "Plans", "slug": "plans", "position": 2})
	s.write(t, "create_menu_item", section{"groupSlug": "reports", "name": "Monthly", "slug": "monthly", "position": 7})
	s.write(t, "create_menu_item", section{"groupSlug": "reports", "name": "Weekly brands", "slug": "weekly", "icon": "🗓️",
		"position": 3})
	s.write(
		t,
		"create_menu_item",
		section{"groupSlug": "reports", "name": "Elsewhere", "slug": "elsewhere", "href": "https://reports.example/x"},
	)
	s.write(t, "create_menu_item", section{"groupSlug": "plans", "name": "Spring", "slug": "spring"})
	stored := s.write(t, "upsert_dynamic_page", s.weekly(t, "Brands of the week"))
	if removed, _ := json.Marshal(
		stored["removed"],
	); stored["url"] != "/p/reports/weekly" || stored["replaced"] != false ||
		!strings.Contains(string(removed), "script") {
		t.Fatalf("%v", stored)
	}
	p := s.signedIn(t, ada, "/p/reports/weekly")
	hubtest.Eventually(t, "the tabs are there", func() bool { p.Reload(); return len(p.list(".tabs a")) == 4 })

	t.Run("page", func(t *testing.T) {
		p.in(t)
		p.lists(".tabs a", "System", "Admin", "Plans", "📊 Reports")
		p.lists(".side a", "🗓️ Weekly brands", "Monthly", "Elsewhere ↗ (another site)")
		p.Sees("Brands of the week")
		p.Sees("1,234,567")
		p.Inspect("page")
		// By the keyboard, and each time again: up, then down.
		var first, second string
		head := "document.querySelector('#s3 tbody td:nth-child(5)').textContent"
		p.Button("Revenue").Focus()
		p.Press(kb.Enter)
		p.Evaluate(head, &first)
		p.Press(kb.Enter)
		p.Evaluate(head, &second)
		if first != "0" || second != "12,505" || p.Path() != "/p/reports/weekly" || strings.Contains(p.URL(), "sort=") {
			t.Errorf("sorted: %s, then %s at %s", first, second, p.URL())
		}
		var sticky float64
		p.Evaluate(
			"(() => { const box = document.querySelector('#s3 .scroll'); box.scrollTop = 500; "+
				"return document.querySelector('#s3 thead th').getBoundingClientRect().top - box.getBoundingClientRect().top; })()",
			&sticky,
		)
		if sticky < 0 || sticky > 2 {
			t.Errorf("the head is %v px from the top of its table", sticky)
		}
		// A 404 does not wait long for who somebody is, and has no tabs then.
		hubtest.Eventually(t, "the gateway's own 404 has the tabs", func() bool {
			return p.Open("/nowhere") == 404 && slices.Equal(p.list(".tabs a"), []string{"System", "Admin", "Plans", "📊 Reports"})
		})
		if p.Open("/p/reports/monthly") != 404 {
			t.Error("a page that is not written is there")
		}
		plain := s.signedIn(t, rev, "/p/reports/weekly")
		plain.SeesNot("All versions")
		plain.WithoutJavaScript()
		plain.Open("/p/reports/weekly")
		plain.Button("Revenue").Click()
		var top string
		plain.Evaluate(head, &top)
		if !strings.HasSuffix(plain.URL(), "sort=3.4.asc") || top != "0" {
			t.Errorf("without JavaScript: %s at %s", top, plain.URL())
		}
	})

	t.Run("versions", func(t *testing.T) {
		p.in(t)
		if again := s.write(
			t,
			"upsert_dynamic_page",
			s.weekly(t, "Brands of another week"),
		); again["replaced"] != true ||
			again["version"] != 2.0 {
			t.Errorf("%v", again)
		}
		p.Open("/p/reports/weekly")
		p.Heading("Brands of another week").wait()
		p.Link("All versions").Click()
		p.Link("Version 1").Click()
		p.Sees("What restoring it would change")
		p.Inspect("version")
		p.Button("Restore version 1").Click()
		p.Heading("Brands of the week").wait()
		if n := p.Notice(); n != "Version 1 is shown again, as version 3." {
			t.Errorf("%q", n)
		}
		// Many at once: each is a version of its own, in order, and each writer hears which.
		var all sync.WaitGroup
		var mu sync.Mutex
		var versions []float64
		for i := range 6 {
			page := s.weekly(t, fmt.Sprint("Writer ", i))
			all.Go(func() {
				stored := s.write(t, "upsert_dynamic_page", page)
				mu.Lock()
				defer mu.Unlock()
				versions = append(versions, stored["version"].(float64))
			})
		}
		all.Wait()
		if slices.Sort(versions); !slices.Equal(versions, []float64{4, 5, 6, 7, 8, 9}) {
			t.Errorf("versions %v", versions)
		}
	})

	t.Run("menus", func(t *testing.T) {
		p.in(t)
		p.Open("/admin/menus")
		p.Inspect("menus")
		p.Button("Move Reports up").Focus()
		p.Press(kb.Enter)
		p.eventually("the order is told", func() bool { return p.Notice() == "The order is changed." })
		// The tab follows at once, and the keyboard stays where it can go on.
		p.lists(".tabs a", "System", "Admin", "📊 Reports", "Plans")
		p.eventually("the keyboard is at Move Reports down", func() (there bool) {
			p.Evaluate("document.activeElement.getAttribute('aria-label') === 'Move Reports down'", &there)
			return there
		})
		p.Open("/admin/menus") // without what was told
		p.drag("Elsewhere", "Weekly brands")
		p.eventually("the order is told again", func() bool { return p.Notice() == "The order is changed." })
		p.lists(".menus > li:first-child ol strong", "Elsewhere", "🗓️ Weekly brands", "Monthly")
		p.Link("Edit Monthly").Click()
		p.Inspect("menu-edit")
		p.Field("Name").Fill("Each month")
		p.Field("Icon").Fill("👨‍👩‍👧‍👦🇰🇷")
		p.Button("Save").Click()
		p.Sees("Each month")
		p.Link("Edit Each month").Click()
		p.Link("Delete…").Click()
		p.Button("Delete").Click()
		p.SeesNot("Each month")
		p.Open("/p/reports/weekly")
		p.lists(".side a", "Elsewhere ↗ (another site)", "🗓️ Weekly brands")

		plain := s.signedIn(t, ada, "/admin/menus")
		plain.WithoutJavaScript()
		plain.Open("/admin/menus")
		plain.Button("Move Reports down").Click()
		plain.lists(".tabs a", "System", "Admin", "Plans", "📊 Reports")
	})

	t.Run("drawn", func(t *testing.T) {
		p.in(t)
		s.write(t, "create_menu_item", section{"groupSlug": "reports", "name": "Drawn", "slug": "drawn"})
		stored := s.write(t, "upsert_dynamic_page", everySection())
		if warnings, _ := json.Marshal(stored["warnings"]); strings.Count(string(warnings), `"path"`) != 1 {
			t.Errorf("%s", warnings)
		}
		p.Open("/p/reports/drawn")
		p.Inspect("drawn")
		p.lists("#s7 tbody td:nth-child(2)", "32.5 %", "5.0 %", "n/a")
		// The numbers of a chart, by the keyboard.
		var open bool
		p.Evaluate("(document.querySelector('#s3 summary').focus(), false)", &open)
		p.Press(kb.Enter)
		p.Evaluate("document.querySelector('#s3 details').open", &open)
		if !open {
			t.Error("the numbers stay hidden")
		}
		p.Inspect("drawn-open")
		var decoded bool
		p.Evaluate("document.querySelector('#s1 img').naturalWidth === 2", &decoded)
		if !decoded {
			t.Error("the picture is not shown")
		}
	})

	t.Run("roles", func(t *testing.T) { s.rolesOfPages(t, ada, rev) })
	t.Run("hostile", func(t *testing.T) { s.hostilePages(t, ada) })
}

// handled finds each page of admin with whom it is for.
var handled = regexp.MustCompile(`site\.Handle\(mux, "([A-Z]+) ([^"]+)", web\.(SignedIn|AnyRole|Role\(administrator\)),`)

// rolesOfPages tries each page of admin as nobody, as a reviewer, as an administrator and with a key of all scopes.
func (s *suite) rolesOfPages(t *testing.T, admin, reviewer person) {
	patterns := written(t, handled, "admin")
	if all := len(written(t, pattern, "admin")); len(patterns) != all || all < 10 {
		t.Fatalf("%d of %d pages say whom they are for", len(patterns), all)
	}
	form := url.Values{"group": {"none"}, "newest": {"1"}}.Encode()
	asReviewer, asAdmin := s.session(t, reviewer), s.session(t, admin)
	for _, m := range patterns {
		a := attempt{
			method: m[1],
			path:   strings.NewReplacer("{group}", "reports", "{item}", "weekly", "{section}", "3", "{version}", "2").Replace(m[2]),
		}
		if a.method == http.MethodPost {
			a.body, a.kind = form, "application/x-www-form-urlencoded"
		}
		for name, c := range map[string]struct {
			credential credential
			refused    bool
		}{
			"nobody": {nil, true}, "a key": {credential{"Authorization": "Bearer " + s.key}, true},
			"a key as a cookie": {credential{"Cookie": "__Host-hub=" + s.key}, true},
			"a reviewer":        {asReviewer, strings.HasPrefix(m[3], "Role")}, "an administrator": {asAdmin, false},
		} {
			// What an administrator is told of a group that is not there is no refusal of theirs.
			r := a.make(t, s.url, c.credential)
			if out := refused(r) && r.StatusCode != http.StatusNotFound; out != c.refused || r.StatusCode >= 500 {
				t.Errorf("%s is answered %d at %s", name, r.StatusCode, a)
			}
		}
	}
}

// drag takes an item of the menus by its grip and puts it above another one.
func (p *page) drag(item, above string) {
	p.t.Helper()
	place := func(name, selector string) (at struct{ X, Y float64 }) {
		p.Evaluate(
			fmt.Sprintf(
				`(() => { const li = [...document.querySelectorAll(".menus li.row")].find((e) => e.textContent.includes(%q)); `+
					`const b = (li.querySelector(%q)).getBoundingClientRect(); return {x: b.left + b.width / 2, y: b.top + 2}; })()`,
				name,
				selector,
			),
			&at,
		)
		return at
	}
	from, to := place(item, ".grip"), place(above, ".what")
	for _, e := range []input.DispatchMouseEventParams{
		{Type: input.DispatchMouseEventTypeMousePressed, X: from.X, Y: from.Y + 8, Button: input.MouseButtonLeft, ClickCount: 1},
		{Type: input.DispatchMouseEventTypeMouseMoved, X: from.X, Y: from.Y - 8, Button: input.MouseButtonLeft},
		{Type: input.DispatchMouseEventTypeMouseMoved, X: from.X, Y: to.Y, Button: input.MouseButtonLeft},
		{Type: input.DispatchMouseEventTypeMouseReleased, X: from.X, Y: to.Y, Button: input.MouseButtonLeft, ClickCount: 1},
	} {
		do(p, input.DispatchMouseEvent, e)
	}
}

// hostilePages writes texts that do something where they are taken for a page's own into every field of menus and
// pages, and looks at all of it.
func (s *suite) hostilePages(t *testing.T, admin person) {
	list, next := vectors(t), 0
	told := regexp.MustCompile(`(?i)xss|pwned`) // which would be a sign of harm in a window's title
	line := func(most int) string {
		for range list {
			v := oneLine(list[next%len(list)].text)
			if next++; strings.TrimSpace(v) != "" && utf8.RuneCountInString(v) <= most && !told.MatchString(v) {
				return v
			}
		}
		return `<b onmouseover=alert(1)>`[:most]
	}
	s.write(t, "create_menu_group", section{"name": line(50), "slug": "hostile", "icon": `"><svg/o`})
	var paths []string
	for n, chunk := range slices.Collect(slices.Chunk(list, 40)) {
		slug := fmt.Sprint("h", n)
		s.write(t, "create_menu_item", section{"groupSlug": "hostile", "name": line(100), "slug": slug, "icon": `<img src=x`})
		var sections, rows, cards, labels, values, items []any
		for _, v := range chunk {
			sections = append(sections, section{"type": "text", "title": line(200), "body": v.text})
			rows = append(
				rows,
				section{
					"a":    v.text,
					v.text: v.text,
					"b":    []any{v.text, section{v.text: v.text}},
					"c":    section{v.text: v.text, "url": v.text},
				},
			)
			if text := oneLine(v.text); utf8.RuneCountInString(text) <= 200 {
				cards = append(cards, section{"label": text, "value": text, "unit": line(50), "delta": text, "hint": text})
				labels, values = append(labels, text), append(values, len(values))
				items = append(items, section{"label": text, "value": 1})
			}
		}
		label := line(200)
		sections = append(
			sections,
			section{"type": "stats", "title": line(200), "cards": cards},
			section{"type": "bar", "title": line(200), "labels": labels, "unit": line(50), "caption": line(200),
				"series": []any{section{"name": line(200), "values": values}}},
			section{"type": "line", "title": line(200), "labels": labels, "unit": line(50),
				"series": []any{section{"name": line(200), "values": values}}},
			section{"type": "progress", "title": line(200), "items": items, "unit": line(50)},
			section{
				"type":    "table",
				"title":   line(200),
				"caption": line(200),
				"rows":    rows,
				"columns": []any{
					section{"key": "a", "label": label},
					section{"key": "b", "label": label},
					section{"key": "c", "label": label},
					section{"key": "c.url", "label": label},
					section{"key": line(100), "label": label},
				},
			},
		)
		page := section{
			"groupSlug":   "hostile",
			"itemSlug":    slug,
			"title":       line(200),
			"description": line(200),
			"sections":    sections,
			"createdBy":   line(200),
		}
		s.write(t, "upsert_dynamic_page", page)
		page["sections"], page["title"] = sections[1:], line(200)
		s.write(t, "upsert_dynamic_page", page)
		at := "/p/hostile/" + slug
		if paths = append(paths, at, at+"/versions/1"); n == 0 {
			paths = append(paths, at+"?sort=41.0.asc", at+"/versions", at+"/versions/2", "/admin/menus/edit?group=hostile&item="+slug)
		}
	}
	p := s.signedIn(t, admin, "/admin/menus")
	p.in(t)
	p.hostile = true
	for _, path := range append(paths, "/admin/menus", "/admin/menus/edit?group=hostile", "/nowhere") {
		if status := p.Open(path); status != 200 && path != "/nowhere" {
			t.Errorf("%s: %d", path, status)
		}
		if harm := p.harm(s.url + path); len(harm) > 0 {
			t.Errorf("%s: %q", path, harm)
		}
		var leads []string
		p.Evaluate(
			`[...document.querySelectorAll("a[href], form[action]")].map((e) => e.getAttribute("href") ?? e.getAttribute("action")).filter((h) `+
				`=> !/^(?:\/(?!\/)|https?:\/\/[a-z0-9]|mailto:|tel:|#main)/.test(h))`,
			&leads,
		)
		if len(leads) > 0 {
			t.Errorf("%s leads to %q", path, leads)
		}
		var foreign []string
		p.Evaluate(
			`[...document.querySelectorAll("main :is(script, iframe, object, embed, style, link, base, meta, [onerror], [onload], [onclick], `+
				`[onmouseover], [style])")].map((e) => e.outerHTML.slice(0, 200))`,
			&foreign,
		)
		if len(foreign) > 0 {
			t.Errorf("%s has elements that no page has: %q", path, foreign)
		}
	}
}
