package auth

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/auth/apps"
)

// Status says what a key is good for at a moment.
type Status string

// The states of a key. A revoked key stays revoked when it expires.
const (
	Active  Status = "active"
	Revoked Status = "revoked"
	Expired Status = "expired"
)

// Key is an API key without the key itself.
type Key struct {
	ID   string
	Name string
	// Service is the rate-limit and audit identity; a rotation keeps it.
	Service string
	// Head and Tail are the ends of the key in clear.
	Head, Tail string
	PepperID   string
	Scopes     []string
	Limits     Limits
	CreatedBy  string
	CreatedAt  time.Time
	// ExpiresAt is nil for a key that does not expire.
	ExpiresAt    *time.Time
	RevokedAt    *time.Time
	RevokeReason string
	// RotatedTo and RotatedFrom link the keys of a rotation.
	RotatedTo, RotatedFrom string
	// LastUsedAt is exact to a minute.
	LastUsedAt *time.Time
}

// Limits bound the calls with a key. They are those of an app, too.
type Limits = apps.Limits

// DefaultLimits are those of a key that asks for no others.
func DefaultLimits() Limits { return apps.DefaultLimits() }

// Scopes lists the scopes that a key can hold.
func Scopes() []string {
	return []string{"explore", "sql", "query", "author", "control", "admin:read", "admin:write"}
}

// Bounds of what a key is made of.
const (
	maxName     = 100
	maxReason   = 500
	maxActor    = 200
	minLifetime = time.Minute
	maxLifetime = 10 * 366 * 24 * time.Hour
	maxOverlap  = 30 * 24 * time.Hour
)

// keyID is the form of a key's id.
var keyID = regexp.MustCompile(`^ak_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

var servicePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$`)

// Status is the state of the key at now. Expiry begins at the very moment.
func (k Key) Status(now time.Time) Status {
	switch {
	case k.RevokedAt != nil:
		return Revoked
	case k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
		return Expired
	}
	return Active
}

// KeyFilter says which keys a list has.
type KeyFilter struct {
	// Search is a part of the name or of the service, a whole id, or the begin of the key; empty finds all.
	Search string
	// Status is empty for keys in every state.
	Status Status
	// After is the id below which the list goes on; empty begins it.
	After string
	// Limit is how many keys a page has, at most; 0 means 200.
	Limit int
	// At is the moment that Status is about; List sets it.
	At time.Time
}

// searchTerm is what is looked for: of a whole key no more than may be shown, and kept.
func searchTerm(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, prefix) && len(text) > headLength {
		return text[:headLength]
	}
	return text
}

// Issue is what a new key is asked to be.
type Issue struct {
	// ID makes issuing once: another try with it is E_CONFLICT. It has the form of NewKeyID; empty draws one.
	ID     string
	Name   string
	Scopes []string
	// Service defaults to the key's id.
	Service string
	// Lifetime is zero for a key that does not expire.
	Lifetime time.Duration
	// Limits default to DefaultLimits.
	Limits Limits
}

// newKey makes a key as asked, or tells all that is wrong with the wish.
func newKey(id string, in Issue, secret Secret, pepperID, by string, now time.Time) (Key, error) {
	if in.Service == "" {
		in.Service = id
	}
	if in.Limits == (Limits{}) {
		in.Limits = DefaultLimits()
	}
	var v schema.Violations
	scopes := chosenScopes(&v, in.Scopes)
	checkLine(&v, "name", in.Name, maxName)
	checkLine(&v, "actor", by, maxActor)
	if !servicePattern.MatchString(in.Service) {
		v.Add("/service", "pattern", "must be 1 to 100 of A-Z a-z 0-9 . _ : - and begin with a letter or a digit")
	}
	if !keyID.MatchString(id) {
		v.Add("/id", "pattern", "must be the id of a new key")
	}
	if in.Lifetime != 0 && (in.Lifetime < minLifetime || in.Lifetime > maxLifetime) {
		v.Add("/expires", "range", "must be between a minute and ten years")
	}
	in.Limits.Check(&v)
	if err := v.Err(); err != nil {
		return Key{}, err
	}
	k := Key{ID: id, Name: in.Name, Service: in.Service, Head: secret.Head(), Tail: secret.Tail(), PepperID: pepperID,
		Scopes: scopes, Limits: in.Limits, CreatedBy: by, CreatedAt: now}
	if in.Lifetime > 0 {
		k.ExpiresAt = new(now.Add(in.Lifetime))
	}
	return k, nil
}

