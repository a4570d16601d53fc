package api

import (
	"encoding/json"
	"testing"

	"hub.internal/pkg/schema"
)

// TestWonIsDigitsAlone: KRW has no fractions, and what is written otherwise may be meant otherwise (SPEC.md 1; SPEC.md 12, row 2).
func TestWonIsDigitsAlone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "1": 1, "-1": -1, "11000": 11000, "9223372036854775807": 1<<63 - 1,
		"-9223372036854775808": -1 << 63} {
		var v schema.Violations
		if got := readWon(&v, "/amount", json.RawMessage(text)); v.Err() != nil || got == nil || *got != want {
			t.Errorf("%s: %v, %v", text, got, v.Err())
		}
	}
	for _, text := range []string{"1.5", `"1"`, "1e3", "1E3", "1.0", "01", "-0.0", "+1", "0x10", "1_000", " 1", "1 ",
		"9223372036854775808", "-9223372036854775809",
		"1e400", "true", "[1]", "{}", "NaN", "１", ""} {
		var v schema.Violations
		got := readWon(&v, "/amount", json.RawMessage(text))
		if absent := text == ""; got != nil || (v.Err() == nil) != absent {
			t.Errorf("%s: %v, %v", text, got, v.Err())
		}
	}
	var v schema.Violations
	if got := readWon(&v, "/amount", nil); got != nil || v.Err() != nil {
		t.Errorf("absent: %v, %v", got, v.Err())
	}
}

// TestReconcileTakesNoOtherNumbers: its amount is one of won, too.
func TestReconcileTakesNoOtherNumbers(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{`11000`: true, `null`: false, `11000.0`: false, `1.1e4`: false, `"11000"`: false} {
		if _, err := (reconcileIn{Amount: json.RawMessage(text)}).amount(); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
