// Package csvguard keeps a spreadsheet from running what others wrote when it opens a file of CSV (CSV injection, OWASP).
package csvguard

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"hub.internal/pkg/schema"
)

// Cell is a text as a cell of CSV: with an apostrophe in front, which makes a text of it, where a spreadsheet would run it.
func Cell(text string) string {
	if IsFormula(text) {
		return "'" + text
	}
	return text
}

// negative is a number that begins as a formula does.
var negative = regexp.MustCompile(`^-([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// IsFormula reports whether a spreadsheet would run a text. A negative number is none.
func IsFormula(text string) bool {
	// Some drop what nobody sees before they look.
	start := strings.TrimLeftFunc(text, func(r rune) bool { return !schema.Visible(r) && !strings.ContainsRune("\t\r\n", r) })
	first, _ := utf8.DecodeRuneInString(start)
	return start != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) && !negative.MatchString(start)
}
