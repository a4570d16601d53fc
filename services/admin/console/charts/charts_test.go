package charts

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hub.internal/services/admin"
)

var update = flag.Bool("update", false, "write the drawings instead of comparing them")

// chartOf is a section of labels and lines of values, "1 - 3" with - for a gap.
func chartOf(kind, unit string, labels string, series ...string) admin.Section {
	s := admin.Section{Type: kind, Unit: &unit, Labels: strings.Fields(labels)}
	for n, text := range series {
		one := admin.Series{Name: "Series <" + strconv.Itoa(n) + ">"}
		for _, v := range strings.Fields(text) {
			one.Values = append(one.Values, json.RawMessage(strings.ReplaceAll(v, "-.", "null")))
		}
		s.Series = append(s.Series, one)
	}
	return s
}

// TestDrawings compares each kind of drawing with the one that was looked at; -update writes them.
func TestDrawings(t *testing.T) {
	for name, s := range map[string]admin.Section{
		"bar":          chartOf(admin.Bar, "₩", "스킨케어 메이크업 <b>", "1200000 350000.5 -."),
		"bar-negative": chartOf(admin.Bar, "%", "1월 2월", "12 -8", "0 4"),
		"bar-zero":     chartOf(admin.Bar, "", "a b", "0 0"),
		"line":         chartOf(admin.Line, "원", "1월 2월 3월 4월 5월", "10 -. 30 25 40"),
		"line-several": chartOf(admin.Line, "", "a b c", "-5 0 5", "1 2 3"),
		"line-point":   chartOf(admin.Line, "", "a-label-that-is-much-longer-than-there-is-room-for", "7"),
	} {
		c := Of(t.Context(), s)
		got, path := c.Summary+"\n"+strings.ReplaceAll(string(c.Drawing), "><", ">\n<")+"\n", filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
		wellFormed(t, c.Drawing)
	}
}

// fataler is a test of either kind.
type fataler interface {
	Fatalf(format string, args ...any)
}

// wellFormed wants XML with numbers alone in it, and nothing that a page's rules for styles and scripts forbid.
func wellFormed(t fataler, drawing template.HTML) {
	d := xml.NewDecoder(strings.NewReader("<div>" + string(drawing) + "</div>"))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, drawing)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			if name := a.Name.Local; name != "title" && strings.ContainsAny(a.Value, "NI") || name == "style" || strings.HasPrefix(name, "on") {
				t.Fatalf("<%s %s=%q> in %s", e.Name.Local, name, a.Value, drawing)
			}
		}
	}
}

// TestAnyNumbersAreDrawn: whatever the numbers are, the drawing is well-formed, stands in its frame, and its summary is a line.
func TestAnyNumbersAreDrawn(t *testing.T) {
	number := rapid.OneOf(rapid.Float64Range(-1e15, 1e15), rapid.Float64Range(-1e-300, 1e-300), rapid.Float64(),
		rapid.SampledFrom([]float64{0, 1, -1, 1e15, 1e15 - .125, math.MaxFloat64, math.SmallestNonzeroFloat64}))
	label := rapid.StringOf(rapid.RuneFrom([]rune("ab<>&\"' 한글가😀")))
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.SliceOfN(label, 0, 30).Draw(t, "labels")
		s := admin.Section{Type: rapid.SampledFrom([]string{admin.Bar, admin.Line}).Draw(t, "type"), Labels: labels}
		for range rapid.IntRange(0, 6).Draw(t, "series") {
			one := admin.Series{Name: label.Draw(t, "name")}
			// More or fewer than labels, as only a later release could store them.
			for range rapid.IntRange(max(0, len(labels)-1), len(labels)+1).Draw(t, "values") {
				raw := strconv.FormatFloat(number.Draw(t, "value"), 'g', -1, 64)
				if rapid.IntRange(0, 4).Draw(t, "gap") == 0 {
					raw = "null"
				}
				one.Values = append(one.Values, json.RawMessage(raw))
			}
			s.Series = append(s.Series, one)
		}
		c := Of(t.Context(), s)
		wellFormed(t, c.Drawing)
		if strings.Contains(c.Summary, "\n") || c.Drawing != "" && c.Summary == "" || len(c.Rows) != len(labels) {
			t.Fatalf("%d rows: %q", len(c.Rows), c.Summary)
		}
	})
}

