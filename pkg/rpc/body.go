package rpc

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// Holder is a request's body whose server bounds what is kept of such bodies at once.
type Holder interface {
	// Hold counts n more bytes as kept until the request is over. Its error is a fault: the
	// body cannot be kept.
	Hold(ctx context.Context, n int64) error
}

// holderKey finds the Holder of a request in its context.
type holderKey struct{}

// withHolder puts the body's Holder into the context of what is done with the body.
func withHolder(ctx context.Context, r *http.Request) context.Context {
	if holder, is := r.Body.(Holder); is {
		ctx = context.WithValue(ctx, holderKey{}, holder)
	}
	return ctx
}

// Hold counts n more bytes as kept until the request of an endpoint is over, as if they had come with its body: for who is about to
// read from elsewhere what a few bytes have asked for. Where nothing bounds bodies it does nothing.
func Hold(ctx context.Context, n int64) error {
	if holder, is := ctx.Value(holderKey{}).(Holder); is {
		return holder.Hold(ctx, n)
	}
	return nil
}

const (
	// bodyStart is what a body gets to begin with, unless it has announced less or nothing.
	bodyStart, bodyUnannounced = 64 << 10, 512
	// bodyFree is what counts for nothing.
	bodyFree = bodyStart
	// bodyGrowth is by how much it grows: what a body takes is in proportion to what has
	// arrived of it, and not to what its sender has announced.
	bodyGrowth = 4
)

// ReadBody reads a body of at most limit bytes; a larger one is E_VALIDATION with
// details.limit_bytes. length is what the sender has announced, -1 for nothing. Beyond 64 KiB
// the memory is taken as the bytes arrive, from the body's Holder if it is one, whose refusal
// ReadBody returns.
func ReadBody(ctx context.Context, body io.Reader, length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, TooLarge(limit)
	}
	// The byte more tells that there is more.
	most, start := limit+1, int64(bodyUnannounced)
	if length >= 0 {
		most, start = length+1, bodyStart
	}
	buf := make([]byte, 0, min(most, start))
	holder, _ := body.(Holder)
	for {
		if len(buf) == cap(buf) {
			had := int64(cap(buf))
			size := min(had*bodyGrowth, max(most, had+bodyStart))
			if more := max(size, bodyFree) - max(had, bodyFree); holder != nil && more > 0 {
				if err := holder.Hold(ctx, more); err != nil {
					return nil, err
				}
			}
			grown := make([]byte, len(buf), size)
			copy(grown, buf)
			buf = grown
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, TooLarge(limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, Unread(err)
		}
	}
}

// Unread is the refusal (E_VALIDATION) of a body that its sender has broken off, and why.
func Unread(cause error) error {
	return schema.Invalid("", "json", "could not be read to its end").Because(cause)
}

// TooLarge is the refusal of a body over its cap.
func TooLarge(limit int64) error {
	return fault.New(fault.Validation, "The request body is larger than %d bytes.", limit).With(map[string]any{"limit_bytes": limit,
		"violations": []schema.Violation{{Rule: "maxBytes", Message: "must have at most " + strconv.FormatInt(limit, 10) + " bytes"}}})
}
