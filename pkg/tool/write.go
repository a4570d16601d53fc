package tool

import (
	"context"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// Idempotency is what the function of a write tool needs to do its work once: the key
// that the caller sent, and the input whose fingerprint the key stands for.
type Idempotency struct {
	Key   string
	Input []byte
}

type idempotency struct{}

// WithIdempotency returns a context for the function of a write tool; New makes it for
// each call.
func WithIdempotency(ctx context.Context, i Idempotency) context.Context {
	return context.WithValue(ctx, idempotency{}, i)
}

// IdempotencyFrom returns what the call that ctx belongs to was sent with; the zero value
// outside a write tool.
func IdempotencyFrom(ctx context.Context) Idempotency {
	i, _ := ctx.Value(idempotency{}).(Idempotency)
	return i
}

// keyed checks what the gateway has checked before, for whoever calls past it.
func keyed(ctx context.Context, call *Call) (context.Context, error) {
	if call.IdempotencyKey == "" {
		return nil, fault.New(fault.Validation, "The header %s is needed: this tool writes.", KeyHeader).
			With(map[string]any{"violations": []schema.Violation{{Rule: "idempotencyKey", Message: "the header " + KeyHeader + " is needed"}}})
	}
	return WithIdempotency(ctx, Idempotency{Key: call.IdempotencyKey, Input: call.Input}), nil
}

// Written is the answer of a write tool as its store keeps it, the first time and on a
// replay. A declaration that answers it has to say its Output.
type Written struct {
	// Data is the answer, byte for byte the same each time.
	Data []byte
	// Rows is the primary row count.
	Rows int
	// Again tells that the write happened in an earlier call.
	Again bool
}

// JSON implements Raw.
func (w Written) JSON() []byte { return w.Data }

// Count implements Counter.
func (w Written) Count() int { return w.Rows }

// Replayed implements Replayer.
func (w Written) Replayed() bool { return w.Again }
