package admin_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/markup/markuptest"
	"hub.internal/services/admin"
)

// local are links to this console, which markuptest knows none of.
var local = regexp.MustCompile(` href="/[a-zA-Z0-9][^"]*"`)

// TestTextsAreHarmless: of the corpus, and of what only pages could be made of, nothing stays that runs, hides, fetches or leads astray.
func TestTextsAreHarmless(t *testing.T) {
	f, err := os.Open(filepath.Join(hubtest.Root(t), "services/review-control/body/testdata/xss.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	texts := []string{
		`<p style="color:red">x</p>`,
		`<a href="//evil.example">x</a>`,
		`<a href="/\evil.example">x</a>`,
		`<a href="/&#9;/evil.example">x</a>`,
		`<a href="&#106;avascript:alert(1)">x</a>`,
		`<img src="https://tracker.example/p.gif">`,
		`<form action="/logout" method="post"><button>x</button></form>`,
		`<font color="red">x</font>`,
		`<div id="toast" class="notice">x</div>`,
		`<a href="/..//evil.example">x</a>`,
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if _, text, ok := strings.Cut(lines.Text(), "\t"); ok && !strings.HasPrefix(lines.Text(), "#") {
			texts = append(
				texts,
				strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\f`, "\f", `\0`, "\x00", `\\`, `\`).Replace(text),
			)
		}
	}
	if len(texts) < 60 {
		t.Fatalf("%d texts", len(texts))
	}
	for _, text := range texts {
		clean, _ := admin.CleanText(text)
		if harm := markuptest.Harm(
			local.ReplaceAllString(clean, ""),
		); harm != "" || strings.Contains(clean, " style=") || strings.Contains(clean, "<font") ||
			regexp.MustCompile(`src="http|href="(?:/[/\\]|javascript)| (?:id|class)=`).MatchString(clean) {
			t.Errorf("%q stays as %q: %s", text, clean, harm)
		}
		if again, removed := admin.CleanText(clean); again != clean || len(removed) > 0 {
			t.Errorf("%q becomes %q when it is cleaned again: %v", clean, again, removed)
		}
	}
	for _, kept := range []string{`<p>a <a href="/drafts?status=in_review#x">b</a></p>`, `<h2>a</h2><ul><li>b</li></ul>`,
		`<table><tbody><tr><th>a</th><td align="right">1</td></tr></tbody></table>`, `<a href="https://x.example/a?b=1">x</a>`} {
		if clean, removed := admin.CleanText(kept); clean != kept || len(removed) > 0 {
			t.Errorf("%q becomes %q: %v", kept, clean, removed)
		}
	}
}

// dot is a picture of one pixel.
const dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TestSections: what a page may be made of, with the place of each mistake.
func TestSections(t *testing.T) {
	h := newHouse(t)
	h.reports()
	page := func(sections ...any) object {
		return object{"groupSlug": "reports", "itemSlug": "weekly", "title": "T", "sections": sections}
	}
	column := object{"key": "a", "label": "A"}
	rows := func(n int) (list []any) {
		for range n {
			list = append(list, object{"a": 1})
		}
		return list
	}
	many := func(n int, s any) (list []any) {
		for range n {
			list = append(list, s)
		}
		return list
	}
	columns := func(n int) (list []any) {
		for i := range n {
			list = append(list, object{"key": fmt.Sprint("k", i), "label": "K"})
		}
		return list
	}
	text := object{"type": "text", "body": "x"}
	chart := func(labels []any, series ...any) object {
		return page(object{"type": "bar", "labels": labels, "series": append([]any{}, series...)})
	}
	ab := []any{"a", "b"}
	line := func(values ...any) object { return object{"name": "n", "values": append([]any{}, values...)} }
	for name, c := range map[string]struct {
		in         object
		path, rule string
	}{
		"another type":            {page(object{"type": "chart"}), "/sections/0/type", "enum"},
		"no type":                 {page(text, object{"body": "x"}), "/sections/1/type", "required"},
		"a text without its body": {page(object{"type": "text"}), "/sections/0/body", "required"},
		"a text with rows":        {page(object{"type": "text", "body": "x", "rows": []any{}}), "/sections/0/rows", "section"},
		"unknown member":          {page(object{"type": "text", "body": "x", "html": "x"}), "/sections/0/html", "additionalProperties"},
		"stats without cards":     {page(object{"type": "stats"}), "/sections/0/cards", "required"},
		"a card without a value": {page(object{"type": "stats", "cards": []any{object{"label": "x"}}}), "/sections/0/cards/0/value",
			"required"},
		"a card of a list": {page(object{"type": "stats", "cards": []any{object{"label": "x", "value": []int{1}}}}),
			"/sections/0/cards/0/value", "type"},
		"a card of nothing": {page(object{"type": "stats", "cards": []any{object{"label": "x", "value": nil}}}),
			"/sections/0/cards/0/value", "type"},
		"a card with more": {page(object{"type": "stats", "cards": []any{object{"label": "x", "value": 1, "a/b~": 1}}}),
			"/sections/0/cards/0/a~1b~0", "additionalProperties"},
		"a label of two lines": {page(object{"type": "stats", "cards": []any{object{"label": "x\ny", "value": 1}}}),
			"/sections/0/cards/0/label", "controlCharacters"},
		"a table without columns": {page(object{"type": "table", "rows": []any{}}), "/sections/0/columns", "required"},
		"a table of no columns":   {page(object{"type": "table", "columns": []any{}, "rows": []any{}}), "/sections/0/columns", "minItems"},
		"a key twice": {page(object{"type": "table", "columns": []any{column, column}, "rows": []any{}}),
			"/sections/0/columns/1/key", "uniqueItems"},
		"another align": {page(object{"type": "table", "columns": []any{object{"key": "a", "label": "A", "align": "top"}},
			"rows": []any{}}), "/sections/0/columns/0/align", "enum"},
		"a row that is none": {page(object{"type": "table", "columns": []any{column}, "rows": []any{object{}, 1}}),
			"/sections/0/rows/1", "type"},
		"too many rows": {page(object{"type": "table", "columns": []any{column}, "rows": rows(1001)}), "/sections/0/rows",
			"maxItems"},
		"too many cells": {page(many(6, object{"type": "table", "columns": columns(10), "rows": rows(1000)})...),
			"/sections/5/rows", "maxCells"},
		"a format that is none": {page(object{"type": "table", "columns": []any{object{"key": "a", "label": "A", "format": "euro"}},
			"rows": []any{}}), "/sections/0/columns/0/format", "enum"},
		"a chart without labels": {page(object{"type": "line", "series": []any{line()}}), "/sections/0/labels", "required"},
		"a chart of no series":   {chart(ab), "/sections/0/series", "minItems"},
		"a chart with rows": {page(object{"type": "bar", "labels": ab, "series": []any{line(1, 2)}, "rows": []any{}}),
			"/sections/0/rows", "section"},
		"a table with a unit": {page(object{"type": "table", "columns": []any{column}, "rows": []any{}, "unit": "x"}),
			"/sections/0/unit", "section"},
		"a value too few":          {chart(ab, line(1)), "/sections/0/series/0/values", "length"},
		"a value too many":         {chart(ab, line(1, 2, 3)), "/sections/0/series/0/values", "length"},
		"a value that is none":     {chart(ab, line(1, "two")), "/sections/0/series/0/values/1", "type"},
		"a value of leading zeros": {chart(ab, line(1, "007")), "/sections/0/series/0/values/1", "type"},
		"a value beyond":           {chart(ab, line(1, 1e16)), "/sections/0/series/0/values/1", "range"},
		"a value beyond all":       {chart(ab, line(json.RawMessage("1e400"), 1)), "/sections/0/series/0/values/0", "type"},
		"values that are none":     {chart(ab, object{"name": "n", "values": "1, 2"}), "/sections/0/series/0/values", "type"},
		"a series without a name":  {chart(ab, object{"values": []any{1, 2}}), "/sections/0/series/0/name", "required"},
		"a series with more": {chart(ab, object{"name": "n", "values": []any{1, 2}, "color": "red"}), "/sections/0/series/0/color",
			"additionalProperties"},
		"a series that is none":    {chart(ab, 1), "/sections/0/series/0", "type"},
		"a name twice":             {chart(ab, line(1, 2), line(1, 2)), "/sections/0/series/1/name", "uniqueItems"},
		"too many series":          {chart(nil, many(7, line())...), "/sections/0/series", "maxItems"},
		"too many points":          {chart(many(201, "a"), line(many(201, 1)...)), "/sections/0/labels", "maxItems"},
		"a long label":             {chart([]any{strings.Repeat("가", 201)}, line(1)), "/sections/0/labels/0", "maxLength"},
		"a label of two lines too": {chart([]any{"a\nb"}, line(1)), "/sections/0/labels/0", "controlCharacters"},
		"progress without items":   {page(object{"type": "progress"}), "/sections/0/items", "required"},
		"an item without a value": {page(object{"type": "progress", "items": []any{object{"label": "x"}}}), "/sections/0/items/0/value",
			"required"},
		"an item of nothing": {page(object{"type": "progress", "items": []any{object{"label": "x", "value": nil}}}),
			"/sections/0/items/0/value", "type"},
		"an item up to nothing": {page(object{"type": "progress", "items": []any{object{"label": "x", "value": 1, "max": 0}}}),
			"/sections/0/items/0/max", "exclusiveMinimum"},
		"too many items": {page(object{"type": "progress", "items": many(101, object{"label": "x", "value": 1})}), "/sections/0/items",
			"maxItems"},
		"too many sections": {page(many(51, text)...), "/sections", "maxItems"},
		"a title that nobody sees": {object{"groupSlug": "reports", "itemSlug": "weekly", "title": "\u200b", "sections": []any{}}, "/title",
			"visible"},
		"a title that turns around": {object{"groupSlug": "reports", "itemSlug": "weekly", "title": "a\u202eb", "sections": []any{}},
			"/title", "controlCharacters"},
	} {
		_, violations := h.refused("upsert_dynamic_page", c.in, fault.Validation)
		found := ""
		for _, v := range violations {
			found += v.Path + " " + v.Rule + "; "
		}
		if !strings.Contains(found, c.path+" "+c.rule+"; ") {
			t.Errorf("%s: %s", name, found)
		}
	}
	if f, _ := h.refused(
		"upsert_dynamic_page",
		page(object{"type": "chart"}),
		fault.Validation,
	); !strings.Contains(
		f.Message,
		"text, stats, table, bar, line, progress",
	) {
		t.Errorf("an unknown type is answered %q", f.Message)
	}
	for _, in := range []object{{"group_slug": "reports", "itemSlug": "weekly"}, page(object{"type": "text", "content": "x"})} {
		if f, _ := h.refused(
			"upsert_dynamic_page",
			in,
			fault.Validation,
		); !strings.Contains(strings.ToLower(f.Message), "here it has ") ||
			!strings.Contains(f.Message, "groupSlug") && !strings.Contains(f.Message, "body") {
			t.Errorf("a misspelt member is answered %q", f.Message)
		}
	}
	if f, _ := h.refused(
		"upsert_dynamic_page",
		page(object{"type": "text", "body": strings.Repeat("x", 1<<20)}),
		fault.Validation,
	); !strings.Contains(
		fmt.Sprintf("%s", f.Details),
		`"limit_bytes":1048576`,
	) {
		t.Errorf("%s", f.Details)
	}
	// As much as there may be, and numbers and members as they came.
	h.ok("upsert_dynamic_page", page(many(49, text)[0], object{"type": "table", "columns": []any{column}, "rows": rows(1000)}))
	h.ok("upsert_dynamic_page", page(object{"type": "line", "labels": many(200, "가"), "unit": "원",
		"series": []any{line(many(200, nil)...), object{"name": "m", "values": many(200, "12.50")}}},
		object{"type": "progress", "items": []any{object{"label": "x", "value": "1", "max": 2.50}}, "caption": "c"}))
	if got := h.row(`SELECT concat(sections->0->'series'->1->'values'->>0, ' ', sections->0->'series'->0->'values'->>0, ' ',
		sections->1->>'items')
		FROM admin.page_versions ORDER BY version DESC LIMIT 1`); got != `12.50  [{"label":"x","value":1,"max":2.5}]` {
		t.Errorf("%s", got)
	}
	stored := h.ok(
		"upsert_dynamic_page",
		`{"groupSlug":"reports","itemSlug":"weekly","title":"T","sections":[{"type":"table","columns":[{"key":"z","label":"Z"}],`+
			`"rows":[{"z":1.50,"a":12345678901234567890,"m":{"b":"x\u200b","a":["\u202ey",true,null,1e3]}}]}]}`,
	)
	rowsOf := h.row(`SELECT sections->0->>'rows' FROM admin.page_versions ORDER BY version DESC LIMIT 1`)
	if rowsOf != `[{"z":1.50,"a":12345678901234567890,"m":{"b":"x","a":["y",true,null,1e3]}}]` {
		t.Errorf("%s", rowsOf)
	}
	if removed := fmt.Sprint(stored["removed"]); strings.Count(removed, "invisible character") != 2 {
		t.Errorf("%s", removed)
	}
}

// TestPictures: what a text carries is made anew before it is stored, and what is not is told.
func TestPictures(t *testing.T) {
	h := newHouse(t)
	h.reports()
	webp := "data:image/webp;base64,UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
	stored := h.ok("upsert_dynamic_page", object{"groupSlug": "reports", "itemSlug": "weekly", "title": "T", "sections": []any{
		object{"type": "text", "body": `<p><img src="` + webp + `" alt="W"><img src="` + dot + `" alt="D">` +
			`<img src="https://a.example/x.png" alt="E">` +
			`<img src="data:image/png;base64,AAAA" alt="F"></p>`}}})
	body := h.row(`SELECT sections->0->>'body' FROM admin.page_versions ORDER BY version DESC LIMIT 1`)
	if strings.Contains(body, webp) || strings.Contains(body, dot) || !strings.Contains(body, `<img src="data:image/jpeg;base64,`) ||
		!strings.Contains(body, `<img src="data:image/png;base64,`) || !strings.Contains(body, `alt="D">EF</p>`) {
		t.Errorf("%s", body)
	}
	if removed := fmt.Sprint(stored["removed"]); !strings.Contains(removed, "count:2") || !strings.Contains(removed, "what:picture") {
		t.Errorf("%s", removed)
	}
	if stored["warnings"] == nil || len(stored["warnings"].([]any)) > 0 {
		t.Errorf("%v", stored["warnings"])
	}
	has(t, h.see("/p/reports/weekly"), body)
}

// TestWarnings: what is stored as it came and that nobody sees as it was meant is told.
func TestWarnings(t *testing.T) {
	h := newHouse(t)
	h.reports()
	table := func(key string, rows ...any) object {
		return object{"type": "table", "columns": []any{object{"key": key, "label": "K"}}, "rows": append([]any{}, rows...)}
	}
	brand := object{"brand_id": 1, "brand_name": "x", "contact": nil}
	told := func(sections ...any) string {
		return fmt.Sprint(
			h.ok("upsert_dynamic_page", object{"groupSlug": "reports", "itemSlug": "weekly", "title": "T",
				"sections": append([]any{}, sections...)})["warnings"],
		)
	}
	for name, c := range map[string]struct {
		sections []any
		want     []string
	}{
		"what is meant": {[]any{object{"type": "text", "body": "<p>a</p>\n<p>b</p>"}, object{"type": "text", "body": "One line."},
			object{"type": "stats", "cards": []any{object{"label": "x", "value": 0}}},
			table("brand_name", brand, object{"brand_id": 2}), table("brand_id", brand),
			table("contact.email", brand, object{"contact": object{"email": "a@b.example"}}), table("flag", object{"flag": false})}, nil},
		"a misspelt key": {[]any{object{"type": "text", "body": "x"}, table("brandName", brand, brand)},
			[]string{"/sections/1/columns/0/key", `"brandName" is empty in each of the 2 rows; rows have brand_id, brand_name, contact`}},
		"a member of nothing":  {[]any{table("contact.email", brand)}, []string{"/sections/0/columns/0/key", `"contact.email" is empty`}},
		"a table of no rows":   {[]any{table("brand_id")}, []string{"/sections/0/rows", "is empty"}},
		"stats of no cards":    {[]any{object{"type": "stats", "cards": []any{}}}, []string{"/sections/0/cards", "is empty"}},
		"Markdown":             {[]any{object{"type": "text", "body": "# A\n\n- b\n"}}, []string{"/sections/0/body", "write <p>"}},
		"a text of which goes": {[]any{object{"type": "text", "body": "<script>x</script>"}}, []string{"/sections/0/body", "no text"}},
		"formats that fit": {[]any{object{"type": "table", "rows": []any{object{"p": 0.3, "m": "12.50", "b": -1, "s": []any{1, nil},
			"d": "2026-01-31"},
			object{"p": nil}}, "columns": []any{object{"key": "p", "label": "P", "format": "percent"}, object{"key": "m", "label": "M",
			"format": "money"},
			object{"key": "b", "label": "B", "format": "bar"}, object{"key": "s", "label": "S", "format": "sparkline"},
			object{"key": "d", "label": "D", "format": "date"}}}}, nil},
		"a cell that does not fit": {[]any{object{"type": "table", "columns": []any{object{"key": "p", "label": "P", "format": "percent"}},
			"rows": []any{object{"p": 0.3}, object{"p": "n/a"}, object{"p": []any{}}}}},
			[]string{"/sections/0/rows/1", `"p" of row 1 is "n/a", which is not in the format percent`, "as in 1 more rows", "0.325"}},
		"a percentage for a share": {[]any{object{"type": "table", "columns": []any{object{"key": "p", "label": "P", "format": "percent"}},
			"rows": []any{object{"p": 0.3}, object{"p": 32.48}}}}, []string{"/sections/0/rows/1", "is 32.48 and is shown a hundred times"}},
		"a chart of no number": {[]any{object{"type": "bar", "labels": []any{"a"}, "series": []any{object{"name": "n", "values": []any{nil}}}}},
			[]string{"/sections/0/series", "no number"}},
		"progress of nothing": {[]any{object{"type": "progress", "items": []any{}}}, []string{"/sections/0/items", "is empty"}},
		"a picture of no word": {[]any{object{"type": "text", "body": `<img src="` + dot + `">`}}, []string{"/sections/0/body",
			`alt="what it shows"`}},
		"no section": {nil, []string{"/sections", "is empty"}},
	} {
		got := told(c.sections...)
		if c.want == nil && got != "[]" {
			t.Errorf("%s: %s", name, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
	for _, where := range []map[string][]string{{"group": {"reports"}, "item": {"weekly"}, "name": {"Weekly"}},
		{"group": {"reports"}, "name": {"Reports"}}} {
		where["hidden"] = []string{"yes"}
		h.post("/admin/menus/edit", where)
		if got := told(object{"type": "text", "body": "x"}); !strings.Contains(got, "/itemSlug") || !strings.Contains(got, "/admin/menus") {
			t.Errorf("out of sight: %s", got)
		}
		delete(where, "hidden")
		h.post("/admin/menus/edit", where)
	}
	if got := told(object{"type": "text", "body": "x"}); got != "[]" {
		t.Errorf("in sight again: %s", got)
	}
}

// TestOwnAddress: an item whose href is the address of its own page has that page.
func TestOwnAddress(t *testing.T) {
	h := newHouse(t)
	h.reports()
	h.ok("create_menu_item", object{"groupSlug": "reports", "name": "Own", "slug": "own", "href": "/p/reports/own"})
	h.ok(
		"upsert_dynamic_page",
		object{"groupSlug": "reports", "itemSlug": "own", "title": "T", "sections": []any{object{"type": "text", "body": "x"}}},
	)
}
