package gateway

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
)

// Whoever shows what does not hold makes somebody look it up: auth a credential, a page's owner a link. What fails is
// counted against the client's networks (Gateway.Failures), and answered with E_RATE_LIMIT beyond that. Far beyond it
// nobody is asked any more, but for a few: the way is overdrawn. There are several ways, so that a stranger in
// somebody's network stops nobody who has shown something that holds:
//
//   - what has held before from a network has a way of its own: a key, an app, a user of an app, a session, a link;
//   - everything else of a network has one, and of each kind another.
const (
	// overdrawn is how many times the limit on failures a way may fail before it is asked about no more than it fails
	// in the long run.
	overdrawn = 10
	// calm is how long nothing may have failed before a way is free again.
	calm = 10 * time.Second
	// provenFor is how long what has held is remembered; maxProven is how much of it.
	provenFor, maxProven = time.Hour, 100_000
	// maxOverdrafts is how many ways that are overdrawn are too few to look for those that are free again.
	maxOverdrafts = 1000
)

// wider is how many times the limit of a client's own network those around it have: its /56 and /48, or its /24.
var wider = [...]int{1, 4, 16}

// times is a limit several times as high.
func (r Rate) times(n int) Rate { return Rate{r.PerMinute * n, r.Burst * n} }

// lane is a part of a way: what fails on the way counts against all of its lanes.
type lane struct {
	name string
	rate Rate
}

func (l lane) bucket() Bucket { return Bucket{Scope: "address", Name: l.name, Rate: l.rate} }

// overdraft is a lane that is overdrawn: who comes next at next may go, until ends.
type overdraft struct{ next, ends time.Time }

// doubt remembers what has held and which lanes are overdrawn, in this process; its zero value is ready.
type doubt struct {
	mu         sync.Mutex
	proven     map[[sha256.Size]byte]time.Time
	overdrafts map[string]overdraft
}

// claimant is an Authenticator that looks up what it is shown.
type claimant interface {
	// claims are what a credential says that it is, widest first; false when there is nothing to look up.
	claims(Credential) (list []string, found bool)
}

// Authenticate is the Authenticator's, for those that may be looked up: it refuses with E_RATE_LIMIT where too much failed.
func (g *Gateway) Authenticate(ctx context.Context, a Authenticator, c *Call) (Principal, error) {
	from, looksUp := a.(claimant)
	if !looksUp {
		return a.Authenticate(ctx, c)
	}
	claims, looksUp := from.claims(c.Credential)
	if !looksUp {
		return a.Authenticate(ctx, c)
	}
	way, err := g.mayAsk("credentials", c.Address, claims)
	if err != nil {
		return Principal{}, err
	}
	p, err := a.Authenticate(ctx, c)
	if p.way = way; err == nil {
		g.held("credentials", c.Address, claims)
	}
	return p, err
}

// mayAsk finds a way for what claims to be something, narrowest claim first, or refuses.
func (g *Gateway) mayAsk(kind, address string, claims []string) ([]lane, error) {
	networks := caller.Networks(address)
	limit := g.Failures.times(overdrawn)
	g.doubt.mu.Lock()
	defer g.doubt.mu.Unlock()
	now := time.Now()
	for i := len(claims) - 1; i >= 0; i-- {
		claim := claimOf(kind, networks[0], claims[i])
		if now.Before(g.doubt.proven[claim]) {
			own := []lane{{bucketName("failed", kind+" of "+string(claim[:])), limit}}
			if g.doubt.wait(own, now) == 0 {
				return own, nil
			}
		}
	}
	way := make([]lane, len(networks))
	for i, network := range networks {
		way[i] = lane{bucketName("failed", kind+":"+network), limit.times(wider[i])}
	}
	if wait := g.doubt.wait(way, now); wait > 0 {
		return nil, Decision{Refused: "address", RetryAfter: wait}.Refusal()
	}
	return way, nil
}

// wait is how long it takes until one more may go a way; 0 takes the turn.
func (d *doubt) wait(way []lane, now time.Time) (wait time.Duration) {
	for _, l := range way {
		if o := d.overdrafts[l.name]; now.Before(o.ends) {
			wait = max(wait, o.next.Sub(now))
		}
	}
	for _, l := range way {
		if o := d.overdrafts[l.name]; wait == 0 && now.Before(o.ends) {
			o.next = now.Add(l.bucket().Interval())
			d.overdrafts[l.name] = o
		}
	}
	return wait
}

