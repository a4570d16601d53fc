// Package edge is the way of every call from outside: its credential, its limits, its input, and the envelope of its
// answer. Nothing behind it has to ask again who is calling, or whether the input holds. It refuses to know a transport:
// rest, v1 and mcp make a Call of a request, and the console uses its limits.
package edge

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/catalog"
)

// Transport is what a call came by, and how its tool and its input are found there.
type Transport interface {
	// Find returns the tool or the route that is called; nil when there is none.
	Find() *catalog.Entry
	// Read returns the input, of a body of at most limit bytes.
	Read(ctx context.Context, limit int64) ([]byte, error)
}

// Call is one call on its way through the pipeline. A transport fills the upper half, the stages fill the lower one.
type Call struct {
	Transport
	RequestID string
	Started   time.Time
	// Address is the client's; limits count its network.
	Address    string
	Credential Credential
	// ExternalUserID is who the agent acts for, as it says.
	ExternalUserID string
	// Name is that of the tool or the route.
	Name string
	// IdempotencyKey is the raw header; HasKey tells an empty one from none.
	IdempotencyKey string
	HasKey         bool
	// Repeated are headers that decide something and were sent more than once: which one holds is nobody's to guess.
	Repeated []string
	// DeriveKey tells that the caller has sent no key and is given one: IdempotencyKey is new, and the tool's owner makes
	// another of the call itself.
	DeriveKey bool
	// MostBytes is how many bytes of data the caller can read at once; 0 is any number.
	MostBytes int
	// IfNoneMatch is what a catalog request has already.
	IfNoneMatch string
	// BodyLength is the declared length, -1 when unknown.
	BodyLength int64
	// Plain tells that a failure is answered in one line of text, because nobody there knows the envelope.
	Plain bool

	Principal
	// Entry is the tool or the route, once lookup has found it; Limits are the buckets after Limit, and Input what validate has
	// let through.
	Entry  *catalog.Entry
	Limits Decision
	Input  []byte
	// authorized tells that a stage has judged what the caller may call (Authenticator.Stages).
	authorized bool
	cancel     context.CancelFunc
}

// End releases what the call's deadline takes, once its answer has been written.
func (c *Call) End() { c.cancel() }

// Answer is what the pipeline ends with: the answer of the owner.
type Answer struct{ *remote.Response }

// externalUserHeader says who an agent acts for.
const externalUserHeader = "X-External-User-Id"

// repeatedHeaders are those that decide something and that the request has more than one of.
func repeatedHeaders(h http.Header) (names []string) {
	for _, name := range []string{tool.KeyHeader, externalUserHeader} {
		if len(h.Values(name)) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// refuseRepeated refuses a header that was sent more than once.
func (c *Call) refuseRepeated(name string) error {
	if !slices.Contains(c.Repeated, name) {
		return nil
	}
	return badHeader(name, "header", "must be sent once")
}

// badHeader is the refusal (E_VALIDATION) of a header: what is wrong with it, and the rule that it breaks.
func badHeader(name, rule, message string) error {
	text := "header " + name + " " + message
	return fault.New(fault.Validation, "The %s.", text).
		With(map[string]any{"violations": []schema.Violation{{Rule: rule, Message: "the " + text}}})
}

// requestID is the caller's X-Request-Id verbatim when it is one and fit, else a new one.
func requestID(h http.Header) string {
	if ids := h.Values("X-Request-Id"); len(ids) == 1 && caller.ValidRequestID(ids[0]) {
		return ids[0]
	}
	return "req_" + ulid.Make().String()
}

// idempotencyKey strips one pair of double quotes and checks the form: 1..255
// printable ASCII.
func idempotencyKey(raw string) (string, error) {
	key := raw
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if len(key) < 1 || len(key) > 255 {
		return "", badKey("must have 1 to 255 characters")
	}
	if !printableASCII(key) {
		return "", badKey("must be printable ASCII")
	}
	return key, nil
}

// badKey is the refusal of an Idempotency-Key.
func badKey(message string) error { return badHeader(tool.KeyHeader, "idempotencyKey", message) }

// printableASCII tells that a text has no other characters than those from the space to the tilde.
func printableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
