package tool

import (
	"context"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

const (
	// KeyHeader carries the caller's Idempotency-Key, from process to process too.
	KeyHeader = "Idempotency-Key"
	// DeriveHeader tells the owner of a tool that the caller has sent no key: that of KeyHeader is new with each call, and the
	// owner may make one of what is called, so that the same call again writes once. An owner that does not know of it writes anew.
	DeriveHeader = "Hub-Derive-Key"
	// BytesHeader tells the owner of a tool how many bytes of data the caller can read at once. An owner that does not know of it, or
	// cannot end an answer earlier, answers more.
	BytesHeader = "Hub-Most-Bytes"
)

// Idempotency is what a function that writes needs to do its work once: the key that the
// caller sent, and the input whose fingerprint the key stands for. The key of a route may be empty
// where it is optional.
type Idempotency struct {
	Key   string
	Input []byte
	// Derive tells that the caller has sent no key, and is to have one that stands for the call itself (pkg/write).
	Derive bool
}

type idempotency struct{}

// IdempotencyFrom returns what the call that ctx belongs to was sent with; the zero value
// outside a write tool, and once its function has returned.
func IdempotencyFrom(ctx context.Context) Idempotency {
	if i, ok := ctx.Value(idempotency{}).(*Idempotency); ok {
		return *i
	}
	return Idempotency{}
}

// keyed checks what the gateway has checked before, for whoever calls past it. The caller
// ends what it returned: a context can outlive its call, in the pool of a database driver
// for one, and must not take 32 MiB of input along.
func keyed(ctx context.Context, call *Call, required bool) (keyed context.Context, end func(), err error) {
	if call.IdempotencyKey == "" && required {
		return nil, nil, fault.New(fault.Validation, "The header %s is needed: this call writes.", KeyHeader).
			With(map[string]any{"violations": []schema.Violation{{Rule: "idempotencyKey", Message: "the header " + KeyHeader + " is needed"}}})
	}
	held := &Idempotency{Key: call.IdempotencyKey, Input: call.Input, Derive: call.DeriveKey}
	return context.WithValue(ctx, idempotency{}, held), func() { *held = Idempotency{} }, nil
}

type mostBytes struct{}

// MostBytes is how many bytes of data the caller of ctx's call can read at once; 0 when it has not said.
func MostBytes(ctx context.Context) int {
	n, _ := ctx.Value(mostBytes{}).(int)
	return n
}
