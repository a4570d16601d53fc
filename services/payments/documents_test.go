package payments_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/tool"
	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
	"hub.internal/services/payments/order"
)

var update = flag.Bool("update", false, "write what the documents derive instead of comparing it")

// TestDocuments holds what the documents show to what the program does: the state machine, the routes, the settings.
func TestDocuments(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"diagram": {"DESIGN.md", "```mermaid\n" + diagram() + "```\n"},
		"routes":  {"CLIENTS.md", routeTable()},
	} {
		text := document(t, c.file)
		part := regexp.MustCompile(`(?s)(<!-- ` + name + `: [^\n]*-->\n)(.*)(<!-- end of ` + name + ` -->)`)
		found := part.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no place for the %s", c.file, name)
		}
		if found[2] == c.want {
			continue
		}
		if !*update {
			t.Errorf("the %s of %s is out of date: go test -run TestDocuments -update", name, c.file)
			continue
		}
		text = strings.Replace(text, found[0], found[1]+c.want+found[3], 1)
		if err := os.WriteFile(c.file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settings := document(t, filepath.Join("cmd", "payments", "settings.go"))
	for _, m := range regexp.MustCompile(`env:"([A-Z_]+)`).FindAllStringSubmatch(settings, -1) {
		if !strings.Contains(document(t, "OPERATING.md"), "| `"+m[1]+"` |") {
			t.Errorf("OPERATING.md does not say what %s is", m[1])
		}
	}
}

// diagram draws the state machine for Mermaid: the moves, and beside each state what is kept there.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, t := range order.Transitions() {
		if t.From == t.To {
			continue
		}
		from := string(t.From)
		if t.From == "" {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, t.To, t.Trigger)
	}
	return b.String()
}

// document is the text of a file beside the service's own.
func document(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// routeTable lists the routes by what they are for.
func routeTable() string {
	var b strings.Builder
	b.WriteString("| Route | Scope | Answers | What it does |\n|---|---|---|---|\n")
	for _, r := range api.Routes(payments.New(payments.Config{})) {
		scope := "–"
		if r.Spec.Scope != "" {
			scope = "`" + r.Spec.Scope + "`"
		}
		what, _, _ := strings.Cut(r.Spec.Description, ". ")
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s. |\n", r.Spec.Method, r.Spec.Path, scope,
			strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Spec.Success), " ", ", "), "[]"), strings.TrimSuffix(what, "."))
	}
	return b.String()
}

// TestTheSpecHasTheRoutes: each with its scope, its statuses and whether it takes a key, and no others (SPEC.md 4.1).
func TestTheSpecHasTheRoutes(t *testing.T) {
	t.Parallel()
	told := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[A-Z].* /v1/.*`) \\| (.*) \\| (.*) \\| (.*) \\|$").
		FindAllStringSubmatch(document(t, "SPEC.md"), -1) {
		path := regexp.MustCompile("/v1/[^`]+").FindString(row[1])
		scope, _, _ := strings.Cut(row[2], ";")
		statuses := regexp.MustCompile(`\d{3}`).FindAllString(row[3], -1)
		key := strings.HasPrefix(row[4], "optional")
		for _, method := range regexp.MustCompile(`[A-Z]{3,}`).FindAllString(strings.TrimSuffix(row[1], path+"`"), -1) {
			told[method+" "+path] = fmt.Sprint(scope, " ", statuses, " ", key)
		}
	}
	for _, r := range api.Routes(payments.New(payments.Config{})) {
		route := r.Spec.Method + " " + r.Spec.Path
		want := fmt.Sprint(cmp.Or(r.Spec.Scope, "none"), " ", r.Spec.Success, " ", r.Spec.Idempotency == tool.KeyOptional)
		if told[route] != want {
			t.Errorf("SPEC.md 4.1, %s: %q, want %q (scope, statuses, whether a key counts)", route, told[route], want)
		}
		delete(told, route)
	}
	if len(told) > 0 {
		t.Errorf("SPEC.md 4.1 has routes that are none: %v", told)
	}
}