// revoke ends the key for good. A key that is revoked already keeps its first reason.
func (k Key) revoke(reason string, now time.Time) (Key, error) {
	var v schema.Violations
	if checkLine(&v, "reason", reason, maxReason); v.Err() != nil {
		return Key{}, v.Err()
	}
	if k.RevokedAt == nil {
		k.RevokedAt, k.RevokeReason = &now, reason
	}
	return k, nil
}

// rotate makes the key's successor, which lives as long as the key was meant to, and lets
// the key expire after overlap, or earlier if it was about to.
func (k Key) rotate(id string, secret Secret, pepperID, by string, overlap time.Duration, now time.Time) (old, successor Key, err error) {
	if overlap < 0 || overlap > maxOverlap {
		return Key{}, Key{}, schema.Invalid("/overlap", "range", "must be between 0 and 30 days")
	}
	if status := k.Status(now); status != Active {
		return Key{}, Key{}, fault.New(fault.Conflict, "The key %s is %s, so it cannot be rotated. Issue a new key.", k.ID, status)
	}
	if k.RotatedTo != "" {
		return Key{}, Key{}, fault.New(fault.Conflict, "The key %s was rotated already; its successor is %s. Rotate that one.", k.ID, k.RotatedTo)
	}
	in := Issue{Name: k.Name, Scopes: k.Scopes, Service: k.Service, Limits: k.Limits}
	if k.ExpiresAt != nil {
		in.Lifetime = k.ExpiresAt.Sub(k.CreatedAt)
	}
	if successor, err = newKey(id, in, secret, pepperID, by, now); err != nil {
		return Key{}, Key{}, err
	}
	successor.RotatedFrom, k.RotatedTo = k.ID, successor.ID
	if end := now.Add(overlap); k.ExpiresAt == nil || end.Before(*k.ExpiresAt) {
		k.ExpiresAt = &end
	}
	return k, successor, nil
}

// rescope gives the key other scopes, unless those that it had are others by now. Nil is what nobody has looked at.
func (k Key) rescope(had, scopes []string, now time.Time) (Key, error) {
	var v schema.Violations
	list := chosenScopes(&v, scopes)
	if err := v.Err(); err != nil {
		return Key{}, err
	}
	if status := k.Status(now); status != Active {
		return Key{}, fault.New(fault.Conflict, "The key %s is %s, so its scopes cannot change. Issue a new key.", k.ID, status)
	}
	if had != nil && !slices.Equal(chosenScopes(&schema.Violations{}, had), k.Scopes) {
		return Key{}, fault.New(fault.Conflict, "Somebody else has just changed the scopes of the key %s: they are %s now.", k.ID,
			strings.Join(k.Scopes, ", "))
	}
	k.Scopes = list
	return k, nil
}

// chosenScopes returns the scopes once each, in the order of Scopes.
func chosenScopes(v *schema.Violations, asked []string) []string {
	known := Scopes()
	for _, s := range asked {
		if !slices.Contains(known, s) {
			v.Add("/scopes", "enum", "has the unknown scope %q; the scopes are %s", s, strings.Join(known, ", "))
		}
	}
	if len(asked) == 0 {
		v.Add("/scopes", "minItems", "must have at least one scope; the scopes are %s", strings.Join(known, ", "))
	}
	return slices.DeleteFunc(known, func(s string) bool { return !slices.Contains(asked, s) })
}

// checkLine judges text that people read on a terminal later.
func checkLine(v *schema.Violations, name, value string, longest int) {
	if n := utf8.RuneCountInString(value); strings.TrimSpace(value) == "" || n > longest || !text.IsPrintable(value) {
		v.Add("/"+name, "line", "must be 1 to %d printable characters", longest)
	}
}
