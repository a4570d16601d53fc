// Package fault holds Hub's error vocabulary: one table of codes, one error
// type, and its form on the wire between services. It refuses to know services,
// transports and databases: an adapter turns a foreign error into a fault where
// it meets it, and whatever reaches the edge without a code becomes E_INTERNAL
// with a fixed message.
package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"
)

// Code is one of the error codes that clients match on (CONTRACT.md 2.3). Codes are
// append-only.
type Code string

// The codes of CONTRACT.md 2.3.
const (
	Validation         Code = "E_VALIDATION"
	AuthMissing        Code = "E_AUTH_MISSING"
	AuthInvalid        Code = "E_AUTH_INVALID"
	AuthExpired        Code = "E_AUTH_EXPIRED"
	AuthRevoked        Code = "E_AUTH_REVOKED"
	Scope              Code = "E_SCOPE"
	NotFound           Code = "E_NOT_FOUND"
	Conflict           Code = "E_CONFLICT"
	Idempotency        Code = "E_IDEMPOTENCY"
	Suppressed         Code = "E_SUPPRESSED"
	RateLimit          Code = "E_RATE_LIMIT"
	DBTimeout          Code = "E_DB_TIMEOUT"
	DB                 Code = "E_DB"
	Internal           Code = "E_INTERNAL"
	BadAmount          Code = "BAD_AMOUNT"
	AccountLinkMissing Code = "ACCOUNT_LINK_REQUIRED"
)

// RequestInProgress is details.code of the E_CONFLICT of a key whose first call still runs.
const RequestInProgress = "REQUEST_IN_PROGRESS"

type codeProperty struct {
	status    int
	retryable bool
}

// table is the one place that says what a code means to HTTP and to a client
// that wonders whether the same call may succeed later.
var table = map[Code]codeProperty{
	Validation:         {400, false},
	AuthMissing:        {401, false},
	AuthInvalid:        {401, false},
	AuthExpired:        {403, false},
	AuthRevoked:        {403, false},
	Scope:              {403, false},
	NotFound:           {404, false},
	Conflict:           {409, false},
	Idempotency:        {409, false},
	Suppressed:         {422, false},
	RateLimit:          {429, true},
	DBTimeout:          {504, true},
	DB:                 {503, true},
	Internal:           {500, false},
	BadAmount:          {400, false},
	AccountLinkMissing: {401, false},
}

// internalMessage is all that a caller learns of an error without a code.
const internalMessage = "An unexpected error occurred. Quote the request_id when you report it."

// Codes returns every code with its HTTP status.
func Codes() map[Code]int {
	out := make(map[Code]int, len(table))
	for code, p := range table {
		out[code] = p.status
	}
	return out
}

// Error is a refusal or failure that a caller can act on. Message and Details
// are public; the cause is for logs only.
type Error struct {
	Code    Code
	Message string
	// Details is marshalled as error.details; nil leaves the field out.
	Details any
	// RetryAfter, when positive, tells when the same call may succeed.
	RetryAfter time.Duration

	final  bool
	shed   bool // of Full
	status int  // of the answer that it came with, for a code that this build does not know
	cause  error
}

// New returns a fault with a public message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// capacity is the scope in the details of what Full makes.
const capacity = "capacity"

// Full is E_RATE_LIMIT with scope "capacity": the call was not begun, because what should do it has as much to do as it can.
func Full(format string, args ...any) *Error {
	e := New(RateLimit, format, args...).With(map[string]any{"scope": capacity, "retryAfter": 1}).After(time.Second)
	e.shed = true
	return e
}

// Shed tells whether err is of Full, here or at a neighbour.
func Shed(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.shed
}

// With returns a copy that carries public details.
func (e *Error) With(details any) *Error {
	c := *e
	c.Details = details
	return &c
}

// After returns a copy that asks the caller to wait d before it tries again.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Final returns a copy that says that the same call fails again, whatever is usual for its code.
func (e *Error) Final() *Error {
	c := *e
	c.final = true
	return &c
}

// Answered returns a copy that has come with an HTTP status. It is the status of a code that a later release has added; the codes
// that this build knows have their own.
func (e *Error) Answered(status int) *Error {
	c := *e
	c.status = status
	return &c
}

// Because returns a copy that remembers its cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Error is the text for logs: code, message and cause.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// LogValue is Error for slog, whose JSON handler would log the wire form, which has no cause.
func (e *Error) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Status is the HTTP status of the code; of one that this build does not know, that of the answer that it came with, and 500
// without one.
func (e *Error) Status() int {
	if p, known := table[e.Code]; known {
		return p.status
	}
	return cmp.Or(e.status, http.StatusInternalServerError)
}

// Retryable tells whether the same call may succeed later. Of a code that this build does not know the status tells.
func (e *Error) Retryable() bool {
	if e.final {
		return false
	}
	if p, known := table[e.Code]; known {
		return e.RetryAfter > 0 || p.retryable
	}
	switch e.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.RetryAfter > 0
}

// From returns err's fault. A deadline that passed without one is E_DB, because what a
// call waits for is a database or a neighbour; any other error becomes E_INTERNAL with a
// fixed message. err stays the cause, so that the log line still tells what happened. A
// nil err returns nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return New(DB, "The call did not finish in time. Try again in a moment.").Because(err)
	}
	return (&Error{Code: Internal, Message: internalMessage}).Because(err)
}

// Is tells whether err carries the code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

type wireForm struct {
	Code       Code            `json:"code"`
	Message    string          `json:"message"`
	Details    json.RawMessage `json:"details,omitempty"`
	RetryAfter int64           `json:"retry_after_ms,omitempty"`
	Final      bool            `json:"final,omitempty"`
}

// MarshalJSON is the form that travels between services. The cause stays behind.
func (e *Error) MarshalJSON() ([]byte, error) {
	w := wireForm{Code: e.Code, Message: e.Message, RetryAfter: e.RetryAfter.Milliseconds(), Final: e.final}
	if e.Details != nil {
		details, err := json.Marshal(e.Details)
		if err != nil {
			return nil, fmt.Errorf("details of %s: %w", e.Code, err)
		}
		w.Details = details
	}
	return json.Marshal(w)
}

// codePattern is what codes look like. It is looked at before one of a later release is passed on to callers and into metrics.
var codePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// UnmarshalJSON reads the wire form. A code that this build does not know is one of a neighbour of a later release: it is kept, and
// Answered gives it its status. What is no code at all is an error.
func (e *Error) UnmarshalJSON(b []byte) error {
	var w wireForm
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	if !codePattern.MatchString(string(w.Code)) {
		return fmt.Errorf("fault: %q is no code", w.Code)
	}
	*e = Error{Code: w.Code, Message: w.Message, RetryAfter: time.Duration(w.RetryAfter) * time.Millisecond, final: w.Final}
	if len(w.Details) > 0 {
		e.Details = w.Details
	}
	if w.Code == RateLimit {
		var details struct{ Scope string }
		e.shed = json.Unmarshal(w.Details, &details) == nil && details.Scope == capacity
	}
	return nil
}
