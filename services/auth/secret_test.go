package auth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hub.internal/pkg/fault"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// TestParseSecret takes its valid keys from another implementation of the sum (Python's
// zlib.crc32 in base 62).
func TestParseSecret(t *testing.T) {
	const valid = "crm_abcdefghijklmnopqrstuvwxyz01234567892k61Zi"
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"digits":              {"crm_00000000000000000000000000000000000020xBmF", true},
		"last digits":         {"crm_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz0IfJbP", true},
		"mixed":               {"crm_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ1TJNw3", true},
		"lower case":          {valid, true},
		"empty":               {"", false},
		"prefix alone":        {"crm_", false},
		"short":               {valid[:45], false},
		"long":                {valid + "0", false},
		"huge":                {strings.Repeat(valid, 20_000), false},
		"other prefix":        {"crn_" + valid[4:], false},
		"upper-case prefix":   {"CRM_" + valid[4:], false},
		"other case":          {"crm_" + strings.ToUpper(valid[4:]), false},
		"leading space":       {" " + valid[:45], false},
		"trailing line break": {valid[:45] + "\n", false},
		"line break after":    {valid + "\n", false},
		"NUL":                 {valid[:10] + "\x00" + valid[11:], false},
		"dash":                {valid[:10] + "-" + valid[11:], false},
		"underscore":          {valid[:10] + "_" + valid[11:], false},
		"full-width digit":    {"crm_" + strings.Repeat("０", 14), false}, // 46 bytes
		"invalid UTF-8":       {valid[:10] + "\xff" + valid[11:], false},
		"SQL":                 {"crm_' OR 1=1; DROP TABLE auth.api_keys; -- 0123", false},
		"JSON":                {`{"key":"` + valid + `"}`, false},
		"bearer":              {"Bearer " + valid, false},
		"sum of zeroes":       {valid[:40] + "000000", false},
		"sum above 32 bits":   {valid[:40] + "zzzzzz", false},
		"neighbours swapped":  {valid[:5] + valid[6:7] + valid[5:6] + valid[7:], false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := auth.ParseSecret(c.text)
			if c.ok {
				if err != nil || got.Reveal() != c.text || got.Head() != c.text[:8] || got.Tail() != c.text[42:] {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if !fault.Is(err, fault.AuthInvalid) || err.Error() != "E_AUTH_INVALID: The API key is not valid." || got != (auth.Secret{}) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestNewSecretsParse(t *testing.T) {
	form := regexp.MustCompile(`^crm_[0-9A-Za-z]{42}$`)
	rapid.Check(t, func(t *rapid.T) {
		s := auth.NewSecret()
		if got, err := auth.ParseSecret(s.Reveal()); err != nil || got != s || !form.MatchString(s.Reveal()) {
			t.Fatalf("%q: %v, %v", s.Reveal(), got, err)
		}
	})
}

func TestOneWrongCharacterIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := "crm_" + rapid.StringOfN(rapid.RuneFrom([]rune(base62)), 36, 36, -1).Draw(t, "body")
		good := body + apps.Checksum(body)
		if _, err := auth.ParseSecret(good); err != nil {
			t.Fatalf("%q: %v", good, err)
		}
		at := rapid.IntRange(0, len(good)-1).Draw(t, "at")
		other := rapid.OneOf(
			rapid.SampledFrom([]byte(base62)),
			rapid.Byte(),
		).Filter(
			func(b byte) bool { return b != good[at] },
		).Draw(
			t,
			"other",
		)
		bad := good[:at] + string([]byte{other}) + good[at+1:]
		if _, err := auth.ParseSecret(bad); err == nil {
			t.Fatalf("%q passes for %q", bad, good)
		}
	})
}

// TestSecretsAreUnbiased counts the digits of many keys: with a remainder instead of a new
// draw, the first digits would come up a quarter more often than the others.
func TestSecretsAreUnbiased(t *testing.T) {
	const keys = 5000
	count := map[byte]int{}
	seen := map[string]bool{}
	for range keys {
		s := auth.NewSecret().Reveal()
		if seen[s] {
			t.Fatal("a key came twice")
		}
		seen[s] = true
		for _, b := range []byte(s[4:40]) {
			count[b]++
		}
	}
	expected := float64(keys*36) / 62
	chi := 0.0
	for _, b := range []byte(base62) {
		chi += math.Pow(float64(count[b])-expected, 2) / expected
	}
	// 61 degrees of freedom: beyond 150 once in a hundred million runs; a bias gives thousands.
	if chi > 150 {
		t.Errorf("chi² = %.0f; digits: %v", chi, count)
	}
}

func TestSecretsStayHidden(t *testing.T) {
	s := auth.NewSecret()
	encoded, err := json.Marshal(map[string]any{"key": s, "list": []auth.Secret{s}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		slog.New(h).Info("key", "key", s, "keys", []auth.Secret{s}, "in", struct{ K auth.Secret }{s})
	}
	shown := fmt.Sprintf(
		"%v %+v %#v %s %q %x %v %+v",
		s,
		s,
		s,
		s,
		s,
		s,
		[]auth.Secret{s},
		struct{ K auth.Secret }{s},
	) + string(
		encoded,
	) + log.String()
	if strings.Contains(shown, s.Reveal()[4:]) || strings.Contains(shown, fmt.Sprintf("%x", s.Reveal()[4:])) {
		t.Errorf("the key shows: %s", shown)
	}
}

func TestPeppers(t *testing.T) {
	const a, b = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	for name, c := range map[string]struct{ current, previous, err string }{
		"none":           {"", "", "HUB_KEY_PEPPER has 0 characters"},
		"short":          {a[:31], "", "HUB_KEY_PEPPER has 31 characters"},
		"short previous": {a, b[:31], "HUB_KEY_PEPPER_PREVIOUS has 31 characters"},
	} {
		if _, err := auth.NewPeppers(
			c.current,
			c.previous,
		); err == nil || !strings.Contains(err.Error(), c.err) ||
			strings.Contains(err.Error(), a[:8]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	peppers := func(current, previous string) auth.Peppers {
		p, err := auth.NewPeppers(current, previous)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	s := auth.NewSecret()
	old, both, twice := peppers(a, ""), peppers(b, a), peppers(a, a)
	if ids := both.IDs(); len(ids) != 2 || ids[1] != old.IDs()[0] || ids[0] == ids[1] || strings.Contains(b+a, ids[0]) {
		t.Errorf("ids %v, old %v", ids, old.IDs())
	}
	if len(twice.IDs()) != 1 {
		t.Errorf("the same pepper twice: %v", twice.IDs())
	}
	if h := both.Hashes(s); len(h) != 2 || h[1] != old.Hashes(s)[0] || h[0] == h[1] {
		t.Error("the previous pepper gives another hash than it gave as the current one")
	}
}
