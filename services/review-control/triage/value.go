package triage

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/bidi"

	"hub.internal/pkg/markup"
)

// Sign is what makes a placeholder's value worth a second look.
type Sign string

// The signs, the gravest first.
const (
	// PromptLikeValue reads like an instruction to a machine.
	PromptLikeValue Sign = "prompt"
	// LinkValue names an address on the internet, of which mail programs make a link.
	LinkValue Sign = "link"
	// MarkupValue has what would be HTML, were it not escaped.
	MarkupValue Sign = "markup"
	// InvisibleValue has characters that nobody sees.
	InvisibleValue Sign = "invisible"
	// RightToLeftValue has characters that run from right to left, or turn others.
	RightToLeftValue Sign = "rtl"
	// LinesValue goes over several lines.
	LinesValue Sign = "lines"
	// LongValue is longer than LongText.
	LongValue Sign = "long"
	// EmptyValue has nothing to read in it.
	EmptyValue Sign = "empty"
)

// LongText is how long a value may be, in characters, before it is a LongValue.
const LongText = 160

// Value is a placeholder's value as a reviewer reads it.
type Value struct {
	Parts []Part
	Signs []Sign
}

// Part is a piece of a text. Of what is Named it is the name: of a placeholder, or of a character that nobody sees.
type Part struct {
	Text  string
	Named bool
}

// ReadValue takes a value apart, so that nothing in it stays unseen.
func ReadValue(text string) Value {
	// What belongs to the script around it, as a joiner in an emoji does, stays in a mail and is not named.
	_, odd := markup.Text(text)
	unseen := func(r rune) bool { return len(odd) > 0 && markup.Invisible(r) || unshaped(r) }
	v := Value{Parts: visibleParts(text, unseen)}
	for _, s := range []struct {
		sign  Sign
		holds bool
	}{
		{PromptLikeValue, ReadsLikePrompt(text)},
		{LinkValue, namesAddress(text)},
		{MarkupValue, markupLike.MatchString(text)},
		{InvisibleValue, strings.ContainsFunc(text, unseen)},
		{RightToLeftValue, strings.ContainsFunc(text, turns)},
		{LinesValue, strings.ContainsAny(strings.TrimSpace(text), "\n\r\v\f\u0085\u2028\u2029")},
		{LongValue, utf8.RuneCountInString(text) > LongText},
		{EmptyValue, !strings.ContainsFunc(text, func(r rune) bool { return !unseen(r) && !unicode.IsSpace(r) && !markup.Invisible(r) })},
	} {
		if s.holds {
			v.Signs = append(v.Signs, s.sign)
		}
	}
	return v
}

// visibleParts names the characters that nobody sees.
func visibleParts(text string, unseen func(rune) bool) (parts []Part) {
	from := 0
	for at, r := range text {
		if !unseen(r) {
			continue
		}
		if at > from {
			parts = append(parts, Part{Text: text[from:at]})
		}
		parts = append(parts, Part{fmt.Sprintf("U+%04X", r), true})
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
	if from < len(text) {
		parts = append(parts, Part{Text: text[from:]})
	}
	return parts
}

// unshaped tells of a control character, and of a space that is not the usual one.
func unshaped(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) || r != ' ' && unicode.Is(unicode.Zs, r) || r == utf8.RuneError
}

// turns tells of a character that runs from right to left, or turns those around it.
func turns(r rune) bool {
	p, _ := bidi.LookupRune(r)
	switch p.Class() {
	case bidi.R, bidi.AL, bidi.LRO, bidi.RLO, bidi.LRE, bidi.RLE, bidi.PDF, bidi.LRI, bidi.RLI, bidi.FSI, bidi.PDI:
		return true
	}
	return false
}

var (
	markupLike = regexp.MustCompile(`<[A-Za-z/!?]|&(?:#\d+|#[xX][0-9A-Fa-f]+|[A-Za-z]+);`)
	// addressLike finds what begins as an address does, and words with a dot between letters.
	addressLike = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,30}://|\b(?:mailto|tel|javascript|data):|\bwww\.|` +
		`[\pL\pN-]+(?:[.。．｡][\pL\pN-]+)+`)
	mailbox = regexp.MustCompile(`^[^\s@<>"'():/]+@[\pL\pN.-]+$`)
)

// namesAddress tells that a text names an address; a mailbox alone names none.
func namesAddress(text string) bool {
	if mailbox.MatchString(text) {
		return false
	}
	for _, found := range addressLike.FindAllString(text, -1) {
		if strings.HasSuffix(found, ":") || strings.HasSuffix(found, "://") || strings.EqualFold(found, "www.") {
			return true
		}
		host := strings.ToLower(strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(found))
		if strings.HasPrefix(host, "www.") {
			return true
		}
		suffix, known := publicsuffix.PublicSuffix(host)
		if (known || strings.Contains(suffix, ".")) && suffix != host {
			return true
		}
	}
	return false
}

// Parts are the texts and the placeholders of the template, in their order.
func (t Template) Parts() (parts []Part) {
	for i, literal := range t.literals {
		if literal != "" {
			parts = append(parts, Part{Text: literal})
		}
		if i < len(t.placeholders) {
			parts = append(parts, Part{t.placeholders[i], true})
		}
	}
	return parts
}
