package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/quota"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/web"
)

// maxVisitorForm bounds what somebody who is not signed in may send: a log-in, an unsubscription.
const maxVisitorForm = 64 << 10

// What people come for who are not signed in. Each has places of its own: those who come for one take none of another's.
const (
	forPages       = "pages"       // what is only looked at
	forForms       = "forms"       // passwords, which wait to be hashed
	forProvider    = "provider"    // log-ins that ask the provider
	forConsent     = "consent"     // accounts to be linked
	forUnsubscribe = "unsubscribe" // the page, and one click in a mail program
)

// visitorPlaces is how many requests may be under way at once for each purpose: two thirds of them anybody's, and a third
// kept for browsers that somebody has signed in with. One network, the widest that an address is part of, may have half
// of anybody's, and one browser half of what is kept. Those that auth answers are together no more than a client of a
// service lets one caller have; there are more for forms than wait there for a password to be hashed.
func visitorPlaces() map[string]int64 {
	return map[string]int64{forPages: 30, forForms: 66, forProvider: 15, forConsent: 15, forUnsubscribe: 48}
}

const (
	// visitorPatience is how long a visitor waits for a place, and maxVisitorsWaiting how many wait for one purpose.
	visitorPatience    = time.Second
	maxVisitorsWaiting = 200
)

var (
	// formRate is how many forms a network may send that a password is hashed for, or the provider asked. It is four times
	// as much for each wider network. A form more does not get as far as a place.
	formRate = Rate{PerMinute: 60, Burst: 60}
	// knownRate is how often a network may have auth asked whether a browser is known: somebody who makes cookies up must
	// not make the gateway ask without end.
	knownRate = Rate{PerMinute: 60, Burst: 10}
)

// purpose is what a visitor comes for.
func purpose(r *http.Request) string {
	switch {
	case web.Below(r.URL.Path, "/unsubscribe"):
		return forUnsubscribe
	case web.Below(r.URL.Path, "/connect"):
		return forConsent
	case web.Below(r.URL.Path, "/login/oidc"):
		return forProvider
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return forPages
	}
	return forForms
}

// Visitors are the places of people who are not signed in.
type Visitors struct {
	// Patience is how long one waits for a place.
	Patience time.Duration

	anybody, known map[string]*quota.Quota
	browsers       *answers[struct{}]
}

// NewVisitors makes the places. ask tells whether somebody has signed in with the browser that has a secret: an error says no,
// whatever it is.
func NewVisitors(ask func(ctx context.Context, secret string) error, now func() time.Time) *Visitors {
	v := &Visitors{Patience: visitorPatience, anybody: map[string]*quota.Quota{}, known: map[string]*quota.Quota{}}
	v.browsers = newAnswers(func(ctx context.Context, secret string) (struct{}, error) { return struct{}{}, ask(ctx, secret) }, now)
	for what, places := range visitorPlaces() {
		v.known[what] = quota.New(places / 3)
		v.anybody[what] = quota.New(places - places/3)
	}
	return v
}

// admit takes a place for a visitor's request until leave, or refuses with E_RATE_LIMIT. What they send is read
// before: who sends it slowly holds nothing but their own connection.
func (k *Console) admit(g *Gateway, v *visit) (leave func(), err error) {
	if r := v.r; r.Body != nil && r.Body != http.NoBody {
		form, err := hop.ReadBody(r.Context(), r.Body, r.ContentLength, maxVisitorForm)
		if err != nil {
			return nil, err
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(form)), int64(len(form)), nil
	}
	what, networks := purpose(v.r), caller.Networks(v.Address)
	err = g.limitForms(v.r.Context(), what, networks)
	if err == nil {
		if leave := k.Visitors.place(v.r.Context(), k.Visitors.anybody[what], networks[len(networks)-1]); leave != nil {
			return leave, nil
		}
		err = fault.New(fault.RateLimit, "Too many people are at this page at this moment. Try again in a few seconds.").After(2 * time.Second)
	}
	if browser := web.ReadCookie(v.r, web.BrowserCookie); k.knows(g, v, browser) {
		if leave := k.Visitors.place(v.r.Context(), k.Visitors.known[what], browser); leave != nil {
			return leave, nil
		}
	}
	return nil, err
}

// place waits for a place, and returns nil when there is none.
func (v *Visitors) place(ctx context.Context, places *quota.Quota, who string) (leave func()) {
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
func (g *Gateway) limitForms(ctx context.Context, what string, networks []string) error {
	if what != forForms && what != forProvider {
		return nil
	}
	buckets := make([]Bucket, len(networks))
	for i, n := range networks {
		buckets[i] = Bucket{Scope: "address", Name: bucketName("forms", n), Rate: formRate.times(wider[i])}
	}
	d := g.Limiter.Take(ctx, buckets)
	if d.Refused == "" {
		return nil
	}
	wait := wholeSeconds(d.RetryAfter)
	return fault.New(fault.RateLimit, "Too many forms were sent from your network. Try again in %d s.", wait).
		After(time.Duration(wait) * time.Second)
}

// knows tells whether somebody has signed in with a browser: auth has given it what it shows. It is asked only when there
// is no other place.
func (k *Console) knows(g *Gateway, v *visit, browser string) bool {
	if !isSecret(browser) {
		return false
	}
	ctx := caller.With(v.r.Context(), caller.Caller{RequestID: v.RequestID})
	asks := Bucket{Scope: "address", Name: bucketName("browser", caller.Network(v.Address)), Rate: knownRate}
	if g.Limiter.Take(ctx, []Bucket{asks}).Refused != "" {
		return false
	}
	_, err := k.Visitors.browsers.get(ctx, browser, nil)
	return err == nil
}

type browserQuestion struct {
	ID string `json:"id"`
}

type browserAnswer struct {
	Known bool `json:"known"`
}

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
