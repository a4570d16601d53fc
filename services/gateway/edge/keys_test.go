package edge_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/gateway/edge"
)

// aKey is a key that has the form of one.
var aKey = "crm_" + strings.Repeat("a", 42)

func TestKeysAreCachedForTwoSecondsAtMost(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	asked := 0
	c := edge.NewKeyCache(func(context.Context, string) (edge.APIKey, error) {
		asked++
		return edge.APIKey{ID: "ak_1"}, nil
	}, func() time.Time { return now })
	verify := func() {
		t.Helper()
		if _, err := c.Verify(t.Context(), aKey); err != nil {
			t.Fatal(err)
		}
	}
	verify()
	for range 3 {
		now = now.Add(600 * time.Millisecond)
		verify()
	}
	if asked != 1 {
		t.Errorf("asked %d times within 1.8 s", asked)
	}
	now = now.Add(200 * time.Millisecond)
	verify()
	if asked != 2 {
		t.Errorf("asked %d times after 2 s: a hit must not extend the life of an answer", asked)
	}
	c.Forget("ak_1")
	verify()
	c.Forget("ak_2")
	verify()
	if asked != 3 {
		t.Errorf("asked %d times: a notice drops its key and no other", asked)
	}
	c.ForgetAll()
	verify()
	if asked != 4 {
		t.Errorf("asked %d times after ForgetAll", asked)
	}
}

func TestRefusalsAreNotCached(t *testing.T) {
	err := error(fault.New(fault.AuthInvalid, "no"))
	c := edge.NewKeyCache(func(context.Context, string) (edge.APIKey, error) { return edge.APIKey{ID: "ak_1"}, err }, time.Now)
	if _, got := c.Verify(t.Context(), aKey); !fault.Is(got, fault.AuthInvalid) {
		t.Fatal(got)
	}
	err = nil
	if _, got := c.Verify(t.Context(), aKey); got != nil {
		t.Errorf("a key issued a moment ago: %v", got)
	}
	err = errors.New("auth is down")
	c.Forget("ak_1")
	if _, got := c.Verify(t.Context(), aKey); got == nil {
		t.Error("a forgotten key passed without an answer")
	}
}

// TestNoticeDuringAQuestion: an answer from before the notice must not outlive it.
func TestNoticeDuringAQuestion(t *testing.T) {
	var revoked atomic.Bool
	asked, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c := edge.NewKeyCache(func(context.Context, string) (edge.APIKey, error) {
		if revoked.Load() {
			return edge.APIKey{}, fault.New(fault.AuthRevoked, "revoked")
		}
		once.Do(func() { close(asked); <-proceed })
		return edge.APIKey{ID: "ak_1"}, nil
	}, time.Now)
	done := make(chan error)
	go func() { _, err := c.Verify(context.Background(), aKey); done <- err }()
	<-asked
	revoked.Store(true)
	c.Forget("ak_1")
	close(proceed)
	<-done
	if _, err := c.Verify(t.Context(), aKey); !fault.Is(err, fault.AuthRevoked) {
		t.Errorf("the answer from before the notice was kept: %v", err)
	}
}

func TestAKeyExpiresWhileCached(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	c := edge.NewKeyCache(func(context.Context, string) (edge.APIKey, error) {
		return edge.APIKey{ID: "ak_1", ExpiresAt: time.Unix(1_000_001, 0)}, nil
	}, func() time.Time { return now })
	if _, err := c.Verify(t.Context(), aKey); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if _, err := c.Verify(t.Context(), aKey); !fault.Is(err, fault.AuthRevoked) {
		t.Errorf("at its expiry: %v", err)
	}
}

func TestCallersShareOneQuestion(t *testing.T) {
	var asked atomic.Int32
	gate := make(chan struct{})
	c := edge.NewKeyCache(func(context.Context, string) (edge.APIKey, error) {
		asked.Add(1)
		<-gate
		return edge.APIKey{ID: "ak_1"}, nil
	}, time.Now)
	impatient, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := c.Verify(impatient, aKey); first <- err }()
	hubtest.Eventually(t, "auth is asked", func() bool { return asked.Load() > 0 })
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left: %v", err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.Verify(t.Context(), aKey); err != nil {
				t.Error(err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if n := asked.Load(); n > 2 {
		t.Errorf("auth was asked %d times", n)
	}
}
