package body

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark is a character that is not seen, wherever it stands in the body.
type mark struct {
	count   int
	excerpt string          // around the first one
	spelled strings.Builder // by tag characters
}

// The marks that come in ranges are told together.
const (
	tagCharacters      = '\U000E0000'
	variationSelectors = '\uFE00'
)

// invisible tells that a character has no width of its own, or only turns the direction of
// others.
func invisible(r rune) bool { return r > 0x7f && markOf(r) != 0 }

// markOf is the mark that a character is, or 0.
func markOf(r rune) rune {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x3164, r == 0xFEFF, r == 0xFFA0,
		r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F,
		r >= 0xFFF9 && r <= 0xFFFB, r >= 0x1D173 && r <= 0x1D17A:
		return r
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return variationSelectors
	case r >= 0xE0000 && r <= 0xE007F:
		return tagCharacters
	}
	return 0
}

// findMarks notes the marks of a text, and returns it without them. Marks that belong to the
// script around them stay: joiners in emoji and Indic or Arabic words, flags of regions.
func (r *reader) findMarks(text string) string {
	first := strings.IndexFunc(text, invisible)
	if first < 0 {
		return text
	}
	var kept strings.Builder
	kept.WriteString(text[:first])
	previous, _ := utf8.DecodeLastRuneInString(text[:first])
	flag := previous == blackFlag
	for i, c := range text[first:] {
		at := first + i
		kind := rune(0)
		if c > 0x7f {
			kind = markOf(c)
		}
		next, _ := utf8.DecodeRuneInString(text[at+utf8.RuneLen(c):])
		if kind == 0 || belongs(previous, c, next, flag) {
			flag = c == blackFlag || flag && kind == tagCharacters
			previous = c
			kept.WriteString(text[at : at+utf8.RuneLen(c)])
			continue
		}
		m := r.marks[kind]
		if m == nil {
			m = &mark{excerpt: excerpt(text, at)}
			r.marks[kind] = m
		}
		m.count++
		if kind == tagCharacters && c >= 0xE0020 {
			m.spelled.WriteRune(c - 0xE0000)
		}
		flag, previous = false, c
	}
	return kept.String()
}

const blackFlag = '\U0001F3F4'

// joining lists scripts whose spelling uses joiners.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Mongolian,
}

// belongs tells that a mark does what it is there for.
func belongs(previous, c, next rune, flag bool) bool {
	pictured := func(r rune) bool { return unicode.Is(unicode.So, r) || r >= 0x1F3FB && r <= 0x1F3FF || r == 0xFE0F }
	switch c {
	case 0x200C, 0x200D:
		return unicode.In(previous, joining...) || c == 0x200D && pictured(previous) && pictured(next)
	case 0x200E, 0x200F, 0x61C:
		return unicode.In(previous, unicode.Arabic, unicode.Hebrew) || unicode.In(next, unicode.Arabic, unicode.Hebrew)
	case 0xFE0E, 0xFE0F:
		return unicode.In(previous, unicode.So, unicode.Sm, unicode.Po, unicode.Nd)
	}
	switch {
	case c >= 0x180B && c <= 0x180F:
		return unicode.Is(unicode.Mongolian, previous)
	case c >= 0xFE00 && c <= 0xFE0F, c >= 0xE0100 && c <= 0xE01EF:
		return unicode.Is(unicode.Han, previous)
	case markOf(c) == tagCharacters:
		return flag
	}
	return false
}

// excerpt is what stands around a mark, with the marks made visible.
func excerpt(text string, at int) string {
	const around = 24
	before, after := text[:at], text[at:]
	begin, end := len(before), 0
	for range around {
		_, n := utf8.DecodeLastRuneInString(before[:begin])
		begin -= n
		_, n = utf8.DecodeRuneInString(after[end:])
		end += n
	}
	var b strings.Builder
	for _, c := range before[begin:] + after[:end] {
		if c > 0x7f && markOf(c) != 0 {
			fmt.Fprintf(&b, "[U+%04X]", c)
		} else {
			b.WriteRune(c)
		}
	}
	return fold(b.String())
}

// reportMarks tells of each kind of mark once.
func (r *reader) reportMarks() {
	for _, kind := range slices.Sorted(maps.Keys(r.marks)) {
		m := r.marks[kind]
		h := Hidden{Text: m.excerpt, Reason: fmt.Sprintf("%d × %s", m.count, markName(kind))}
		if spelled := m.spelled.String(); spelled != "" {
			h.Text = spelled
		}
		r.view.Hidden = append(r.view.Hidden, h)
	}
}

func markName(kind rune) string {
	names := map[rune]string{
		0xAD: "soft hyphen", 0x200B: "zero-width space", 0x200C: "zero-width non-joiner", 0x200D: "zero-width joiner",
		0x200E: "left-to-right mark", 0x200F: "right-to-left mark", 0x61C: "Arabic letter mark",
		0x202A: "left-to-right embedding", 0x202B: "right-to-left embedding", 0x202C: "end of embedding",
		0x202D: "left-to-right override", 0x202E: "right-to-left override: the text after it is shown backwards",
		0x2060: "word joiner", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "isolate", 0x2069: "end of isolate",
		0xFEFF: "zero-width no-break space", 0x3164: "Hangul filler", 0x115F: "Hangul filler", 0x1160: "Hangul filler", 0xFFA0: "Hangul filler",
		variationSelectors: "variation selector that varies nothing", tagCharacters: "tag character: text that only machines read",
	}
	name := names[kind]
	if name == "" {
		name = "invisible character"
	}
	if kind == variationSelectors || kind == tagCharacters {
		return name
	}
	return fmt.Sprintf("%s (U+%04X)", name, kind)
}
