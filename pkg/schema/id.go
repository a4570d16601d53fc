package schema

import (
	"strconv"
	"time"
)

// ID is the identity of a row: a positive bigint, and a string in JSON, because JavaScript's
// numbers end at 2^53.
type ID int64

// ParseID reads an id in the one form that Hub writes it.
func ParseID(text string) (ID, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return ID(n), err == nil && n > 0 && ID(n).String() == text
}

// String is the id as text.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Moment is a moment as answers tell it: RFC 3339, UTC, milliseconds.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
