// Package text makes texts that others wrote fit for a message, a line, a column of the store, or a bound. It refuses to judge them:
// what is refused, and with which words, is a schema's or a service's.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Storable is s as PostgreSQL takes it in a text: each run of bytes that is not UTF-8, and each NUL, becomes U+FFFD.
func Storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// OneLine is s without line breaks: its words, with a single space between them and none around them. Words are parted by whatever
// Unicode calls white space. Other characters stay, controls among them: see Printable.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// IsPrintable reports whether s is UTF-8 and each character shows itself: letters, marks, digits, punctuation, symbols and the space
// of ASCII, as unicode.IsPrint has it. It is true for the empty text.
func IsPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Printable is a text like s that IsPrintable: other white space and controls become spaces, what has no shape (such as marks that
// turn the direction of a line) is left out, and each run of bytes that is not UTF-8 becomes one U+FFFD.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// Head is the beginning of s: at most most characters, none for a bound below 1. A byte that is not UTF-8 counts as one.
func Head(s string, most int) string {
	if len(s) <= most {
		return s // no more characters than bytes
	}
	for i := range s {
		if most--; most < 0 {
			return s[:i]
		}
	}
	return s
}

// HeadBytes is the beginning of s: at most most bytes, none for a bound below 1, and no part of a character. What is not UTF-8 is cut
// at the bound.
func HeadBytes(s string, most int) string {
	if most = max(most, 0); len(s) <= most {
		return s
	}
	for end := most; end >= 0 && end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:most]
}

// Shorten is s if it has at most most characters, which have to be more than none; a longer one ends with an ellipsis, which is one
// of them, and no space before it.
func Shorten(s string, most int) string {
	if len(Head(s, most)) == len(s) {
		return s
	}
	return strings.TrimRightFunc(Head(s, most-1), unicode.IsSpace) + "…"
}

// Shown is s as a message quotes it: printable, and at most most characters, the ellipsis of a longer one among them.
func Shown(s string, most int) string { return Shorten(Printable(s), most) }

// OrEmpty is a text that may be absent, as a column of the store or a member of JSON: empty for nil.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
