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

func next(t *testing.T, change func(string) (string, error), keyset string) string {
	t.Helper()
	changed, err := change(keyset)
	if err != nil || changed == keyset {
		t.Fatalf("%v", err)
	}
	return changed
}

// TestReplicasOneStepApartOpenEachOthers: at each step of a change of keys, twice over, what the replica that has the step seals opens
// at the one that does not, and the other way round.
func TestReplicasOneStepApartOpenEachOthers(t *testing.T) {
	t.Parallel()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Promoted(keyset); err == nil {
		t.Error("a key is promoted that seals already")
	}
	old, err := box(t, keyset).Seal("old", "n")
	if err != nil {
		t.Fatal(err)
	}
	steps := []func(string) (string, error){seal.Added, seal.Promoted, seal.Added, seal.Promoted}
	for i, step := range steps {
		after := next(t, step, keyset)
		a, b := box(t, after), box(t, keyset)
		for from, to := range map[*seal.Box]*seal.Box{a: b, b: a} {
			sealed, err := from.Seal("text", "n")
			if err != nil {
				t.Fatal(err)
			}
			if text, err := to.Open(sealed, "n"); err != nil || text != "text" {
				t.Errorf("step %d, from the one that has it %t: %q, %v", i+1, from == a, text, err)
			}
			if text, err := to.Open(old, "n"); err != nil || text != "old" {
				t.Errorf("step %d: what was there before: %q, %v", i+1, text, err)
			}
		}
		if i%2 == 0 {
			if _, err := seal.Added(after); err == nil {
				t.Error("a second key is added to one that does not seal yet")
			}
		}
		keyset = after
	}
	if text, err := box(t, keyset).Open(old, "n"); err != nil || text != "old" {
		t.Errorf("after all: %q, %v", text, err)
	}
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
	second := next(t, seal.Promoted, next(t, seal.Added, first))
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
		for name, change := range map[string]func(string) (string, error){"added to": seal.Added, "promoted": seal.Promoted} {
			if _, err := change(text); err == nil {
				t.Errorf("%q is %s", text, name)
			}
		}
	}
}
