package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"hub.internal/pkg/schema"
)

// Operation is a neighbour's operation as its caller knows it, with small types of the caller's
// own. A test holds it to what the neighbour declares.
type Operation[In, Out any] struct {
	Path string
	// Most bounds the answer, in bytes; 0 is 4 MiB. A neighbour that answers more is not believed.
	Most int64
	// Repeatable tells that doing it twice is harmless.
	Repeatable bool
	// ForCaller shows the neighbour the token of the caller of ctx, if it came with one: the operation
	// needs to know for whom it is.
	ForCaller bool
}

// defaultMaxAnswer is what an answer may take where its operation does not say.
const defaultMaxAnswer = 4 << 20

// Call sends in and decodes the answer. It returns what Do returns, and E_DB for an answer that is none or too long.
func (o Operation[In, Out]) Call(ctx context.Context, c *Client, in In) (Out, error) {
	var out Out
	body, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("remote %s: %w", c.service, err)
	}
	response, err := c.Do(ctx, Request{Path: o.Path, Body: body, Retry: o.Repeatable, Show: o.ForCaller})
	if err != nil {
		return out, err
	}
	defer response.Data.Close()
	answer := io.LimitedReader{R: response.Data, N: cmp.Or(o.Most, defaultMaxAnswer) + 1}
	if err := json.NewDecoder(&answer).Decode(&out); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return out, context.Canceled
		}
		if answer.N == 0 {
			err = fmt.Errorf("%s answers more than %d bytes", o.Path, cmp.Or(o.Most, defaultMaxAnswer))
		}
		return out, c.unavailable(err)
	}
	return out, nil
}

// Contract is what the caller of an operation takes for granted.
type Contract struct {
	Path string
	// Sent is what it sends, Read what it reads of the answer.
	Sent, Read *schema.Schema
}

// Contract returns what Call takes for granted.
func (o Operation[In, Out]) Contract() Contract {
	return Contract{o.Path, schema.Of[In](), schema.Of[Out]()}
}
