package servicejwt

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/links"
)

// Links makes the links of apps' users to Hub's.
type Links interface {
	// Invite makes the address at which a user links their account, with these scopes, and says until when it is good.
	Invite(service, externalUser string, scopes []string) (url string, expires time.Time, err error)
}

// Store knows the apps with their secrets, and remembers which tokens were used. Its errors are faults.
type Store interface {
	// Keyring returns an app and its at most two secrets of the kind that are good at a moment; E_NOT_FOUND for no app.
	Keyring(ctx context.Context, code string, kind apps.Kind, at time.Time) (apps.App, []apps.SealedSecret, error)
	// Use uses up a token of an app, all of it or nothing, and returns the app, whatever its state; E_NOT_FOUND for no app. id stands
	// for the token among the app's, exp is its end. fresh tells that it had not been used before, and that the app is active: of
	// several that use it at once, one is told so. link is that of externalUser that was not revoked; nil without one.
	Use(ctx context.Context, code string, id [sha256.Size]byte, exp time.Time, externalUser string) (app apps.App, fresh bool,
		link *links.Link, err error)
	// Sweep forgets the tokens that expired before a moment.
	Sweep(ctx context.Context, before time.Time) error
}

// Config is what a Verifier is made of.
type Config struct {
	Store Store
	// Sealer opens the secrets of apps; nil where Hub has no keyset, and verifies nothing.
	Sealer apps.Sealer
	Links  Links
	// Audience is what a token has to name in aud.
	Audience string
	Now      func() time.Time
	Logger   *slog.Logger
}

// Verifier judges tokens.
type Verifier struct {
	Config
	parser *jwt.Parser
	// decoy is opened where an app has no secret, so that an unknown app costs the same work as a known one.
	decoy apps.SealedSecret
}

// keys is how many secrets a token is held against, whether its app has them or not.
const keys = 2

// New returns a Verifier.
func New(c Config) (*Verifier, error) {
	v := &Verifier{Config: c, decoy: apps.SealedSecret{Secret: apps.Secret{ID: "decoy"}}}
	v.parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation())
	if c.Sealer == nil {
		return v, nil
	}
	var err error
	v.decoy.Sealed, err = c.Sealer.Seal("hss_"+rand.Text()+rand.Text(), apps.Signing.SealName(v.decoy.Secret))
	return v, err
}

// Verified is a token that holds, and its app.
type Verified struct {
	Claims
	App apps.App
}

// Verify judges a token. It returns E_AUTH_INVALID for one that is malformed, by an app that is not there or with a
// signature that does not hold, which nobody can tell apart; for claims that are wrong, and says which;
// E_AUTH_EXPIRED for one that is over, E_AUTH_REVOKED for the name of an app that was revoked, whose secrets are
// destroyed, and E_DB when it cannot tell. The app may be suspended: whoever asks looks at its state.
func (v *Verifier) Verify(ctx context.Context, token string) (Verified, error) {
	if v.Sealer == nil {
		return Verified{}, errors.New("no ServiceJWT can be verified: HUB_SECRETS_KEYSET is not set")
	}
	u, err := parseUnverified(token)
	if err != nil {
		return Verified{}, invalidToken(err)
	}
	now := v.Now()
	app, held, err := v.Store.Keyring(ctx, u.issuer, apps.Signing, now)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Verified{}, err
	}
	candidates, err := v.open(held, u.kid)
	if err != nil {
		return Verified{}, err
	}
	var claims members
	if _, err := v.parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return candidates, nil }); err != nil {
		if app.Status == apps.Revoked {
			return Verified{}, fault.New(fault.AuthRevoked, "The app is revoked.")
		}
		return Verified{}, invalidToken(err)
	}
	c, err := validateClaims(claims, v.Audience, now)
	return Verified{c, app}, err
}

