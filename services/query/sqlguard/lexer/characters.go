package lexer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// marks are characters that look like a mark of SQL, each with that mark behind it. Servers take them for letters of a name.
const marks = "（( ）) ，, ＝= ＜< ＞> ＋+ －- ＊* ／/ ．. ；; ：: ！! 、, −- ×* ÷/ ≤<= ≥>= ≠<> ´' ＇' ＂\" ｀` ′' ″\""

// misread is what to write instead of a character beyond ASCII that looks like a blank or a mark of SQL, or like nothing at all; "" of
// letters and of any other one.
func misread(r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return ""
	case unicode.IsSpace(r) || strings.ContainsRune("\u115f\u1160\u3164\uffa0", r): // fillers of Hangul look like blanks
		return "write a blank in its place"
	case unicode.Is(unicode.Cf, r):
		return "leave it out"
	case unicode.In(r, unicode.Pi, unicode.Pf) || strings.ContainsRune("‚„", r):
		return "write ' in its place"
	case unicode.Is(unicode.Pd, r) && !strings.ContainsRune("〜〰゠", r): // which stand in ranges and names
		return "write - in its place"
	}
	for one := range strings.FieldsSeq(marks) {
		if mark, is := strings.CutPrefix(one, string(r)); is {
			return "write " + mark + " in its place"
		}
	}
	return ""
}

// checkLetters refuses a character in a name that is not quoted which its writer took for something else: servers would say that there
// is no such name. Letters of any script, such as Hangul, and other signs may stand there.
func checkLetters(t Token) error {
	if t.Quoted || t.Text[0] == '`' {
		return nil
	}
	for i, r := range t.Text {
		if instead := misread(r); instead != "" {
			shown := ""
			if unicode.IsPrint(r) {
				shown = fmt.Sprintf(" (%c)", r)
			}
			return Refuse("sql.character", "the character U+%04X%s at byte %d is a letter of a name to servers: %s; within texts and names "+
				"in `backquotes` it may stand", r, shown, t.Start+i, instead)
		}
	}
	return nil
}
