package notice

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hub.internal/services/query/sqlguard/lexer"
)

// A Comparison is what a SELECT asks of a column of the catalog. Names are in lower case.
// The service asks for them when an answer has no rows, or none but NULL and 0, to tell of codes that do not exist
// (sql.codes), of a source that has no newer rows (sql.stale) and of 'NULL' as a text (sql.null).
type Comparison struct {
	Table, Column string
	// Nullable says that the column may hold NULL.
	Nullable bool
	// Filters says that rows are left out by it: it stands in a WHERE or behind ON, and not behind WHEN.
	Filters bool
	// Texts are what the column is to equal one of; none where it is asked for something else.
	Texts []string
	// Since is the time from which on it is to be, without a zone; zero where it is asked for something else.
	Since time.Time
}

// Compared returns what an accepted SELECT asks of columns, as far as it is plain: texts and numbers that they equal, and times that
// they are not before. Now is what NOW() tells.
// Each comparison stands for itself, whether AND or OR joins it to others: the caller looks whether the value exists,
// and a value that does not exist is worth telling of in any place but behind NOT. The result is in the order of the text,
// with repetitions.
func (c *Catalog) Compared(text string, now time.Time) (list []Comparison) {
	r, isSelect := c.read(text)
	if !isSelect {
		return nil
	}
	for i := range r.Tokens {
		if !r.beginsValue(i) {
			continue
		}
		if r.Key(i) == "YEAR" && r.Key(i+1) == "(" {
			list = append(list, r.sinceYear(i)...)
			continue
		}
		of, known := r.column(i)
		if !known || r.Key(i-1) == "NOT" || r.Key(i-1) == "(" && r.Key(i-2) == "NOT" {
			continue
		}
		one := Comparison{Table: strings.ToLower(of.table), Column: strings.ToLower(of.name), Nullable: of.Nullable,
			Filters: r.filters(i)}
		op, behind := r.operator(of.end)
		switch {
		// Of a range the lower end alone is kept: it is what a stale source has nothing behind.
		case r.Key(of.end) == "BETWEEN":
			one.Since, _ = r.moment(of.end+1, now)
		case lexer.IsOneOf(op, ">|>="):
			one.Since, _ = r.moment(behind, now)
		case op == "=":
			one.Since, _ = r.moment(behind, now)
			if value, is := r.literal(behind); is && r.endsValueAt(behind+1) {
				one.Texts = []string{value}
			}
		case r.Key(of.end) == "IN" && r.Key(of.end+1) == "(":
			for _, a := range r.Arguments(of.end + 1) {
				if value, is := r.literal(a.From); is && a.To == a.From+1 {
					one.Texts = append(one.Texts, value)
				}
			}
			// A computed value in the list may be the one that exists: then nothing is known of the list.
			if len(one.Texts) != len(r.Arguments(of.end+1)) {
				one.Texts = nil
			}
		}
		if !of.isDate() {
			one.Since = time.Time{}
		}
		if len(one.Texts) > 0 || !one.Since.IsZero() {
			list = append(list, one)
		}
	}
	return list
}

// filters reports whether the comparison at i leaves rows out.
func (r *reading) filters(i int) bool {
	n := r.enclosing(i)
	if n < 0 || r.Key(i-1) == "WHEN" {
		return false
	}
	s := r.scopes[n]
	return s.where.From <= i && i < s.where.To || s.tables.From <= i && i < s.tables.To
}

// Reads reports whether an accepted SELECT reads a table, which has its name in upper case.
func (c *Catalog) Reads(text, table string) bool {
	r, isSelect := c.read(text)
	return isSelect && slices.ContainsFunc(r.scopes, func(s scope) bool {
		return slices.ContainsFunc(s.from, func(one source) bool { return one.table == table })
	})
}

