package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/schema"
)

// Elements yields the objects of a list, each made member by member.
func Elements[T any](ctx context.Context, raw json.RawMessage, set func(*T, string, jsontext.Value) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		dec := Decoder(raw)
		fail := func(err error) {
			var none T
			yield(none, fmt.Errorf("targets: %w", err))
		}
		if _, err := dec.ReadToken(); err != nil {
			fail(err)
			return
		}
		for dec.PeekKind() == '{' {
			var element T
			if err := ctx.Err(); err != nil {
				fail(err)
				return
			}
			if err := Members(dec, &element, set); err != nil {
				fail(err)
				return
			}
			if !yield(element, nil) {
				return
			}
		}
		if _, err := dec.ReadToken(); err != nil {
			fail(err)
		}
	}
}

// ReadInteger reads a whole number that was validated before.
func ReadInteger(value jsontext.Value, to *int64) error {
	n, ok := schema.Int64(value)
	if !ok {
		return fmt.Errorf("%s is no whole number", value)
	}
	*to = n
	return nil
}

// ReadText reads a text of JSON without its quotes and escapes.
func ReadText(value jsontext.Value, to *string) error {
	b, err := jsontext.AppendUnquote(nil, value)
	*to = string(b)
	return err
}
