// Package auditlog says what readers of the audit log ask for and are told: rows that a filter finds, sums over a range of
// time, and which rows were recorded by a role that does not own their name. The SQL is in admin's postgres package; rows are
// written through pkg/audit.
package auditlog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Failed is a Filter's Outcome that takes every error code.
const Failed = "failed"

// Filter says which rows are looked for; what is empty takes all.
type Filter struct {
	// From and To bound the time: To is the first moment that is too late.
	From, To time.Time
	// Tool, RequestID, Caller (the credential's id) and Person (the external user's id, or the address of a console's
	// user) are whole names.
	Tool, RequestID, Caller, Person string
	// Draft is a draft's id.
	Draft string
	// Outcome is audit.OK, an error code, or Failed.
	Outcome string
	// SQL is a part of a statement of execute_read_sql, whatever its case.
	SQL string
	// Foreign takes the rows that are foreign to these owners; nil takes all.
	Foreign Owners
}

// Page is a part of the log, newest first.
type Page struct {
	// Calls are in the order of time, the newest first.
	Calls []Call
	// Next is where the next page begins; its At is zero at the end of the log.
	Next Position
	// Unfinished tells that Next is as far as there was time to look, though the page is not full.
	Unfinished bool
}

// Call is a row of the log.
type Call struct {
	// ID is a UUID that the process has drawn which wrote the row.
	ID string `db:"id"`
	// At is by the store's clock: at most five minutes before the row was written.
	At time.Time `db:"at"`
	// RequestID is that of the answer; TraceID leads to the spans of the call, where there are any.
	RequestID string `db:"request_id"`
	TraceID   string `db:"trace_id"`
	// Service, ExternalUserID and CredentialID are the caller as the token named it.
	Service        string `db:"service"`
	ExternalUserID string `db:"external_user_id"`
	CredentialID   string `db:"credential_id"`
	// Tool is a tool, a route of /v1, or an act of a person such as review.decide.
	Tool string `db:"tool"`
	// Outcome is audit.OK or an error code.
	Outcome string `db:"outcome"`
	// Count is how many things were answered or changed; TookMS how long that took, in milliseconds.
	Count  int `db:"count"`
	TookMS int `db:"took_ms"`
	// InputHash is SHA-256 of the request: it tells that two were the same, and nothing of what was in them.
	InputHash []byte `db:"input_hash"`
	// Detail is JSON, or empty.
	Detail string `db:"detail"`
	// Writer is the database role that wrote the row, whatever service the row names.
	Writer string `db:"writer"`
}

// Position is where a row is in the log. Its ID is empty for a moment without a row.
type Position struct {
	At time.Time
	ID string
}

// Position is the row's.
func (c Call) Position() Position { return Position{c.At, c.ID} }

// String is the form of a position in addresses: microseconds since 1970, and the id.
func (p Position) String() string {
	if p.At.IsZero() {
		return ""
	}
	// A moment without a row, where a search has stopped for want of time.
	if p.ID == "" {
		return fmt.Sprint(p.At.UnixMicro())
	}
	return fmt.Sprintf("%d-%s", p.At.UnixMicro(), p.ID)
}

// ParsePosition reads what String has written; false for anything else.
func ParsePosition(text string) (Position, bool) {
	micros, id, of := strings.Cut(text, "-")
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || n <= 0 || n > farthest || of && !isUUID(id) {
		return Position{}, false
	}
	return Position{time.UnixMicro(n).UTC(), id}, true
}

// farthest is a moment of the year 9999, in microseconds.
const farthest = 253_000_000_000_000_000

// IsRow tells that the position is that of a row: its ID has the form of one.
func (p Position) IsRow() bool { return isUUID(p.ID) }

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// isUUID tells that a text has the form of a row's id.
func isUUID(text string) bool { return uuid.MatchString(text) }
