package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/lease"
	"hub.internal/services/gateway/redis"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// store is the script's arithmetic, on a clock that a test moves.
type store struct {
	now   time.Time
	tats  map[string]int64
	trips int
	err   error
}

func (s *store) Ping(context.Context) error { return s.err }

func (s *store) Charge(_ context.Context, buckets []edge.Bucket, ask lease.Ask) (lease.Answer, error) {
	s.trips++
	if s.err != nil {
		return lease.Answer{}, s.err
	}
	now := s.now.UnixMicro()
	a := lease.Answer{Calls: ask.Calls, Share: ask.Share, Refused: -1, Hold: lease.Longest, Now: now}
	var starts, left []int64
	for i, b := range buckets {
		cost := b.Interval().Microseconds()
		tat, kept := s.tats[b.Key()]
		if back := ask.Back; back != nil && kept && tat == back.Tats[i] {
			tat -= int64(back.Unused)*cost + back.Early[i].Microseconds()
		} else if back != nil && now <= back.Until {
			tat -= int64(back.Unused) * cost
		}
		furthest := now + b.Tolerance().Microseconds()
		tat = max(min(tat, furthest), now)
		starts, left = append(starts, tat), append(left, (furthest-tat)/cost)
		a.Calls = min(a.Calls, int(left[i]))
		a.Before = append(a.Before, time.Duration(tat-now)*time.Microsecond)
	}
	for i, b := range buckets {
		cost := b.Interval().Microseconds()
		early := time.Duration(starts[i]+int64(a.Calls+1)*cost-now-b.Tolerance().Microseconds()) * time.Microsecond
		if early > a.Wait {
			a.Refused, a.Wait = i, early
		}
		tenth := (left[i] - int64(a.Calls)) / 10
		a.Share, a.Hold = min(a.Share, int(tenth)), min(a.Hold, time.Duration(tenth*cost)*time.Microsecond)
	}
	if a.Calls < ask.Calls {
		a.Share = 0
	}
	for i, b := range buckets {
		tat := starts[i]
		if a.Share > 0 {
			tat = max(tat, now+a.Hold.Microseconds())
		}
		tat += int64(a.Calls+a.Share) * b.Interval().Microseconds()
		s.tats[b.Key()] = tat
		a.Tats = append(a.Tats, tat)
	}
	return a, nil
}

// TestNeverMoreThanTheExactLimit: whatever calls come to three replicas, and whenever, each that is let through would be let
// through by the exact GCRA that has seen the same calls.
func TestNeverMoreThanTheExactLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		shared := &store{now: now, tats: map[string]int64{}}
		exact := edge.NewMemory(func() time.Time { return now })
		rate := rapid.Custom(func(t *rapid.T) edge.Rate {
			perMinute := rapid.SampledFrom([]int{60, 300, 6000, 60_000}).Draw(t, "rate")
			return edge.Rate{PerMinute: perMinute, Burst: rapid.IntRange(1, 400).Draw(t, "burst")}
		})
		users, service := rate.Draw(t, "user"), rate.Draw(t, "service")
		var replicas []*lease.Leases
		for range 3 {
			replicas = append(replicas, lease.New(shared, func() time.Time { return now }))
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 3, 20, 70, 300}).Draw(t, "ms")) * time.Millisecond)
			shared.now = now
			replica := replicas[rapid.IntRange(0, 2).Draw(t, "replica")]
			if rapid.IntRange(0, 9).Draw(t, "sweep") == 0 {
				replica.Sweep(t.Context())
				continue
			}
			buckets := []edge.Bucket{{Scope: "user", Name: "rl:{s}:" + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "who"), Rate: users},
				{Scope: "service", Name: "rl:{s}:", Rate: service}}
			for range rapid.IntRange(1, 30).Draw(t, "calls") {
				d, err := replica.Take(t.Context(), buckets)
				if err != nil {
					t.Fatal(err)
				}
				if d.Refused != "" {
					if d.RetryAfter <= 0 {
						t.Fatalf("refused, and to be tried again in %s", d.RetryAfter)
					}
					continue
				}
				if want := exact.Take(t.Context(), buckets); want.Refused != "" {
					t.Fatalf("let through, and the exact limit refuses: %+v", want)
				}
			}
		}
	})
}

// TestOneReplicaGivesAllOfIt: with one replica a burst is as large as the exact limit's, in one go and after a pause.
func TestOneReplicaGivesAllOfIt(t *testing.T) {
	for _, rate := range []edge.Rate{
		{PerMinute: 300, Burst: 60}, {PerMinute: 6000, Burst: 100}, {PerMinute: 60, Burst: 5}, {PerMinute: 60_000, Burst: 1000},
	} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			shared := &store{tats: map[string]int64{}}
			l := lease.New(shared, func() time.Time { return now })
			exact := edge.NewMemory(func() time.Time { return now })
			buckets := []edge.Bucket{{Scope: "user", Name: "rl:{s}:u", Rate: rate}}
			calls := 0
			for range 3 {
				for range 2 * rate.Burst {
					shared.now = now
					d, err := l.Take(t.Context(), buckets)
					want := exact.Take(t.Context(), buckets)
					if err != nil || d.Refused != want.Refused || d.States[0].Remaining != want.States[0].Remaining {
						t.Fatalf("%+v, %v; exactly %+v", d, err, want)
					}
					now = now.Add(37 * time.Microsecond)
					calls++
				}
				now = now.Add(400 * time.Millisecond)
			}
			t.Logf("%d calls, %d trips", calls, shared.trips)
			if rate.Burst >= 1000 && shared.trips > calls*3/4 { // half of them are refused, and each of those asks
				t.Errorf("%d calls took %d trips", calls, shared.trips)
			}
		})
	}
}

