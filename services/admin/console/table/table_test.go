package table

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hub.internal/services/admin"
)

func TestCells(t *testing.T) {
	for raw, want := range map[string]string{
		`null`: "", ``: "", `""`: "", `"  "`: "", `[]`: "", `{}`: "", `true`: "yes", `false`: "no", `12345`: "12,345", `"12345"`: "12345",
		`"12345.60"`: "12,345.60", `"00123"`: "00123", `"+82 10"`: "+82 10",
		`"2026-01-31"`: "2026-01-31", `"0001-01-01T00:00:00Z"`: "0001-01-01T00:00:00Z", `"2026-01-31T09:00:00"`: "2026-01-31 09:00:00",
		`"https://x.example/a"`: "https://x.example/a → https://x.example/a", `"javascript:alert(1)"`: "javascript:alert(1)",
		`"//evil.example"`: "//evil.example", `"a@x.example"`: "a@x.example → mailto:a@x.example", `"tel:+123456"`: "tel:+123456",
		`["a","b",1000]`: "[a|b|1,000]", `{"name":"x","brand_id":1200,"none":null,"in":{"a":[1]}}`: `[name x|brand id 1200|in {"a":[1]}]`,
		`[1]`: "[1]", `[1,"2"]`: "[1|2]", `[1,2]`: "~2 from 1 to 2: first 1, last 2", `[1,null]`: "[1|]", `[1e999,2]`: "[1e999|2]",
		`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`: "[a 1|b 2|c 3|d 4|e 5|f 6|g 7|h 8] +1",
	} {
		if got := shown(cellOf(t.Context(), json.RawMessage(raw), false)); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	if c := cellOf(
		t.Context(),
		json.RawMessage(`"`+strings.Repeat("long ", 3000)+`"`),
		false,
	); len([]rune(c.Text)) > maxText || len([]rune(c.Whole)) > maxWhole ||
		c.Whole == "" {
		t.Errorf("%d of %d", len(c.Text), len(c.Whole))
	}
}

func shown(c Cell) string {
	out := c.Text
	if c.Href != "" {
		out += " → " + c.Href
	}
	if c.Series != nil {
		s := c.Series
		out += fmt.Sprintf("~%d from %s to %s: first %s, last %s", s.Count(), s.Low(), s.High(), s.First(), s.Last())
	}
	if len(c.Parts) > 0 {
		var parts []string
		for _, p := range c.Parts {
			parts = append(parts, strings.TrimSpace(p.Name+" "+p.Text))
		}
		out += "[" + strings.Join(parts, "|") + "]"
	}
	if c.More > 0 {
		out += fmt.Sprintf(" +%d", c.More)
	}
	return out
}

func TestKeysReachInto(t *testing.T) {
	var row admin.Row
	if err := json.Unmarshal([]byte(`{"a":{"b":{"c":1},"b.c":2,"x":null},"a.x":3,"n":1}`), &row); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a.b.c": "2", "a.x": "3", "a.x.y": "", "n.x": "", "a.": "", ".": "", "": "", "b": "",
		"a.b": `{"c":1}`} {
		if got := string(row.Member(key)); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

func TestSeriesStayInTheirDrawing(t *testing.T) {
	for _, list := range []string{`[1,1]`, `[-1e308,1e308,0]`, `[0,-5,2.5,1e-300]`} {
		var values []json.RawMessage
		if err := json.Unmarshal([]byte(list), &values); err != nil {
			t.Fatal(err)
		}
		for point := range strings.FieldsFuncSeq(seriesOf(values).Path(), func(r rune) bool { return r == 'M' || r == 'L' }) {
			var x, y float64
			if _, err := fmt.Sscanf(point, "%f,%f", &x, &y); err != nil || x < edge || x > width-edge || y < edge || y > height-edge {
				t.Errorf("%s has a point at %s: %v", list, point, err)
			}
		}
	}
}

// TestFormats: what a column's format makes of a value, and that one which does not fit is shown as without it.
func TestFormats(t *testing.T) {
	cell := func(format, raw string) Cell {
		column := admin.Column{Key: "a", Format: &format}
		rows := []json.RawMessage{json.RawMessage(`{"a":` + raw + `}`), json.RawMessage(`{"a":-200}`)}
		return Of(t.Context(), admin.Section{Columns: []admin.Column{column}, Rows: rows}).Rows[0][0]
	}
	for _, c := range []struct{ format, raw, want string }{
		{admin.Percent, "0.3248", "32.5 %"}, {admin.Percent, `"0.5"`, "50.0 %"}, {admin.Percent, "-1.2", "-120.0 %"}, {admin.Percent, "0",
			"0.0 %"},
		{admin.Percent, "0.0001234", "0.012 %"}, {admin.Percent, `"n/a"`, "n/a"}, {admin.Percent, "null", ""}, {admin.Percent, "[1,2]",
			"~2 from 1 to 2: first 1, last 2"}, {admin.Percent, "12.345", "1,234.5 %"},
		{admin.Money, "1234567", "₩1,234,567"}, {admin.Money, "-1200.5", "-₩1,200.5"}, {admin.Money, `"98000.00"`, "₩98,000.00"},
		{admin.Money, "true", "yes"}, {admin.InBar, "100", "100 (50.0 % of the largest: info 500)"},
		{admin.InBar, "-200", "-200 (100.0 % of the largest: bad 1000)"}, {admin.InBar, `"x"`, "x"}, {admin.InBar, "0",
			"0 (0.0 % of the largest: info 0)"},
		{admin.Sparkline, "[1]", "~1 from 1 to 1: first 1, last 1"}, {admin.Sparkline, "[null,3,null,1,null]",
			"~5 from 1 to 3: first 3, last 1"}, {admin.Sparkline, "[null]", "[]"}, {admin.Sparkline, "7", "7"},
		{admin.Date, `"2026-01-31"`, "2026-01-31"}, {admin.Date, `"2026-01-31 23:30:00"`, "day 2026-01-31T23:30:00Z"},
		{admin.Date, `"2026-04-30T15:00:00"`, "day 2026-04-30T15:00:00Z"}, {admin.Date, `"2026-04-30T15:00"`, "day 2026-04-30T15:00:00Z"},
		{admin.Date, `"2026-04-30T15:00:00.5"`, "day 2026-04-30T15:00:00.5Z"}, {admin.Date, `"2026-04-30T25:00"`, "2026-04-30 25:00"},
		{admin.Date, `"2026-01-31T23:30:00+09:00"`, "day 2026-01-31T14:30:00Z"}, {admin.Date, `"2026-02-31"`, "2026-02-31"},
		{admin.Date, "20260131", "20,260,131"}, {"of a later release", "1234", "1,234"},
	} {
		got := cell(c.format, c.raw)
		text := shown(got)
		if got.Bar != nil {
			text += fmt.Sprintf(" (%s: %s %d)", got.Bar.Label, got.Bar.Parts[0].Kind, got.Bar.Parts[0].Count)
		}
		if got.Day {
			text = "day " + got.Key()
			if got.At.IsZero() {
				text = got.Text
			}
		}
		if text != c.want {
			t.Errorf("%s of %s: %q, want %q", c.format, c.raw, text, c.want)
		}
	}
}

// FuzzOf lays out whatever rows hold: nothing breaks, what links leads to the web or a mailbox, and sorting keeps all rows.
func FuzzOf(f *testing.F) {
	for _, row := range []string{`{"a":1,"b":"x"}`, `{"a":[1,2,3],"b":{"c":"https://x.example"}}`, `{"a":"2026-01-31T09:00:00Z"}`,
		`{"a":1e400}`, `[]`, `{"a":"javascript:x","a.b":null}`} {
		f.Add(row, "a", "b.c", true)
	}
	f.Fuzz(func(t *testing.T, row, a, b string, down bool) {
		if !json.Valid([]byte(row)) {
			return
		}
		s := admin.Section{
			Columns: []admin.Column{{Key: a, Label: "A"}, {Key: b, Label: "B"}, {Key: a, Label: "C", Format: new(admin.InBar)},
				{Key: b, Label: "D", Format: new(admin.Sparkline)}, {Key: a, Label: "E", Format: new(admin.Date)}},
			Rows: []json.RawMessage{json.RawMessage(row), json.RawMessage(`{"a":2}`), json.RawMessage(`{}`)},
		}
		table := Of(t.Context(), s)
		for _, line := range table.Rows {
			for _, c := range line {
				if c.Href != "" && !strings.HasPrefix(c.Href, "http://") && !strings.HasPrefix(c.Href, "https://") &&
					!strings.HasPrefix(c.Href, "mailto:") {
					t.Errorf("a link to %q", c.Href)
				}
				if c.Series != nil {
					_, _ = c.Series.Path(), c.Series.End()
				}
				_ = shown(c)
			}
		}
		for n := range 2 {
			if table.Sort(n, down); len(table.Rows) != 3 {
				t.Errorf("%d rows", len(table.Rows))
			}
		}
		if strings.HasPrefix(row, "{") {
			if _, err := CSV(s); err != nil {
				t.Error(err)
			}
		}
	})
}
