package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/redis"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "TestScriptDecidesAsMemoryDoes|TestAPoisonedBucketHeals|TestCluster|TestSentinel|TestTheGatewaysUser|TestNotices")
}

func open(t *testing.T, url string, how func(string) (*redis.Redis, error)) *redis.Redis {
	t.Helper()
	r, err := how(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func buckets(user, service edge.Rate) []edge.Bucket {
	return []edge.Bucket{{Scope: "user", Name: "rl:{svc}:u:x", Rate: user}, {Scope: "service", Name: "rl:{svc}:s", Rate: service}}
}

// TestScriptDecidesAsMemoryDoes sends both limiters through the same calls. The rates
// are slow enough that the time between them changes no decision.
func TestScriptDecidesAsMemoryDoes(t *testing.T) {
	for name, c := range map[string]struct{ user, service edge.Rate }{
		"user refuses":    {edge.Rate{PerMinute: 2, Burst: 5}, edge.Rate{PerMinute: 1, Burst: 100}},
		"service refuses": {edge.Rate{PerMinute: 1, Burst: 100}, edge.Rate{PerMinute: 2, Burst: 3}},
		"both refuse":     {edge.Rate{PerMinute: 2, Burst: 4}, edge.Rate{PerMinute: 1, Burst: 4}},
		"one at a time":   {edge.Rate{PerMinute: 1, Burst: 1}, edge.Rate{PerMinute: 2, Burst: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, hubtest.RedisURL(t), redis.OpenPatient)
			m := edge.NewMemory(time.Now)
			b := buckets(c.user, c.service)
			for i := range 12 {
				got, err := r.Take(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				want := m.Take(t.Context(), b)
				if got.Refused != want.Refused || got.States[0].Remaining != want.States[0].Remaining ||
					got.States[1].Remaining != want.States[1].Remaining {
					t.Errorf("call %d: got %+v, want %+v", i, got, want)
				}
				if (got.RetryAfter - want.RetryAfter).Abs() > 10*time.Second {
					t.Errorf("call %d: wait %s, want %s", i, got.RetryAfter, want.RetryAfter)
				}
			}
		})
	}
}

// TestKeysOfOneServiceHaveLimitsOfTheirOwn: keys of one service whose limits differ get what each would get alone, for
// any order of their calls. The rates are slow enough that the time between them changes no decision.
func TestKeysOfOneServiceHaveLimitsOfTheirOwn(t *testing.T) {
	r := open(t, hubtest.RedisURL(t), redis.OpenPatient)
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		rate := rapid.Custom(func(t *rapid.T) edge.Rate {
			return edge.Rate{PerMinute: rapid.IntRange(1, 2).Draw(t, "rate"), Burst: rapid.IntRange(1, 12).Draw(t, "burst")}
		})
		rates := rapid.SliceOfNDistinct(rate, 4, 8, rapid.ID[edge.Rate]).Draw(t, "limits")
		used := map[string]int{} // by key and whom it acts for: nothing comes back meanwhile
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			key := rapid.IntRange(0, len(rates)/2-1).Draw(t, "key")
			who := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "external user")
			users, service := rates[2*key], rates[2*key+1]
			name := fmt.Sprintf("rl:{svc%d}:", checks)
			d, err := r.Take(
				context.Background(),
				[]edge.Bucket{{Scope: "user", Name: name + "u:" + who, Rate: users}, {Scope: "service", Name: name + "s", Rate: service}},
			)
			if err != nil {
				t.Fatal(err)
			}
			user, whole := fmt.Sprint(key, who), fmt.Sprint(key)
			allowed := used[user] < users.Burst && used[whole] < service.Burst
			if allowed != (d.Refused == "") {
				t.Fatalf("key %d for %s, %v used: %+v; alone it is allowed: %t", key, who, used, d, allowed)
			}
			if allowed {
				used[user]++
				used[whole]++
			}
			if left := service.Burst - used[whole]; d.States[1].Remaining != left {
				t.Fatalf("key %d: %d calls are left, alone %d", key, d.States[1].Remaining, left)
			}
		}
	})
}

