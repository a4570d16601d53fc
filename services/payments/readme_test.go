package payments_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
)

var update = flag.Bool("update", false, "write what the README derives instead of comparing it")

// diagram draws the state machine for Mermaid: the moves, and beside each state what is kept there.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, t := range payments.Transitions() {
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

// TestReadme holds what the README shows to what the program does: the state machine, the routes, the settings.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for name, want := range map[string]string{"diagram": "```mermaid\n" + diagram() + "```\n", "routes": routeTable()} {
		part := regexp.MustCompile(`(?s)(<!-- ` + name + `: [^\n]*-->\n)(.*)(<!-- end of ` + name + ` -->)`)
		found := part.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("the README has no place for the %s", name)
		}
		if found[2] != want && !*update {
			t.Errorf("the %s of the README is out of date: go test -run TestReadme -update", name)
		}
		text = strings.Replace(text, found[0], found[1]+want+found[3], 1)
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := os.ReadFile(filepath.Join("cmd", "payments", "settings.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`env:"([A-Z_]+)`).FindAllStringSubmatch(string(settings), -1) {
		if !strings.Contains(text, "| `"+m[1]+"` |") {
			t.Errorf("the README does not say what %s is", m[1])
		}
	}
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
