package query_test

import (
	"encoding/json"
	"math"
	"testing"

	"hub.internal/services/query"
)

// TestIDs are whole numbers, however the driver brings them, and texts in JSON where a reader of it may lose digits.
func TestIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		json  string // "" for a value that is no id
	}{
		{int64(12), "12"}, {[]byte("12"), "12"}, {uint64(12), "12"}, {int64(-3), "-3"}, {int64(0), "0"},
		{[]byte("9007199254740992"), "9007199254740992"}, {[]byte("9007199254740993"), `"9007199254740993"`},
		{uint64(math.MaxInt64), `"9223372036854775807"`},
		{uint64(math.MaxInt64) + 1, ""}, {[]byte("18446744073709551615"), ""}, {[]byte("1.5"), ""}, {[]byte(""), ""}, {nil, ""},
	} {
		var id query.ID
		if err := id.Scan(c.value); err != nil {
			if c.json != "" {
				t.Errorf("%v: %v", c.value, err)
			}
			continue
		}
		if text, err := json.Marshal(id); err != nil || string(text) != c.json {
			t.Errorf("%v is %s, not %q (%v)", c.value, text, c.json, err)
		}
	}
}
