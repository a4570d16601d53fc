package catalog_test

import (
	"strings"
	"testing"

	"hub.internal/services/gateway/catalog"
)

// TestWhatAMessageRepeatsSteersNobody: controls below the space were all that was taken out of a caller's text, so that a message
// could turn the direction of what a person reads, or reach a terminal as a sequence of C1.
func TestWhatAMessageRepeatsSteersNobody(t *testing.T) {
	for in, want := range map[string]string{
		"execute_read_sql":       "execute_read_sql",
		"a\x1b[1m\u009b1mb":      "a [1m 1mb",
		"safe\u202egnp.exe":      "safegnp.exe",
		"a\u200bb\xff":           "ab\ufffd",
		strings.Repeat("도", 65):  strings.Repeat("도", 63) + "…",
		strings.Repeat("도", 64):  strings.Repeat("도", 64),
		"nothing\r\nX-Header: y": "nothing  X-Header: y",
	} {
		if got := catalog.Shown(in); got != want {
			t.Errorf("%q is repeated as %q, not as %q", in, got, want)
		}
	}
}
