package admin_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/services/admin"
)

// TestMenuRules: what names, slugs, icons and links may be, counted as people count.
func TestMenuRules(t *testing.T) {
	h := newHouse(t)
	h.ok("create_menu_group", object{"name": "Reports", "slug": "reports"})
	with := func(more object) object {
		in := object{"groupSlug": "reports", "name": "N", "slug": fmt.Sprint("s", keys.Add(1))}
		for name, value := range more {
			in[name] = value
		}
		return in
	}
	family, flag := "👨‍👩‍👧‍👦", "🇰🇷"
	for name, c := range map[string]struct {
		more object
		// refused is the member that is at fault; empty for none.
		refused string
	}{
		"ten letters":                     {object{"icon": "abcdefghij"}, ""},
		"eleven letters":                  {object{"icon": "abcdefghijk"}, "/icon"},
		"ten families":                    {object{"icon": strings.Repeat(family, 10)}, ""},
		"eleven flags":                    {object{"icon": strings.Repeat(flag, 11)}, "/icon"},
		"ten Hangul of parts":             {object{"icon": strings.Repeat("\u1112\u1161\u11ab", 10)}, ""},
		"one letter of too many marks":    {object{"icon": "a" + strings.Repeat("\u0301", 200)}, "/icon"},
		"an icon that turns around":       {object{"icon": "\u202eab"}, "/icon"},
		"an icon that nobody sees":        {object{"icon": "\u200b"}, "/icon"},
		"no icon":                         {object{"icon": ""}, ""},
		"a name of two lines":             {object{"name": "a\nb"}, "/name"},
		"a name with a space of no width": {object{"name": "Ad\u200bmin"}, "/name"},
		"a name with a family":            {object{"name": family + " of brands"}, ""},
		"a name of spaces":                {object{"name": "   "}, "/name"},
		"markup is a name":                {object{"name": "<b>&amp;</b>"}, ""},
		"a slug with capitals":            {object{"slug": "Abc"}, "/slug"},
		"a slug with two hyphens":         {object{"slug": "a--b"}, "/slug"},
		"a slug that ends in one":         {object{"slug": "a-"}, "/slug"},
		"a slug with a dot":               {object{"slug": "a.b"}, "/slug"},
		"a slug with a slash":             {object{"slug": "a/b"}, "/slug"},
		"a position below 0":              {object{"position": -1}, "/position"},
		"a far position":                  {object{"position": 9223372036854775807}, ""},
		"at the end of that":              {object{}, ""},
	} {
		if c.refused == "" {
			h.ok("create_menu_item", with(c.more))
		} else if _, v := h.refused("create_menu_item", with(c.more), fault.Validation); len(v) == 0 || v[0].Path != c.refused {
			t.Errorf("%s: %v", name, v)
		}
	}
	for _, href := range []string{"/", "/drafts", "/drafts?status=in_review&x=%2F#top", "/p/reports/weekly", "/p/보고서",
		"https://x.example", "https://x.example/a?b=c#d", "https://x.example:8443/"} {
		if got := h.ok("create_menu_item", with(object{"href": href})); got["href"] != href {
			t.Errorf("%q is stored as %v", href, got["href"])
		}
	}
	if got := h.ok("create_menu_item", with(object{"href": "", "slug": "own"})); got["href"] != "/p/reports/own" {
		t.Errorf("%v", got)
	}
	for _, href := range []string{"javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)",
		"\tjavascript:alert(1)", "javascript&colon;alert(1)", "&#106;avascript:alert(1)", "data:text/html,x", "vbscript:x",
		"//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "/ /evil.example", "///evil.example", "/a//b", "/../x",
		"/./x", "/a/..", "http://plain.example", "HTTPS:evil.example", "https:/evil.example", "https:///evil.example",
		"https://user@evil.example", "https://evil.example\\@good.example", "https://%65vil.example/\u202e", "drafts", "?x", "#x", ".",
		"mailto:a@b.example", "tel:+1", "ftp://x.example", "file:///etc/passwd", "/x\u0000", "/x\u202e", "/x\"onclick=", "/<script>",
		"https://1.2", "/" + strings.Repeat("a", 2000)} {
		if _, v := h.refused("create_menu_item", with(object{"href": href}), fault.Validation); len(v) != 1 || v[0].Path != "/href" {
			t.Errorf("%q: %v", href, v)
		}
	}
}

