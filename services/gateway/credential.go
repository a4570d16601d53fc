package gateway

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
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
	// Admit, when there is one, judges the call after its limit, in place of the scope before it: for a
	// credential that is used up by a call, or that has more to show than a scope. It returns who calls from then on.
	Admit func(context.Context, *Entry) (caller.Caller, error)

	// way is what a credential that does not hold counts against, beside its client's networks.
	way []lane
}

// Authenticator makes a Principal of a call's credential. It refuses with E_AUTH_MISSING, E_AUTH_INVALID,
// E_AUTH_EXPIRED or E_AUTH_REVOKED, and with E_DB when it cannot tell. Beside a refusal it returns what it knows
// of the caller.
type Authenticator interface {
	Authenticate(context.Context, *Call) (Principal, error)
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
	if err := c.once(externalUserHeader); err != nil {
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

// claims implements claimant: a key is itself.
func (a APIKeys) claims(c Credential) (list []string, found bool) {
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

// form is that of CONTRACT.md 3.1: crm_, 36 random and 6 check characters.
var form = regexp.MustCompile(`^crm_[0-9A-Za-z]{42}$`)

func invalidKey() error {
	return fault.New(fault.AuthInvalid, "The API key is not valid.")
}

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
		if !strings.EqualFold(scheme, "Bearer") && (form.MatchString(scheme) || form.MatchString(token)) {
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
	case !form.MatchString(key):
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

func validExternalUser(id string) error {
	if len(id) <= 200 {
		ok := true
		for i := range len(id) {
			ok = ok && id[i] >= 0x20 && id[i] <= 0x7e
		}
		if ok {
			return nil
		}
	}
	const message = "must have 1 to 200 printable characters"
	return fault.New(fault.Validation, "The header X-External-User-Id %s.", message).
		With(map[string]any{"violations": []schema.Violation{{Rule: "externalUserId", Message: "the header X-External-User-Id " + message}}})
}
