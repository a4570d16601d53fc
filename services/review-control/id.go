package reviewcontrol

import (
	"strconv"
	"time"
)

// ID is the identity of a draft: a positive bigint, and a string in JSON.
type ID int64

// ParseID reads an id in the one form that Hub writes it.
func ParseID(text string) (ID, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return ID(n), err == nil && n > 0 && ID(n).String() == text
}

// String is the id as text.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// stamp is a moment as answers tell it: RFC 3339, UTC, milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
