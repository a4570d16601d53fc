package mysql

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/services/query"
	"hub.internal/services/query/keyword"
	"hub.internal/services/query/mysql/errno"
)

// dateTime scans a DATETIME, which the driver answers as text, 2026-01-31 09:00:00.
func dateTime(to *query.DateTime) sql.Scanner { return dateTimeScanner{to: to} }

// nullDateTime scans a DATETIME that may be NULL.
func nullDateTime(to **query.DateTime) sql.Scanner { return dateTimeScanner{null: to} }

type dateTimeScanner struct {
	to   *query.DateTime
	null **query.DateTime
}

// Scan implements sql.Scanner. The text keeps its fraction, and gets no zone: the source's times have none.
func (s dateTimeScanner) Scan(value any) error {
	text, ok := value.([]byte)
	switch {
	case value == nil && s.null != nil:
		*s.null = nil
		return nil
	case !ok:
		return fmt.Errorf("a DATETIME came as %T", value)
	}
	t := query.DateTime(strings.Replace(string(text), " ", "T", 1))
	if s.null != nil {
		*s.null = &t
	} else {
		*s.to = t
	}
	return nil
}

// firstOf are fields that take the first of so many columns of a row and leave the others unread.
func firstOf(columns int, field any) []any {
	fields := []any{field}
	for range columns - 1 {
		fields = append(fields, unread{})
	}
	return fields
}

// unread is a field that takes nothing.
type unread struct{}

// Scan implements sql.Scanner.
func (unread) Scan(any) error { return nil }

// textOf is a text, or nil for NULL.
func textOf(s sql.NullString) *string {
	if !s.Valid {
		return nil
	}
	return &s.String
}

// conditions are the filters of a search, joined with AND.
type conditions struct {
	text []string
	args []any
}

// add adds a filter with its arguments. text is a constant of this package, or made of such; values stand for ? alone.
func (c *conditions) add(text string, args ...any) {
	c.text = append(c.text, text)
	c.args = append(c.args, args...)
}

// contain adds that one of some expressions, each with one pattern for LIKE, has a text: with its syllables whole, as most sources have
// them, or as it is written.
func (c *conditions) contain(text string, expressions ...string) {
	spellings := []string{keyword.Composed(text)}
	if spellings[0] != text {
		spellings = append(spellings, text)
	}
	var alternatives []string
	for _, spelling := range spellings {
		for _, expression := range expressions {
			alternatives = append(alternatives, expression)
			c.args = append(c.args, contains(spelling))
		}
	}
	c.text = append(c.text, "("+strings.Join(alternatives, " OR ")+")")
}

// and is the filters as text that follows another condition.
func (c *conditions) and() string {
	var b strings.Builder
	for _, t := range c.text {
		b.WriteString(" AND ")
		b.WriteString(t)
	}
	return b.String()
}

// between holds a DATETIME expression to after <= x < before; a zero time is no bound.
func (c *conditions) between(expression string, after, before time.Time) {
	if !after.IsZero() {
		c.add(expression+" >= ?", wallClock(after))
	}
	if !before.IsZero() {
		c.add(expression+" < ?", wallClock(before))
	}
}

// wallClock is a time as a DATETIME literal. The source has microseconds at most, so
// the next one above keeps the meaning of both >= and <; its years are 1 to 9999.
func wallClock(t time.Time) string {
	t = t.UTC()
	if up := t.Truncate(time.Microsecond); up.Before(t) {
		t = up.Add(time.Microsecond)
	}
	switch {
	case t.Year() < 1:
		return "0001-01-01 00:00:00"
	case t.Year() > 9999:
		return "9999-12-31 23:59:59.999999"
	}
	return t.Format("2006-01-02 15:04:05.999999")
}

// contains is a LIKE pattern for a literal substring, with ! as its escape character:
// the backslash's meaning depends on sql_mode.
func contains(text string) string {
	return "%" + escapeLike.Replace(text) + "%"
}

// escapeLike escapes what LIKE would take for a wildcard, and the escape character itself.
var escapeLike = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// like is the operator that goes with contains.
const like = ` LIKE ? ESCAPE '!'`

// incomparable tells whether a statement failed because a text of the caller's, an
// emoji in most cases, cannot be compared with a column of an older character set:
// then no row can match it.
// The searches answer no rows then, and no error: a keyword of that kind is a right question.
func incomparable(err error) bool {
	var answered *mysqldriver.MySQLError
	return errors.As(err, &answered) && (answered.Number == errno.IllegalMix || answered.Number == errno.CannotConvert)
}

// placeholders is ?, ?, ? for an IN list, with its arguments.
// An empty list would be IN (), which is a syntax error: callers ask for values first.
func placeholders[T any](values []T) (string, []any) {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", "), args
}
