package inventory_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
)

// contractFile is what the edge promises.
const contractFile = "services/gateway/CONTRACT.md"

// table are the rows of the contract that a pattern finds, as the texts of its groups.
func table(t *testing.T, pattern string) (rows []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(read(t, contractFile), -1) {
		rows = append(rows, strings.Join(m[1:], " "))
	}
	return rows
}

// TestTheContractHasTheCodes: each code with its status, and whether to try again (CONTRACT.md 2.3).
func TestTheContractHasTheCodes(t *testing.T) {
	t.Parallel()
	var want []string
	for code, status := range fault.Codes() {
		again := map[bool]string{true: "yes", false: "no"}[fault.New(code, "").Retryable()]
		want = append(want, fmt.Sprint(code, status, " ", again))
	}
	got := table(t, "^\\| `([A-Z_]+)` \\| (\\d+) \\| (yes|no) \\|")
	for i, row := range got {
		got[i] = strings.Replace(row, " ", "", 1)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("CONTRACT.md 2.3: %q, want %q", got, want)
	}
}

// TestTheContractHasTheTools: in their order, with category, scope and whether they write (CONTRACT.md 3.2 and 6.1).
func TestTheContractHasTheTools(t *testing.T) {
	t.Parallel()
	var catalog struct{ Manifests []tool.Manifest }
	if err := json.Unmarshal([]byte(read(t, "deploy/catalog.json")), &catalog); err != nil {
		t.Fatal(err)
	}
	var specs []tool.Spec
	for _, m := range catalog.Manifests {
		specs = append(specs, m.Tools...)
	}
	slices.SortFunc(specs, func(a, b tool.Spec) int { return a.Position - b.Position })
	var want []string
	scopes := map[string]string{}
	for _, s := range specs {
		writes := map[bool]string{true: "yes", false: "no"}[s.Write]
		if s.Replaces {
			writes += ", replaces"
		}
		want = append(want, fmt.Sprint(s.Position, " ", s.Name, " ", s.Category, " ", s.Scope, " ", writes))
		scopes[s.Scope] += ", " + s.Name
	}
	if got := table(t, `^\| (\d+) \| (\w+) \| (\w+) \| ([\w:]+) \| ([\w, ]+) \|$`); !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("CONTRACT.md 6.1, row %d: %q, want %q", i+1, append(got, "")[i], append(want, "")[i])
	}
	for scope, tools := range scopes {
		if rows := table(t, "^\\| `("+scope+")` \\| (.*) \\|$"); !slices.Equal(rows, []string{scope + " " + tools[2:]}) {
			t.Errorf("CONTRACT.md 3.2, scope %s: %q, want %s", scope, rows, tools[2:])
		}
	}
}