// TestAPoisonedBucketHeals writes what is no bucket's state where one is kept: the limiter takes it for an empty bucket, or
// for a full one, as Memory does with a time that is too far ahead; it keeps it for no longer than a burst takes, and
// the limits stay shared.
func TestAPoisonedBucketHeals(t *testing.T) {
	server := hubtest.NewRedis(t)
	r := open(t, server.URL(0), redis.OpenPatient)
	limiter := edge.NewFallback(
		r,
		edge.NewMemory(time.Now),
		func(down bool, err error) { t.Errorf("shared limits down: %t, %v", down, err) },
	)
	b := buckets(edge.Rate{PerMinute: 2, Burst: 4}, edge.Rate{PerMinute: 1, Burst: 3})
	key := b[1].Key()
	now := time.Now().Add(1000 * time.Hour)
	full := edge.NewMemory(func() time.Time { return now })
	full.Take(t.Context(), b[1:])
	now = now.Add(-1000 * time.Hour)
	fullSays, emptySays := full.Take(t.Context(), b[1:]), edge.NewMemory(time.Now).Take(t.Context(), b)
	for poison, tooFar := range map[string]bool{
		"SET %s 99999999999999999999": true, "SET %s 9007199254740993": true, "SET %s " + strings.Repeat("9", 60): true,
		"SET %s x": false, "SET %s nan": false, "SET %s inf": false, "SET %s -5": false, "SET %s 1e300": false,
		"SET %s 0x7fffffffffffffff": false,
		"SET %s \"\"":               false, "SET %s 0": false, "LPUSH %s x": false, "SADD %s x": false, "HSET %s a b": false,
		"ZADD %s 1 x":   false,
		"XADD %s * a b": false,
	} {
		if err := server.Do(t.Context(), "FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Ask(t.Context(), fmt.Sprintf(poison, key)); err != nil {
			t.Fatal(poison, err)
		}
		d := limiter.Take(t.Context(), b)
		want, remaining, got := emptySays.Refused, emptySays.States[1].Remaining, d.States[1].Remaining
		if tooFar {
			want, remaining = fullSays.Refused, fullSays.States[0].Remaining
			if wait := fullSays.RetryAfter; d.RetryAfter > wait || d.RetryAfter < wait/2 {
				t.Errorf("%s: wait %s, want %s", poison, d.RetryAfter, wait)
			}
		}
		if d.Refused != want || got != remaining {
			t.Errorf("%s: %+v", poison, d)
		}
		ttl, err := server.Ask(t.Context(), "PTTL "+key)
		ms, _ := strconv.Atoi(ttl)
		if kept := time.Duration(ms) * time.Millisecond; err != nil || kept <= 0 || kept > b[1].Tolerance()+time.Second {
			t.Errorf("%s: kept for %s ms, %v", poison, ttl, err)
		}
	}
	// What is too far ahead comes closer although no call is let through.
	quick := []edge.Bucket{{Scope: "user", Name: "rl:{quick}:s", Rate: edge.Rate{PerMinute: 600, Burst: 2}}}
	if err := server.Do(t.Context(), "SET "+quick[0].Key()+" 99999999999999999999"); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the bucket has room again", func() bool { return limiter.Take(t.Context(), quick).Refused == "" })
}

// TestWhatAServerRefuses: what it refuses for one bucket is that bucket's, what it refuses for all takes the limits into
// memory, until it is mended.
func TestWhatAServerRefuses(t *testing.T) {
	server := hubtest.NewRedis(t)
	do := func(command string) {
		t.Helper()
		if err := server.Do(t.Context(), command); err != nil {
			t.Fatal(command, err)
		}
	}
	do("ACL SETUSER edge on >secret ~rl:{svc}* ~rl:{probe}* +@all")
	r := open(t, strings.Replace(server.URL(0), "redis://", "redis://edge:secret@", 1), redis.OpenPatient)
	b := []edge.Bucket{{Scope: "user", Name: "rl:{other}:s", Rate: edge.Rate{PerMinute: 1, Burst: 1}}}
	if _, err := r.Take(t.Context(), b); !errors.Is(err, edge.ErrUndecided) {
		t.Errorf("one bucket: %v", err)
	}
	for broken, mended := range map[string]string{
		"ACL SETUSER edge -evalsha -eval": "ACL SETUSER edge +evalsha +eval",
		"REPLICAOF 127.0.0.1 1":           "REPLICAOF NO ONE",
		"CONFIG SET maxmemory 1":          "CONFIG SET maxmemory 0",
	} {
		do(broken)
		if _, err := r.Take(t.Context(), b); err == nil || errors.Is(err, edge.ErrUndecided) || r.Ping(t.Context()) == nil {
			t.Errorf("%s: %v", broken, err)
		}
		do(mended)
		if err := r.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", mended, err)
		}
	}
}

