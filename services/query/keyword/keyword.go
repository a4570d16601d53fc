// Package keyword says of a search that found nothing what it looked for, and what is there that was perhaps meant.
package keyword

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"hub.internal/pkg/tool"
)

// Forms are forms of a company in a Korean name, which people write in either way or leave out.
var Forms = []string{"㈜", "(주)", "（주）", "주식회사"}

// Most is how many brands a warning names.
const Most = 5

// Composed is a keyword whose syllables and accents are whole, as the source has them: those that are copied of a Mac's files are in parts.
// Other texts stay as they are: NFC would take a letter of Hanja that Unicode has twice for the other one, as the source does not.
func Composed(keyword string) string {
	isPart := func(r rune) bool { return unicode.Is(unicode.Mn, r) || '\u1100' <= r && r <= '\u11ff' }
	if !strings.ContainsFunc(keyword, isPart) {
		return keyword
	}
	return norm.NFC.String(keyword)
}

// Plain is a keyword without blanks, forms of a company, and the wildcards of other searches.
func Plain(keyword string) string {
	keyword = Composed(keyword)
	for _, form := range append(Forms, " ", "　", "\t", "%", "*") {
		keyword = strings.ReplaceAll(keyword, form, "")
	}
	return keyword
}

// Nothing warns of an empty page. Named are things that have the plain keyword, such as `brand "A" (12)`, Most and one more of them.
func Nothing(keyword string, offset int64, named []string) (list []tool.Warning) {
	if offset > 0 {
		return []tool.Warning{{Rule: "offset", Message: fmt.Sprintf("nothing is at offset %d or behind it: read from offset 0 on, while "+
			"has_more is true", offset)}}
	}
	if strings.ContainsAny(keyword, "%*") {
		list = append(list, tool.Warning{Rule: "keyword", Message: fmt.Sprintf("the keyword is part of a text, and %% and * are characters like "+
			"others: write %.40q", strings.Trim(keyword, "%* "))})
	}
	if len(named) == 0 {
		return list
	}
	more := ""
	if len(named) > Most {
		named, more = named[:Most], " and more"
	}
	return append(list, tool.Warning{Rule: "keyword", Message: fmt.Sprintf("the keyword is looked for, as it is written, in the brand's "+
		"president and the partner's name alone, and with the other filters; without them, blanks and forms such as (주) it is also in %s%s",
		strings.Join(named, ", "), more)})
}
