package edge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/catalog"
)

// Tokens are what auth says of the tokens of apps (ServiceJWT). Nothing is remembered of them: each is good for one
// call.
type Tokens struct {
	Auth *remote.Client
	// PublicURL is where browsers reach Hub, and so what addresses to link accounts at begin with; empty takes any.
	PublicURL string
}

// AppTokens are the Authenticator of routes that take the token of an app.
type AppTokens struct {
	Tokens
	// Unlinked takes a token whose user has linked no account.
	Unlinked bool
}

// Open is the Authenticator of routes that take no credential: whoever calls is a visitor, with the limit of their
// address. What else a request has to show is the owner's business.
type Open struct{ Rate Rate }

// Authenticators are those of all credentials that a route may name.
func Authenticators(keys KeyVerifier, tokens Tokens, open Rate) map[string]Authenticator {
	return map[string]Authenticator{
		tool.KeyCredential:         APIKeys{Keys: keys},
		tool.AppCredential:         AppTokens{Tokens: tokens},
		tool.AppUnlinkedCredential: AppTokens{Tokens: tokens, Unlinked: true},
		tool.NoCredential:          Open{open},
	}
}

// Authenticate implements Authenticator.
func (o Open) Authenticate(_ context.Context, c *Call) (Principal, error) {
	return Principal{Network: o.Rate, Caller: caller.Caller{Kind: caller.Visitor, Service: "open",
		ExternalUserID: caller.Network(c.Address), RequestID: c.RequestID}}, nil
}

// Stages implements Authenticator: a visitor has no scope, and the limit of their network.
func (o Open) Stages(g *Gateway) []Stage { return []Stage{g.Limit, Unscoped} }

type (
	// tokenQuestion is the token as it was sent.
	tokenQuestion struct {
		Token string `json:"token"`
	}
	// tokenAnswer is a token that holds, and its app. The scopes and limits are those of the app at this moment.
	tokenAnswer struct {
		tokenClaims
		Scopes []string         `json:"scopes"`
		Limits credentialLimits `json:"limits"`
		Status string           `json:"status"`
	}
	// tokenClaims are those that decide for whom a call is (RFC 7519).
	tokenClaims struct {
		ServiceCode string `json:"service_code"`
		Subject     string `json:"sub"`
		ID          string `json:"jti"`
		ExpiresAt   int64  `json:"exp"`
	}
	// admissionQuestion asks auth to use a token up, and, where Linked is set, whose account the user has linked.
	admissionQuestion struct {
		tokenClaims
		Linked bool `json:"linked"`
	}
	// admitted is for whom a token speaks that was used up. HubUser is empty where no account is linked. Reason then tells why one
	// has to be, or linked again for scopes that its user has not consented to: NOT_LINKED, PENDING or SCOPE_INCREASED.
	// LinkURL is where that is done, until ExpiresAt.
	admitted struct {
		ServiceCode string     `json:"service_code"`
		Subject     string     `json:"sub"`
		HubUser     string     `json:"hub_user"`
		Scopes      []string   `json:"scopes"`
		Reason      string     `json:"reason"`
		LinkURL     string     `json:"link_url"`
		ExpiresAt   *time.Time `json:"expires_at"`
	}
)

var (
	// verifyToken checks the signature and the claims, and uses nothing up.
	verifyToken = remote.Operation[tokenQuestion, tokenAnswer]{Path: "/internal/apps/verify", Repeatable: true}
	// Doing it twice would find the token used.
	admitToken = remote.Operation[admissionQuestion, admitted]{Path: "/internal/apps/admit"}
)

// tokenForm is that of what is shown to auth at all: a JWS in its compact form (RFC 7515), header, payload and signature in
// base64url without padding. Whether it holds is auth's to say.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// maxTokenLength bounds a token, in bytes: a longer one is not shown to auth.
const maxTokenLength = 4 << 10

