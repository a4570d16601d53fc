package hubtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/localserver"
)

// redisDatabases hands out the logical databases of the shared Redis, from 1 on: 0 is for
// those who ask for the server itself.
var redisDatabases atomic.Int64

// RedisURL is the URL of an empty logical database that no other test of this binary uses.
// Publish/subscribe knows no databases: its channels are shared, so a test of it takes
// NewRedis or channel names of its own.
// It is emptied when the test ends.
func RedisURL(t testing.TB) string {
	t.Helper()
	r := Redis(t)
	db := int(redisDatabases.Add(1))
	if db >= localserver.RedisDatabases {
		t.Fatalf("more than %d tests asked for a Redis database", localserver.RedisDatabases-1)
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

// redisUsers are those of deploy/redis, who have their names as passwords.
func redisUsers(t testing.TB) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(Root(t), "deploy", "redis", "users.acl"))
	if err != nil {
		t.Fatal(err)
	}
	return localserver.RedisUsers(file, func(user string) string { return user })
}

// RedisWithUsers starts a Redis with the users of deploy/redis, who have their names as passwords, that the test may stop, kill
// and pause.
func RedisWithUsers(t testing.TB) *localserver.Redis {
	t.Helper()
	return startOwn(t, "redis", func(ctx context.Context, o localserver.Options) (*localserver.Redis, error) {
		o.Users, o.Password = redisUsers(t), "operators"
		return localserver.StartRedis(ctx, o)
	})
}

// GiveRedisUsers adds the same users to nodes of a cluster that everybody may use.
func GiveRedisUsers(t testing.TB, nodes ...*localserver.Redis) {
	t.Helper()
	for line := range strings.Lines(redisUsers(t)) {
		if user, _ := strings.CutPrefix(strings.TrimSpace(line), "user "); !strings.HasPrefix(user, "default ") {
			for _, node := range nodes {
				if err := node.Do(t.Context(), "ACL SETUSER "+user); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// RedisRefuses holds that a user of Redis may run none of these inline commands, nor any that is for administrators.
func RedisRefuses(t testing.TB, userURL string, commands ...string) {
	t.Helper()
	for _, command := range append(commands, "CONFIG GET *", "CONFIG SET maxmemory 1", "FLUSHALL", "FLUSHDB", "DEBUG SLEEP 0", "KEYS *",
		"SCAN 0", "SCRIPT FLUSH", "SCRIPT KILL", "ACL LIST", "ACL SETUSER me on", "CLIENT LIST", "CLIENT KILL TYPE normal", "SAVE",
		"SHUTDOWN NOSAVE", "REPLICAOF NO ONE", "MODULE LIST", "INFO", "DBSIZE", "SWAPDB 0 1", "MIGRATE 127.0.0.1 1 x 0 1",
		"RESTORE rl:x 0 x", "CLUSTER FAILOVER", "CLUSTER RESET", "LATENCY RESET", "SLOWLOG GET") {
		// Redis says in several ways that a user may not.
		answer, err := localserver.AskRedis(t.Context(), userURL, command)
		refused := func(how string) bool { return err != nil && strings.Contains(err.Error(), how) }
		if !slices.ContainsFunc([]string{"NOPERM", "NOAUTH", "ACL failure", "can't run this command", "can't access",
			"command not allowed"}, refused) {
			t.Errorf("%s: %q, %v", command, answer, err)
		}
	}
}
