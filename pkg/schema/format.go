package schema

import (
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"time"
)

// The formats that a string may declare.
const (
	// Email is one bare address: dotted host, no display name, no comment, ASCII.
	Email = "email"
	// ISODate is YYYY-MM-DD or an RFC 3339 time.
	ISODate = "iso-date"
)

var formats = map[string]struct {
	holds   func(string) bool
	message string
}{
	Email:   {IsEmail, "must be one bare e-mail address such as name@example.com"},
	ISODate: {func(s string) bool { _, err := ParseISODate(s); return err == nil }, "must be a date YYYY-MM-DD or an RFC 3339 time"},
}

// dotted is a host name of at least two LDH labels (RFC 1123), the last of which
// begins with a letter (RFC 3696): no address of four numbers.
var dotted = regexp.MustCompile(`^(?i:(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)$`)

// IsEmail tells whether s is one bare address. It is stricter than RFC 5322: the parsed address has to be the input, so
// that no display name, comment, quoted local part or folded header slips through.
func IsEmail(s string) bool {
	if len(s) > 254 || strings.ContainsAny(s, "\r\n\t \"(),:;<>[]\\") {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	return at <= 64 && dotted.MatchString(s[at+1:])
}

// ParseISODate reads YYYY-MM-DD as midnight UTC, or an RFC 3339 time.
func ParseISODate(s string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	// time.Parse is laxer than RFC 3339 (go.dev/issue/54580): it takes 9:00 for 09:00, and a comma.
	if err == nil && (s[13] != ':' || strings.Contains(s, ",")) {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 time", s)
	}
	return t, err
}
