package hubtest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until a test moves it. Code under test takes a
// func() time.Time; pass Clock.Now.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at the given time, or at a fixed one when it is zero.
func NewClock(start time.Time) *Clock {
	if start.IsZero() {
		start = time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)
	}
	return &Clock{now: start}
}

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d and returns the new time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}
