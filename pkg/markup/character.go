package markup

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The marks that come in ranges are told together.
const (
	tagCharacters      = '\U000E0000'
	variationSelectors = '\uFE00'
	privateUse         = '\uE000'
	controls           = '\u0080'
	noncharacters      = '\uFFFE'
	// stacked stands for combining marks above as many as any script puts on one letter.
	// mostMarks is how many combining marks stay on one letter; "Zalgo" text has dozens, which cover other lines.
	stacked   = '\u0300'
	mostMarks = 4
)

// Invisible tells that a character has no shape of its own, or only turns the direction of others.
// The controls below the space are none here.
func Invisible(r rune) bool { return r > 0x7e && markOf(r) != 0 }

// markOf is the kind of a character that nobody sees, or that looks different everywhere; 0 for
// all others.
func markOf(r rune) rune {
	switch {
	// Soft hyphen, fillers, zero-width spaces and joiners, bidirectional controls (UAX 9), annotations, and the formats of scripts that
	// few fonts have.
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x2800, r == 0x3164, r == 0xFEFF,
		r == 0xFFA0, r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F, r >= 0x2028 && r <= 0x202E, r >= 0x2060 && r <= 0x206F,
		r >= 0xFFF0 && r <= 0xFFFC, r >= 0x13430 && r <= 0x13455, r >= 0x1BCA0 && r <= 0x1BCA3, r >= 0x1D173 && r <= 0x1D17A:
		return r
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return variationSelectors
	case r >= 0xE0000 && r <= 0xE0FFF:
		return tagCharacters
	case r < ' ' && r != '\t' && r != '\n', r >= 0x7f && r <= 0x9f:
		return controls
	case unicode.Is(unicode.Co, r):
		return privateUse
	case r&0xFFFE == 0xFFFE, r >= 0xFDD0 && r <= 0xFDEF:
		return noncharacters
	}
	return 0
}

// visible is the text without the characters that nobody sees, which it notes. Those that belong to
// the script around them stay: joiners in emoji and Indic or Arabic words, flags of regions.
// One pass over the text decides by the character before and the one after. An example that goes: the U+200B in "pay\u200Bpal"; one that
// stays: the U+200D in an emoji of a family.
func visible(text string, l *removals) string {
	if hasNoMarks(text) {
		return text
	}
	var kept strings.Builder
	var kinds []rune
	first, count := map[rune]int{}, map[rune]int{}
	previous, flag, marks := rune(-1), false, 0
	for at, c := range text {
		kind := markOf(c)
		if unicode.In(c, unicode.Mn, unicode.Me) {
			if marks++; marks > mostMarks && kind == 0 {
				kind = stacked
			}
		} else {
			marks = 0
		}
		width := utf8.RuneLen(c)
		next, _ := utf8.DecodeRuneInString(text[at+width:])
		if kind == 0 || isJustified(previous, c, next, flag) {
			flag = c == blackFlag || flag && kind == tagCharacters
			previous = c
			kept.WriteString(text[at : at+width])
			continue
		}
		if count[kind]++; count[kind] == 1 {
			kinds, first[kind] = append(kinds, kind), at
		}
		flag = false
	}
	for _, kind := range kinds {
		l.add("invisible character "+markName(kind), excerpt(text, first[kind]), count[kind])
	}
	return kept.String()
}

// hasNoMarks tells text in which there is nothing to look for.
// It is the common case, and costs a look at each byte of a text in ASCII.
func hasNoMarks(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return strings.IndexFunc(text[i:], func(r rune) bool { return markOf(r) != 0 || unicode.In(r, unicode.Mn, unicode.Me) }) < 0
		}
	}
	return true
}

// blackFlag begins the flags of regions (UTS 51), such as Scotland's: tag characters after it spell the region.
const blackFlag = '\U0001F3F4'

// joining lists scripts whose spelling uses joiners.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Mongolian,
}

