package console

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/quota"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/cache"
	"hub.internal/services/gateway/edge"
)

// maxVisitorForm bounds what somebody who is not signed in may send: a log-in, an unsubscription.
const maxVisitorForm = 64 << 10

// What people come for who are not signed in. Each has places of its own: those who come for one take none of another's.
const (
	purposePages       = "pages"       // what is only looked at, and in which language
	purposeForms       = "forms"       // passwords, which wait to be hashed
	purposeProvider    = "provider"    // log-ins that ask the provider
	purposeConsent     = "consent"     // accounts to be linked
	purposeUnsubscribe = "unsubscribe" // the page, and one click in a mail program
)

// visitorPlaces is how many requests may be under way at once for each purpose: two thirds of them anybody's, and a third
// kept for browsers that somebody has signed in with. One network, the widest that an address is part of, may have half
// of anybody's, and one browser half of what is kept. Those that auth answers are together no more than a client of a
// service lets one caller have; there are more for forms than wait there for a password to be hashed.
func visitorPlaces() map[string]int64 {
	return map[string]int64{purposePages: 30, purposeForms: 66, purposeProvider: 15, purposeConsent: 15, purposeUnsubscribe: 48}
}

const (
	// visitorPatience is how long a visitor waits for a place, and maxVisitorsWaiting how many wait for one purpose.
	visitorPatience    = time.Second
	maxVisitorsWaiting = 200
)

var (
	// formRate is how many forms a network may send that a password is hashed for, or the provider asked. It is four times
	// as much for each wider network. A form more does not get as far as a place.
	formRate = edge.Rate{PerMinute: 60, Burst: 60}
	// knownRate is how often a network may have auth asked whether a browser is known: somebody who makes cookies up must
	// not make the gateway ask without end.
	knownRate = edge.Rate{PerMinute: 60, Burst: 10}
)

// purposeOf is what a visitor comes for.
func purposeOf(r *http.Request) string {
	switch {
	case web.Below(r.URL.Path, "/unsubscribe"):
		return purposeUnsubscribe
	case web.Below(r.URL.Path, "/connect"):
		return purposeConsent
	case web.Below(r.URL.Path, "/login/oidc"):
		return purposeProvider
	case r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/language": // which a cookie keeps
		return purposePages
	}
	return purposeForms
}

// Visitors are the places of people who are not signed in.
type Visitors struct {
	// Patience is how long one waits for a place.
	Patience time.Duration

	anybody, known map[string]*quota.Quota
	browsers       *cache.Cache[struct{}]
}

// NewVisitors makes the places. ask tells whether somebody has signed in with the browser that has a secret: an error says no,
// whatever it is.
func NewVisitors(ask func(ctx context.Context, secret string) error, now func() time.Time) *Visitors {
	v := &Visitors{Patience: visitorPatience, anybody: map[string]*quota.Quota{}, known: map[string]*quota.Quota{}}
	v.browsers = cache.New(func(ctx context.Context, secret string) (struct{}, error) { return struct{}{}, ask(ctx, secret) }, now)
	for what, places := range visitorPlaces() {
		v.known[what] = quota.New(places / 3)
		v.anybody[what] = quota.New(places - places/3)
	}
	return v
}

// admit takes a place for a visitor's request until leave, or refuses with E_RATE_LIMIT. What they send is read
// before: who sends it slowly holds nothing but their own connection.
func (k *Console) admit(v *visit) (leave func(), err error) {
	if r := v.r; r.Body != nil && r.Body != http.NoBody {
		form, err := rpc.ReadBody(r.Context(), r.Body, r.ContentLength, maxVisitorForm)
		if err != nil {
			return nil, err
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(form)), int64(len(form)), nil
	}
	what, networks := purposeOf(v.r), caller.Networks(v.Address)
	err = k.limitForms(v.r.Context(), what, v.Address)
	if err == nil {
		if leave := k.Visitors.takePlace(v.r.Context(), k.Visitors.anybody[what], networks[len(networks)-1]); leave != nil {
			return leave, nil
		}
		err = fault.New(fault.RateLimit, "Too many people are at this page at this moment. Try again in a few seconds.").After(2 * time.Second)
	}
	if browser := web.ReadCookie(v.r, web.BrowserCookie); k.knownBrowser(v, browser) {
		if leave := k.Visitors.takePlace(v.r.Context(), k.Visitors.known[what], browser); leave != nil {
			return leave, nil
		}
	}
	return nil, err
}

