package authoring

import (
	"strings"
	"testing"
)

func TestPolicyIsNamed(t *testing.T) {
	t.Parallel()
	var p Policy
	if err := p.UnmarshalText([]byte("anybody")); err == nil || !strings.Contains(err.Error(), "verified or not_b2c") {
		t.Error(err)
	}
	for _, want := range []Policy{Verified, NotB2C} {
		if err := p.UnmarshalText([]byte(want)); err != nil || p != want {
			t.Error(p, err)
		}
	}
}