// isJustified tells that a mark does what it is there for.
func isJustified(previous, c, next rune, flag bool) bool {
	pictured := func(r rune) bool { return unicode.Is(unicode.So, r) || r >= 0x1F3FB && r <= 0x1F3FF }
	switch c {
	// The joiner is also what makes one emoji of several; the non-joiner has no part in those.
	case 0x200C, 0x200D:
		return unicode.In(previous, joining...) || c == 0x200D && (pictured(previous) || previous == 0xFE0F) && pictured(next)
	// Marks of direction belong beside letters that are written from right to left.
	case 0x200E, 0x200F, 0x61C:
		return unicode.In(previous, unicode.Arabic, unicode.Hebrew) || unicode.In(next, unicode.Arabic, unicode.Hebrew)
	// Variation selectors that choose between text and emoji: after symbols, and after digits (keycaps).
	case 0xFE0E, 0xFE0F:
		return unicode.In(previous, unicode.So, unicode.Sm, unicode.Po, unicode.Nd)
	}
	switch {
	case c >= 0x180B && c <= 0x180F:
		return unicode.Is(unicode.Mongolian, previous)
	case c >= 0xFE00 && c <= 0xFE0F, c >= 0xE0100 && c <= 0xE01EF:
		return unicode.Is(unicode.Han, previous)
	case c >= 0xE0020 && c <= 0xE007F:
		return flag
	}
	return false
}

// excerpt is what stands around a mark. Tag characters spell a text of their own.
// So a reader sees what a hidden text of tag characters says: it is told in the letters that they stand for.
func excerpt(text string, at int) string {
	const around = 24
	if c, _ := utf8.DecodeRuneInString(text[at:]); markOf(c) == tagCharacters {
		return strings.Map(func(r rune) rune {
			if r >= 0xE0020 && r < 0xE007F {
				return r - 0xE0000
			}
			return -1
		}, text[at:min(len(text), at+4*around)])
	}
	before, after := text[:at], text[at:]
	start, end := len(before), 0
	for range around {
		_, n := utf8.DecodeLastRuneInString(before[:start])
		start -= n
		_, n = utf8.DecodeRuneInString(after[end:])
		end += n
	}
	return before[start:] + after[:end]
}

// spellOut makes marks visible.
func spellOut(text string) string {
	if hasNoMarks(text) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if markOf(c) != 0 {
			fmt.Fprintf(&b, "[U+%04X]", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// markNames are what a reader is told of a mark beside its number, or in place of that for marks of a range.
var markNames = map[rune]string{
	0xAD: "soft hyphen", 0x200B: "zero-width space", 0x200C: "zero-width non-joiner", 0x200D: "zero-width joiner",
	0x200E: "left-to-right mark", 0x200F: "right-to-left mark", 0x61C: "Arabic letter mark",
	0x2028: "line separator", 0x2029: "paragraph separator",
	0x202A: "left-to-right embedding", 0x202B: "right-to-left embedding", 0x202C: "end of embedding",
	0x202D: "left-to-right override", 0x202E: "right-to-left override",
	0x2060: "word joiner", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "isolate",
	0x2069: "end of isolate",
	0xFEFF: "zero-width no-break space", 0x2800: "Braille blank",
	0x3164: "Hangul filler", 0x115F: "Hangul filler", 0x1160: "Hangul filler", 0xFFA0: "Hangul filler",
}

// rangeNames are the names of the marks that are told together.
var rangeNames = map[rune]string{
	variationSelectors: "(variation selector that varies nothing)", tagCharacters: "(tag character, which only machines read)",
	privateUse: "(private use: it looks different everywhere)", controls: "(control)", noncharacters: "(no character)",
	stacked: "(too many marks on a letter)",
}

// markName is what a reader is told of a mark: U+200B (zero-width space).
func markName(kind rune) string {
	if name := rangeNames[kind]; name != "" {
		return name
	}
	if name := markNames[kind]; name != "" {
		return fmt.Sprintf("U+%04X (%s)", kind, name)
	}
	return fmt.Sprintf("U+%04X", kind)
}
