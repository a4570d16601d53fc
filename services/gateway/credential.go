package gateway

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

// form is that of payments.md section 4: crm_, 36 random and 6 check characters.
var form = regexp.MustCompile(`^crm_[0-9A-Za-z]{42}$`)

func invalidKey() error {
	return fault.New(fault.AuthInvalid, "The API key is not valid.")
}

// verify returns the key of a credential: E_AUTH_MISSING without one, E_AUTH_INVALID
// when it is malformed or the headers contradict one another.
func (g *Gateway) verify(ctx context.Context, c Credential) (APIKey, error) {
	var key string
	for _, value := range c.Authorization {
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		scheme, token, _ := strings.Cut(value, " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "Bearer") || (key != "" && key != token) || token == "" {
			return APIKey{}, invalidKey()
		}
		key = token
	}
	for _, value := range c.APIKey {
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		if key != "" && key != value {
			return APIKey{}, invalidKey()
		}
		key = value
	}
	switch {
	case key == "":
		return APIKey{}, fault.New(fault.AuthMissing, "An API key is required: send it as Authorization: Bearer <API_KEY> or X-API-Key: <API_KEY>.")
	case !form.MatchString(key):
		return APIKey{}, invalidKey()
	}
	return g.Keys.Verify(ctx, key)
}

// buckets are the two that a call counts against: the user's first.
func (k APIKey) buckets(c caller.Caller) []Bucket {
	return []Bucket{
		{Scope: "user", Key: "rl:{" + c.Service + "}:u:" + c.ExternalUserID, Rate: k.User},
		{Scope: "service", Key: "rl:{" + c.Service + "}:s", Rate: k.ServiceWide},
	}
}

// countFailure counts a failed credential against its client's network, and refuses
// with E_RATE_LIMIT when there were too many: guessing is bounded. Calls with a good key
// never count here, so a key is looked up before its network is.
func (g *Gateway) countFailure(ctx context.Context, address string) error {
	d := g.Limiter.Take(ctx, []Bucket{{Scope: "address", Key: "rl:{failed}:" + caller.Network(address), Rate: g.Failures}})
	return d.Refusal()
}
