package main

import (
	"database/sql"
	"strconv"
	"time"
)

// stamp is a moment in microseconds since 1970, UTC. The source has no time zone.
type stamp int64

const (
	second stamp = 1_000_000
	minute       = 60 * second
	hour         = 60 * minute
	day          = 24 * hour
)

// date is midnight of a day.
func date(year int, month time.Month, dayOfMonth int) stamp {
	return stamp(time.Date(year, month, dayOfMonth, 0, 0, 0, 0, time.UTC).UnixMicro())
}

// time is the moment in the standard library's form.
func (s stamp) time() time.Time { return time.UnixMicro(int64(s)).UTC() }

// whole cuts to full seconds, as DATETIME columns hold.
func (s stamp) whole() stamp { return s - s%second }

// text is a string that may be NULL.
type text = sql.Null[string]

// some is a text that is there.
func some(s string) text { return text{V: s, Valid: true} }

// moment is a stamp that may be NULL.
type moment = sql.Null[stamp]

// at is a moment that is there.
func at(s stamp) moment { return moment{V: s, Valid: true} }

// batch collects rows as one INSERT statement. The literals are exact under the
// sql_mode that the loader sets (backslash escapes on).
type batch struct {
	buf   []byte
	rows  int64
	first bool // the next value is its row's first
}

// begin empties the batch and starts a statement.
func (b *batch) begin(head string) {
	b.buf = append(b.buf[:0], head...)
	b.rows = 0
}

// open begins a row.
func (b *batch) open() {
	if b.rows > 0 {
		b.buf = append(b.buf, ',')
	}
	b.buf = append(b.buf, '\n', '(')
	b.rows++
	b.first = true
}

// close ends a row.
func (b *batch) close() { b.buf = append(b.buf, ')') }

// comma separates values of a row.
func (b *batch) comma() {
	if !b.first {
		b.buf = append(b.buf, ',')
	}
	b.first = false
}

// null, int, bool, text and the methods below each append one value in the order of the table's columns.
func (b *batch) null() {
	b.comma()
	b.buf = append(b.buf, "NULL"...)
}

func (b *batch) int(n int64) {
	b.comma()
	b.buf = strconv.AppendInt(b.buf, n, 10)
}

func (b *batch) bool(v bool) {
	if v {
		b.int(1)
	} else {
		b.int(0)
	}
}

// cents writes hundredths as a decimal: -5 is -0.05.
func (b *batch) cents(n int64) {
	b.comma()
	if n < 0 {
		b.buf = append(b.buf, '-')
		n = -n
	}
	b.buf = strconv.AppendInt(b.buf, n/100, 10)
	b.buf = append(b.buf, '.', byte('0'+n/10%10), byte('0'+n%10))
}

// text appends a string literal with backslash escapes.
func (b *batch) text(s string) {
	b.comma()
	b.buf = append(b.buf, '\'')
	clean := 0
	for i := range len(s) {
		var escape byte
		switch s[i] {
		case '\'', '\\':
			escape = s[i]
		case '\n':
			escape = 'n'
		case '\r':
			escape = 'r'
		case 0:
			escape = '0'
		default:
			continue
		}
		b.buf = append(b.buf, s[clean:i]...)
		b.buf = append(b.buf, '\\', escape)
		clean = i + 1
	}
	b.buf = append(b.buf, s[clean:]...)
	b.buf = append(b.buf, '\'')
}

// optText appends a text or NULL.
func (b *batch) optText(t text) {
	if t.Valid {
		b.text(t.V)
	} else {
		b.null()
	}
}

// datetime appends a DATETIME without a fraction, and micros one with six digits.
func (b *batch) datetime(s stamp) { b.stamp(s, "'2006-01-02 15:04:05'") }
func (b *batch) micros(s stamp)   { b.stamp(s, "'2006-01-02 15:04:05.000000'") }

// optDatetime appends a moment or NULL.
func (b *batch) optDatetime(m moment) {
	if m.Valid {
		b.datetime(m.V)
	} else {
		b.null()
	}
}

// stamp appends a moment in a layout of package time.
func (b *batch) stamp(s stamp, layout string) {
	b.comma()
	b.buf = s.time().AppendFormat(b.buf, layout)
}
