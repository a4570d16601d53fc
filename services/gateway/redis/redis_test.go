package redis_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/servers"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/redis"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func open(t *testing.T, url string, how func(string) (*redis.Redis, error)) *redis.Redis {
	t.Helper()
	r, err := how(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func buckets(user, service gateway.Rate) []gateway.Bucket {
	return []gateway.Bucket{{Scope: "user", Key: "rl:{svc}:u:x", Rate: user}, {Scope: "service", Key: "rl:{svc}:s", Rate: service}}
}

// TestScriptDecidesAsMemoryDoes sends both limiters through the same calls. The rates
// are slow enough that the time between them changes no decision.
func TestScriptDecidesAsMemoryDoes(t *testing.T) {
	for name, c := range map[string]struct{ user, service gateway.Rate }{
		"user refuses":    {gateway.Rate{PerMinute: 2, Burst: 5}, gateway.Rate{PerMinute: 1, Burst: 100}},
		"service refuses": {gateway.Rate{PerMinute: 1, Burst: 100}, gateway.Rate{PerMinute: 2, Burst: 3}},
		"both refuse":     {gateway.Rate{PerMinute: 2, Burst: 4}, gateway.Rate{PerMinute: 1, Burst: 4}},
		"one at a time":   {gateway.Rate{PerMinute: 1, Burst: 1}, gateway.Rate{PerMinute: 2, Burst: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, hubtest.RedisURL(t), redis.OpenPatient)
			m := gateway.NewMemory(time.Now)
			b := buckets(c.user, c.service)
			for i := range 12 {
				got, err := r.Take(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				want := m.Take(t.Context(), b)
				if got.Refused != want.Refused || got.States[0].Remaining != want.States[0].Remaining || got.States[1].Remaining != want.States[1].Remaining {
					t.Errorf("call %d: got %+v, want %+v", i, got, want)
				}
				if (got.RetryAfter - want.RetryAfter).Abs() > 10*time.Second {
					t.Errorf("call %d: wait %s, want %s", i, got.RetryAfter, want.RetryAfter)
				}
			}
		})
	}
}

// TestReplicasShareOneLimit has three replicas spend one bucket at once.
func TestReplicasShareOneLimit(t *testing.T) {
	url := hubtest.RedisURL(t)
	b := buckets(gateway.Rate{PerMinute: 1, Burst: 20}, gateway.Rate{PerMinute: 600, Burst: 600})
	var mu sync.Mutex
	allowed := 0
	var wg sync.WaitGroup
	for range 3 {
		r := open(t, url, redis.OpenPatient)
		for range 15 {
			wg.Go(func() {
				d, err := r.Take(context.Background(), b)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if d.Refused == "" {
					allowed++
				}
			})
		}
	}
	wg.Wait()
	if allowed != 20 {
		t.Errorf("%d calls allowed, want 20", allowed)
	}
}

func TestRedisThatHangsCostsLittle(t *testing.T) {
	server := hubtest.NewRedis(t)
	r := open(t, server.URL(0), redis.Open)
	hubtest.Eventually(t, "Redis answers", func() bool { return r.Ping(t.Context()) == nil })
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	hubtest.Within(t, time.Second, "a call while Redis hangs", func() {
		if _, err := r.Take(t.Context(), buckets(gateway.Rate{PerMinute: 1, Burst: 1}, gateway.Rate{PerMinute: 1, Burst: 1})); err == nil {
			t.Error("a hung Redis answered")
		}
	})
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "Redis is back", func() bool { return r.Ping(t.Context()) == nil })
}

// TestCluster: a real cluster holds the limits as one server does; while a part of it is away they hold in memory, and
// nobody's call fails; when a replica has taken over, they are shared again.
func TestCluster(t *testing.T) {
	masters, replica, url := hubtest.RedisCluster(t)
	notices(t, append([]*servers.Redis{replica}, masters...), url)
	shared := open(t, url, redis.OpenPatient)
	user, service := gateway.Rate{PerMinute: 1, Burst: 2}, gateway.Rate{PerMinute: 600, Burst: 600}
	of := func(who string) []gateway.Bucket { // of services whose keys are all over the cluster
		return []gateway.Bucket{{Scope: "user", Key: "rl:{" + who + "}:u:x", Rate: user}, {Scope: "service", Key: "rl:{" + who + "}:s", Rate: service}}
	}
	for i := range 30 {
		for call := range 3 {
			d, err := shared.Take(t.Context(), of(fmt.Sprint("svc", i)))
			if err != nil || (d.Refused == "user") != (call == 2) {
				t.Fatalf("service %d, call %d: %+v, %v", i, call, d, err)
			}
		}
	}

	var down atomic.Bool
	limiter := gateway.NewFallback(open(t, url, redis.Open), gateway.NewMemory(time.Now), func(isDown bool, _ error) { down.Store(isDown) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- limiter.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	hubtest.Eventually(t, "the limits are shared", func() bool { limiter.Take(ctx, of("probe")); return !down.Load() })
	masters[0].Kill()
	hubtest.Eventually(t, "the limits hold in memory", func() bool {
		for i := range 30 {
			hubtest.Within(t, time.Second, "a call while a node is away", func() { limiter.Take(ctx, of(fmt.Sprint("lost", i))) })
		}
		return down.Load()
	})
	if limiter.Take(ctx, of("in memory")); limiter.Take(ctx, of("in memory")).Refused != "" || limiter.Take(ctx, of("in memory")).Refused != "user" {
		t.Error("the limits do not hold in memory")
	}
	hubtest.Eventually(t, "the replica has taken over", func() bool {
		role, err := replica.Ask(ctx, "INFO replication")
		return err == nil && strings.Contains(role, "role:master")
	})
	hubtest.Eventually(t, "the limits are shared again, in every part", func() bool {
		for i := range 30 {
			limiter.Take(ctx, of(fmt.Sprint("svc", i)))
		}
		return !down.Load()
	})
	hubtest.Eventually(t, "the other client has found the new part", func() bool { return shared.Ping(ctx) == nil })
	for i := range 30 {
		if d, err := shared.Take(ctx, of(fmt.Sprint("svc", i))); err != nil || d.Refused != "user" {
			t.Errorf("service %d, whose burst was spent: %+v, %v", i, d, err)
		}
	}
}

func TestNotices(t *testing.T) {
	server := hubtest.NewRedis(t)
	notices(t, []*servers.Redis{server}, server.URL(0))
}

// notices are heard, and a subscription that breaks is made again. In a cluster they are sent to another node than
// they are heard from.
func notices(t *testing.T, nodes []*servers.Redis, url string) {
	t.Helper()
	r := open(t, url, redis.Open)
	ctx, cancel := context.WithCancel(t.Context())
	changed, lost, done := make(chan string, 100_000), make(chan struct{}, 100), make(chan error)
	go func() {
		done <- r.Subscribe(ctx, slog.New(slog.DiscardHandler), func(id string) { changed <- id }, func() { lost <- struct{}{} })
	}()
	<-lost
	// A subscription may break on its own when the machine is busy, so what is said is repeated.
	hear := func(id string) {
		t.Helper()
		hubtest.Eventually(t, "the notice of "+id+" arrives", func() bool {
			if err := nodes[0].Do(t.Context(), "PUBLISH "+redis.Notices+" "+id); err != nil {
				t.Fatal(err)
			}
			for {
				select {
				case heard := <-changed:
					if heard == id {
						return true
					}
				default:
					return false
				}
			}
		})
	}
	hear("ak_1")
	for _, node := range nodes {
		if err := node.Do(t.Context(), "CLIENT KILL TYPE pubsub"); err != nil {
			t.Fatal(err)
		}
	}
	<-lost
	hear("ak_2")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
