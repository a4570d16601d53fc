package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

// Throttle says how often something may fail: Burst times at once, and once in Every after that.
type Throttle struct {
	Burst int
	Every time.Duration
}

// Throttles of failed log-ins. A log-in that works counts against none. An account is counted whether it
// exists or not.
//
// An attacker has to be kept from guessing a password, and from keeping its owner out by guessing. So an account has
// an allowance for each place that it is tried from, and a larger one for all attackers together: ten of them,
// who try as often as they may, leave it room for the eleventh. A browser that its user has signed in with
// is a place of its own and pays nothing else: no attacker can use up what is left to it.
var (
	// NetworkThrottle is per client network. It is paid for tries that another throttle refuses, too: 8,640 a day.
	NetworkThrottle = Throttle{Burst: 30, Every: 10 * time.Second}
	// PlaceThrottle is per account and place, a network or a known browser: 96 a day.
	PlaceThrottle = Throttle{Burst: 10, Every: 15 * time.Minute}
	// AccountThrottle is per account, for all networks together: 1,440 a day, for passwords of at least 12 characters.
	AccountThrottle = Throttle{Burst: 150, Every: time.Minute}
)

// Bucket is a throttle of one account, place or network.
type Bucket struct {
	Name string
	Throttle
}

// digest stands for what was typed: it may be anything, a password in the wrong field too.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func accountBucket(email string) Bucket {
	return Bucket{"account " + digest(account(email)), AccountThrottle}
}

// placeBucket has the name of the account's bucket in front: they are refilled together.
func placeBucket(email, place string) Bucket {
	return Bucket{accountBucket(email).Name + " " + digest(place), PlaceThrottle}
}

// tooMany is the refusal of a try.
func tooMany(wait time.Duration) *fault.Error {
	in := fmt.Sprintf("%d minutes", (wait+time.Minute-1)/time.Minute)
	if wait <= time.Minute {
		in = "a minute"
	}
	return fault.New(fault.RateLimit, "Too many failed tries. Wait for %s, then try again.", in).After(wait)
}

// take takes a token of each bucket, or of none and answers E_RATE_LIMIT.
func (p *People) take(ctx context.Context, buckets ...Bucket) ([]Bucket, error) {
	wait, err := p.c.Store.Take(ctx, p.now(), buckets)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		return nil, tooMany(wait)
	}
	return buckets, nil
}

// takeNetwork takes a token of a client's network.
func (p *People) takeNetwork(ctx context.Context, address string) ([]Bucket, error) {
	n := Bucket{"network " + digest(caller.Network(address)), NetworkThrottle}
	if wait := p.throttled.wait(n.Name, p.now()); wait > 0 {
		return nil, tooMany(wait)
	}
	taken, err := p.take(ctx, n)
	if fault.Is(err, fault.RateLimit) {
		p.throttled.remember(n.Name, p.now(), fault.From(err).RetryAfter)
	}
	return taken, err
}

// admit takes what a try to sign in costs, and returns it for the case that the try does not fail. Unknown browsers
// pay for their network first, and do not get it back when the account refuses them.
func (p *People) admit(ctx context.Context, email string, b Browser) ([]Bucket, error) {
	taken, known, err := p.takeKnown(ctx, b, func(owner, browser string) (Bucket, bool) {
		return placeBucket(email, browser), account(owner) == account(email)
	})
	if err != nil || known {
		return taken, err
	}
	network, err := p.takeNetwork(ctx, b.Address)
	if err != nil {
		return nil, err
	}
	taken, err = p.take(ctx, placeBucket(email, "network "+caller.Network(b.Address)), accountBucket(email))
	return append(taken, network...), err
}

// takeKnown takes a token of a browser that somebody is known to have signed in with, from the bucket that it has for
// what its owner tries. known is false for any other browser, for one that has no bucket for that, and for one that is
// beyond its allowance: it is as good as any other then.
func (p *People) takeKnown(ctx context.Context, b Browser, bucket func(owner, browser string) (Bucket, bool)) (
	taken []Bucket, known bool, err error) {
	if b.Known == "" {
		return nil, false, nil
	}
	h := SessionSecret{b.Known}.hash()
	owner, known, err := p.c.Store.KnownBrowser(ctx, h, p.now())
	if err != nil || !known {
		return nil, false, err
	}
	own, has := bucket(owner, "browser "+hex.EncodeToString(h[:]))
	if !has {
		return nil, false, nil
	}
	taken, err = p.take(ctx, own)
	if fault.Is(err, fault.RateLimit) {
		return nil, false, nil
	}
	return taken, true, err
}

// giveBack returns the tokens of a try that did not fail, or could not be judged.
func (p *People) giveBack(ctx context.Context, taken []Bucket) {
	if err := p.c.Store.Return(context.WithoutCancel(ctx), taken); err != nil {
		p.c.Logger.WarnContext(ctx, "log-in throttle not given back", "error", err)
	}
}

// maxThrottled bounds the networks that throttled remembers.
const maxThrottled = 10_000

// throttled remembers the networks that have to wait: whoever goes on trying costs the store nothing. The zero
// value remembers none.
type throttled struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (t *throttled) wait(name string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.until[name].Sub(now), 0)
}

func (t *throttled) remember(name string, now time.Time, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until == nil {
		t.until = map[string]time.Time{}
	}
	if len(t.until) >= maxThrottled {
		for known, until := range t.until {
			if !until.After(now) {
				delete(t.until, known)
			}
		}
	}
	if len(t.until) < maxThrottled { // else the store is asked
		t.until[name] = now.Add(wait)
	}
}