// TestReplicasShareOneLimit has three replicas spend one bucket at once.
func TestReplicasShareOneLimit(t *testing.T) {
	url := hubtest.RedisURL(t)
	b := buckets(edge.Rate{PerMinute: 1, Burst: 20}, edge.Rate{PerMinute: 600, Burst: 600})
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
		if _, err := r.Take(t.Context(), buckets(edge.Rate{PerMinute: 1, Burst: 1}, edge.Rate{PerMinute: 1, Burst: 1})); err == nil {
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
	hubtest.GiveRedisUsers(t, append(masters, replica)...)
	url = strings.Replace(url, "redis://", "redis://hub_gateway:hub_gateway@", 1)
	notices(t, append([]*localserver.Redis{replica}, masters...), url)
	shared := open(t, url, redis.OpenPatient)
	user, service := edge.Rate{PerMinute: 1, Burst: 2}, edge.Rate{PerMinute: 600, Burst: 600}
	of := func(who string) []edge.Bucket { // of services whose keys are all over the cluster
		return []edge.Bucket{
			{Scope: "user", Name: "rl:{" + who + "}:u:x", Rate: user},
			{Scope: "service", Name: "rl:{" + who + "}:s", Rate: service},
		}
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
	limiter := edge.NewFallback(open(t, url, redis.Open), edge.NewMemory(time.Now), func(isDown bool, _ error) { down.Store(isDown) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- limiter.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	hubtest.Eventually(t, "the limits are shared", func() bool { limiter.Take(ctx, of("probe")); return !down.Load() })
	copied(t, masters[0], replica)
	masters[0].Kill()
	hubtest.Eventually(t, "the limits hold in memory", func() bool {
		for i := range 30 {
			hubtest.Within(t, time.Second, "a call while a node is away", func() { limiter.Take(ctx, of(fmt.Sprint("lost", i))) })
		}
		return down.Load()
	})
	if limiter.Take(
		ctx,
		of("in memory"),
	); limiter.Take(ctx, of("in memory")).Refused != "" ||
		limiter.Take(ctx, of("in memory")).Refused != "user" {
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

// TestTheGatewaysUser: the user of deploy/redis does what the gateway does, and nothing else.
func TestTheGatewaysUser(t *testing.T) {
	server := hubtest.RedisWithUsers(t)
	url := server.UserURL("hub_gateway", "hub_gateway", 0)
	r := open(t, url, redis.OpenPatient)
	b := buckets(edge.Rate{PerMinute: 1, Burst: 2}, edge.Rate{PerMinute: 1, Burst: 2})
	for call := range 3 {
		if d, err := r.Take(t.Context(), b); err != nil || (d.Refused != "") != (call == 2) {
			t.Fatalf("call %d: %+v, %v", call, d, err)
		}
	}
	if err := r.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	notices(t, []*localserver.Redis{server}, url)
	hubtest.RedisRefuses(
		t,
		url,
		"GET other",
		"SET other 1",
		"EVAL \"return redis.call('GET','other')\" 1 rl:x",
		"EVAL \"return redis.call('DEL',KEYS[1])\" 1 rl:x",
		"EVAL \"return redis.call('FLUSHALL')\" 0",
		"DEL rl:x",
		"LPUSH rl:x 1",
		"PUBLISH hub:apikeys x",
		"SUBSCRIBE other",
		"PSUBSCRIBE *",
		"MONITOR",
		"FUNCTION LIST",
	)
	hubtest.RedisRefuses(t, server.UserURL("", "", 0), "PING", "GET rl:x", "EVAL \"return 1\" 0")
}

func TestNotices(t *testing.T) {
	server := hubtest.NewRedis(t)
	notices(t, []*localserver.Redis{server}, server.URL(0))
}

// ear is a Listener.
type ear struct {
	changed chan string
	lost    chan struct{}
	heard   atomic.Pointer[time.Time]
}

func (e *ear) Forget(id string)      { e.changed <- id }
func (e *ear) ForgetAll()            { e.lost <- struct{}{} }
func (e *ear) CaughtUp(at time.Time) { e.heard.Store(&at) }

// age is how long ago the last moment was that is known to be whole.
func (e *ear) age() time.Duration {
	if at := e.heard.Load(); at != nil {
		return time.Since(*at)
	}
	return time.Hour
}

// notices are heard, and a subscription that breaks is made again. In a cluster they are sent to another node than
// they are heard from.
func notices(t *testing.T, nodes []*localserver.Redis, url string) {
	t.Helper()
	r := open(t, url, redis.Open)
	ctx, cancel := context.WithCancel(t.Context())
	changed, lost, done := make(chan string, 100_000), make(chan struct{}, 100), make(chan error)
	to := &ear{changed: changed, lost: lost}
	go func() { done <- r.Subscribe(ctx, slog.New(slog.DiscardHandler), to) }()
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

// TestAServerThatHangsIsHeardOfNoMore: what is said while it hangs is missed, and it is known from when on.
func TestAServerThatHangsIsHeardOfNoMore(t *testing.T) {
	server := hubtest.NewRedis(t)
	r := open(t, server.URL(0), redis.Open)
	ctx, cancel := context.WithCancel(t.Context())
	to, done := &ear{changed: make(chan string, 100), lost: make(chan struct{}, 100)}, make(chan error)
	go func() { done <- r.Subscribe(ctx, slog.New(slog.DiscardHandler), to) }()
	for name, c := range map[string]struct{ break_, mend func() error }{
		"hangs":   {server.Pause, server.Resume},
		"is gone": {func() error { server.Kill(); return nil }, func() error { return server.Start(ctx) }},
	} {
		hubtest.Eventually(t, "notices arrive", func() bool { return to.age() < time.Second })
		if err := c.break_(); err != nil {
			t.Fatal(err)
		}
		silent := time.Now()
		hubtest.Eventually(
			t,
			"it is known that they do not",
			func() bool { return time.Since(silent) > time.Second && to.age() > time.Second },
		)
		if at := *to.heard.Load(); at.After(silent) {
			t.Errorf("a server that %s was heard of %s later", name, at.Sub(silent))
		}
		if err := c.mend(); err != nil {
			t.Fatal(err)
		}
	}
	hubtest.Eventually(t, "notices arrive again", func() bool { return to.age() < time.Second })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
