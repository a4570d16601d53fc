package output_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"hub.internal/services/client/output"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"뷰티 👩‍👩‍👧": "뷰티 👩‍👩‍👧", "a\r\nb\nc\td": "a↵b↵c d",
		"\x1b[2J\x07": "<U+001B>[2J<U+0007>", "a\u009bb\u202ec": "a<U+009B>b<U+202E>c", "\xff": "\ufffd", "\r": "<U+000D>"} {
		if got := output.Sanitize(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestWidths: a syllable of Hangul takes two columns, and a family one place.
func TestWidths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"abc": 3, "한빛": 4, "👩‍👩‍👧": 2, "é": 1, "": 0, "Việt": 4} {
		if got := output.Width(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"한빛코스메틱", 12, "한빛코스메틱"}, {"한빛코스메틱", 11, "한빛코스메…"},
		{"한빛코스메틱", 10, "한빛코스…"}, {"abc", 2, "a…"}, {"한", 1, "…"}} {
		if got := output.Truncate(c.text, c.n); got != c.want || output.Width(got) > c.n {
			t.Errorf("%q at %d: %q", c.text, c.n, got)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"one two three", 7, "one two|three"}, {"one two", 0, "one two"}, {"abcdefghij", 4, "abcd|efgh|ij"},
		{"a 한빛코스메틱", 5, "a|한빛|코스|메틱"},
		{"한한", 1, "한한"}, {"", 5, ""}, {"  a   b  ", 3, "a b"},
	} {
		if got := strings.Join(output.Wrap(c.text, c.n), "|"); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("한빛 코스메틱 \x1b[31m a\u0301\u200d", 7)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 2 + (width&0x7f)%80
		clean := output.Sanitize(text)
		if !utf8.ValidString(clean) || output.Sanitize(clean) != clean {
			t.Fatalf("%q", clean)
		}
		if cut := output.Truncate(clean, width); output.Width(cut) > width {
			t.Errorf("%q is wider than %d", cut, width)
		}
		lines := output.Wrap(clean, width)
		if strings.Join(strings.Fields(strings.Join(lines, "")), "") != strings.Join(strings.Fields(clean), "") {
			t.Errorf("%q lost something: %q", clean, lines)
		}
	})
}

