package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"

	"hub.internal/pkg/fault"
)

// Filter is an expression in the language of jq. It reads no file, no module and no variable of the environment.
type Filter struct{ code *gojq.Code }

// NewFilter compiles an expression. E_VALIDATION says what is wrong with it.
func NewFilter(expression string) (*Filter, error) {
	query, err := gojq.Parse(expression)
	if err == nil {
		var code *gojq.Code
		if code, err = gojq.Compile(query); err == nil {
			return &Filter{code}, nil
		}
	}
	return nil, fault.New(fault.Validation, "--jq: %v", err)
}

// Write writes what the expression makes of JSON, each result in a line: a text as it is, anything else as JSON. On a screen no text
// steers it. An expression that does not fit the answer is E_VALIDATION.
func (f *Filter) Write(ctx context.Context, w io.Writer, s Screen, raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // digits are kept
	var v any
	if err := decoder.Decode(&v); err != nil {
		return fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	results := f.code.RunWithContext(ctx, v)
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		var line []byte
		switch v := v.(type) {
		case error:
			var halt *gojq.HaltError
			if errors.As(v, &halt) && halt.Value() == nil {
				return nil
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault.New(fault.Validation, "--jq: %v", v)
		case string:
			if line = []byte(v); s.Width > 0 {
				line = []byte(Sanitize(v))
			}
		default:
			b, err := gojq.Marshal(v)
			if err != nil {
				return err
			}
			line = escaped(b)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
}
