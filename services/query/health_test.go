package query

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestHealth tells a source that answers from one that does not, or not in time.
func TestHealth(t *testing.T) {
	for name, c := range map[string]struct {
		ping func(context.Context) error
		want bool
	}{
		"answers":   {func(context.Context) error { return nil }, true},
		"refuses":   {func(context.Context) error { return errors.New("no") }, false},
		"is silent": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				h, err := New(Config{Ping: c.ping}).health(t.Context(), HealthRequest{})
				if err != nil || h.Reachable != c.want || h.Slots != defaultConcurrent || time.Since(start) > pingTakes {
					t.Errorf("%+v, %v after %s", h, err, time.Since(start))
				}
			})
		})
	}
}
