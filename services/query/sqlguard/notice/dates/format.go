package dates

import (
	"strings"
	"time"

	"hub.internal/services/query/sqlguard/lexer"
)

// fields are the parts of a time by their letters in DATE_FORMAT, as Go writes them.
var fields = map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'i': "04", 's': "05", 'S': "05", 'T': "15:04:05"}

// Text is the text or the number at i, or what DATE_FORMAT makes there of a time, and what is behind it; 0 for none.
func Text(t lexer.Tokens, i int, now time.Time) (text string, end int) {
	switch {
	case i >= len(t):
		return "", 0
	case t[i].Quoted || t[i].Digits:
		return unquoted(t[i]), i + 1
	case t.Key(i) != "DATE_FORMAT" || t.Key(i+1) != "(":
		return "", 0
	}
	list := t.Arguments(i + 1)
	at, behind := At(t, list[0].From, now)
	if at.IsZero() || behind != list[0].To || len(list) != 2 || !t[list[1].From].Quoted {
		return "", 0
	}
	format := unquoted(t[list[1].From])
	for n := 0; n < len(format); n++ {
		if format[n] != '%' || n+1 == len(format) {
			text += format[n : n+1]
			continue
		}
		n++
		if fields[format[n]] == "" {
			return "", 0
		}
		text += at.Format(fields[format[n]])
	}
	return text, t[i+1].Mate + 1
}

// order is that of the fields of a time from the longest on. T has the last three.
const order = "YmdHis"

// ParseAs is the first moment of the year, month or day that DATE_FORMAT with a format has a text for. The format has the year, and what
// it has of the other fields follows in order without a gap, so that later times have greater texts.
func ParseAs(format, text string) (at time.Time, is bool) {
	layout, value, known := "", "", 0
	for n := 0; n < len(format); n++ {
		field, letters := "", 1
		if format[n] == '%' && n+1 < len(format) {
			n++
			if field = fields[format[n]]; field == "" || strings.IndexByte(order, replaced(format[n])) != known {
				return at, false
			}
			known++
			letters = len(field)
		}
		if len(text) < letters || field == "" && text[0] != format[n] {
			return at, false
		}
		if field != "" {
			layout, value = layout+field+" ", value+text[:letters]+" "
		}
		text = text[letters:]
	}
	at, err := time.Parse(layout, value)
	if err != nil || text != "" || known == 0 {
		return time.Time{}, false
	}
	return at, true
}

// replaced is the letter of order that a field begins with.
func replaced(letter byte) byte {
	switch letter {
	case 'S':
		return 's'
	case 'T':
		return 'H'
	}
	return letter
}
