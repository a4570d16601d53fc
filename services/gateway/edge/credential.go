package edge

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

// Credential is what the transport found: the values of each header that may hold one.
type Credential struct {
	Authorization []string
	APIKey        []string
}

// credentialOf reads both headers; what they mean is verify's business.
func credentialOf(h http.Header) Credential {
	return Credential{Authorization: h.Values("Authorization"), APIKey: h.Values("X-Api-Key")}
}

// Principal is who a credential speaks for, and what holds for its calls.
type Principal struct {
	Caller caller.Caller
	// User and ServiceWide are the limits of its external user and of its service.
	User, ServiceWide Rate
	// Network, when it says anything, is the limit of the client's network, in place of both.
	Network Rate

	// token is what auth said of the token of an app; nil for any other credential.
	token *tokenAnswer
	// suspects are what a credential that does not hold counts against, beside its client's networks.
	suspects []Bucket
}

// Authenticator makes a Principal of a call's credential. It refuses with E_AUTH_MISSING, E_AUTH_INVALID,
// E_AUTH_EXPIRED or E_AUTH_REVOKED, and with E_DB when it cannot tell. Beside a refusal it returns what it knows
// of the caller.
type Authenticator interface {
	Authenticate(context.Context, *Call) (Principal, error)
	// Stages are the checks that a call with such a credential passes once its tool is known, in order: what it may call,
	// and its limits. One of them has to judge what it may call (Gateway.Scope, AppTokens' admission, Unscoped): without
	// that the pipeline refuses each call with E_INTERNAL.
	Stages(*Gateway) []Stage
}

// APIKeys are the Authenticator of CRM API keys.
type APIKeys struct{ Keys KeyVerifier }

// Authenticate implements Authenticator.
func (a APIKeys) Authenticate(ctx context.Context, c *Call) (Principal, error) {
	key, err := a.verify(ctx, c.Credential)
	if err != nil {
		return Principal{}, err
	}
	p := Principal{User: key.User, ServiceWide: key.ServiceWide, Caller: caller.Caller{Kind: caller.Key, Service: key.Service,
		ExternalUserID: key.ID, CredentialID: key.ID, Scopes: key.Scopes, RequestID: c.RequestID}}
	if err := c.refuseRepeated(externalUserHeader); err != nil {
		return p, err
	}
	if c.ExternalUserID != "" {
		if err := validExternalUser(c.ExternalUserID); err != nil {
			return p, err
		}
		p.Caller.ExternalUserID = c.ExternalUserID
	}
	return p, nil
}

// Stages implements Authenticator: the scope of the key, and then its limits.
func (a APIKeys) Stages(g *Gateway) []Stage { return []Stage{g.Scope, g.Limit} }

// identities implements identifier: a key is itself.
func (a APIKeys) identities(c Credential) (list []string, found bool) {
	key, err := apiKey(c)
	return []string{"key " + key}, err == nil
}

// APIKey is a verified credential.
type APIKey struct {
	ID      string
	Service string
	Scopes  []string
	// User and ServiceWide are the key's rate limits.
	User, ServiceWide Rate
	// ExpiresAt is zero for a key that does not expire.
	ExpiresAt time.Time
}

// KeyVerifier looks an API key up. It returns E_AUTH_INVALID for an unknown one,
// E_AUTH_REVOKED for one that was revoked or has expired, and E_DB when it cannot tell.
type KeyVerifier interface {
	Verify(ctx context.Context, key string) (APIKey, error)
}

// keyForm is that of CONTRACT.md 3.1: crm_, 36 random and 6 check characters.
var keyForm = regexp.MustCompile(`^crm_[0-9A-Za-z]{42}$`)

// invalidKey is E_AUTH_INVALID, whatever is wrong with the key.
func invalidKey() error {
	return fault.New(fault.AuthInvalid, "The API key is not valid.")
}

// verify looks up the key that the credential holds.
func (a APIKeys) verify(ctx context.Context, c Credential) (APIKey, error) {
	key, err := apiKey(c)
	if err != nil {
		return APIKey{}, err
	}
	return a.Keys.Verify(ctx, key)
}

// apiKey returns the key of a credential: E_AUTH_MISSING without one, E_AUTH_INVALID
// when it is malformed or the headers contradict one another.
func apiKey(c Credential) (key string, err error) {
	for _, value := range c.Authorization {
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		scheme, token, _ := strings.Cut(value, " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "Bearer") && (keyForm.MatchString(scheme) || keyForm.MatchString(token)) {
			return "", fault.New(fault.AuthInvalid,
				"The header Authorization has an API key without the word Bearer: send Authorization: Bearer <API_KEY>, or X-API-Key: <API_KEY>.")
		}
		if !strings.EqualFold(scheme, "Bearer") || (key != "" && key != token) || token == "" {
			return "", invalidKey()
		}
		key = token
	}
	for _, value := range c.APIKey {
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		if key != "" && key != value {
			return "", invalidKey()
		}
		key = value
	}
	switch {
	case key == "":
		return "", fault.New(fault.AuthMissing,
			"An API key is required: send it as Authorization: Bearer <API_KEY> or X-API-Key: <API_KEY>.")
	case !keyForm.MatchString(key):
		return "", invalidKey()
	}
	return key, nil
}

// buckets are those that a call counts against: the user's and the service's, or the address's. An app and a
// service that keys were issued to may have one name, and have limits of their own.
func (c *Call) buckets() []Bucket {
	if c.Network != (Rate{}) {
		return []Bucket{{Scope: "address", Name: bucketName("open", caller.Network(c.Address)), Rate: c.Network}}
	}
	service := c.Caller.Service
	if c.Caller.Kind == caller.App {
		service = "app/" + service // a slash is in no name of a service
	}
	return []Bucket{
		{Scope: "user", Name: bucketName(service, "u:"+c.Caller.ExternalUserID), Rate: c.User},
		{Scope: "service", Name: bucketName(service, "s"), Rate: c.ServiceWide},
	}
}

// validExternalUser holds the X-External-User-Id to 1 to 200 printable characters: E_VALIDATION for any other.
func validExternalUser(id string) error {
	if len(id) <= 200 && printableASCII(id) {
		return nil
	}
	return badHeader(externalUserHeader, "externalUserId", "must have 1 to 200 printable characters")
}

// Rates are the limits of its caller, as the detail of a tool names them.
func (p Principal) Rates() map[string]int64 {
	return map[string]int64{"rate_user_per_minute": int64(p.User.PerMinute), "rate_user_burst": int64(p.User.Burst),
		"rate_service_per_minute": int64(p.ServiceWide.PerMinute), "rate_service_burst": int64(p.ServiceWide.Burst)}
}
