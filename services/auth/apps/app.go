// Package apps is the domain of Connected Apps: other services that call Hub's API for their users. An app has a
// state, places that Hub may send browsers and messages to, scopes, limits, and secrets to sign its tokens with. It
// refuses to verify a token, and to know where anything is kept.
package apps

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// Status says whether an app may call.
type Status string

// The states of an app.
const (
	Active    Status = "ACTIVE"
	Suspended Status = "SUSPENDED"
	Revoked   Status = "REVOKED"
)

// Statuses lists the states.
func Statuses() []string { return []string{string(Active), string(Suspended), string(Revoked)} }

// transitions are what a state may become. A revoked app stays revoked.
var transitions = map[Status][]Status{
	Active:    {Suspended, Revoked},
	Suspended: {Active, Revoked},
	Revoked:   {},
}

// May tells whether an app in this state may become to.
func (s Status) May(to Status) bool { return slices.Contains(transitions[s], to) }

// LinkMode says when the link of a user to an app begins to hold.
type LinkMode string

// The link modes.
const (
	// Consent is when the user allows it.
	Consent LinkMode = "consent"
	// Confirm is when the app has also confirmed that it was the same user.
	Confirm LinkMode = "confirm"
)

// LinkModes lists the link modes.
func LinkModes() []string { return []string{string(Consent), string(Confirm)} }

// Scopes lists what an app can be allowed: the routes of the API that take an app's token ask for these.
func Scopes() []string { return []string{"pay:read", "pay:write", "pay:refund"} }

// Limits bound the calls of an app, or with an API key.
type Limits struct {
	UserPerMinute    int `json:"user_per_minute"`
	UserBurst        int `json:"user_burst"`
	ServicePerMinute int `json:"service_per_minute"`
	ServiceBurst     int `json:"service_burst"`
}

// DefaultLimits are those of who asks for no others.
func DefaultLimits() Limits {
	return Limits{UserPerMinute: 120, UserBurst: 60, ServicePerMinute: 1200, ServiceBurst: 300}
}

// Settings are what of an app an administrator may change.
type Settings struct {
	Name string
	// RedirectURLs are where browsers may be sent back to. They are compared byte by byte.
	RedirectURLs []string
	// Origins are whom messages may be sent to; none allows every one.
	Origins  []string
	Scopes   []string
	LinkMode LinkMode
	Limits   Limits
}

// App is a Connected App.
type App struct {
	// Code names the app for ever.
	Code string
	Settings
	Status Status
	// Reason is why the app was suspended or revoked; empty for an active one.
	Reason string
	// Version counts the changes, so that nobody undoes one that they have not seen.
	Version              int
	CreatedBy            string
	CreatedAt, UpdatedAt time.Time
}

// Bounds of what an app is made of.
const (
	MaxCode   = 40
	MaxName   = 100
	MaxReason = 500
	// MaxURLs bounds redirect URLs and origins each, MaxURL one of them in bytes.
	MaxURLs = 20
	MaxURL  = 500

	maxRate = 10_000_000
)

var codePattern = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// newApp makes an app as asked, or tells all that is wrong with the wish.
func newApp(code string, in Settings, by string, now time.Time) (App, error) {
	var v schema.Violations
	if len(code) > MaxCode || !codePattern.MatchString(code) {
		v.Add("/service_code", "pattern", "must be 1 to %d of a-z 0-9 with single . _ - between them", MaxCode)
	}
	in = in.check(&v)
	if err := v.Err(); err != nil {
		return App{}, err
	}
	return App{Code: code, Settings: in, Status: Active, Version: 1, CreatedBy: by, CreatedAt: now, UpdatedAt: now}, nil
}

// edit gives the app other settings.
func (a App) edit(in Settings, version int, now time.Time) (App, error) {
	var v schema.Violations
	in = in.check(&v)
	if err := v.Err(); err != nil {
		return App{}, err
	}
	if a.Status == Revoked {
		return App{}, ended(a)
	}
	if version != a.Version {
		return App{}, fault.New(fault.Conflict, "Somebody else has changed the app %s meanwhile. Look at it again, then change it.", a.Code)
	}
	a.Settings, a.Version, a.UpdatedAt = in, a.Version+1, now
	return a, nil
}

// become moves the app to another state.
func (a App) become(to Status, reason string, now time.Time) (App, error) {
	if !a.Status.May(to) {
		return App{}, fault.New(fault.Conflict, "The app %s is %s, so it cannot become %s.", a.Code, a.Status, to).
			With(map[string]any{"from": a.Status, "to": to})
	}
	var v schema.Violations
	if to == Active {
		reason = ""
	} else {
		line(&v, "reason", reason, MaxReason)
	}
	if err := v.Err(); err != nil {
		return App{}, err
	}
	a.Status, a.Reason, a.Version, a.UpdatedAt = to, reason, a.Version+1, now
	return a, nil
}

// ended is E_CONFLICT for a change of an app that was revoked: that is for good.
func ended(a App) error {
	return fault.New(fault.Conflict, "The app %s is revoked for good. Create another one.", a.Code).With(map[string]any{"from": a.Status})
}

// check adds what is wrong with the settings, and returns them in their order and once each.
func (in Settings) check(v *schema.Violations) Settings {
	line(v, "name", in.Name, MaxName)
	in.RedirectURLs = list(v, "redirect_urls", in.RedirectURLs, redirectURL)
	in.Origins = list(v, "origins", in.Origins, origin)
	known := Scopes()
	for _, s := range in.Scopes {
		if !slices.Contains(known, s) {
			v.Add("/scopes", "enum", "has the unknown scope %q; the scopes are %s", s, strings.Join(known, ", "))
		}
	}
	in.Scopes = slices.DeleteFunc(known, func(s string) bool { return !slices.Contains(in.Scopes, s) })
	in.LinkMode = cmp.Or(in.LinkMode, Consent)
	if !slices.Contains(LinkModes(), string(in.LinkMode)) {
		v.Add("/link_mode", "enum", "must be one of %s", strings.Join(LinkModes(), ", "))
	}
	if in.Limits == (Limits{}) {
		in.Limits = DefaultLimits()
	}
	in.Limits.Check(v)
	return in
}

// Check adds the limits that are out of bounds.
func (l Limits) Check(v *schema.Violations) {
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"user-per-minute", l.UserPerMinute}, {"user-burst", l.UserBurst},
		{"service-per-minute", l.ServicePerMinute}, {"service-burst", l.ServiceBurst},
	} {
		if limit.value < 1 || limit.value > maxRate {
			v.Add("/"+limit.name, "range", "must be between 1 and %d", maxRate)
		}
	}
}

// line judges text that people read on a terminal later.
func line(v *schema.Violations, name, value string, longest int) {
	if n := utf8.RuneCountInString(value); strings.TrimSpace(value) == "" || n > longest || !text.IsPrintable(value) {
		v.Add("/"+name, "line", "must be 1 to %d printable characters", longest)
	}
}
