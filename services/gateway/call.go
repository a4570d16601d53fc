// Package gateway is the edge: every call of an agent passes its pipeline, and
// nothing behind it has to ask again who is calling, or whether the input holds.
package gateway

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
)

// Call is one call on its way through the pipeline: a transport fills the upper
// half, the stages fill the lower one.
type Call struct {
	RequestID string
	Started   time.Time
	// Address is the client's; limits count its network.
	Address    string
	Credential Credential
	// ExternalUserID is who the agent acts for, as it says.
	ExternalUserID string
	// Name is that of the tool or the route; Find looks it up, nil when there is none.
	Name string
	Find func() *Entry
	// IdempotencyKey is the raw header; HasKey tells an empty one from none.
	IdempotencyKey string
	HasKey         bool
	// Repeated are headers that decide something and were sent more than once: which one holds is nobody's to guess.
	Repeated []string
	// DeriveKey tells that the caller has sent no key and is given one: IdempotencyKey is new, and the tool's owner makes another of the
	// call itself.
	DeriveKey bool
	// IfNoneMatch is what a catalog request has already.
	IfNoneMatch string
	// BodyLength is the declared length, -1 when unknown.
	BodyLength int64
	// Plain tells that a failure is answered in one line of text, because nobody there knows the envelope.
	Plain bool
	// Read reads the input, from a body of at most limit bytes.
	Read func(ctx context.Context, limit int64) ([]byte, error)

	Principal
	Entry  *Entry
	Limits Decision
	Input  []byte
	end    context.CancelFunc
}

// End releases what the call's deadline takes, once its answer has been written.
func (c *Call) End() { c.end() }

// Answer is what the pipeline ends with.
type Answer struct {
	*remote.Response
}

// externalUserHeader says who an agent acts for.
const externalUserHeader = "X-External-User-Id"

// repeated are the headers that the request has more than one of.
func repeated(h http.Header) (names []string) {
	for _, name := range []string{tool.KeyHeader, externalUserHeader} {
		if len(h.Values(name)) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// once refuses a header that was sent more than once.
func (c *Call) once(name string) error {
	if !slices.Contains(c.Repeated, name) {
		return nil
	}
	return fault.New(fault.Validation, "The header %s must be sent once.", name).
		With(map[string]any{"violations": []schema.Violation{{Rule: "header", Message: "the header " + name + " must be sent once"}}})
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
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return "", badKey("must be printable ASCII")
		}
	}
	return key, nil
}

func badKey(message string) error {
	return fault.New(fault.Validation, "The header %s %s.", tool.KeyHeader, message).
		With(map[string]any{"violations": []schema.Violation{{Rule: "idempotencyKey", Message: "the header " + tool.KeyHeader + " " + message}}})
}