// held remembers that something was what it claimed to be.
func (g *Gateway) held(kind, address string, claims []string) {
	network := caller.Network(address)
	g.doubt.mu.Lock()
	defer g.doubt.mu.Unlock()
	if g.doubt.proven == nil {
		g.doubt.proven = map[[sha256.Size]byte]time.Time{}
	}
	now := time.Now()
	for _, claim := range claims {
		key := claimOf(kind, network, claim)
		if _, known := g.doubt.proven[key]; !known && len(g.doubt.proven) >= maxProven {
			for other := range g.doubt.proven { // any: it finds its way again with the others of its network
				delete(g.doubt.proven, other)
				break
			}
		}
		g.doubt.proven[key] = now.Add(provenFor)
	}
}

func claimOf(kind, network, claim string) [sha256.Size]byte {
	return sha256.Sum256([]byte(kind + "\x00" + network + "\x00" + claim))
}

// refused counts a credential that does not hold. One that held before and is over is nobody's guess: it is always told
// so, and counted as what is looked up for nothing.
func (g *Gateway) refused(ctx context.Context, c *Call, err error) error {
	switch fault.From(err).Code {
	case fault.AuthInvalid, fault.AuthRevoked:
		if limited := g.failed(ctx, c.Address, c.way); limited != nil {
			return limited
		}
	case fault.AuthExpired:
		g.beyond(ctx, c.way)
	}
	return err
}

// failed counts what did not hold, against its client's networks and its way, and refuses with E_RATE_LIMIT when there was
// too much of it: guessing is bounded. What holds never counts here.
func (g *Gateway) failed(ctx context.Context, address string, way []lane) error {
	networks := caller.Networks(address)
	buckets := make([]Bucket, len(networks))
	for i, network := range networks {
		buckets[i] = lane{bucketName("failed", network), g.Failures.times(wider[i])}.bucket()
	}
	d := g.Limiter.Take(ctx, buckets)
	if d.Refused != "" {
		g.beyond(ctx, way)
	}
	return d.Refusal()
}

// beyond counts what fails beyond the limit on failures. A lane without room is overdrawn, for as long as what goes it fails.
func (g *Gateway) beyond(ctx context.Context, way []lane) {
	if len(way) == 0 {
		return
	}
	buckets := make([]Bucket, len(way))
	for i, l := range way {
		buckets[i] = l.bucket()
	}
	d := g.Limiter.Take(ctx, buckets)
	g.doubt.mu.Lock()
	defer g.doubt.mu.Unlock()
	now := time.Now()
	for i, l := range way {
		interval := buckets[i].Interval()
		o := g.doubt.overdrafts[l.name]
		if already := now.Before(o.ends); !already {
			o.next = now.Add(interval)
			if d.States[i].Remaining > 0 {
				continue
			}
		}
		o.ends = now.Add(max(calm, 2*interval))
		g.doubt.overdraw(l.name, o, now)
	}
}

func (d *doubt) overdraw(name string, o overdraft, now time.Time) {
	if d.overdrafts == nil {
		d.overdrafts = map[string]overdraft{}
	}
	if len(d.overdrafts) >= maxOverdrafts {
		for other, o := range d.overdrafts {
			if !now.Before(o.ends) {
				delete(d.overdrafts, other)
			}
		}
	}
	d.overdrafts[name] = o
}

// secretPages are the parts of the console that look up what an address or a cookie has that nobody else should know.
var secretPages = []string{"/unsubscribe", "/connect", "/login/invitation", "/login/oidc/callback"}

// mayLook finds the way of a visitor's request to such a page, or refuses; no way for any other.
func (g *Gateway) mayLook(v *visit) ([]lane, error) {
	if !slices.ContainsFunc(secretPages, func(page string) bool { return web.Below(v.r.URL.Path, page) }) {
		return nil, nil
	}
	return g.mayAsk("pages", v.Address, []string{v.r.URL.RequestURI()})
}

// looked counts a visitor's request to such a page that its owner has answered.
func (g *Gateway) looked(ctx context.Context, v *visit, status int) error {
	switch {
	case v.way == nil:
	case status == http.StatusOK && web.Below(v.r.URL.Path, "/unsubscribe"): // of the others, some have nothing to show
		g.held("pages", v.Address, []string{v.r.URL.RequestURI()})
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		return g.failed(ctx, v.Address, v.way)
	}
	return nil
}
