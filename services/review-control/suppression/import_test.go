package suppression

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHeader(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		"email": "{0 -1} true", " E-Mail ": "{0 -1} true", "name,Email,REASON": "{1 2} true", "reason,email": "{1 0} true",
		"email,email": "{0 -1} true",
		"a@x.de":      "{0 -1} false", "address,reason": "{0 -1} false", "": "{0 -1} false",
	} {
		c, is := header(strings.Split(fields, ","))
		if got := fmt.Sprint(c, is); got != want {
			t.Errorf("%q: %s, want %s", fields, got, want)
		}
	}
}

// TestBadLines keeps of what is no address what people can read, and no more.
func TestBadLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no address":                   "no address",
		"a\x00b\tc\x7f":                "a b c ",
		"a\u009b1mb\u202ec\u2028d":     "a 1mbc d", // a terminal's sequence, a mark that turns the line round, an end of a line
		"\xff\xfe":                     "\ufffd",
		strings.Repeat("é", 200<<10):   strings.Repeat("é", maxBadText),
		strings.Repeat("\xf0\x9f", 99): "\ufffd",
	} {
		if got := badLine(csvRow{Line: 7, Text: text}, "x"); got.Text != want || !utf8.ValidString(got.Text) || got.Line != 7 {
			t.Errorf("%.40q: %.80q, want %.40q", text, got.Text, want)
		}
	}
}
