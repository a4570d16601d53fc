package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"hub.internal/pkg/schema"
)

// JSON writes JSON with indents. It says the same, number by number; characters that steer a terminal, which JSON
// may hold as they are, are written as escapes.
// Numbers keep their digits: nothing is decoded.
func JSON(w io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// Line writes JSON in one line, and is otherwise as JSON.
func Line(w io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// escaped writes characters that steer a terminal, and bytes that are not UTF-8, as \u escapes: to a JSON parser they say the same.
func escaped(b []byte) []byte {
	if bytes.IndexFunc(b, steers) < 0 && utf8.Valid(b) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if steers(r) || r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// steers tells the characters that can be in JSON only within a text, where all below a space are escapes already.
func steers(r rune) bool { return r != '\n' && schema.Unprintable(r) }
