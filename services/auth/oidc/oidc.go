// Package oidc lets users sign in through an OpenID Connect provider: authorization code with
// PKCE, state and nonce. It refuses to keep anything, and to trust an address that the provider
// has not verified.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/telemetry"
	"hub.internal/services/auth"
)

// timeout bounds one question to the provider.
const timeout = 10 * time.Second

// Config says which provider.
type Config struct {
	Issuer, ClientID, ClientSecret string
	// PublicURL is where browsers reach Hub; the provider sends them back to /login/oidc/callback there.
	PublicURL string
	// RolesClaim names the claim whose values Roles maps to roles; empty leaves roles to Hub.
	RolesClaim string
	Roles      map[string]string
}

// Provider is an OpenID Connect provider. It is asked for its addresses when it is first used,
// so that Hub starts without it.
type Provider struct {
	c      Config
	client *http.Client

	found     atomic.Pointer[discovered]
	searching singleflight.Group
}

// discovered is what the provider has told of itself (OpenID Connect Discovery).
type discovered struct {
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
	provider *oidc.Provider
}

var _ auth.SingleSignOn = (*Provider)(nil)

// New checks the configuration.
func New(c Config) (*Provider, error) {
	public, err := url.Parse(c.PublicURL)
	if err != nil || public.Host == "" || public.Scheme != "https" && public.Scheme != "http" || strings.Trim(public.Path, "/") != "" {
		return nil, errors.New("HUB_PUBLIC_URL has to be where browsers reach Hub, such as https://hub.example.com, when HUB_OIDC_ISSUER is set")
	}
	issuer, err := url.Parse(c.Issuer)
	if err != nil || issuer.Host == "" {
		return nil, errors.New("HUB_OIDC_ISSUER is not a URL")
	}
	if c.ClientID == "" {
		return nil, errors.New("HUB_OIDC_CLIENT_ID is needed when HUB_OIDC_ISSUER is set")
	}
	if (c.RolesClaim == "") != (len(c.Roles) == 0) {
		return nil, errors.New("HUB_OIDC_ROLES_CLAIM and HUB_OIDC_ROLES (group:reviewer,other-group:admin) need each other")
	}
	for _, value := range slices.Sorted(maps.Keys(c.Roles)) {
		if role := c.Roles[value]; !slices.Contains(auth.Roles(), role) {
			return nil, fmt.Errorf("HUB_OIDC_ROLES gives %s the unknown role %q; the roles are %s", value, role, strings.Join(auth.Roles(), ", "))
		}
	}
	return &Provider{c: c, client: &http.Client{Timeout: timeout, Transport: measured{telemetry.NewDependency("oidc")}}}, nil
}

// measured are calls of the dependency oidc: discovery, keys, the exchange of a code, userinfo.
type measured struct{ calls *telemetry.Dependency }

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(r *http.Request) (*http.Response, error) {
	start, outcome := time.Now(), "unanswered"
	resp, err := http.DefaultTransport.RoundTrip(r)
	switch {
	case errors.Is(err, context.Canceled):
		outcome = "canceled"
	case err == nil && resp.StatusCode < http.StatusBadRequest:
		outcome = "ok"
	case err == nil:
		outcome = fmt.Sprintf("http_%dxx", resp.StatusCode/100)
	}
	m.calls.Done(r.Context(), "call", start, outcome)
	return resp, err
}

// discover asks for the provider's addresses once. Whoever comes meanwhile waits for the same
// answer: while the provider is down they must not wait one after the other.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	select {
	case answer := <-p.searching.DoChan("", func() (any, error) { return p.fetchDiscovery(ctx) }):
		found, _ := answer.Val.(*discovered)
		return found, answer.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Reach tells whether the provider says where its pages are.
func (p *Provider) Reach(ctx context.Context) error {
	_, err := p.discover(ctx)
	return err
}

