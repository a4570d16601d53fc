package redis_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/redis"
)

// copied waits until a replica has all that its master has.
func copied(t *testing.T, master, replica *localserver.Redis) {
	t.Helper()
	offset := regexp.MustCompile(`master_repl_offset:(\d+)`)
	hubtest.Eventually(t, "the replica has what it is to take over", func() bool {
		of, err := master.Ask(t.Context(), "INFO replication")
		has, err2 := replica.Ask(t.Context(), "INFO replication")
		written := offset.FindStringSubmatch(of)
		return err == nil && err2 == nil && written != nil && strings.Contains(has, "master_link_status:up") &&
			strings.Contains(has, "slave_repl_offset:"+written[1]+"\r")
	})
}

// TestSentinel kills the master while calls are limited: the limits hold in memory, and no call waits or fails for it; when the
// sentinels have promoted the replica, they are shared again, with what was spent before, and notices arrive.
func TestSentinel(t *testing.T) {
	master, replica, url := hubtest.SentineledRedis(t)
	hubtest.GiveRedisUsers(t, master, replica)
	url = strings.Replace(url, "redis://", "redis://hub_gateway:hub_gateway@", 1)
	notices(t, []*localserver.Redis{master}, url)
	shared := open(t, url, redis.OpenPatient)
	rate := edge.Rate{PerMinute: 1, Burst: 2}
	of := func(who string) []edge.Bucket {
		return []edge.Bucket{{Scope: "user", Name: "rl:{" + who + "}:u:x", Rate: rate}}
	}
	const bursts = 20
	for i := range bursts {
		for call := range 3 {
			if d, err := shared.Take(t.Context(), of(fmt.Sprint("spent", i))); err != nil || (d.Refused == "user") != (call == 2) {
				t.Fatalf("call %d: %+v, %v", call, d, err)
			}
		}
	}
	var down atomic.Bool
	limiter := edge.NewFallback(open(t, url, redis.Open), edge.NewMemory(time.Now), func(isDown bool, _ error) { down.Store(isDown) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- limiter.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	hubtest.Eventually(t, "the limits are shared", func() bool {
		_, err := shared.Take(ctx, of("probe"))
		limiter.Take(ctx, of("probe"))
		return err == nil && !down.Load()
	})
	copied(t, master, replica)
	master.Kill()
	hubtest.Eventually(t, "the limits hold in memory", func() bool {
		hubtest.Within(t, time.Second, "a call while the master is away", func() { limiter.Take(ctx, of("lost")) })
		return down.Load()
	})
	allowed := 0
	for range 5 {
		if limiter.Take(ctx, of("in memory")).Refused == "" {
			allowed++
		}
	}
	if allowed != rate.Burst {
		t.Errorf("in memory %d calls are allowed, want %d", allowed, rate.Burst)
	}
	hubtest.Eventually(t, "the replica is promoted", func() bool {
		role, err := replica.Ask(ctx, "INFO replication")
		return err == nil && strings.Contains(role, "role:master")
	})
	hubtest.Eventually(t, "the limits are shared again", func() bool { limiter.Take(ctx, of("probe")); return !down.Load() })
	// A call that a busy machine answers late is counted in memory, where each burst is whole; and one call comes back in a minute.
	refused := false
	for call := rate.Burst; call < rate.Burst*bursts && !refused; call++ {
		refused = limiter.Take(ctx, of(fmt.Sprint("spent", call/rate.Burst))).Refused == "user"
	}
	if !refused {
		t.Error("no burst that was spent before is refused")
	}
	hubtest.Eventually(t, "the other client has found the new master", func() bool { return shared.Ping(ctx) == nil })
	d, err := shared.Take(ctx, of("spent0"))
	if err == nil && d.Refused == "" {
		d, err = shared.Take(ctx, of("spent0"))
	}
	if err != nil || d.Refused != "user" {
		t.Errorf("a burst that was spent before: %+v, %v", d, err)
	}
	notices(t, []*localserver.Redis{replica}, url)
}
