package remote_test

import (
	"log/slog"
	"testing"

	"github.com/go-kit/kit/sd"
	"go.uber.org/goleak"

	"hub.internal/pkg/remote"
)

// TestCloseLeavesNothingRunning is not parallel: goroutines of other tests would count.
func TestCloseLeavesNothingRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	i := start(t, "", ok)
	defer i.kill()
	for range 20 {
		c := remote.New(
			remote.Options{
				Service:   "query",
				Instancer: sd.FixedInstancer{i.addr, free(t)},
				Keys:      keys(t),
				Logger:    slog.New(slog.DiscardHandler),
			},
		)
		for range 5 {
			_, _ = do(t.Context(), c, read)
		}
		c.Close()
	}
}