// literal is the value of the text or number at i, unless it has quotes or backslashes in it.
// In such a text an escape may stand for another character, so that the value would not be what is written.
func (r *reading) literal(i int) (value string, is bool) {
	if i >= len(r.Tokens) || !r.Tokens[i].Quoted && !r.Tokens[i].Digits {
		return "", false
	}
	value = r.Tokens[i].Text
	if r.Tokens[i].Quoted {
		value = value[1 : len(value)-1]
	}
	return value, !strings.ContainsAny(value, `'"\`)
}

// sinceYear is YEAR(column) = 2026, or >=, at i.
// The year's first moment is kept for = too. Nothing comes of a column without dates, nor of a year that is computed.
func (r *reading) sinceYear(i int) []Comparison {
	of, known := r.of(r.Arguments(i + 1)[0])
	op, behind := r.operator(r.Tokens[i+1].Mate + 1)
	if !known || !of.isDate() || !lexer.IsOneOf(op, "=|>=") || !r.endsValueAt(behind+1) {
		return nil
	}
	value, is := r.literal(behind)
	year, err := strconv.Atoi(value)
	if !is || err != nil {
		return nil
	}
	return []Comparison{{Table: strings.ToLower(of.table), Column: strings.ToLower(of.name),
		Since: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}}
}

// moment is the time that stands at i: a text, or now and today, and an interval before or behind those. It is zero where nothing
// says it plainly.
// It reads '2026-07-01', DATE '2026-07-01', CURDATE() - INTERVAL 3 MONTH and DATE_SUB(NOW(), INTERVAL 7 DAY). A second
// interval behind the first, or a subquery, makes it zero; end is behind what was read.
func (r *reading) moment(i int, now time.Time) (at time.Time, end int) {
	if r.Key(i) == "DATE" || r.Key(i) == "TIMESTAMP" {
		i++
	}
	if i >= len(r.Tokens) {
		return at, i
	}
	if r.Tokens[i].Quoted {
		if at, is := moment(r.Tokens[i].Text[1 : len(r.Tokens[i].Text)-1]); is && r.endsValueAt(i+1) {
			return at, i + 1
		}
		return time.Time{}, i
	}
	if lexer.IsOneOf(r.Key(i), "DATE_SUB|DATE_ADD|SUBDATE|ADDDATE") && r.Key(i+1) == "(" {
		list := r.Arguments(i + 1)
		at, end = r.base(list[0].From, now)
		if len(list) != 2 || end != list[0].To {
			return time.Time{}, i
		}
		sign := 1
		if lexer.IsOneOf(r.Key(i), "DATE_SUB|SUBDATE") {
			sign = -1
		}
		return r.shifted(at, list[1].From, sign), r.Tokens[i+1].Mate + 1
	}
	at, end = r.base(i, now)
	switch r.Key(end) {
	case "-":
		// The sign, INTERVAL, the number and the unit are four tokens.
		return r.shifted(at, end+1, -1), end + 4
	case "+":
		return r.shifted(at, end+1, 1), end + 4
	}
	return at, end
}

// base is now or today at i.
// Today is a midnight in the zone that now has; the service hands over UTC, as the source's times have no zone of their
// own.
func (r *reading) base(i int, now time.Time) (at time.Time, end int) {
	if end = r.today(i); end > 0 {
		year, month, day := now.Date()
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC), end
	}
	if lexer.IsOneOf(r.Key(i), "NOW|SYSDATE|CURRENT_TIMESTAMP|UTC_TIMESTAMP|LOCALTIMESTAMP") && dateEnd(r.Tokens, i) > 0 {
		return now, dateEnd(r.Tokens, i)
	}
	return time.Time{}, i
}

// shifted is a time with the INTERVAL at i behind it, or before it with a sign of -1; zero of an interval that is not plain.
// Plain are INTERVAL 7 DAY and the like, up to 100,000 of a unit: not INTERVAL '1:30' HOUR_MINUTE, nor a column of days.
func (r *reading) shifted(at time.Time, i, sign int) time.Time {
	if at.IsZero() || r.Key(i) != "INTERVAL" || i+2 >= len(r.Tokens) || !r.Tokens[i+1].Digits || !r.endsValueAt(i+3) {
		return time.Time{}
	}
	n, err := strconv.Atoi(r.Tokens[i+1].Text)
	if err != nil || n > 100_000 {
		return time.Time{}
	}
	n *= sign
	switch r.Key(i + 2) {
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