// open opens the secrets that may have signed a token, and as many decoys as there are to make it two.
func (v *Verifier) open(held []apps.SealedSecret, kid string) (jwt.VerificationKeySet, error) {
	var set jwt.VerificationKeySet
	if kid != "" {
		held = slices.DeleteFunc(held, func(s apps.SealedSecret) bool { return s.ID != kid })
	}
	for i := range keys {
		secret := v.decoy
		if i < len(held) {
			secret = held[i]
		}
		text, err := v.Sealer.Open(secret.Sealed, apps.Signing.SealName(secret.Secret))
		if err != nil {
			return set, err
		}
		set.Keys = append(set.Keys, []byte(text))
	}
	return set, nil
}

// Reasons why an account has to be linked.
const (
	NotLinked      = "NOT_LINKED"
	Pending        = "PENDING"
	ScopeIncreased = "SCOPE_INCREASED"
)

// Admission is what a token that was used up for a call is good for.
type Admission struct {
	// HubUser is whose account is linked to the app's user, with what they have consented to; empty without a link.
	HubUser string
	Scopes  []string
	// Reason says why the account has to be linked, or linked again: empty when it has not. URL is where its owner does so.
	Reason, URL string
	ExpiresAt   time.Time
}

// Admit uses a token up and tells for whom it speaks; linked says whether that has to be anybody. It returns
// E_AUTH_INVALID for a token that was used before, E_AUTH_EXPIRED, E_AUTH_REVOKED for an app that is not active
// any more, and E_DB, without effect, when that cannot be known.
func (v *Verifier) Admit(ctx context.Context, c Claims, linked bool) (Admission, error) {
	now := v.Now()
	switch {
	case !now.Before(c.ExpiresAt):
		return Admission{}, expiredToken()
	case c.Issuer == "" || c.Subject == "" || !text.IsPrintable(c.Subject) || c.ID == "" || c.ExpiresAt.After(now.Add(Lifetime+2*skew)):
		return Admission{}, fault.New(fault.Validation, "These are not the claims of a token that was verified.")
	}
	var user string
	if linked {
		user = c.Subject
	}
	app, fresh, link, err := v.Store.Use(ctx, c.Issuer, sha256.Sum256([]byte(c.ID)), c.ExpiresAt, user)
	switch {
	case err != nil:
		return Admission{}, err
	case app.Status != apps.Active:
		return Admission{}, fault.New(fault.AuthRevoked, "The app is %s.", app.Status)
	case !fresh:
		return Admission{}, invalidClaim("its jti was used before. Make a new token for each call, and for each try of one.")
	case !linked:
		return Admission{}, nil
	}
	return v.link(app, link, c.Subject, now)
}

// link tells whose account a user of an app acts for, or where it is to be linked.
func (v *Verifier) link(app apps.App, l *links.Link, subject string, now time.Time) (a Admission, err error) {
	a.Reason = NotLinked
	switch {
	case l == nil || l.Lapsed(now):
	case l.Status == links.Pending:
		a.Reason = Pending
	case l.Status == links.Active:
		a.HubUser, a.Scopes, a.Reason = l.HubUser, l.Scopes, ""
		if !l.Covers(app.Scopes) {
			a.Reason = ScopeIncreased
		}
	}
	if a.Reason != "" {
		a.URL, a.ExpiresAt, err = v.Links.Invite(app.Code, subject, app.Scopes)
	}
	return a, err
}

const (
	sweepEvery = time.Minute
	// sweepAfter is how long a token is remembered beyond its end: longer than clocks are apart.
	sweepAfter = 60 * time.Second
)

// Sweep forgets tokens that are over, from time to time, until ctx ends.
func (v *Verifier) Sweep(ctx context.Context) error {
	for {
		if err := v.Store.Sweep(ctx, v.Now().Add(-sweepAfter)); err != nil && ctx.Err() == nil {
			v.Logger.WarnContext(ctx, "tokens that are over are not forgotten", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepEvery):
		}
	}
}
