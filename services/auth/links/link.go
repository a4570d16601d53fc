// Package links is the domain of links: that an account of Hub's and a user of a Connected App are the same person, and
// what the app may do for them. A link is made by its user, who opens a ticket at /connect and allows it. The package
// refuses to know pages, tokens of apps, and where anything is kept.
package links

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// Status says what a link is good for.
type Status string

// The states of a link.
const (
	// Pending is allowed by its user, and not yet confirmed by the app. It joins nobody.
	Pending Status = "PENDING"
	Active  Status = "ACTIVE"
	Revoked Status = "REVOKED"
)

// none is the state of a link that is not there yet.
const none Status = ""

// transitions are what a state may become. A revoked link stays revoked: whoever links again makes another one.
var transitions = map[Status][]Status{
	none:    {Pending, Active},
	Pending: {Active, Revoked},
	Active:  {Revoked},
	Revoked: {},
}

// May tells whether a link in this state may become to.
func (s Status) May(to Status) bool { return slices.Contains(transitions[s], to) }

// Link joins a user of an app and an account of Hub's.
type Link struct {
	ID string
	// Service is the app's code, ExternalUser its own name for the user.
	Service      string
	ExternalUser string
	// HubUser is the id of the account.
	HubUser string
	Status  Status
	// Scopes are what the user has agreed to. What a call may do is that of it which the app may.
	Scopes []string
	// Version is the consent that holds, from 1.
	Version int
	// LinkedAt is since when the link is in its state, if that is not REVOKED.
	LinkedAt  time.Time
	RevokedAt *time.Time
}

// Covers tells whether the user has agreed to all of the scopes.
func (l Link) Covers(scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(l.Scopes, s) })
}

// Lapsed tells whether an app has let the time pass to confirm the link.
func (l Link) Lapsed(now time.Time) bool {
	return l.Status == Pending && !now.Before(l.LinkedAt.Add(GrantLife))
}

// become moves the link to another state.
func (l Link) become(to Status, now time.Time) (Link, error) {
	if !l.Status.May(to) {
		return Link{}, fault.New(fault.Conflict, "The link %s is %s, so it cannot become %s.", l.ID, l.Status, to).
			With(map[string]any{"from": l.Status, "to": to})
	}
	l.Status = to
	if to == Revoked {
		l.RevokedAt = &now
	} else {
		l.LinkedAt = now
	}
	return l, nil
}

// App is what links need to know of an app.
type App struct {
	Code, Name string
	// Live tells that the app is ACTIVE.
	Live bool
	// Confirms tells that a link holds when the app has confirmed it, and not before.
	Confirms     bool
	RedirectURLs []string
	Scopes       []string
}

// allowed are those of the scopes that the app has, in its order.
func (a App) allowed(scopes []string) []string { return both(a.Scopes, scopes) }

// Returns is where the browser may be sent back to: returnURL, if it is byte for byte one of the app's, or nothing.
func (a App) Returns(returnURL string) string {
	if returnURL == "" || !slices.Contains(a.RedirectURLs, returnURL) {
		return ""
	}
	return returnURL
}

// Consent is what a user has agreed to, once.
type Consent struct {
	Version int
	Scopes  []string
	At      time.Time
	// Address and Agent are those of the browser.
	Address, Agent string
}

// both are what two lists have in common, in the order of the first.
func both(a, b []string) []string {
	out := []string{}
	for _, s := range a {
		if slices.Contains(b, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// union is what either list has, that of the first before.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Bounds of the parties to a link.
const (
	MaxService = 40
	// MaxExternalUser is in characters.
	MaxExternalUser = 200
)

// pair judges the two names of a link's user with the app.
func pair(service, externalUser string) error {
	var v schema.Violations
	if n := len(service); n < 1 || n > MaxService {
		v.Add("/service_code", "length", "must be 1 to %d characters", MaxService)
	}
	if !storable(externalUser) {
		v.Add("/external_user", "length", "must be 1 to %d printable characters", MaxExternalUser)
	}
	return v.Err()
}

// storable tells whether an app can have such a user: people read its name, and the store keeps it.
func storable(externalUser string) bool {
	n := utf8.RuneCountInString(externalUser)
	return n >= 1 && n <= MaxExternalUser && utf8.ValidString(externalUser) && !strings.ContainsFunc(externalUser, schema.Unprintable)
}