// invalidToken is E_AUTH_INVALID. It does not say what is wrong, as a forger would like to know.
func invalidToken() error { return fault.New(fault.AuthInvalid, "The ServiceJWT is not valid.") }

// serviceJWT is the token of a credential: E_AUTH_MISSING without one, E_AUTH_INVALID when there is anything else
// beside or in place of it.
func serviceJWT(c Credential) (string, error) {
	filled := func(s string) bool { return strings.TrimSpace(s) != "" }
	switch {
	case slices.ContainsFunc(c.APIKey, filled):
		return "", fault.New(fault.AuthInvalid, "This route takes a ServiceJWT, and no API key.")
	case !slices.ContainsFunc(c.Authorization, filled):
		return "", fault.New(fault.AuthMissing, "A ServiceJWT is required: send it as Authorization: Bearer <SERVICE_JWT>.")
	case len(c.Authorization) > 1:
		return "", fault.New(fault.AuthInvalid, "Send one Authorization header.")
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(c.Authorization[0]), " ")
	token = strings.TrimSpace(token)
	switch {
	case strings.HasPrefix(token, "crm_"):
		return "", fault.New(fault.AuthInvalid, "This route takes a ServiceJWT, and no API key.")
	case !strings.EqualFold(scheme, "Bearer") || len(token) > maxTokenLength || !tokenForm.MatchString(token):
		return "", invalidToken()
	}
	return token, nil
}

// Stages implements Authenticator: a token that is refused for its app's limits is still good, so it is used up after them.
func (a AppTokens) Stages(g *Gateway) []Stage { return []Stage{g.Limit, a.admit} }

// identities implements identifier: a token is of an app and of a user of the app, as it says.
func (a AppTokens) identities(c Credential) (list []string, found bool) {
	token, err := serviceJWT(c)
	if err != nil {
		return nil, false
	}
	if said, err := claimsOf(token); err == nil {
		list = []string{"app " + said.ServiceCode, "user " + said.ServiceCode + "\x00" + said.Subject}
	}
	return list, true
}

// Authenticate implements Authenticator: the token's app and user, with the app's limits. The token is not used up yet.
func (a AppTokens) Authenticate(ctx context.Context, c *Call) (Principal, error) {
	token, err := serviceJWT(c.Credential)
	if err != nil {
		return Principal{}, err
	}
	t, err := verifyToken.Call(caller.Alone(ctx, caller.Gateway), a.Auth, tokenQuestion{token})
	if err != nil {
		return Principal{}, err
	}
	if err := t.matches(token); err != nil {
		return Principal{}, err
	}
	who := caller.Caller{Kind: caller.App, Service: t.ServiceCode, ExternalUserID: t.Subject, CredentialID: "app:" + t.ServiceCode,
		RequestID: c.RequestID}
	p := Principal{token: &t, Caller: who}
	p.User, p.ServiceWide = t.Limits.rates()
	if t.Status != "ACTIVE" {
		return p, fault.New(fault.AuthRevoked, "The app %s is not active.", t.ServiceCode)
	}
	return p, nil
}

// matches holds what auth answered to what the token says: auth has checked its signature, and answers for no other app,
// user or token than it names.
func (t tokenAnswer) matches(token string) error {
	c, err := claimsOf(token)
	if err != nil {
		return fmt.Errorf("auth takes a token that cannot be read: %w", err)
	}
	if t.tokenClaims != c || c.ServiceCode == "" || c.Subject == "" || c.ID == "" {
		return fmt.Errorf("auth answers for a token of %q with one of %q", catalog.Shown(c.ServiceCode), catalog.Shown(t.ServiceCode))
	}
	return nil
}

// claimsOf is what a token says, whoever has signed it.
func claimsOf(token string) (c tokenClaims, err error) {
	// Names in their exact case: encoding/json takes ISS for iss where a struct has that.
	var said map[string]json.RawMessage
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(b, &said)
	}
	for name, to := range map[string]any{"iss": &c.ServiceCode, "sub": &c.Subject, "jti": &c.ID, "exp": &c.ExpiresAt} {
		if err == nil {
			err = json.Unmarshal(said[name], to)
		}
	}
	return c, err
}