// takePlace waits for a place, and returns nil when there is none.
func (v *Visitors) takePlace(ctx context.Context, places *quota.Quota, who string) (leave func()) {
	loan := places.Open(who)
	if loan.TryTake(1) {
		return loan.Close
	}
	if _, waiting, _ := places.Use(); waiting < maxVisitorsWaiting {
		ctx, cancel := context.WithTimeout(ctx, v.Patience)
		defer cancel()
		if loan.Take(ctx, 1) == nil {
			return loan.Close
		}
	}
	loan.Close()
	return nil
}

// limitForms counts a form against the networks that it comes from.
func (k *Console) limitForms(ctx context.Context, what, address string) error {
	if what != purposeForms && what != purposeProvider {
		return nil
	}
	d := k.Edge.Limiter.Take(ctx, edge.NetworkBuckets("forms", "", address, formRate))
	if d.Refused == "" {
		return nil
	}
	wait := edge.WholeSeconds(d.RetryAfter)
	return fault.New(fault.RateLimit, "Too many forms were sent from your network. Try again in %d s.", wait).
		After(time.Duration(wait) * time.Second)
}

// knownBrowser tells whether somebody has signed in with a browser: auth has given it what it shows. It is asked only when there
// is no other place.
func (k *Console) knownBrowser(v *visit, browser string) bool {
	if !isSecret(browser) {
		return false
	}
	ctx := caller.With(v.r.Context(), caller.Caller{RequestID: v.RequestID})
	asks := edge.AddressBucket("browser", caller.Network(v.Address), knownRate)
	if k.Edge.Limiter.Take(ctx, []edge.Bucket{asks}).Refused != "" {
		return false
	}
	_, err := k.Visitors.browsers.Get(ctx, browser, nil)
	return err == nil
}

// browserQuestion names a browser by the secret in its cookie, which outlives its sessions.
type browserQuestion struct {
	ID string `json:"id"`
}

// browserAnswer tells whether somebody has signed in with it.
type browserAnswer struct {
	Known bool `json:"known"`
}

// knownBrowser asks auth about a browser. It may be repeated, since it changes nothing.
var knownBrowser = remote.Operation[browserQuestion, browserAnswer]{Path: "/internal/browsers/known", Repeatable: true}

// AskAuthForBrowser returns the question that Visitors put to the auth service.
func AskAuthForBrowser(auth *remote.Client) func(context.Context, string) error {
	return func(ctx context.Context, secret string) error {
		a, err := knownBrowser.Call(caller.Alone(ctx, caller.Gateway), auth, browserQuestion{secret})
		if err == nil && !a.Known {
			err = fault.New(fault.AuthInvalid, "Nobody is known to have signed in with this browser.")
		}
		return err
	}
}

// secretPages are the parts of the console that look up what an address or a cookie has that nobody else should know.
var secretPages = []string{"/unsubscribe", "/connect", "/login/invitation", "/login/oidc/callback"}

// mayLookUp returns what a visitor's request to such a page is charged to if it leads nowhere, or refuses; nil for any other.
func (k *Console) mayLookUp(v *visit) ([]edge.Bucket, error) {
	if !slices.ContainsFunc(secretPages, func(page string) bool { return web.Below(v.r.URL.Path, page) }) {
		return nil, nil
	}
	return k.Edge.MayLookUp("pages", v.Address, []string{v.r.URL.Path})
}

// recordLookup counts a visitor's request to such a page that its owner has answered. What has held is the path of a link to
// unsubscribe, which has the secret: a query that somebody adds makes no other link of it.
func (k *Console) recordLookup(ctx context.Context, v *visit, status int) error {
	switch {
	case v.suspects == nil:
	case status == http.StatusOK && web.Below(v.r.URL.Path, "/unsubscribe"): // of the others, some have nothing to show
		k.Edge.RecordSuccess("pages", v.Address, []string{v.r.URL.Path})
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		return k.Edge.RecordFailure(ctx, v.Address, v.suspects)
	}
	return nil
}
