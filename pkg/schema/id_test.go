package schema_test

import (
	"testing"
	"time"

	"hub.internal/pkg/schema"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "0", "-1", "+1", "01", " 1", "1 ", "1.0", "1e3", "x", "9223372036854775808", "１"} {
		if id, ok := schema.ParseID(bad); ok {
			t.Errorf("%q is %s", bad, id)
		}
	}
	for _, good := range []string{"1", "9007199254740993", "9223372036854775807"} {
		if id, ok := schema.ParseID(good); !ok || id.String() != good {
			t.Errorf("%q is %s", good, id)
		}
	}
}

func TestMoment(t *testing.T) {
	at := time.Date(2026, 11, 22, 3, 4, 5, 6_999_999, time.FixedZone("KST", 9*3600))
	if got := schema.Moment(at); got != "2026-11-21T18:04:05.006Z" {
		t.Error(got)
	}
}
