package lint

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

var (
	// titles follow or precede a name, or stand for one.
	titles = regexp.MustCompile(`(?i)\b(?:mr|mrs|ms|miss|dr|prof|dear|hi|hello|team|sir|madam|manager|ceo|cmo|director|head|lead|` +
		`marketing|sales|partner|customer)\b\.?|` +
		`(?:귀하|고객|담당자|담당|대표이사|대표|이사|부장|차장|과장|대리|사원|주임|팀장|실장|본부장|매니저|원장|사장|부사장|회장|상무|전무|점장|선생|파트너|관계자|여러분|귀중|마케팅|마케터|팀)`)
	honorific = regexp.MustCompile(`(?:님께|님|씨|께|様|さん|御中)$`)
)

// Unlike tells that a name is certainly another one than all that are known of a recipient. It is silent where it cannot tell:
// another script, a title instead of a name, a part of a name, nothing known.
func Unlike(name string, known []string) bool {
	given := wordsOf(name)
	if len(given) == 0 {
		return false
	}
	compared := false
	for _, k := range known {
		other := wordsOf(k)
		if len(other) == 0 || scriptOf(given) != scriptOf(other) {
			continue
		}
		if alike(given, other) {
			return false
		}
		compared = true
	}
	return compared
}

// alike tells that two names share a word, or that one is a part of the other, blanks aside. In Latin letters an initial is enough; a
// single syllable of Hangul is a family name, which many share.
func alike(a, b []string) bool {
	one, other := strings.Join(a, ""), strings.Join(b, "")
	if strings.Contains(one, other) || strings.Contains(other, one) {
		return true
	}
	for _, x := range a {
		for _, y := range b {
			if x[0] < utf8.RuneSelf && (strings.HasPrefix(x, y) || strings.HasPrefix(y, x)) || x == y && utf8.RuneCountInString(x) > 1 {
				return true
			}
		}
	}
	return false
}

// wordsOf are the words of a name in small letters, without titles. Syllables that come in parts, as of a Mac's files, are whole.
func wordsOf(name string) (words []string) {
	isBetween := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }
	fields := strings.FieldsFunc(strings.ToLower(norm.NFC.String(name)), isBetween)
	for _, w := range strings.Fields(titles.ReplaceAllString(strings.Join(fields, " "), " ")) {
		if w = honorific.ReplaceAllString(w, ""); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// scriptOf is the script of a name's first letter.
func scriptOf(words []string) *unicode.RangeTable {
	for _, r := range words[0] {
		for _, script := range []*unicode.RangeTable{unicode.Latin, unicode.Hangul, unicode.Han, unicode.Hiragana, unicode.Katakana} {
			if unicode.Is(script, r) {
				return script
			}
		}
	}
	return nil
}

// IsOneOf tells that a name is alike one of others.
func IsOneOf(name string, others []string) bool {
	given := wordsOf(name)
	return slices.ContainsFunc(others, func(o string) bool {
		other := wordsOf(o)
		return len(given) > 0 && len(other) > 0 && alike(given, other)
	})
}
