package main

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
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

// micros is a moment that is written with six digits of its second; a stamp alone is written without any.
type micros stamp

// cents are hundredths, written as a decimal with two digits: -5 is -0.05.
type cents int64

// batch collects rows as one INSERT statement. The literals are exact under the
// sql_mode that the loader sets (backslash escapes on). The driver could put them in
// place of placeholders itself, but its bytes are its own: those of a batch are the
// same with every release of it, so that a checksum of them tells that the sample is
// what it was (TestSameBytes).
type batch struct {
	buf  []byte // the statement so far
	rows int64  // how many rows it has
}

// begin empties the batch and starts a statement.
func (b *batch) begin(head string) {
	b.buf = append(b.buf[:0], head...)
	b.rows = 0
}

// row appends a row of values, which stand in the order of the table's columns.
func (b *batch) row(values ...any) {
	for i, v := range values {
		switch {
		case i > 0:
			b.buf = append(b.buf, ',')
		case b.rows > 0:
			b.buf = append(b.buf, ",\n("...)
		default:
			b.buf = append(b.buf, "\n("...)
		}
		b.literal(v)
	}
	b.buf = append(b.buf, ')')
	b.rows++
}

// literal appends a value as SQL. Rows hold no types but these: any other is a mistake of this program.
func (b *batch) literal(value any) {
	switch v := value.(type) {
	case int64:
		b.buf = strconv.AppendInt(b.buf, v, 10)
	case bool:
		if v {
			b.literal(int64(1))
		} else {
			b.literal(int64(0))
		}
	case cents:
		sign, n := "", v
		if n < 0 {
			sign, n = "-", -n
		}
		b.buf = fmt.Appendf(b.buf, "%s%d.%02d", sign, n/100, n%100)
	case string:
		b.text(v)
	case text:
		b.optional(v.Valid, v.V)
	case stamp:
		b.buf = v.time().AppendFormat(b.buf, "'2006-01-02 15:04:05'")
	case moment:
		b.optional(v.Valid, v.V)
	case micros:
		b.buf = stamp(v).time().AppendFormat(b.buf, "'2006-01-02 15:04:05.000000'")
	default:
		panic(fmt.Sprintf("no literal for %T", v))
	}
}

// optional appends a value that is there, else NULL.
func (b *batch) optional(there bool, value any) {
	if there {
		b.literal(value)
	} else {
		b.buf = append(b.buf, "NULL"...)
	}
}

// escapes are the characters that end or change a literal in quotes. A NUL would end the statement for some clients.
var escapes = strings.NewReplacer(`'`, `\'`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

// text appends a string literal with backslash escapes.
func (b *batch) text(s string) {
	b.buf = append(append(append(b.buf, '\''), escapes.Replace(s)...), '\'')
}