// TestAnyRangeHasAnAxis: it holds what it is for, in 1 to 8 steps, with texts that tell them apart.
func TestAnyRangeHasAnAxis(t *testing.T) {
	number := rapid.OneOf(rapid.Float64Range(-most, most), rapid.Float64Range(-1, 1))
	rapid.Check(t, func(t *rapid.T) {
		low, high := number.Draw(t, "low"), number.Draw(t, "high")
		if low > high {
			low, high = high, low
		}
		a := axisOf(low, high)
		slack := 1e-9 * max(math.Abs(low), math.Abs(high))
		if !(a.low <= low+slack && a.high >= high-slack) || a.steps < 1 || a.steps > 8 || len(a.ticks()) != a.steps+1 {
			t.Fatalf("%v to %v: %+v", low, high, a)
		}
	})
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 0, "1.0 0.8 0.6 0.4 0.2 0"}, {7, 7, "8 6 4 2 0"}, {0, 100, "100 80 60 40 20 0"}, {98, 103, "103 102 101 100 99 98"},
		{-5, 5, "6 4 2 0 -2 -4 -6"},
		{0, 4_200_000, "5M 4M 3M 2M 1M 0"}, {-3e9, -1e8, "0 -1B -2B -3B"}, {1000, 9300, "10,000 8,000 6,000 4,000 2,000 0"}, {0, .003,
			"0.003 0.002 0.001 0"},
	} {
		if got := strings.Join(axisOf(c.low, c.high).ticks(), " "); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

func TestGoals(t *testing.T) {
	for _, c := range []struct{ item, unit, want string }{
		{`{"value":72}`, "", "72 % | | 72 % info 720"}, {`{"value":37}`, "건", "37 건 | 37 % | 37 % info 370"},
		{`{"value":1500,"max":1000}`, "건", "1,500 / 1,000 건 | 150 % | 150 % good 1000"}, {`{"value":0,"max":8}`, "", "0 / 8 | 0 % | 0 % info 0"},
		{`{"value":-4,"max":8}`, "₩", "-4 / ₩8 | -50 % | -50 % bad 500"}, {`{"value":1,"max":3}`, "", "1 / 3 | 33.3 % | 33.3 % info 334"},
		{`{"value":1e15,"max":1e-300}`, "", "1e15 / 1e-300 | 0 % | 0 % info 0"},
	} {
		s := admin.Section{Items: make([]admin.Goal, 1)}
		if err := json.Unmarshal([]byte(c.item), &s.Items[0]); err != nil {
			t.Fatal(err)
		}
		if c.unit != "" {
			s.Unit = &c.unit
		}
		g := Goals(s)[0]
		got := strings.Join([]string{g.Value, g.Share, g.Bar.Label}, " | ")
		got = strings.Replace(got, "|  |", "| |", 1) + " " + g.Bar.Parts[0].Kind + " " + strconv.Itoa(g.Bar.Parts[0].Count)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.item, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for literal, want := range map[string]string{
		"0": "0", "-0": "-0", "7": "7", "1234": "1,234", "-1234567": "-1,234,567", "1234.50": "1,234.50", "0.123456": "0.123456",
		"0.1234567": "0.123457", "2.0000001": "2",
		"1e3": "1,000", "1.5E-3": "0.0015", "1e21": "1e21", "1e-9": "1e-9", "1e999": "1e999",
		"12345678901234567890": "12,345,678,901,234,567,890", "-9007199254740993.25": "-9,007,199,254,740,993.25",
		strings.Repeat("9", 60): strings.Repeat("9", 39) + "…",
	} {
		if got := Number(literal); got != want {
			t.Errorf("%s: %s, want %s", literal, got, want)
		}
	}
}
