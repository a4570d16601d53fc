package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/services/auth/bulkhead"
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
// an allowance for each place that it is tried from, and a larger one for all attackers together. When that is used up, a
// network from where nothing has failed since still has one try: an attacker pays a network for each guess, and the owner,
// who comes from a network of their own and knows the password, pays nothing. A browser that its user has signed in with
// is a place of its own and pays nothing else: no attacker can use up what is left to it.
//
// What holds for a network holds in a larger measure for the wider ones that it is part of (caller.Networks): whoever has
// a /48 has 65,536 networks.
var (
	// NetworkThrottle is per client network, four times as much for each wider one. It is paid for tries that another
	// throttle refuses, too: 8,640 a day.
	NetworkThrottle = Throttle{Burst: 30, Every: 10 * time.Second}
	// PlaceThrottle is per account and place, a network or a known browser: 96 a day. It is twice as much for each wider network.
	PlaceThrottle = Throttle{Burst: 10, Every: 15 * time.Minute}
	// AccountThrottle is per account, for all networks together: 1,440 a day, for passwords of at least 12 characters.
	AccountThrottle = Throttle{Burst: 150, Every: time.Minute}
	// FirstThrottle is per account whose AccountThrottle is used up, and network: one a day. It is twice as much for each
	// wider network.
	FirstThrottle = Throttle{Burst: 1, Every: 24 * time.Hour}
)

// times is n times as much.
func (t Throttle) times(n int) Throttle { return Throttle{t.Burst * n, t.Every / time.Duration(n)} }

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

// accountBucket counts all failures of an account, from wherever they come.
func accountBucket(email string) Bucket {
	return Bucket{"account " + digest(account(email)), AccountThrottle}
}

// placeBucket has the name of the account's bucket in front: they are refilled together.
func placeBucket(email, place string) Bucket {
	return Bucket{accountBucket(email).Name + " " + digest(place), PlaceThrottle}
}

// networkBuckets are the buckets of networks, narrowest first: each has so many times as much as the one before.
func networkBuckets(networks []string, prefix string, t Throttle, times int) (all []Bucket) {
	for _, n := range networks {
		all = append(all, Bucket{prefix + digest("network "+n), t})
		t = t.times(times)
	}
	return all
}

// throttledNetworks are the buckets of a client's networks.
func throttledNetworks(networks []string) []Bucket {
	return networkBuckets(networks, "network ", NetworkThrottle, 4)
}

// placeBuckets are the buckets of an account tried from these networks.
func placeBuckets(email string, networks []string) []Bucket {
	return networkBuckets(networks, accountBucket(email).Name+" ", PlaceThrottle, 2)
}

// firstBuckets are the buckets of the one try that a network has at an account which is under attack.
func firstBuckets(email string, networks []string) []Bucket {
	return networkBuckets(networks, accountBucket(email).Name+" first ", FirstThrottle, 2)
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
	wait, _, err := p.c.Store.Take(ctx, p.now(), buckets)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		return nil, tooMany(wait)
	}
	return buckets, nil
}

// mustWait refuses networks of which it is remembered that they have to wait.
func (p *People) mustWait(networks []string) error {
	for _, b := range throttledNetworks(networks) {
		if wait := p.throttled.wait(b.Name, p.now()); wait > 0 {
			return tooMany(wait)
		}
	}
	return nil
}

// takeNetworks takes a token of a client's network, and of those that it is part of.
func (p *People) takeNetworks(ctx context.Context, networks []string) ([]Bucket, error) {
	if err := p.mustWait(networks); err != nil {
		return nil, err
	}
	buckets := throttledNetworks(networks)
	wait, empty, err := p.c.Store.Take(ctx, p.now(), buckets)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		p.throttled.remember(empty, p.now(), wait)
		return nil, tooMany(wait)
	}
	return buckets, nil
}

// admission is what a try to sign in was let in with.
type admission struct {
	// taken is what is given back if the try does not fail.
	taken []Bucket
	// permit is the one to have a password hashed. It is to be ended.
	permit *bulkhead.Permit
}

// admit lets a try to sign in wait for its permit, and takes what the try costs. Unknown browsers
// pay for their network first, and do not get it back when the account refuses them.
func (p *People) admit(ctx context.Context, email string, b Browser) (a admission, err error) {
	taken, known, err := p.takeKnown(ctx, b, func(owner, browser string) (Bucket, bool) {
		return placeBucket(email, browser), account(owner) == account(email)
	})
	if err != nil {
		return admission{}, err
	}
	if known {
		return p.admitKnown(ctx, taken)
	}
	// Whoever has to wait in any case, or finds no permit, costs the store nothing.
	networks := caller.Networks(b.Address)
	if err := p.mustWait(networks); err != nil {
		return admission{}, err
	}
	if a.permit, err = p.passwords.wait(ctx, bulkhead.Stranger(networks)); err != nil {
		return admission{}, err
	}
	if a.taken, err = p.takeNetworks(ctx, networks); err == nil {
		taken, err = p.takeAccount(ctx, email, networks)
		a.taken = append(a.taken, taken...)
	}
	if err != nil {
		a.permit.Release()
		return admission{}, err
	}
	return a, nil
}

// admitKnown waits for the permit of somebody who has paid from an allowance that nobody else can use up.
func (p *People) admitKnown(ctx context.Context, taken []Bucket) (admission, error) {
	permit, err := p.passwords.wait(ctx, bulkhead.Known(taken[0].Name))
	if err != nil {
		p.giveBack(ctx, taken)
		return admission{}, err
	}
	return admission{taken, permit}, nil
}

// takeAccount takes what a try costs at an account. When the account has nothing left for networks that have failed, one
// that has not pays with its first try of the day.
func (p *People) takeAccount(ctx context.Context, email string, networks []string) ([]Bucket, error) {
	places, all := placeBuckets(email, networks), accountBucket(email)
	buckets := slices.Concat(places, []Bucket{all})
	wait, empty, err := p.c.Store.Take(ctx, p.now(), buckets)
	if err == nil && wait > 0 && empty == all.Name {
		places[0].Burst = 1 // as much as it has when nothing has failed there lately
		buckets = slices.Concat(places, firstBuckets(email, networks))
		var first time.Duration
		if first, _, err = p.c.Store.Take(ctx, p.now(), buckets); first == 0 {
			wait = 0
		}
	}
	switch {
	case err != nil:
		return nil, err
	case wait > 0:
		return nil, tooMany(wait)
	}
	return buckets, nil
}

// takeKnown takes a token of a browser that somebody is known to have signed in with, from the bucket that it has for
// what its owner tries. known is false for any other browser, for one that has no bucket for that, and for one that is
// beyond its allowance: it is as good as any other then.
func (p *People) takeKnown(ctx context.Context, b Browser, bucket func(owner, browser string) (Bucket, bool)) (
	taken []Bucket, known bool, err error) {
	if b.Known == "" {
		return nil, false, nil
	}
	h := SessionSecret{text.Secret(b.Known)}.hash()
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

// wait is for how long a bucket is known to be empty; 0 when the store has to be asked.
func (t *throttled) wait(name string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.until[name].Sub(now), 0)
}

// remember notes for how long a bucket is empty, so that the store is spared.
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
