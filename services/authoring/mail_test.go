package authoring

import (
	"fmt"
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

// TestContentHashSeesEverything moves each byte between and within the parts of a mail.
func TestContentHashSeesEverything(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]Mail{}
	for _, m := range []Mail{
		{}, {Subject: "a"}, {Body: "a"}, {ToName: "a"}, {ToEmail: "a"}, {HTML: true}, {Subject: "ab"}, {Subject: "a", Body: "b"},
		{Subject: "b", Body: "a"}, {Subject: "a\x00b"},
		{Subject: "a", HTML: true}, {Body: "ab"}, {Body: "a", ToName: "b"}, {ToName: "ab"}, {ToName: "a", ToEmail: "b"}, {ToEmail: "A"},
		{Body: "text"}, {Body: "html"},
	} {
		if twin, there := seen[m.ContentHash()]; there {
			t.Errorf("%+v and %+v have one hash", m, twin)
		}
		seen[m.ContentHash()] = m
	}
	const pinned = "fc1dabe0c53e0e2b50d0350d7a6ade254ce19d03f82b59e3861620e8109bfa77"
	a := Mail{ToEmail: "a@b.example", ToName: "A", Subject: "S", Body: "B"}
	if got := fmt.Sprintf("%x", a.ContentHash()); got != pinned {
		t.Errorf("the hash that approvals are bound to has changed: %s", got)
	}
}