// TestConflictsAndWhatIsNotThere: each with what to do instead.
func TestConflictsAndWhatIsNotThere(t *testing.T) {
	h := newHouse(t)
	h.reports()
	h.ok("create_menu_item", object{"groupSlug": "reports", "name": "Link", "slug": "link", "href": "/drafts"})
	page := func(group, item string) object {
		return object{"groupSlug": group, "itemSlug": item, "title": "T", "sections": []any{}}
	}
	item := func(group, slug string) object { return object{"groupSlug": group, "name": "N", "slug": slug} }
	for _, c := range []struct {
		tool string
		in   object
		code fault.Code
		says string
	}{
		{"create_menu_group", object{"name": "N", "slug": "reports"}, fault.Conflict, "taken"},
		{"create_menu_group", object{"name": "N", "slug": "system"}, fault.Conflict, "built-in group System"},
		{"create_menu_group", object{"name": "N", "slug": "admin"}, fault.Conflict, "built-in group Admin"},
		{"create_menu_group", object{"name": " ADMIN ", "slug": "n"}, fault.Conflict, "name \"Admin\" is that of a built-in group"},
		{"create_menu_group", object{"name": "𝖠𝖽𝗆𝗂𝗇", "slug": "n"}, fault.Conflict, "name \"Admin\" is that of a built-in group"},
		{"create_menu_group", object{"name": "A\u0323dmin.", "slug": "n"}, fault.Conflict, "name \"Admin\" is that of a built-in group"},
		{"create_menu_group", object{"name": "·", "icon": "System", "slug": "n"}, fault.Conflict, "name \"System\" is that of a built-in group"},
		{"create_menu_group", object{"name": "ystem", "icon": "S", "slug": "n"}, fault.Conflict, "name \"System\" is that of a built-in group"},
		{"create_menu_item", item("reports", "weekly"), fault.Conflict, "taken"},
		{"create_menu_item", item("system", "x"), fault.Conflict, "create_menu_group"},
		{"create_menu_item", item("admin", "x"), fault.Conflict, "create_menu_group"},
		{"create_menu_item", item("none", "x"), fault.NotFound, "create_menu_group"},
		{"create_menu_item", item("'; DROP TABLE x; --", "x"), fault.NotFound, "no menu group"},
		{"upsert_dynamic_page", page("none", "weekly"), fault.NotFound, "create_menu_group"},
		{"upsert_dynamic_page", page("reports", "none"), fault.NotFound, "create_menu_item"},
		{"upsert_dynamic_page", page("reports", "link"), fault.Conflict, "leads to /drafts"},
		{"upsert_dynamic_page", page("system", "drafts"), fault.Conflict, "built-in"},
	} {
		if f, _ := h.refused(c.tool, c.in, c.code); !strings.Contains(f.Message, c.says) {
			t.Errorf("%s %v: %q", c.tool, c.in, f.Message)
		}
	}
	// The same slug in another group is another item.
	h.ok("create_menu_group", object{"name": "Other", "slug": "other"})
	h.ok("create_menu_item", item("other", "weekly"))
	// As many as there may be, also when all come at once.
	var all sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for n := range admin.MaxGroups + 3 {
		all.Go(func() {
			_, err := h.send("create_menu_group", newKey(), text(object{"name": "N", "slug": fmt.Sprint("g", n)}))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				codes["ok"]++
			} else {
				codes[fault.From(err).Code]++
			}
		})
	}
	all.Wait()
	if codes["ok"] != admin.MaxGroups-2 || codes[fault.Conflict] != 5 ||
		h.count(`SELECT count(*) FROM admin.menu_groups`) != admin.MaxGroups {
		t.Errorf("%v", codes)
	}
	for n := range admin.MaxItems - 1 {
		h.ok("create_menu_item", item("other", fmt.Sprint("i", n)))
	}
	if f, _ := h.refused("create_menu_item", item("other", "more"), fault.Conflict); !strings.Contains(f.Message, "no room") {
		t.Errorf("%q", f.Message)
	}
}

