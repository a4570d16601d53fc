package table

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hub.internal/services/admin"
)

// TestKeysThatReachDeep: a page that was made to be slow is not. Read once for each column and level, this one took a minute.
func TestKeysThatReachDeep(t *testing.T) {
	for _, name := range []string{"", "a"} {
		levels := 98 / (len(name) + 1)
		row := strings.Repeat(`{"`+name+`":`, levels) + `{"z":"` + strings.Repeat("y", 1_000_000) + `"}` + strings.Repeat("}", levels)
		s := admin.Section{Type: admin.Table, Rows: []json.RawMessage{json.RawMessage(row)}}
		for i := range 50 {
			s.Columns = append(s.Columns, admin.Column{Key: strings.Repeat(name+".", levels) + string(rune('!'+i)), Label: "x"})
		}
		start := time.Now()
		Of(t.Context(), s)
		if _, err := CSV(s); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%q: took %s", name, took)
		}
	}
}

func TestKeysReachIntoMembers(t *testing.T) {
	const deepest = 8 // members that a key reaches through
	nested := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) }
	for _, c := range []struct{ row, key, want string }{
		{`{"a":{"b":1}}`, "a.b", "1"}, {`{"a.b":2,"a":{"b":1}}`, "a.b", "2"}, {`{"a.b":{"c":3},"a":{"d":1}}`, "a.b.c", ""},
		{`{"a":1,"a.b":{"c":3}}`, "a.b.c", "3"}, {`{"a":[1]}`, "a.0", ""}, {`{"":{"":4}}`, ".", "4"},
		{nested(deepest + 1), strings.Repeat("a.", deepest) + "a", "1"}, {nested(deepest + 2), strings.Repeat("a.", deepest+1) + "a", ""},
	} {
		var row admin.Row
		if err := json.Unmarshal([]byte(c.row), &row); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := string(row.Member(c.key)); got != c.want {
				t.Errorf("%s of %s: %q, want %q", c.key, c.row, got, c.want)
			}
		}
	}
}
