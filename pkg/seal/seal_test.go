package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"hub.internal/pkg/seal"
)

func box(t *testing.T, keyset string) *seal.Box {
	t.Helper()
	b, err := seal.Open(keyset)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatIsSealedOpensUnderItsNameAlone(t *testing.T) {
	t.Parallel()
	first, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	b := box(t, first)
	sealed, err := b.Seal("hss_secret", "auth.app_secrets|sealed|s_1|shop")
	if err != nil || bytes.Contains(sealed, []byte("hss_")) {
		t.Fatalf("%q %v", sealed, err)
	}
	if again, err := b.Seal("hss_secret", "auth.app_secrets|sealed|s_1|shop"); err != nil || bytes.Equal(again, sealed) {
		t.Errorf("two seals are equal: %v", err)
	}
	second, err := seal.Rotated(first)
	if err != nil || second == first {
		t.Fatal(err)
	}
	third, _ := seal.NewKeyset()
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, c := range map[string]struct {
		box    *seal.Box
		sealed []byte
		name   string
		opens  bool
	}{
		"as it is":          {b, sealed, "auth.app_secrets|sealed|s_1|shop", true},
		"rotated keyset":    {box(t, second), sealed, "auth.app_secrets|sealed|s_1|shop", true},
		"another row":       {b, sealed, "auth.app_secrets|sealed|s_2|shop", false},
		"another app":       {b, sealed, "auth.app_secrets|sealed|s_1|other", false},
		"no name":           {b, sealed, "", false},
		"another keyset":    {box(t, third), sealed, "auth.app_secrets|sealed|s_1|shop", false},
		"a bit is changed":  {b, changed, "auth.app_secrets|sealed|s_1|shop", false},
		"nothing is sealed": {b, nil, "auth.app_secrets|sealed|s_1|shop", false},
	} {
		text, err := c.box.Open(c.sealed, c.name)
		if (err == nil) != c.opens || c.opens && text != "hss_secret" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	// What the rotated keyset seals is sealed with the new key.
	after, err := box(t, second).Seal("x", "n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(after, "n"); err == nil {
		t.Error("the old keyset opens what the new key has sealed")
	}
}

func TestABadKeysetIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hunter2", "aHVudGVyMg==", strings.Repeat("A", 100)} {
		_, err := seal.Open(text)
		if err == nil || text != "" && strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "keyset") {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := seal.Rotated(text); err == nil {
			t.Errorf("%q is rotated", text)
		}
	}
}
