package schema

import (
	"fmt"
	"strings"
	"time"
)

// The formats that a string may declare.
const (
	// Email is one bare address: dotted host, no display name, no comment, ASCII.
	Email = "email"
	// ISODate is YYYY-MM-DD, an RFC 3339 time, or a time of the source as answers have it: 2026-01-31T09:00:00.
	ISODate = "iso-date"
)

var formats = map[string]struct {
	holds   func(string) bool
	message string
}{
	Email: {IsEmail, "must be one bare e-mail address such as name@example.com"},
	ISODate: {func(s string) bool { _, err := ParseISODate(s); return err == nil },
		"must be a date 2026-01-31, a time 2026-01-31T09:00:00, which is UTC, or an RFC 3339 time such as 2026-01-31T09:00:00+09:00"},
}

// IsEmail tells whether s is one bare address: a dot-atom (RFC 5322, 3.2.3), @, and a host name of
// at least two labels; no display name, comment, quoted local part or folded header.
func IsEmail(s string) bool {
	local, host, found := strings.Cut(s, "@")
	return found && len(s) <= 254 && len(local) <= 64 && isDotAtom(local) && isHost(host)
}

func isDotAtom(s string) bool {
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" || strings.ContainsFunc(atom, func(r rune) bool { return !isAlnum(r) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r) }) {
			return false
		}
	}
	return true
}

// isHost is true for a host name of at least two LDH labels (RFC 1123), the last of which
// begins with a letter (RFC 3696): no address of four numbers.
func isHost(s string) bool {
	labels, last := 0, ""
	for last = range strings.SplitSeq(s, ".") {
		labels++
		if last == "" || len(last) > 63 || last[0] == '-' || last[len(last)-1] == '-' ||
			strings.ContainsFunc(last, func(r rune) bool { return !isAlnum(r) && r != '-' }) {
			return false
		}
	}
	return labels > 1 && (last[0] < '0' || last[0] > '9')
}

func isAlnum(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// ParseISODate reads YYYY-MM-DD as midnight UTC, an RFC 3339 time, or one without a zone, as answers have a DATETIME of the
// source, which is UTC.
func ParseISODate(s string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		if t, zoneless := time.Parse("2006-01-02T15:04:05", s); zoneless == nil && s[13] == ':' && !strings.Contains(s, ",") {
			return t, nil
		}
		return t, err
	}
	// time.Parse is laxer than RFC 3339 (go.dev/issue/54580): it takes 9:00 for 09:00, and a comma.
	if s[13] != ':' || strings.Contains(s, ",") {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 time", s)
	}
	return t, nil
}
