package hubtest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/hubtest/servers"
)

// redisDatabases hands out the logical databases of the shared Redis, from 1 on: 0 is for
// those who ask for the server itself.
var redisDatabases atomic.Int64

// RedisURL is the URL of an empty logical database that no other test of this binary uses.
// Publish/subscribe knows no databases: its channels are shared, so a test of it takes
// NewRedis or channel names of its own.
func RedisURL(t testing.TB) string {
	t.Helper()
	r := Redis(t)
	db := int(redisDatabases.Add(1))
	if db >= servers.RedisDatabases {
		t.Fatalf("more than %d tests asked for a Redis database", servers.RedisDatabases-1)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := r.Do(ctx, fmt.Sprintf("SELECT %d", db), "FLUSHDB"); err != nil {
			t.Error(err)
		}
	})
	return r.URL(db)
}
