package schema

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line checks a text that is shown in one line or becomes a part of a mail's header: a line
// break in it would begin another header, and a direction mark lets it read as something else.
// max bounds its characters.
func (v *Violations) Line(path, text string, max int) {
	v.without(path, text, Unprintable, "must be one line without control characters, but has %s")
	v.Length(path, text, max)
}

// Prose checks a text of several lines.
func (v *Violations) Prose(path, text string) {
	v.without(path, text, Control, "must have no control characters but tab and line break, but has %s")
}

// Length checks that a text has at most max characters.
func (v *Violations) Length(path, text string, max int) {
	if len(text) <= max {
		return // no more characters than bytes
	}
	if n := utf8.RuneCountInString(text); n > max {
		v.Add(path, "maxLength", "must have at most %d characters, not %d", max, n)
	}
}

// without adds a violation for the first bad character of a text, or for what is no UTF-8.
func (v *Violations) without(path, text string, bad func(rune) bool, message string) {
	if !utf8.ValidString(text) {
		v.Add(path, "encoding", "must be valid UTF-8")
		return
	}
	if i := strings.IndexFunc(text, bad); i >= 0 {
		v.Add(path, "controlCharacters", message, CodePoint(text[i:]))
	}
}

// Unprintable tells the characters that no label of one line holds: controls, tabs and other ends
// of a line, the Unicode line and paragraph separators, and the marks that turn the direction of
// what follows them.
func Unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Control tells the characters that no text of several lines holds: controls but tab and line break.
func Control(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' }

// Visible is false for spaces and for what has no shape, such as a zero-width space.
func Visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

// CodePoint names the first character of a text: U+0009.
func CodePoint(text string) string {
	for _, r := range text {
		return fmt.Sprintf("U+%04X", r)
	}
	return "nothing"
}

// Note is a note or a reason as it is kept: trimmed, with lines that end with \n, and with at most max characters. field
// names it in the violation; needed refuses an empty one. E_VALIDATION.
func Note(field, text string, max int, needed bool) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	var v Violations
	if text == "" && needed {
		v.Add("/"+field, "required", "is required")
	}
	v.Prose("/"+field, text)
	v.Length("/"+field, text, max)
	return text, v.Err()
}
