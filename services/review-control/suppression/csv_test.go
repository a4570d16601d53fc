package suppression

import (
	stdcsv "encoding/csv"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line\n", 30)
	for _, c := range []struct{ file, want string }{
		{"", ""},
		{"a@x.de", `1["a@x.de"]`},
		{"a,b\nc,d\n", `1["a" "b"] 2["c" "d"]`},
		{"a,b\r\nc,d\r\n", `1["a" "b"] 2["c" "d"]`},
		{"a,b\rc,d\r", `1["a" "b"] 2["c" "d"]`},
		{"\ufeffa\n", `1["a"]`},
		{"a;b,c;d\n", `1["a" "b,c" "d"]`},
		{"a\tb\n", `1["a" "b"]`},
		{"\n\n,\n \na\n", `5["a"]`},
		{`"a","b ""c"", d"` + "\n", `1["a" "b \"c\", d"]`},
		{"\"a\nb\",c\nd\n", `1["a\nb" "c"] 3["d"]`},
		{"\"a\r\nb\",c\r\nd\r\n", `1["a\r\nb" "c"] 3["d"]`},
		{"\"a\rb\",c\rd\r", `1["a\rb" "c"] 3["d"]`},
		{`a"b,c` + "\n", `1["a\"b" "c"]`},
		{"\"a\"b,c\nd\n", `1!there is text behind a closing quotation mark 2["d"]`},
		{"\"a,b\nc,d\n", `1!a quotation mark is not closed 2["c" "d"]`},
		{"a\n\"" + long + "\"\n", `1["a"] 2!a quotation mark is not closed` + strings.Repeat(` %d["line"]`, 29) +
			` 32!a quotation mark is not closed`},
		{`"a"`, `1["a"]`},
		{`"`, `1!a quotation mark is not closed`},
		{"a,", `1["a" ""]`},
		{"\"a\",", `1["a" ""]`},
	} {
		var got []string
		for row := range csvRows([]byte(c.file)) {
			if row.Problem != "" {
				got = append(got, fmt.Sprintf("%d!%s", row.Line, row.Problem))
			} else {
				got = append(got, fmt.Sprintf("%d%q", row.Line, row.Fields))
			}
		}
		want := c.want
		for line := 3; strings.Contains(want, "%d"); line++ {
			want = strings.Replace(want, "%d", fmt.Sprint(line), 1)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%.60q: %s\nwant %s", c.file, s, want)
		}
	}
}

func TestLongRows(t *testing.T) {
	t.Parallel()
	file := strings.Repeat("x", 200<<10) + "\nb@x.de\n\"" + strings.Repeat("y", 200<<10) + "\"\nc@x.de\n"
	var got []string
	for row := range csvRows([]byte(file)) {
		got = append(got, fmt.Sprint(row.Line, row.Problem != ""))
	}
	if s := strings.Join(got, ","); s != "1 true,2 false,3 true,4 false" {
		t.Error(s)
	}
}

// FuzzRows holds the reader to what any file allows, and to the standard library's where
// that reads the file too.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{"a,b\n", "\"a\nb\",c\r\n\"d\"e\n", "\ufeffemail;reason\rx@y.de;\"\"\"\"", "\"", "a\x00\xff\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if len(file) > 4<<10 {
			return
		}
		last, problems := 0, 0
		var got [][]string
		for row := range csvRows([]byte(file)) {
			if row.Line <= last {
				t.Fatalf("line %d after %d", row.Line, last)
			}
			last = row.Line
			if row.Problem != "" {
				problems++
				continue
			}
			got = append(got, row.Fields)
		}
		if problems > 0 || strings.ContainsAny(file, "\r\ufeff;\t") || strings.Count(file, "\n") >= maxEntryLines {
			return
		}
		r := stdcsv.NewReader(strings.NewReader(file))
		r.FieldsPerRecord = -1
		all, err := r.ReadAll()
		if err != nil {
			return // it is stricter
		}
		var want [][]string
		for _, fields := range all {
			if !blank(fields) {
				want = append(want, fields)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %q, want %q", file, got, want)
		}
	})
}
