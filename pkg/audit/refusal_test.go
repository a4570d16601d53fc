package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
)

// TestToldOf: the log keeps what a caller was told, within bounds and without addresses, and nothing that the caller was not told.
func TestToldOf(t *testing.T) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("p%d@shop.example", i)
	}
	deep := any("bottom")
	for range 100 {
		deep = map[string]any{"in": deep}
	}
	for name, c := range map[string]struct {
		err           error
		want, wantNot string
	}{
		"a scope": {fault.New(fault.Scope, "The key lacks the scope %q.", "sql").With(map[string]any{"scope": "sql"}),
			`{"message":"The key lacks the scope \"sql\".","details":{"scope":"sql"}}`, ""},
		"a rule": {fault.New(fault.Validation, "no").With(
			map[string]any{"violations": []any{map[string]string{"path": "/limit", "rule": "maximum"}}}),
			`"violations":[{"path":"/limit","rule":"maximum"}]`, ""},
		"addresses": {fault.New(fault.Suppressed, "<jing.chen+x@shop.example> and 김@한국.example are suppressed").
			With(map[string]any{"emails": many}),
			`{"message":"\u003c…@shop.example\u003e and …@한국.example are suppressed"`, "jing"},
		"a long list":  {fault.New(fault.Suppressed, "x").With(many), `… 94`, "p900"},
		"what is deep": {fault.New(fault.Validation, "x").With(deep), `"…":"1 more"`, "bottom"},
		"a long text":  {fault.New(fault.Validation, "%s", strings.Repeat("가", 10_000)), "가…", strings.Repeat("가", 501)},
		"of ours":      {errors.New("password=hunter2"), "An unexpected error occurred", "hunter2"},
	} {
		b, err := json.Marshal(audit.ToldOf(c.err))
		if err != nil || !strings.Contains(string(b), c.want) || c.wantNot != "" && strings.Contains(string(b), c.wantNot) || len(b) > 16<<10 {
			t.Errorf("%s: %v, %d bytes: %.600s\nwant %s, not %s", name, err, len(b), b, c.want, c.wantNot)
		}
	}
	if audit.ToldOf(nil) != nil {
		t.Error("something is told of no error")
	}
}
