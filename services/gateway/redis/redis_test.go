package redis_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
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

func TestNotices(t *testing.T) {
	server := hubtest.NewRedis(t)
	r := open(t, server.URL(0), redis.Open)
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
			if err := server.Do(t.Context(), "PUBLISH "+redis.Notices+" "+id); err != nil {
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
	if err := server.Do(t.Context(), "CLIENT KILL TYPE pubsub"); err != nil {
		t.Fatal(err)
	}
	<-lost
	hear("ak_2")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
