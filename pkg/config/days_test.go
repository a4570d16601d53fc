package config_test

import (
	"testing"

	"hub.internal/pkg/config"
)

func TestDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Days{"400d": 400, " 62d ": 62, "0d": 0} {
		var d config.Days
		if err := d.UnmarshalText([]byte(text)); err != nil || d != want {
			t.Errorf("%q is %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "d", "400", "-1d", "1.5d", "400h", "99999d", "4 d"} {
		var d config.Days
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
	if text, err := config.Days(400).MarshalText(); err != nil || string(text) != "400d" {
		t.Errorf("%s, %v", text, err)
	}
}
