package text

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that shows itself to nobody who does not call Reveal. In a line, a log or JSON it is "***"; an empty one is empty.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String masks the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// Format masks the secret for each verb of fmt; %d would write a text as it is.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue masks the secret for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText masks the secret where it is encoded as a part of something, such as a
// list: slog asks only a value itself for its LogValue.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