// TestWritesAreDoneOnce: a key's answer is given again, and for another input it is refused; each write has its row in the audit log.
func TestWritesAreDoneOnce(t *testing.T) {
	h := newHouse(t)
	h.reports()
	for name, in := range map[string]object{
		"create_menu_group": {"name": "N", "slug": "once"},
		"create_menu_item":  {"groupSlug": "reports", "name": "N", "slug": "once"},
		"upsert_dynamic_page": {"groupSlug": "reports", "itemSlug": "later", "title": "T",
			"sections": []any{object{"type": "text", "body": "<script>x</script>"}}},
	} {
		first, err := h.send(name, "same", text(in))
		if err != nil {
			t.Fatal(err)
		}
		again, err := h.send(name, "same", text(in))
		if err != nil || again.data != first.data || !again.replayed || again.count != 1 {
			t.Errorf("%s: %+v, %v", name, again, err)
		}
		in["name"], in["title"] = "Other", "Other"
		delete(in, map[bool]string{true: "name", false: "title"}[name == "upsert_dynamic_page"])
		if _, err := h.send(name, "same", text(in)); !fault.Is(err, fault.Idempotency) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := h.send(name, "", text(in)); !fault.Is(err, fault.Validation) {
			t.Errorf("%s without a key: %v", name, err)
		}
		if n := h.count(
			`SELECT count(*) FROM audit.calls WHERE tool = $1 AND outcome = 'ok' AND credential_id = 'ak_1' AND detail->>'group' IS NOT NULL
			AND (detail->>'group' = 'once' OR detail->>'item' IN ('once', 'later')) AND detail->>'name' IS DISTINCT FROM 'Later'`,
			name,
		); n != 1 {
			t.Errorf("%s has %d rows in the audit log", name, n)
		}
	}
}

// TestWritersAtOnce: all versions land, one after the other; a restoring that comes too late is told.
func TestWritersAtOnce(t *testing.T) {
	h := newHouse(t)
	h.reports()
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[float64]bool{}
	restored, late := 0, 0
	for n := range 12 {
		all.Go(func() {
			if n%3 == 0 {
				w := h.visit(ada, "POST", "/p/reports/weekly/versions/1/restore", map[string][]string{"newest": {"1"}})
				mu.Lock()
				defer mu.Unlock()
				if w.Header().Get("Location") == "/p/reports/weekly" {
					restored++
				} else if strings.HasSuffix(w.Header().Get("Location"), "/versions") {
					late++
				}
				return
			}
			stored := h.write("weekly", fmt.Sprint("Writer ", n))
			mu.Lock()
			defer mu.Unlock()
			seen[stored["version"].(float64)] = true
		})
	}
	all.Wait()
	if total := h.count(
		`SELECT max(version) FROM admin.page_versions`,
	); restored > 1 || restored+late != 4 || len(seen) != 8 ||
		total != 1+8+restored {
		t.Errorf("%d versions; %d writers heard of %d of their own, %d restored, %d came too late", total, 8, len(seen), restored, late)
	}
}

// TestNavigation is what the gateway is told: what is shown, in order.
func TestNavigation(t *testing.T) {
	h := newHouse(t)
	navigation := func() admin.NavigationResponse {
		t.Helper()
		ctx, cancel := context.WithTimeout(caller.Alone(t.Context(), caller.Gateway), hubtest.Patience)
		defer cancel()
		out, err := remote.Operation[admin.NavigationRequest, admin.NavigationResponse]{
			Path: admin.NavigationPath,
		}.Call(
			ctx,
			h.client,
			admin.NavigationRequest{},
		)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := navigation(); len(got.Groups) != 0 || got.Groups == nil {
		t.Errorf("%+v", got)
	}
	h.reports()
	h.ok("create_menu_group", object{"name": "Empty", "slug": "empty", "position": 0})
	h.ok("create_menu_group", object{"name": "Links", "slug": "links", "position": 0})
	h.ok("create_menu_item", object{"groupSlug": "links", "name": "Out", "slug": "out", "href": "https://x.example/"})
	want := `{[{reports Reports 📊 [{Weekly  /p/reports/weekly} {Later  /p/reports/later}]} {links Links  [{Out  https://x.example/}]}]}`
	if got := fmt.Sprint(navigation()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	h.post("/admin/menus/edit", map[string][]string{"group": {"links"}, "name": {"Links"}, "hidden": {"yes"}})
	h.post("/admin/menus/edit", map[string][]string{"group": {"reports"}, "item": {"weekly"}, "name": {"Weekly"}, "hidden": {"yes"}})
	if got := fmt.Sprint(navigation()); got != `{[{reports Reports 📊 [{Later  /p/reports/later}]}]}` {
		t.Errorf("%s", got)
	}
}