// TestWhatIsNotUsedIsGivenBack when its time is over, and when a replica stops.
func TestWhatIsNotUsedIsGivenBack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	shared := &store{now: now, tats: map[string]int64{}}
	l := lease.New(shared, func() time.Time { return now })
	buckets := []edge.Bucket{{Scope: "user", Name: "rl:{s}:u", Rate: edge.Rate{PerMinute: 60, Burst: 1000}}}
	left := func() int {
		d, err := lease.New(shared, func() time.Time { return now }).Take(t.Context(), buckets)
		if err != nil {
			t.Fatal(err)
		}
		return d.States[0].Remaining
	}
	take := func(n int) {
		for range n {
			if _, err := l.Take(t.Context(), buckets); err != nil {
				t.Fatal(err)
			}
		}
	}
	take(20) // the trips ask for 1, 1, 3, 7 and 15
	now = now.Add(160 * time.Millisecond)
	shared.now = now
	l.Sweep(t.Context())
	if n := left(); n != 1000-20-1 {
		t.Errorf("%d are left", n)
	}
	take(40)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(over); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 1000-60-2 {
		t.Errorf("%d are left after it has stopped", n)
	}
}

func TestAStoreThatFailsIsSaid(t *testing.T) {
	down := errors.New("down")
	l := lease.New(&store{tats: map[string]int64{}, err: down}, time.Now)
	if _, err := l.Take(t.Context(), []edge.Bucket{{Name: "x", Rate: edge.Rate{PerMinute: 1, Burst: 1}}}); !errors.Is(err, down) {
		t.Error(err)
	}
}

// TestTheScriptIsTheSame sends Redis and the arithmetic above the same questions. The rates are slow enough, and bursts are
// given in whole calls, so that the time between them changes nothing.
func TestTheScriptIsTheSame(t *testing.T) {
	url := hubtest.RedisURL(t)
	real, err := redis.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { real.Close() })
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		model := &store{now: time.Now(), tats: map[string]int64{}}
		rate := edge.Rate{PerMinute: 1, Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		buckets := []edge.Bucket{{Scope: "user", Name: fmt.Sprintf("rl:{%d}:u", checks), Rate: rate},
			{Scope: "service", Name: fmt.Sprintf("rl:{%d}:s", checks), Rate: edge.Rate{PerMinute: 1, Burst: 120}}}
		var got, want lease.Answer
		for range rapid.IntRange(1, 12).Draw(t, "questions") {
			ask := lease.Ask{Calls: rapid.IntRange(0, 20).Draw(t, "calls"), Share: rapid.IntRange(0, 20).Draw(t, "share")}
			asks := [2]lease.Ask{ask, ask}
			if got.Share > 0 && rapid.Bool().Draw(t, "back") {
				unused := rapid.IntRange(0, got.Share).Draw(t, "unused")
				for i, a := range []lease.Answer{got, want} {
					asks[i].Back = &lease.Back{Unused: unused, Tats: a.Tats, Early: make([]time.Duration, 2), Until: math.MaxInt32}
				}
			}
			if got, err = real.Charge(context.Background(), buckets, asks[0]); err != nil {
				t.Skip(err) // a busy machine
			}
			if want, err = model.Charge(context.Background(), buckets, asks[1]); err != nil {
				t.Fatal(err)
			}
			if got.Calls != want.Calls || got.Share != want.Share || got.Refused != want.Refused || (got.Wait-want.Wait).Abs() > 20*time.Second {
				t.Fatalf("%+v: Redis %+v, the model %+v", ask, got, want)
			}
		}
	})
}

// TestReplicasUnderLoad: three replicas that are called as fast as they can be never let more through than the limit.
func TestReplicasUnderLoad(t *testing.T) {
	url := hubtest.RedisURL(t)
	rate := edge.Rate{PerMinute: 60_000, Burst: 500}
	buckets := []edge.Bucket{{Scope: "user", Name: "rl:{load}:u", Rate: rate},
		{Scope: "service", Name: "rl:{load}:s", Rate: edge.Rate{PerMinute: 90_000, Burst: 2000}}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var allowed, refused, trips atomic.Int64
	var callers sync.WaitGroup
	began := time.Now()
	for range 3 {
		client, err := redis.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		l := lease.New(counting{client, &trips}, time.Now)
		callers.Go(func() { _ = l.Run(ctx) })
		for range 8 {
			callers.Go(func() {
				for ctx.Err() == nil {
					switch d, err := l.Take(ctx, buckets); {
					case err != nil: // late
					case d.Refused == "":
						allowed.Add(1)
					default:
						refused.Add(1)
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
	}
	callers.Wait()
	most := int64(rate.Burst) + int64(time.Since(began).Minutes()*float64(rate.PerMinute)) + 1
	t.Logf("%d of at most %d allowed, %d refused, %d trips", allowed.Load(), most, refused.Load(), trips.Load())
	if n := allowed.Load(); n > most || n < most/4 {
		t.Errorf("%d calls are allowed, and at most %d may be", n, most)
	}
}

type counting struct {
	lease.Store
	trips *atomic.Int64
}

func (c counting) Charge(ctx context.Context, buckets []edge.Bucket, ask lease.Ask) (lease.Answer, error) {
	c.trips.Add(1)
	return c.Store.Charge(ctx, buckets, ask)
}