func read(t *testing.T, data string) *output.Answer {
	t.Helper()
	a, err := output.Read([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestManyColumns: those that fit are whole, and those that do not are named.
func TestManyColumns(t *testing.T) {
	t.Parallel()
	var rows []string
	for i := range 9 {
		rows = append(
			rows,
			fmt.Sprintf(
				`{"id":%d,"name":"한빛코스메틱 주식회사 %d","at":"2026-01-15T00:00:00","o":{"email":"someone@example.com"},"note":null}`,
				1000+i,
				i,
			),
		)
	}
	a := read(t, `{"brands":[`+strings.Join(rows, ",")+`],"has_more":true}`)
	for width := 10; width < 120; width++ {
		var b bytes.Buffer
		left, err := a.Table(&b, output.Screen{Width: width}, output.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if output.Width(strings.TrimRight(line, "\n")) > width {
				t.Errorf("at %d: %q", width, line)
			}
		}
		header, _, _ := strings.Cut(b.String(), "\n")
		if shown := strings.Fields(header); len(shown)+len(left) != 5 {
			t.Errorf("at %d: %q and %q", width, shown, left)
		}
		if width > 90 && (len(left) > 0 || !strings.Contains(b.String(), "한빛코스메틱 주식회사 8")) {
			t.Errorf("at %d: %q\n%s", width, left, b.String())
		}
	}
	if a.Partial() == "" {
		t.Error("there is more, and nothing says so")
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	a := read(
		t,
		`{"rows":[{"t":"a,\"b\"\nc","n":-5,"d":"-12.50","f":"=1+1","e":"","z":null,"l":[1,{"a":2}],"o":{"x":"@a","p":{"q":true}}},{"t":"+82 `+
			`10","o":null,"n":1e400}]}`,
	)
	var b bytes.Buffer
	formulas, err := a.CSV(&b, output.Choice{}, false)
	if err != nil || formulas != 3 {
		t.Errorf("%d %v", formulas, err)
	}
	got, err := csv.NewReader(&b).ReadAll()
	want := [][]string{
		{"t", "n", "d", "f", "e", "z", "l", "o.x", "o.p.q"},
		{"a,\"b\"\nc", "-5", "-12.50", "'=1+1", "", "", `[1, {"a": 2}]`, "'@a", "true"},
		{"'+82 10", "1e400", "", "", "", "", "", "", ""},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\n%q\n%q", err, got, want)
	}
	b.Reset()
	if formulas, err := a.CSV(
		&b,
		output.Choice{Columns: []string{"f", "o.x"}},
		true,
	); err != nil || formulas != 0 ||
		b.String() != "f,o.x\n=1+1,@a\n,\n" {
		t.Errorf("%d %v %q", formulas, err, b.String())
	}
	b.Reset()
	if _, err := read(
		t,
		`{"rows":[],"has_more":false}`,
	).CSV(
		&b,
		output.Choice{Columns: []string{"id"}},
		false,
	); err != nil ||
		b.String() != "id\n" {
		t.Errorf("%v %q", err, b.String())
	}
	b.Reset()
	if _, err := read(
		t,
		`{"rows":[{"id":1,"contact":null}]}`,
	).CSV(
		&b,
		output.Choice{Columns: []string{"id", "contact.email"}},
		false,
	); err != nil ||
		b.String() != "id,contact.email\n1,\n" {
		t.Errorf("a contact that nobody has: %v %q", err, b.String())
	}
	b.Reset()
	sql := read(t, `{"columns":[{"name":"a"},{"name":"a"}],"rows":[["x",1.50],[null,12345678901234567890]],"row_count":2}`)
	if _, err := sql.CSV(&b, output.Choice{}, false); err != nil || b.String() != "a,a\nx,1.50\n,12345678901234567890\n" {
		t.Errorf("%v %q", err, b.String())
	}
}

// FuzzAnswer: whatever comes is written, in lines that fit, without a character that steers a terminal.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":{"c":"한"}},{"b":1}],"warnings":[{"rule":"r","message":"m"}]}`), 40)
	f.Add([]byte(`{"columns":[{"name":"a"}],"rows":[[1,2],[]]}`), 10)
	f.Add([]byte(`{"a":[{}],"b":[{},{}],"columns":[],"rows":[[],[1]]}`), 10)
	f.Add([]byte(`[1,[2,{"":{"":""}}],"\u001b"]`), 1)
	f.Fuzz(func(t *testing.T, data []byte, width int) {
		a, err := output.Read(data)
		if err != nil {
			return
		}
		width = 20 + (width&0x7f)%80
		var b bytes.Buffer
		if _, err := a.Table(&b, output.Screen{Width: width}, output.Choice{}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimRight(line, "\n"); output.Sanitize(line) != line || output.Width(line) > width {
				t.Errorf("at %d: %q", width, line)
			}
		}
		if _, err := a.Table(&b, output.Screen{}, output.Choice{}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.CSV(&b, output.Choice{}, false); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		if err := output.JSON(&b, data); err != nil || decoded(t, data) != decoded(t, b.Bytes()) {
			t.Errorf("%v: %q", err, b.Bytes())
		}
	})
}

// decoded is what JSON says, number by number.
func decoded(t *testing.T, raw []byte) string {
	t.Helper()
	var of any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&of); err != nil {
		t.Errorf("%q: %v", raw, err)
	}
	return fmt.Sprint(of)
}

// TestProgress: nothing for two seconds, then one line that is gone at the end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for wait, want := range map[time.Duration]string{1900 * time.Millisecond: "",
			2300 * time.Millisecond: "\r| search<U+001B>[31m 2 s\r/ search<U+001B>[31m 2 s\r" + strings.Repeat(" ", 24) + "\r"} {
			var b bytes.Buffer
			stop := output.Progress(&b, output.Screen{Width: 30}, func() string { return "search\x1b[31m" })
			time.Sleep(wait)
			stop()
			stop()
			if b.String() != want {
				t.Errorf("after %s: %q", wait, b.String())
			}
		}
	})
}

func TestColorOnRequest(t *testing.T) {
	t.Parallel()
	for color, want := range map[bool]string{true: "\x1b[1ma\x1b[0m\n1\n", false: "a\n1\n"} {
		var b bytes.Buffer
		if _, err := (output.Table{Columns: []output.Column{{Name: "a"}}, Rows: [][]string{{"1"}}}).Write(
			&b,
			output.Screen{Width: 20, Color: color},
		); err != nil ||
			b.String() != want {
			t.Errorf("%v %q", err, b.String())
		}
	}
}

// TestHostileShapesEnd: a large answer is written in a moment, whatever its shape.
func TestHostileShapesEnd(t *testing.T) {
	t.Parallel()
	var wide strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&wide, `,"k%d":1`, i)
	}
	const deep = 1000
	for name, data := range map[string]string{
		"a word":       `{"text":"` + strings.Repeat("한", 1<<17) + `"}`,
		"one cluster":  `{"text":"a` + strings.Repeat("\u0301", 1<<17) + `"}`,
		"many columns": `{"list":[{"a":1` + wide.String() + `},{"b":2` + wide.String() + `},{},{}]}`,
		"deep":         `{"list":[` + strings.Repeat(`{"a.":1,"":{"":1},"a":`, deep) + "1" + strings.Repeat("}", deep) + `]}`,
		"dots":         `{"list":[` + strings.Repeat(`{".":1,"..":{},"":`, deep) + "1" + strings.Repeat("}", deep) + `]}`,
	} {
		begun := time.Now()
		a, err := output.Read([]byte(data))
		if err != nil {
			t.Fatal(name, err)
		}
		var b bytes.Buffer
		for _, width := range []int{0, 40} {
			if _, err := a.Table(&b, output.Screen{Width: width}, output.Choice{}); err != nil {
				t.Fatal(name, err)
			}
		}
		if _, err := a.CSV(&b, output.Choice{}, false); err != nil {
			t.Fatal(name, err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s: %s", name, took)
		}
	}
}
