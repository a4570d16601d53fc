package hop

import (
	"io"
	"strconv"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// ReadBody reads a body of at most limit bytes, length of which are declared (-1: not known). A
// larger one is E_VALIDATION with details.limit_bytes.
func ReadBody(body io.Reader, length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, TooLarge(limit)
	}
	size := length
	if size < 0 {
		size = 512
	}
	buf := make([]byte, 0, size+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, TooLarge(limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, schema.Invalid("", "json", "could not be read to its end").Because(err)
		}
	}
}

// TooLarge is the refusal of a body over its cap.
func TooLarge(limit int64) error {
	return fault.New(fault.Validation, "The request body is larger than %d bytes.", limit).With(map[string]any{"limit_bytes": limit,
		"violations": []schema.Violation{{Rule: "maxBytes", Message: "must have at most " + strconv.FormatInt(limit, 10) + " bytes"}}})
}
