package edge

import (
	"context"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

// Whoever shows what does not hold makes somebody look it up: auth a credential, a page's owner a link. What fails is
// counted against the client's networks (Gateway.Failures), and answered with E_RATE_LIMIT beyond that. Far beyond it
// nobody is asked any more, but for a few: the buckets are overdrawn. What is looked up is charged to one of several sets
// of buckets, its suspects, so that a stranger in somebody's network stops nobody who has shown something that holds:
//
//   - what has held before from a network has a bucket of its own: a key, an app, a user of an app, a session, a link;
//   - everything else of a network shares those of the network, and of each kind of lookup there are others.
const (
	// overdrawn is how many times the limit on failures may fail beyond it before lookups are throttled to the rate at
	// which they fail in the long run.
	overdrawn = 10
	// quiet is how long nothing may have failed before the throttling ends.
	quiet = 10 * time.Second
	// provenFor is how long what has held is remembered; maxProven is how much of it, and maxProvenOf of one kind in one network.
	provenFor, maxProven, maxProvenOf = time.Hour, 100_000, 10_000
	// maxThrottled is how many throttled buckets are too few to look for those that are free again.
	maxThrottled = 1000
)

// networkFactors are how many times the limit of a client's own network those around it have: its /56 and /48, or its /24.
var networkFactors = [...]int{1, 4, 16}

// NetworkBuckets are those of a client's network and the wider ones around it, in a group of buckets. prefix tells
// further buckets of the same networks apart, and may be empty.
func NetworkBuckets(group, prefix, address string, rate Rate) []Bucket {
	networks := caller.Networks(address)
	buckets := make([]Bucket, len(networks))
	for i, network := range networks {
		n := networkFactors[i]
		buckets[i] = AddressBucket(group, prefix+network, Rate{rate.PerMinute * n, rate.Burst * n})
	}
	return buckets
}

// AddressBucket is a bucket that its refusal says to be of the client's address.
func AddressBucket(group, member string, rate Rate) Bucket {
	return Bucket{Scope: "address", Name: bucketName(group, member), Rate: rate}
}

// throttle is what holds for a bucket that is overdrawn: the next lookup may go at next, until ends.
type throttle struct{ next, ends time.Time }

// failureGuard remembers what has held and which buckets are overdrawn, in this process; its zero value is ready.
type failureGuard struct {
	mu sync.Mutex
	// proven is until when what has held counts, by the kind and network that it has held for, and its hash; held is how much it is,
	// and swept when it was last looked for what is over.
	proven    map[origin]map[[sha256.Size]byte]time.Time
	held      int
	swept     time.Time
	throttled map[string]throttle
}

// origin is what of a kind is shown from a network.
type origin struct{ kind, network string }

// identifier is an Authenticator that looks up what it is shown.
type identifier interface {
	// identities are what a credential says that it is, widest first; false when there is nothing to look up.
	identities(Credential) (list []string, found bool)
}

// Authenticate is the Authenticator's, for those that may be looked up: it refuses with E_RATE_LIMIT where too much failed.
func (g *Gateway) Authenticate(ctx context.Context, a Authenticator, c *Call) (Principal, error) {
	from, looksUp := a.(identifier)
	if !looksUp {
		return a.Authenticate(ctx, c)
	}
	identities, looksUp := from.identities(c.Credential)
	if !looksUp {
		return a.Authenticate(ctx, c)
	}
	suspects, err := g.MayLookUp("credentials", c.Address, identities)
	if err != nil {
		return Principal{}, err
	}
	p, err := a.Authenticate(ctx, c)
	if p.suspects = suspects; err == nil {
		g.RecordSuccess("credentials", c.Address, identities)
	}
	return p, err
}

// MayLookUp returns the buckets that a lookup is charged to if it fails, of the narrowest identity that has held before or
// else of the network, or refuses with E_RATE_LIMIT.
func (g *Gateway) MayLookUp(kind, address string, identities []string) ([]Bucket, error) {
	rate := Rate{g.Failures.PerMinute * overdrawn, g.Failures.Burst * overdrawn}
	from, f := origin{kind, caller.Network(address)}, &g.failed
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for i := len(identities) - 1; i >= 0; i-- {
		identity := from.hashOf(identities[i])
		if now.Before(f.proven[from][identity]) {
			own := []Bucket{AddressBucket("failed", kind+" of "+string(identity[:]), rate)}
			if f.wait(own, now) == 0 {
				return own, nil
			}
		}
	}
	shared := NetworkBuckets("failed", kind+":", address, rate)
	if wait := f.wait(shared, now); wait > 0 {
		return nil, Decision{Refused: "address", RetryAfter: wait}.Refusal()
	}
	return shared, nil
}

// wait is how long it takes until one more lookup may be charged to these buckets; 0 takes the turn.
func (f *failureGuard) wait(buckets []Bucket, now time.Time) (wait time.Duration) {
	for _, b := range buckets {
		if t := f.throttled[b.Name]; now.Before(t.ends) {
			wait = max(wait, t.next.Sub(now))
		}
	}
	for _, b := range buckets {
		if t := f.throttled[b.Name]; wait == 0 && now.Before(t.ends) {
			t.next = now.Add(b.Interval())
			f.throttled[b.Name] = t
		}
	}
	return wait
}

// RecordSuccess remembers for an hour that something was what it said to be.
func (g *Gateway) RecordSuccess(kind, address string, identities []string) {
	from, f := origin{kind, caller.Network(address)}, &g.failed
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.swept) >= provenFor {
		f.forgetOver(now)
	}
	for _, identity := range identities {
		f.prove(from, from.hashOf(identity), now)
	}
}

