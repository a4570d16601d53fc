package authoring

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hub.internal/pkg/fault"
)

// maxViolations is how many violations an answer lists.
const maxViolations = 50

// Violation is one way in which an input breaks a rule of the domain.
type Violation struct {
	// Path is a JSON pointer to the offending value, or to its target.
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Violations collects what is wrong with an input: all are counted, the first ones listed.
type Violations struct {
	list  []Violation
	count int
}

func (v *Violations) add(path, rule, format string, args ...any) {
	if v.count++; v.count <= maxViolations {
		v.list = append(v.list, Violation{path, rule, fmt.Sprintf(format, args...)})
	}
}

// err is E_VALIDATION with the violations, or nil without any.
func (v *Violations) err() error {
	if v.count == 0 {
		return nil
	}
	message := fmt.Sprintf("%s %s.", v.list[0].Path, v.list[0].Message)
	if v.count > 1 {
		message = fmt.Sprintf("%s (%d more: see details.violations)", message, v.count-1)
	}
	return fault.New(fault.Validation, "%s", message).With(map[string]any{"violations": v.list})
}

// at is the JSON pointer to a target, or to a member of it.
func at(index int, member ...string) string {
	return strings.Join(append([]string{"/targets/" + strconv.Itoa(index)}, member...), "/")
}

// line checks a text that is shown in one line or becomes a part of a mail's header: a line
// break in it would begin another header, and a direction mark lets it read as something else.
func (v *Violations) line(path, text string, max int) {
	v.none(path, text, unprintable, "must be one line without control characters, but has %s")
	v.length(path, text, max)
}

// prose checks a text of several lines.
func (v *Violations) prose(path, text string) {
	v.none(path, text, unprose, "must have no control characters but tab and line break, but has %s")
}

func (v *Violations) none(path, text string, bad func(rune) bool, message string) {
	if i := strings.IndexFunc(text, bad); i >= 0 {
		v.add(path, "controlCharacters", message, describe(text[i:]))
	}
}

func (v *Violations) length(path, text string, max int) {
	if len(text) <= max {
		return // no more characters than bytes
	}
	if n := utf8.RuneCountInString(text); n > max {
		v.add(path, "maxLength", "must have at most %d characters, not %d", max, n)
	}
}

// lineHolds tells in most cases that line would find nothing, without a path made for it.
func lineHolds(text string, max int) bool {
	return len(text) <= max && strings.IndexFunc(text, unprintable) < 0
}

// unprintable is true for C0, DEL, C1, the Unicode line and paragraph separators, and the
// marks that turn the direction of what follows them.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// visible is false for spaces and for what has no shape, such as a zero-width space.
func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

func unprose(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' }

func describe(text string) string {
	for _, r := range text {
		return fmt.Sprintf("U+%04X", r)
	}
	return "nothing"
}
