// Package dates reads the times that a statement writes: texts, now and today, and what is computed of these, as far as the text alone
// tells them.
package dates

import (
	"strconv"
	"strings"
	"time"

	"hub.internal/services/query/sqlguard/lexer"
)

// Parse is the time that a text tells, with or without a time of the day.
// It has no zone: two of them are compared with each other, both as they stand.
func Parse(text string) (at time.Time, is bool) {
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return at, false
}

// parseDay is the day that a text or a number tells, without a time of the day.
func parseDay(text string) (at time.Time, is bool) {
	for _, layout := range []string{time.DateOnly, "20060102", "2006/01/02", "2006.01.02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return at, false
}

// Day is the date without a time that stands at i as a text or a number, and where it ends.
// It reads '2026-01-31', '20260131', '2026/01/31', 20260131, DATE '2026-01-31', DATE('2026-01-31') and CAST('2026-01-31' AS DATE), and no
// text that has a time as well: whoever writes one has thought of it. Of '2026-02-01' - INTERVAL 1 DAY and
// DATE_SUB('2026-02-01', INTERVAL 1 DAY) it is the day before; who takes more days means a moment, as with NOW() - INTERVAL 30 DAY.
func Day(t lexer.Tokens, i int) (at time.Time, end int) {
	if lexer.IsOneOf(t.Key(i), "DATE_SUB|SUBDATE") && t.Key(i+1) == "(" {
		if at, end = plainDay(t, i+2); end > 0 && t.Key(end) == "," && isOneDay(t, end+1) && t[i+1].Mate == end+4 {
			if before := shifted(t, at, end+1, -1); !before.IsZero() {
				return before, end + 5
			}
		}
		return at, 0
	}
	if at, end = plainDay(t, i); end > 0 && t.Key(end) == "-" && isOneDay(t, end+1) {
		if before := shifted(t, at, end+1, -1); !before.IsZero() {
			return before, end + 4
		}
	}
	return at, end
}

// isOneDay reports whether INTERVAL 1 DAY stands at i.
func isOneDay(t lexer.Tokens, i int) bool {
	return t.Key(i) == "INTERVAL" && t.Key(i+2) == "DAY" && t[i+1].Text == "1"
}

// plainDay is the same, of which nothing is taken.
func plainDay(t lexer.Tokens, i int) (at time.Time, end int) {
	switch key, next := t.Key(i), t.Key(i+1); {
	case key == "DATE" && next == "(" && t[i+1].Mate == i+3,
		key == "CAST" && next == "(" && t[i+1].Mate == i+5 && t.Key(i+3) == "AS" && t.Key(i+4) == "DATE":
		if at, end = plainDay(t, i+2); end == i+3 {
			end = t[i+1].Mate + 1
		}
		return at, end
	case key == "DATE":
		i++
	}
	if i >= len(t) || !t[i].Quoted && !t[i].Digits {
		return at, 0
	}
	if at, is := parseDay(unquoted(t[i])); is {
		return at, i + 1
	}
	return at, 0
}

// unquoted is a text without its quotes.
func unquoted(t lexer.Token) string {
	if !t.Quoted {
		return t.Text
	}
	return t.Text[1 : len(t.Text)-1]
}

// functions are those that answer a date, or a time of a date.
var functions = lexer.WordSet(`NOW SYSDATE CURDATE CURRENT_DATE CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIMESTAMP DATE
	LAST_DAY DATE_ADD DATE_SUB STR_TO_DATE MAKEDATE TIMESTAMP`)

// End is behind the date that begins at i, by its function or as DATE '...'; 0 where none does.
// CURRENT_DATE and its like need no parentheses; a name behind a dot is a column, whatever it is called.
func End(t lexer.Tokens, i int) int {
	if !functions[t.Key(i)] || t.Key(i-1) == "." {
		return 0
	}
	switch key := t.Key(i); {
	case t.Key(i+1) == "(":
		return t[i+1].Mate + 1
	case (key == "DATE" || key == "TIMESTAMP") && i+1 < len(t) && t[i+1].Quoted:
		return i + 2
	case strings.HasPrefix(key, "CURRENT_") || strings.HasPrefix(key, "LOCALTIME"):
		return i + 1
	}
	return 0
}

// LastDay is behind the LAST_DAY(…) at i; 0 for none.
func LastDay(t lexer.Tokens, i int) (end int) {
	if t.Key(i) == "LAST_DAY" && t.Key(i+1) == "(" {
		return t[i+1].Mate + 1
	}
	return 0
}

// Today is behind the CURDATE() at i, which CURRENT_DATE and UTC_DATE are as well, with or without parentheses; 0 for none.
func Today(t lexer.Tokens, i int) (end int) {
	if !lexer.IsOneOf(t.Key(i), "CURDATE|CURRENT_DATE|UTC_DATE") {
		return 0
	}
	return behindCall(t, i)
}

// behindCall is behind a word and its parentheses, if it has any.
func behindCall(t lexer.Tokens, i int) int {
	if t.Key(i+1) == "(" {
		return t[i+1].Mate + 1
	}
	return i + 1
}

// At is the time that the value at i tells, and what is behind it; the time is zero where nothing says it plainly. Now is what NOW()
// tells.
// It reads '2026-07-01', DATE '2026-07-01', CURDATE() - INTERVAL 3 MONTH, DATE_SUB(NOW(), INTERVAL 7 DAY), DATE_FORMAT(NOW(), '%Y-%m-01')
// and CONVERT_TZ('2026-07-01', '+09:00', '+00:00'). A second interval behind the first, or a subquery, makes it zero.
func At(t lexer.Tokens, i int, now time.Time) (at time.Time, end int) {
	at, end = base(t, i, now)
	switch t.Key(end) {
	case "-":
		// The sign, INTERVAL, the number and the unit are four tokens.
		at, end = shifted(t, at, end+1, -1), end+4
	case "+":
		at, end = shifted(t, at, end+1, 1), end+4
	}
	if !t.EndsValue(end) {
		at = time.Time{}
	}
	return at, end
}

// base is the time at i, without an interval behind it.
func base(t lexer.Tokens, i int, now time.Time) (at time.Time, end int) {
	text, end := Text(t, i, now)
	if end == 0 && lexer.IsOneOf(t.Key(i), "DATE|TIMESTAMP") {
		text, end = Text(t, i+1, now)
	}
	if end > 0 {
		at, is := Parse(text)
		if !is {
			at, _ = parseDay(text)
		}
		return at, end
	}
	if end = Today(t, i); end > 0 {
		return midnight(now), end
	}
	if lexer.IsOneOf(t.Key(i), "CURRENT_TIMESTAMP|LOCALTIMESTAMP") || t.Key(i+1) == "(" &&
		lexer.IsOneOf(t.Key(i), "NOW|SYSDATE|UTC_TIMESTAMP") {
		return now, behindCall(t, i)
	}
	if calls[t.Key(i)] && t.Key(i+1) == "(" {
		return call(t, i, now), t[i+1].Mate + 1
	}
	return time.Time{}, i
}

// calls are functions that make a time of another one.
var calls = lexer.WordSet(`CAST DATE TIMESTAMP DATE_ADD ADDDATE DATE_SUB SUBDATE CONVERT_TZ`)

// midnight is that before a time, whose zone is left out: the source's times have none.
func midnight(at time.Time) time.Time {
	year, month, day := at.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// call is the time that the call at i makes of another one.
func call(t lexer.Tokens, i int, now time.Time) (at time.Time) {
	list := t.Arguments(i + 1)
	at, end := At(t, list[0].From, now)
	whole := end == list[0].To // the argument is a time alone
	switch key := t.Key(i); {
	case at.IsZero():
	case key == "CAST" && t.Key(end) == "AS" && end+2 == list[0].To && t.Key(end+1) == "DATE", key == "DATE" && whole && len(list) == 1:
		return midnight(at)
	case key == "TIMESTAMP" && whole && len(list) == 1:
		return at
	case lexer.IsOneOf(key, "DATE_ADD|ADDDATE") && whole && len(list) == 2:
		return shifted(t, at, list[1].From, 1)
	case lexer.IsOneOf(key, "DATE_SUB|SUBDATE") && whole && len(list) == 2:
		return shifted(t, at, list[1].From, -1)
	case key == "CONVERT_TZ" && whole && len(list) == 3:
		if ahead, known := Ahead(t, list); known {
			return at.Add(ahead)
		}
	}
	return time.Time{}
}

// shifted is a time with the INTERVAL at i behind it, or before it with a sign of -1; zero of an interval that is not plain.
// Plain are INTERVAL 7 DAY and the like, up to 100,000 of a unit: not INTERVAL '1:30' HOUR_MINUTE, nor a column of days.
func shifted(t lexer.Tokens, at time.Time, i, sign int) time.Time {
	if at.IsZero() || t.Key(i) != "INTERVAL" || i+2 >= len(t) || !t[i+1].Digits || !t.EndsValue(i+3) {
		return time.Time{}
	}
	n, err := strconv.Atoi(t[i+1].Text)
	if err != nil || n > 100_000 {
		return time.Time{}
	}
	n *= sign
	switch t.Key(i + 2) {
	case "HOUR":
		return at.Add(time.Duration(n) * time.Hour)
	case "DAY":
		return at.AddDate(0, 0, n)
	case "WEEK":
		return at.AddDate(0, 0, 7*n)
	case "MONTH":
		return addMonths(at, n)
	case "QUARTER":
		return addMonths(at, 3*n)
	case "YEAR":
		return addMonths(at, 12*n)
	}
	return time.Time{}
}

// addMonths takes the last day of a month that is too short, as servers do; AddDate carries the days over into the next one.
func addMonths(at time.Time, n int) time.Time {
	to := at.AddDate(0, n, 0)
	if to.Day() != at.Day() {
		to = to.AddDate(0, 0, -to.Day())
	}
	return to
}

// Offsets are those of zones whose time has one offset from UTC all the year.
var Offsets = map[string]string{
	"UTC": "'+00:00'", "GMT": "'+00:00'", "ETC/UTC": "'+00:00'", "ASIA/SEOUL": "'+09:00'", "ASIA/TOKYO": "'+09:00'",
}

// Ahead is how much later the time is that a CONVERT_TZ with these arguments answers; known is false of zones with a summer time.
func Ahead(t lexer.Tokens, list []lexer.Argument) (ahead time.Duration, known bool) {
	if len(list) != 3 {
		return 0, false
	}
	from, isFrom := offset(t, list[1])
	to, isTo := offset(t, list[2])
	return to - from, isFrom && isTo
}

// offset is that of a zone's name from UTC; known is false of zones with a summer time.
func offset(t lexer.Tokens, zone lexer.Argument) (ahead time.Duration, known bool) {
	if zone.To-zone.From != 1 || !t[zone.From].Quoted {
		return 0, false
	}
	name := unquoted(t[zone.From])
	if of, has := Offsets[strings.ToUpper(name)]; has {
		name = of[1 : len(of)-1]
	}
	at, err := time.Parse("-07:00", name)
	if err != nil {
		return 0, false
	}
	_, seconds := at.Zone()
	return time.Duration(seconds) * time.Second, true
}

// MadeKorean is where the text of the value at i is, which is taken for a time in UTC and made Korean: by + INTERVAL 9 HOUR, or CONVERT_TZ
// to '+09:00'. It is 0 of any other value.
func MadeKorean(t lexer.Tokens, i int) (text int) {
	added, at := lexer.IsOneOf(t.Key(i), "DATE_ADD|ADDDATE"), i
	call := (added || t.Key(i) == "CONVERT_TZ") && t.Key(i+1) == "("
	if call {
		at = i + 2
	}
	if lexer.IsOneOf(t.Key(at), "DATE|TIMESTAMP") {
		at++
	}
	if at >= len(t) || !t[at].Quoted {
		return 0
	}
	_, isTime := Parse(unquoted(t[at]))
	_, isDay := parseDay(unquoted(t[at]))
	nine := t.Key(at+2) == "INTERVAL" && t.Key(at+4) == "HOUR" && t[at+3].Text == "9" && t.EndsValue(at+5)
	switch {
	case !isTime && !isDay, call && !t.EndsValue(t[i+1].Mate+1):
		return 0
	case call && !added:
		list := t.Arguments(i + 1)
		if ahead, known := Ahead(t, list); !known || ahead != 9*time.Hour {
			return 0
		}
		if zone, _ := offset(t, list[2]); zone != 9*time.Hour {
			return 0
		}
	case !nine, call && t.Key(at+1) != ",", !call && t.Key(at+1) != "+":
		return 0
	}
	return at
}