// prove remembers what has held. Where that is too much, what has held from the same origin gives way, whichever: it goes on with the
// others of its network. Only the first of an origin takes the place of another's. f.mu is held.
func (f *failureGuard) prove(from origin, identity [sha256.Size]byte, now time.Time) {
	if _, known := f.proven[from][identity]; !known {
		if len(f.proven[from]) >= maxProvenOf || f.held >= maxProven {
			f.forgetOne(from)
		}
		f.held++
	}
	if f.proven == nil {
		f.proven = map[origin]map[[sha256.Size]byte]time.Time{}
	}
	if f.proven[from] == nil {
		f.proven[from] = map[[sha256.Size]byte]time.Time{}
	}
	f.proven[from][identity] = now.Add(provenFor)
}

// forgetOver drops what counts no more. f.mu is held.
func (f *failureGuard) forgetOver(now time.Time) {
	for from, of := range f.proven {
		f.held -= len(of)
		maps.DeleteFunc(of, func(_ [sha256.Size]byte, until time.Time) bool { return !now.Before(until) })
		if f.held += len(of); len(of) == 0 {
			delete(f.proven, from)
		}
	}
	f.swept = now
}

// forgetOne makes room for what has held from an origin. f.mu is held.
func (f *failureGuard) forgetOne(from origin) {
	if len(f.proven[from]) == 0 {
		for from = range f.proven {
			break
		}
	}
	for identity := range f.proven[from] {
		delete(f.proven[from], identity)
		f.held--
		break
	}
	if len(f.proven[from]) == 0 {
		delete(f.proven, from)
	}
}

// hashOf names an identity that was looked up from there, without keeping what it was: that may be a secret.
func (o origin) hashOf(identity string) [sha256.Size]byte {
	return sha256.Sum256([]byte(o.kind + "\x00" + o.network + "\x00" + identity))
}

// refuseCredential counts a credential that does not hold. One that held before and is over is nobody's guess: it is always
// told so, and counted as what is looked up for nothing.
func (g *Gateway) refuseCredential(ctx context.Context, c *Call, err error) error {
	switch fault.From(err).Code {
	case fault.AuthInvalid, fault.AuthRevoked:
		if limited := g.RecordFailure(ctx, c.Address, c.suspects); limited != nil {
			return limited
		}
	case fault.AuthExpired:
		g.Overdraw(ctx, c.suspects)
	}
	return err
}

// RecordFailure counts what did not hold, against its client's networks, and refuses with E_RATE_LIMIT when there was
// too much of it: guessing is bounded. From then on it counts against its suspects too. What holds never counts here.
func (g *Gateway) RecordFailure(ctx context.Context, address string, suspects []Bucket) error {
	d := g.Limiter.Take(ctx, NetworkBuckets("failed", "", address, g.Failures))
	if d.Refused != "" {
		g.Overdraw(ctx, suspects)
	}
	return d.Refusal()
}

// Overdraw counts what fails beyond the limit on failures. A bucket without room is throttled, for as long as what is
// charged to it fails.
func (g *Gateway) Overdraw(ctx context.Context, suspects []Bucket) {
	if len(suspects) == 0 {
		return
	}
	d, f := g.Limiter.Take(ctx, suspects), &g.failed
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for i, b := range suspects {
		t := f.throttled[b.Name]
		if already := now.Before(t.ends); !already {
			t.next = now.Add(b.Interval())
			if d.States[i].Remaining > 0 {
				continue
			}
		}
		t.ends = now.Add(max(quiet, 2*b.Interval()))
		f.keep(b.Name, t, now)
	}
}

// keep remembers that a bucket is throttled, and forgets those that are free again once there are many. f.mu is held.
func (f *failureGuard) keep(name string, t throttle, now time.Time) {
	if f.throttled == nil {
		f.throttled = map[string]throttle{}
	}
	if len(f.throttled) >= maxThrottled {
		for other, t := range f.throttled {
			if !now.Before(t.ends) {
				delete(f.throttled, other)
			}
		}
	}
	f.throttled[name] = t
}
