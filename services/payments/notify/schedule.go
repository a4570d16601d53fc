package notify

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// DefaultSchedule is ten attempts in about 75 hours.
const DefaultSchedule = "0s,5s,5m,30m,2h,5h,10h,14h,20h,24h"

const (
	// maxAttempts bounds the attempts of a schedule, and maxWait each of its waits.
	maxAttempts = 50
	maxWait     = 7 * 24 * time.Hour
)

// Schedule says when a notification is sent again: how long is waited before each attempt. It is read from a setting by
// UnmarshalText; the zero value has no attempts.
type Schedule struct {
	waits  []time.Duration
	jitter func() float64
}

// UnmarshalText reads waits such as 0s,5s,5m: at most 50, each at most 7 days.
func (s *Schedule) UnmarshalText(text []byte) error {
	var waits []time.Duration
	for part := range strings.SplitSeq(string(text), ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d < 0 || d > maxWait {
			return fmt.Errorf("%q is no wait between 0s and %s: the waits are such as 0s,5s,5m", part, maxWait)
		}
		waits = append(waits, d)
	}
	if len(waits) > maxAttempts {
		return fmt.Errorf("%d attempts are more than %d", len(waits), maxAttempts)
	}
	s.waits = waits
	return nil
}

// WithJitter returns the schedule with another source of numbers from 0 to 1 than math/rand: 0.5 is the wait as it is written.
func (s Schedule) WithJitter(source func() float64) Schedule {
	s.jitter = source
	return s
}

// Attempts is how often a notification is sent at most.
func (s Schedule) Attempts() int { return len(s.waits) }

// Next is how long to wait before the next attempt, give or take a fifth, after so many that were made; ok is false when there
// is none left.
func (s Schedule) Next(made int) (wait time.Duration, ok bool) {
	if made < 0 || made >= len(s.waits) {
		return 0, false
	}
	jitter := s.jitter
	if jitter == nil {
		jitter = rand.Float64
	}
	return time.Duration(float64(s.waits[made]) * (0.8 + 0.4*jitter())), true
}
