package schema

import (
	"context"

	"hub.internal/pkg/fault"
)

// Mended is an input as a validator reads it.
func (v *Validator) Mended(ctx context.Context, input []byte) ([]byte, *fault.Error) {
	mends, f := v.judge(ctx, input)
	return mended(input, mends), f
}
