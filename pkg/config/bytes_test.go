package config_test

import (
	"testing"

	"hub.internal/pkg/config"
)

func TestBytes(t *testing.T) {
	for text, want := range map[string]struct {
		size  config.Bytes
		shown string
	}{
		"4096": {4096, "4KiB"}, "0": {0, "0B"}, "1B": {1, "1B"}, "16KiB": {16 << 10, "16KiB"}, " 512 MiB ": {512 << 20, "512MiB"},
		"3GiB": {3 << 30, "3GiB"}, "1536MiB": {1536 << 20, "1536MiB"},
		"1025": {1025, "1025B"},
	} {
		var b config.Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want.size || b.String() != want.shown {
			t.Errorf("%q: %d, %s, %v", text, b, b, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "512MB", "512 mib", "9223372036854775807KiB", "9223372036854775808", "half"} {
		var b config.Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %s", text, b)
		}
	}
}