// admit is the Stage that uses the token up, and then judges the app's scope and the link of its user's account. From
// then on the caller is the app for the account that is linked.
func (a AppTokens) admit(ctx context.Context, c *Call) (context.Context, error) {
	admitted, err := a.admission(ctx, c.Entry, *c.token, c.Caller)
	if err != nil {
		return ctx, err
	}
	c.Caller, c.authorized = admitted, true
	return caller.With(ctx, admitted), nil
}

// admission uses a token up at auth. It returns the caller with the scopes that both the app has and its user has agreed to,
// E_SCOPE when the app lacks the route's scope, and ACCOUNT_LINK_REQUIRED when the user has not linked an account or not with
// that scope.
func (a AppTokens) admission(ctx context.Context, e *catalog.Entry, t tokenAnswer, who caller.Caller) (caller.Caller, error) {
	asking := caller.Alone(ctx, caller.Gateway)
	in, err := admitToken.Call(asking, a.Auth, admissionQuestion{t.tokenClaims, !a.Unlinked})
	if err != nil {
		return who, err
	}
	if in.ServiceCode != t.ServiceCode || in.Subject != t.Subject {
		return who, fmt.Errorf("auth answers for %q with a link of %q", catalog.Shown(t.ServiceCode), catalog.Shown(in.ServiceCode))
	}
	scope := e.Spec.Scope
	if scope != "" && !slices.Contains(t.Scopes, scope) {
		return who, missingScope(e)
	}
	if a.Unlinked {
		if scope != "" {
			who.Scopes = []string{scope}
		}
		return who, nil
	}
	who.Scopes = slices.DeleteFunc(slices.Clone(t.Scopes), func(s string) bool { return !slices.Contains(in.Scopes, s) })
	if who.HubUser = in.HubUser; in.HubUser != "" && who.Holds(scope) {
		return who, nil
	}
	who.Scopes, who.HubUser = nil, ""
	return who, a.linkRequired(in)
}

// linkRequired is what the details of ACCOUNT_LINK_REQUIRED are.
type linkRequired struct {
	Code      fault.Code `json:"code"`
	LinkURL   string     `json:"link_url"`
	ExpiresAt string     `json:"expires_at"`
	Reason    string     `json:"reason"`
}

// reasons are why an account may have to be linked.
var reasons = map[string]string{
	"NOT_LINKED":      "The user has not linked an account to this app.",
	"PENDING":         "The link of the user's account was not confirmed by the app.",
	"SCOPE_INCREASED": "The app needs scopes that the user has not consented to.",
}

// linkRequired is ACCOUNT_LINK_REQUIRED with the page to send the user to. An answer of auth without such a page of Hub's is a
// defect, and so E_INTERNAL: it must not send users elsewhere.
func (a AppTokens) linkRequired(in admitted) error {
	why, known := reasons[in.Reason]
	if !known || in.ExpiresAt == nil || !a.isLinkPage(in.LinkURL) {
		return fmt.Errorf("auth says neither who has linked an account nor where (reason %q)", catalog.Shown(in.Reason))
	}
	return fault.New(fault.AccountLinkMissing, "%s Send them to link_url, and call again then.", why).
		With(linkRequired{fault.AccountLinkMissing, in.LinkURL, in.ExpiresAt.UTC().Format("2006-01-02T15:04:05.000Z"), in.Reason})
}

// isLinkPage tells whether an address is Hub's page to link accounts at.
func (a AppTokens) isLinkPage(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !PlainAddress(address) || u.User != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	base := strings.TrimRight(a.PublicURL, "/")
	if base == "" {
		base = u.Scheme + "://" + u.Host
	}
	return strings.HasPrefix(address, base+"/connect?")
}

// PlainAddress tells that an address has nothing that its readers take for different things.
func PlainAddress(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return len(s) <= 2048
}
