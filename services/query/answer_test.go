package query

import (
	"testing"

	"hub.internal/pkg/quota"
)

// TestAnAnswerMayBeginAnew: a server went away in the middle, and another one begins.
func TestAnAnswerMayBeginAnew(t *testing.T) {
	row := func(text string) RowEncoder {
		return func(to []byte, _ int) ([]byte, bool) { return append(to, text...), true }
	}
	var a sqlAnswer
	a.begin(1, 1<<10, room{of: quota.New(1 << 20), who: "key"})
	a.Columns([]ResultColumn{{Name: "a"}})
	a.Arrived(5)
	a.Row(row(`["first"]`))
	a.Row(row(`["and more"]`)) // truncates
	a.Columns([]ResultColumn{{Name: "a"}})
	a.Row(row(`["second"]`))
	if got, want := string(
		a.end().JSON(),
	), `{"columns":[{"name":"a","type":""}],"rows":[["second"]],"row_count":1,"truncated":false,"row_limit":1}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