// fetchDiscovery asks the provider for its addresses and keeps them. A failure is not kept: the next log-in asks again.
func (p *Provider) fetchDiscovery(ctx context.Context) (*discovered, error) {
	// Not the request's context: the provider keeps it, to fetch keys later.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.c.Issuer)
	if err != nil {
		return nil, unavailable(err)
	}
	found := &discovered{
		oauth: oauth2.Config{ClientID: p.c.ClientID, ClientSecret: p.c.ClientSecret, Endpoint: provider.Endpoint(),
			RedirectURL: strings.TrimRight(p.c.PublicURL, "/") + "/login/oidc/callback", Scopes: []string{oidc.ScopeOpenID, "email", "profile"}},
		verifier: provider.Verifier(&oidc.Config{ClientID: p.c.ClientID}),
		provider: provider,
	}
	p.found.Store(found)
	return found, nil
}

// Begin implements auth.SingleSignOn.
func (p *Provider) Begin(ctx context.Context, f auth.Flow) (string, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return d.oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Finish implements auth.SingleSignOn.
func (p *Provider) Finish(ctx context.Context, f auth.Flow, code, issuer string) (auth.Identity, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return auth.Identity{}, err
	}
	// RFC 9207: a provider that names itself must be the one that was asked.
	if issuer != "" && issuer != p.c.Issuer {
		return auth.Identity{}, refuse(fmt.Errorf("the answer is from %q", issuer))
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response.StatusCode < 500 {
			return auth.Identity{}, refuse(err)
		}
		return auth.Identity{}, unavailable(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return auth.Identity{}, refuse(errors.New("the answer holds no id_token"))
	}
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return auth.Identity{}, refuse(err)
	}
	if id.Nonce != f.Nonce {
		return auth.Identity{}, refuse(errors.New("the id_token has another nonce"))
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return auth.Identity{}, refuse(err)
	}
	// Many providers give the address by userinfo alone.
	if claims["email"] == nil || p.c.RolesClaim != "" && claims[p.c.RolesClaim] == nil {
		if err := p.userInfo(ctx, d, token, id.Subject, claims); err != nil {
			return auth.Identity{}, err
		}
	}
	return p.identity(claims)
}

// userInfo adds the claims that the id_token lacks.
func (p *Provider) userInfo(ctx context.Context, d *discovered, token *oauth2.Token, subject string, claims map[string]any) error {
	if d.provider.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return unavailable(err)
	}
	if info.Subject != subject {
		return refuse(errors.New("userinfo is about somebody else"))
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return refuse(err)
	}
	for name, value := range more {
		if _, has := claims[name]; !has {
			claims[name] = value
		}
	}
	return nil
}

// identity is who the claims speak of, with the roles of Hub that the provider's roles map to; E_AUTH_INVALID for an address that
// is not verified, and without the claim that tells the roles.
func (p *Provider) identity(claims map[string]any) (auth.Identity, error) {
	email, _ := claims["email"].(string)
	verified := claims["email_verified"] == true || claims["email_verified"] == "true"
	if email == "" || !verified {
		return auth.Identity{}, fault.New(fault.AuthInvalid, "The provider has not verified your e-mail address, so Hub cannot tell who you are.")
	}
	who := auth.Identity{Email: email}
	who.Name, _ = claims["name"].(string)
	if p.c.RolesClaim == "" {
		return who, nil
	}
	// A claim that is left out says nothing: providers do so with too many groups as well as with none.
	if claims[p.c.RolesClaim] == nil {
		return auth.Identity{}, fault.New(fault.AuthInvalid, "The log-in provider does not say which groups you are in. Ask an administrator.")
	}
	who.Roles = []string{}
	for _, value := range values(claims[p.c.RolesClaim]) {
		if role, known := p.c.Roles[value]; known {
			who.Roles = append(who.Roles, role)
		}
	}
	return who, nil
}

// values are a claim's: a list of texts, or one text, which is one value: names of groups have spaces.
func values(claim any) (out []string) {
	switch c := claim.(type) {
	case string:
		return []string{c}
	case []any:
		for _, v := range c {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// refuse is the answer to a provider's answer that does not hold; the log has the cause.
func refuse(cause error) error {
	return fault.New(fault.AuthInvalid, "The log-in could not be verified. Please try again.").Because(cause)
}

// unavailable is the answer while the provider cannot be asked.
func unavailable(cause error) error {
	return fault.New(fault.DB, "The log-in provider does not answer right now. Try again in a moment.").After(5 * time.Second).Because(cause)
}
