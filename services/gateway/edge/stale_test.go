package edge_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/gateway/edge"
)

// moody is an auth that answers, cannot tell, refuses or hangs.
type moody struct {
	says  atomic.Pointer[error]
	hangs atomic.Bool
	asked atomic.Int32
	ends  time.Time
}

func (m *moody) answer(err error) { m.says.Store(&err) }

func (m *moody) ask(ctx context.Context, _ string) (edge.APIKey, error) {
	m.asked.Add(1)
	if m.hangs.Load() {
		<-ctx.Done()
		return edge.APIKey{}, fault.New(fault.DB, "no answer in time")
	}
	if err := m.says.Load(); err != nil && *err != nil {
		return edge.APIKey{}, *err
	}
	return edge.APIKey{ID: "ak_1", ExpiresAt: m.ends}, nil
}

// outage is a cache whose notices arrive for as long as notices is true, and in which a key was verified a moment ago.
func outage(t *testing.T, test func(t *testing.T, auth *moody, c *edge.KeyCache, notices *atomic.Bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		auth, notices := &moody{}, &atomic.Bool{}
		auth.ends = time.Now().Add(50 * time.Second)
		c := edge.NewKeyCache(auth.ask, time.Now)
		c.ServeStale(time.Minute)
		notices.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			for ctx.Err() == nil {
				if notices.Load() {
					c.CaughtUp(time.Now())
				}
				time.Sleep(300 * time.Millisecond)
			}
		}()
		time.Sleep(time.Millisecond)
		verify(t, c, "", "while all is well")
		test(t, auth, c, notices)
		stop()
		time.Sleep(4 * time.Second) // whatever was asked has ended
	})
}

// verify wants the code of a refusal, or none, and tells how long the answer took.
func verify(t *testing.T, c *edge.KeyCache, want fault.Code, when string) time.Duration {
	t.Helper()
	began := time.Now()
	_, err := c.Verify(t.Context(), aKey)
	if want == "" && err != nil || want != "" && !fault.Is(err, want) {
		t.Errorf("%s: %v, want %q", when, err, want)
	}
	return time.Since(began)
}

var unavailable = fault.New(fault.DB, "the store is away")

func TestAKeyStaysGoodWhileAuthCannotTell(t *testing.T) {
	outage(t, func(t *testing.T, auth *moody, c *edge.KeyCache, _ *atomic.Bool) {
		auth.answer(unavailable)
		asked := auth.asked.Load()
		for range 45 * 20 { // 45 s, twenty calls a second
			time.Sleep(50 * time.Millisecond)
			if took := verify(t, c, "", "while the store is away"); took > 0 {
				t.Fatalf("a call waited %s", took)
			}
		}
		if n := auth.asked.Load() - asked; n < 30 || n > 45 {
			t.Errorf("auth was asked %d times in 45 s, once a second will do", n)
		}
		if !c.ServesStale() {
			t.Error("nobody is told")
		}
		time.Sleep(4900 * time.Millisecond)
		verify(t, c, "", "a moment before the key's end")
		time.Sleep(200 * time.Millisecond)
		verify(t, c, fault.AuthRevoked, "after it")
	})
}

func TestAnAuthThatHangsHoldsNoCallUp(t *testing.T) {
	outage(t, func(t *testing.T, auth *moody, c *edge.KeyCache, _ *atomic.Bool) {
		auth.hangs.Store(true)
		time.Sleep(2 * time.Second)
		if took := verify(t, c, "", "at first"); took != 250*time.Millisecond {
			t.Errorf("the first call waited %s", took)
		}
		for range 40 * 20 {
			time.Sleep(50 * time.Millisecond)
			if took := verify(t, c, "", "while it hangs"); took > 0 {
				t.Fatalf("a call waited %s", took)
			}
		}
		auth.hangs.Store(false)
		time.Sleep(5 * time.Second)
		verify(t, c, "", "afterwards")
		time.Sleep(time.Millisecond) // asked in the background
		if synctest.Wait(); c.ServesStale() {
			t.Error("it is over, and nobody is told")
		}
	})
}

func TestAnOldAnswerIsOfNoUse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*moody, *edge.KeyCache, *atomic.Bool)
		wait   time.Duration
		want   fault.Code
	}{
		"after a refusal": {func(m *moody, c *edge.KeyCache, _ *atomic.Bool) {
			m.answer(fault.New(fault.AuthRevoked, "revoked"))
			_, _ = c.Verify(context.Background(), aKey)
			time.Sleep(2 * time.Second)
			_, _ = c.Verify(context.Background(), aKey)
			m.answer(unavailable)
		}, 0, fault.DB},
		"when auth refuses at last": {func(m *moody, c *edge.KeyCache, _ *atomic.Bool) {
			time.Sleep(5 * time.Second)
			_, _ = c.Verify(context.Background(), aKey)
			m.answer(fault.New(fault.AuthRevoked, "revoked"))
			_, _ = c.Verify(context.Background(), aKey) // asks in the background, once a second
			time.Sleep(time.Second)
			_, _ = c.Verify(context.Background(), aKey)
			time.Sleep(time.Millisecond)
		}, 0, fault.AuthRevoked},
		"after a notice":     {func(_ *moody, c *edge.KeyCache, _ *atomic.Bool) { c.Forget("ak_1") }, 0, fault.DB},
		"after a new start":  {func(_ *moody, c *edge.KeyCache, _ *atomic.Bool) { c.ForgetAll() }, 0, fault.DB},
		"without notices":    {func(_ *moody, _ *edge.KeyCache, n *atomic.Bool) { n.Store(false) }, 2 * time.Second, fault.DB},
		"with a later one":   {func(_ *moody, _ *edge.KeyCache, n *atomic.Bool) { n.Store(false) }, 1999 * time.Millisecond, ""},
		"when it is too old": {func(m *moody, _ *edge.KeyCache, _ *atomic.Bool) { m.ends = time.Time{} }, 60 * time.Second, fault.DB},
		"where it is off":    {func(_ *moody, c *edge.KeyCache, _ *atomic.Bool) { c.ServeStale(0) }, 2 * time.Second, fault.DB},
	} {
		t.Run(name, func(t *testing.T) {
			outage(t, func(t *testing.T, auth *moody, cache *edge.KeyCache, notices *atomic.Bool) {
				auth.answer(unavailable)
				c.change(auth, cache, notices)
				time.Sleep(c.wait)
				verify(t, cache, c.want, name)
			})
		})
	}
}

// TestANoticeReachesWhoeverWaits: a call that waits for auth at the time is not let in by what was taken back.
func TestANoticeReachesWhoeverWaits(t *testing.T) {
	outage(t, func(t *testing.T, auth *moody, c *edge.KeyCache, _ *atomic.Bool) {
		auth.hangs.Store(true)
		time.Sleep(2 * time.Second)
		go func() { time.Sleep(100 * time.Millisecond); c.Forget("ak_1") }()
		verify(t, c, fault.DB, "after the notice")
	})
}
