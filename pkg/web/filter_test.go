package web_test

import (
	"net/url"
	"testing"
	"time"

	"hub.internal/pkg/web"
)

// TestMoment: a time is in the zone that the form has told, and in UTC where it has told none; the field shows it as it was typed, and the
// address of the search keeps both.
func TestMoment(t *testing.T) {
	nine := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		address, value, hint, keeps string
		at                          time.Time
		wrong                       bool
	}{
		{"", "", "UTC", "/log", time.Time{}, false},
		{"from=2026-01-31T09:30", "2026-01-31T09:30", "UTC", "/log?from=2026-01-31T09%3A30", nine, false},
		{"from=2026-01-31 09:30&zone=", "2026-01-31T09:30", "UTC", "/log?from=2026-01-31+09%3A30", nine, false},
		{"from=2026-01-31T18:30&zone=Asia/Seoul", "2026-01-31T18:30", "Asia/Seoul",
			"/log?from=2026-01-31T18%3A30&zone=Asia%2FSeoul", nine, false},
		{"from=2026-01-31T09:30:00Z&zone=Asia/Seoul", "2026-01-31T18:30", "Asia/Seoul",
			"/log?from=2026-01-31T09%3A30%3A00Z&zone=Asia%2FSeoul", nine, false},
		{"zone=Asia/Seoul", "", "Asia/Seoul", "/log", time.Time{}, false},
		{"from=2026-01-31T09:30&zone=../../etc/passwd", "2026-01-31T09:30", "UTC", "/log?from=2026-01-31T09%3A30", nine, false},
		{"from=2026-01-31T09:30&zone=Local", "2026-01-31T09:30", "UTC", "/log?from=2026-01-31T09%3A30", nine, false},
		{"from=yesterday&zone=Asia/Seoul", "yesterday", "Asia/Seoul", "/log?from=yesterday", time.Time{}, true},
	} {
		q, err := url.ParseQuery(c.address)
		if err != nil {
			t.Fatal(err)
		}
		f := web.ReadFilter(q)
		at := f.Moment(web.Field{Name: "from"})
		field := f.Fields[len(f.Fields)-1]
		if !at.Equal(c.at) || field.Value != c.value || field.Hint != c.hint || f.Address("/log", "", "") != c.keeps || f.Wrong != c.wrong {
			t.Errorf("%s: %s, %q in %s, %s, wrong %v", c.address, at, field.Value, field.Hint, f.Address("/log", "", ""), f.Wrong)
		}
	}
}
