package notice

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice/dates"
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
		of, known := r.column(i)
		var texts []string
		var since time.Time
		if known {
			texts = r.texts(of.end)
		}
		if asked, is := r.asked(i, now); is {
			of, since = asked.reference, r.since(i, asked)
		}
		if (len(texts) > 0 || !since.IsZero()) && !r.negated(i) {
			list = append(list, Comparison{Table: strings.ToLower(of.table), Column: strings.ToLower(of.name), Nullable: of.Nullable,
				Filters: r.filters(i), Texts: texts, Since: since})
		}
	}
	return list
}

// texts are those that the comparison at i wants a column to equal one of.
func (r *reading) texts(i int) (list []string) {
	if op, behind := r.operator(i); op == "=" {
		if value, is := r.literal(behind); is && r.EndsValue(behind+1) {
			return []string{value}
		}
		return nil
	}
	if r.Key(i) != "IN" || r.Key(i+1) != "(" {
		return nil
	}
	for _, a := range r.Arguments(i + 1) {
		value, is := r.literal(a.From)
		if !is || a.To != a.From+1 {
			// A computed value in the list may be the one that exists: then nothing is known of the list.
			return nil
		}
		list = append(list, value)
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

// asked is a column of dates as a comparison has it: by itself, with hours added or in another zone, and the day, month or year of that.
type asked struct {
	momentValue
	end int // behind all of it
	// read is the first moment that a value beside it stands for, as a day or a year, and what is behind the value.
	read func(i int) (at time.Time, end int)
	// What stands between one such value and the next; 0 where all times are values.
	months, days int
	ofYear       bool
}

// asked is the column that a comparison at i asks for.
// It reads created_at + INTERVAL 9 HOUR, CONVERT_TZ(created_at, '+00:00', '+09:00'), and of such a time DATE(x), CAST(x AS DATE), YEAR(x)
// and DATE_FORMAT(x, '%Y-%m').
func (r *reading) asked(i int, now time.Time) (a asked, is bool) {
	a.read = func(j int) (time.Time, int) { return dates.At(r.Tokens, j, now) }
	key := r.Key(i)
	if r.Key(i+1) != "(" || !lexer.IsOneOf(key, "DATE|CAST|YEAR|DATE_FORMAT") {
		a.momentValue, a.end = r.dateValueOf(i)
		return a, a.end > 0 && a.shiftKnown
	}
	list := r.Arguments(i + 1)
	v, inner := r.dateValueOf(list[0].From)
	a.momentValue, a.end = v, r.Tokens[i+1].Mate+1
	whole := inner > 0 && a.shiftKnown && inner == list[0].To
	switch {
	case key == "CAST" && inner > 0 && a.shiftKnown && inner+2 == list[0].To && r.Key(inner) == "AS" && r.Key(inner+1) == "DATE",
		key == "DATE" && whole && len(list) == 1:
		a.days = 1
		return a, true
	case key == "YEAR" && whole && len(list) == 1:
		a.months, a.ofYear, a.read = 12, true, r.number(12)
		return a, true
	case key == "DATE_FORMAT" && whole && len(list) == 2:
		format, is := r.literal(list[1].From)
		switch {
		case strings.Contains(format, "%H") || strings.Contains(format, "%T"):
		case strings.Contains(format, "%d"):
			a.days = 1
		case strings.Contains(format, "%m"):
			a.months = 1
		default:
			a.months = 12
		}
		a.read = func(j int) (time.Time, int) {
			text, end := dates.Text(r.Tokens, j, now)
			at, _ := dates.ParseAs(format, text)
			return at, end
		}
		return a, is
	}
	return a, false
}

// dateValueOf is momentValue, or a column of days.
func (r *reading) dateValueOf(i int) (v momentValue, end int) {
	if v, end = r.momentValue(i); end > 0 {
		return v, end
	}
	if c, known := r.column(i); known && c.isDate() {
		return momentValue{reference: c, shiftKnown: true}, c.end
	}
	return v, 0
}

// number reads a year, a quarter or a month by the number at a place: as the first day of it, in the year 1 where it is no year.
func (r *reading) number(months int) func(i int) (time.Time, int) {
	return func(i int) (at time.Time, end int) {
		value, is := r.literal(i)
		n, err := strconv.Atoi(value)
		switch {
		case !is || err != nil || n < 1 || n > 9999:
			return at, i
		case months == 12:
			return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC), i + 1
		}
		return time.Date(1, time.Month((n-1)*months+1), 1, 0, 0, 0, 0, time.UTC), i + 1
	}
}

// since is the time, in the column's own zone, from which on a comparison asks for a column; zero where it does not say so.
func (r *reading) since(i int, a asked) time.Time {
	at := r.least(a.end, a)
	if at.IsZero() {
		return at
	}
	if a.ofYear {
		at = time.Date(at.Year(), r.monthBeside(i, a), 1, 0, 0, 0, 0, time.UTC)
	}
	return at.Add(-a.ahead)
}

// least is the least time that the comparison at i allows; zero of one with an upper end alone.
func (r *reading) least(i int, a asked) (at time.Time) {
	op, behind := r.operator(i)
	switch {
	// Of a range the lower end alone is kept: it is what a stale source has nothing behind.
	case r.Key(i) == "BETWEEN":
		behind = i + 1
	case r.Key(i) == "IN" && r.Key(i+1) == "(":
		for n, one := range r.Arguments(i + 1) {
			value, end := a.read(one.From)
			if value.IsZero() || end != one.To {
				return time.Time{}
			}
			if n == 0 || value.Before(at) {
				at = value
			}
		}
		if !r.EndsValue(r.Tokens[i+1].Mate + 1) {
			return time.Time{}
		}
		return at
	case !lexer.IsOneOf(op, "=|>|>="):
		return at
	}
	at, end := a.read(behind)
	if at.IsZero() || !r.EndsValue(end) {
		return time.Time{}
	}
	if op == ">" && a.months+a.days > 0 {
		at = at.Truncate(24*time.Hour).AddDate(0, a.months, a.days)
	}
	return at
}

// endsCondition are words and marks between conditions that AND does not join, and the clauses behind them.
var endsCondition = lexer.WordSet(`OR XOR , WHEN THEN ELSE SELECT ON JOIN`)

// monthBeside is the least month that a condition which AND joins to that at i leaves of the year of a column; January for none.
// It reads MONTH(x) = 10 and QUARTER(x) IN (3, 4), where x is written as it is in YEAR(x).
func (r *reading) monthBeside(i int, year asked) time.Month {
	isEnd := func(j int) bool {
		return endsCondition[r.Key(j)] || lexer.EndsFrom[r.Key(j)]
	}
	from := i
	for from > 0 && r.Key(from-1) != "(" && (r.Key(from-1) == ")" || !isEnd(from-1)) {
		if from--; r.Key(from) == ")" {
			from = r.Tokens[from].Mate
		}
	}
	x := written(r.Tokens, r.Arguments(i + 1)[0])
	for j := from; j < len(r.Tokens) && !isEnd(j); j++ {
		if r.Key(j) != "(" {
			continue
		}
		begins, function := j, r.Key(j-1)
		j = r.Tokens[j].Mate
		if !lexer.IsOneOf(function, "MONTH|QUARTER") || r.Key(begins-2) == "NOT" || !r.beginsValue(begins-1) ||
			written(r.Tokens, r.Arguments(begins)[0]) != x {
			continue
		}
		if year.months = 1; function == "QUARTER" {
			year.months = 3
		}
		year.read = r.number(year.months)
		return r.least(j+1, year).Month()
	}
	return time.January
}
