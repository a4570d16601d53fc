package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// span is a flag's duration that also knows days.
type span time.Duration

// Type implements pflag.Value.
func (s *span) Type() string { return "duration" }

// String implements pflag.Value; a span that was not given is empty.
func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Set implements pflag.Value: a duration of Go, or whole days such as 90d.
// 16 bits of days are 179 years, which a time.Duration holds (292 at most). A negative span is left to the service to refuse.
func (s *span) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return errors.New("use days, hours or minutes, such as 90d, 36h or 30m")
		}
		*s = span(n) * span(24*time.Hour)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("use days, hours or minutes, such as 90d, 36h or 30m")
	}
	*s = span(d)
	return nil
}
