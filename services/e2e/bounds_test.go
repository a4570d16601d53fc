package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"hub.internal/pkg/tool/tooltest"
)

// TestEveryBoundOfEveryTool tries, through the gateway, what the manifests say: each bound,
// one below and one above it, wrong types, missing and unknown properties.
func TestEveryBoundOfEveryTool(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for _, m := range manifests(t) {
		for _, spec := range m.Tools {
			t.Run(spec.Name, func(t *testing.T) {
				for i, c := range tooltest.Bounds(t, spec) {
					call := func() reply {
						return s.call(spec.Name, string(c.Input), "Idempotency-Key", fmt.Sprintf("%s %d", spec.Name, i))
					}
					r := call()
					// 50,000 targets may take longer than a call has, on a machine that is busy: then it is
					// enough that they are not refused.
					slow := len(c.Input) > 1<<20
					for again := 0; r.Error.Retryable && again < 3; again++ {
						r = call()
					}
					var details struct {
						Violations []struct{ Path, Rule, Message string }
					}
					_ = json.Unmarshal(r.Error.Details, &details) // absent from most errors
					found := slices.ContainsFunc(details.Violations, func(v struct{ Path, Rule, Message string }) bool {
						return v.Path == c.Path && v.Rule == c.Rule && v.Message != ""
					})
					switch {
					case c.Rule != "" && (r.status != 400 || r.Error.Code != "E_VALIDATION" || !found):
						t.Errorf("%s: %.200s answers %.400s; want the violation %s at %q", c.Name, c.Input, r.raw, c.Rule, c.Path)
					case c.Rule == "" && slow && r.Error.Retryable:
						t.Logf("%s: took too long", c.Name)
					case c.Rule == "" && spec.Write && r.Error.Code == "E_CONFLICT": // what the case before has made is there
					case c.Rule == "" && r.status != 200 && !slices.Contains([]string{"E_NOT_FOUND", "E_VALIDATION"}, r.Error.Code):
						t.Errorf("%s: %.200s answers %.400s", c.Name, c.Input, r.raw)
					case c.Rule == "" && !spec.Write && r.Error.Code == "E_VALIDATION" &&
						(len(details.Violations) == 0 || details.Violations[0].Path != "/sql"):
						// Of the reads only the SQL guard may refuse what the schema allows.
						t.Errorf("%s: %.200s is within its bounds and answers %.400s", c.Name, c.Input, r.raw)
					}
				}
			})
		}
	}
}
