package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"hub.internal/pkg/hubtest"
)

// guideBlock is the code of a language in the guide of payments.
func guideBlock(t *testing.T, language string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "services", "payments", "CLIENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)\n```").FindSubmatch(b)
	if found == nil {
		t.Fatalf("the guide has no example in %s", language)
	}
	return string(found[1])
}

// expected are the lines that say what they print.
var expected = regexp.MustCompile(`(?m)^(.*) # → (.*)$`)

// goldenPath runs the guide's example in a shell, and holds what it prints to what it says.
func goldenPath(t *testing.T, x *shop) {
	for _, program := range []string{"sh", "curl", "sed", "grep"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here; the guide's example is run with it", program)
		}
	}
	n := 0
	script := expected.ReplaceAllStringFunc(guideBlock(t, "sh"), func(line string) string {
		n++
		part := expected.FindStringSubmatch(line)
		pattern := regexp.MustCompile(`[^*A-Za-z0-9/_-]`).ReplaceAllString(part[2], `\$0`)
		return fmt.Sprintf(
			"got=$(%s 2>&1) || true\ncase $got in %s) ;; *) echo \"example %d printed: $got\" >&2; exit 1 ;; esac",
			part[1],
			pattern,
			n,
		)
	})
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Env, cmd.Dir = x.environ(), t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil || n < 10 {
		t.Errorf("%v after %d lines that say what they print: %s\n%s", err, n, out, script)
	}
}

// lines are those of an example that are not empty: it is to be read at a glance.
func lines(code string) int {
	return len(strings.FieldsFunc(strings.ReplaceAll(code, "\n\n", "\n"), func(r rune) bool { return r == '\n' }))
}

func goClient(t *testing.T, x *shop) {
	code := guideBlock(t, "go")
	if n := lines(code); n > 30 {
		t.Errorf("it has %d lines", n)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(code+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", file) // with the modules of this one
	cmd.Env = x.environ()
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Count(out, []byte(`"clientOrderId":"go-1"`)) < 1 || bytes.Count(out, []byte(`"ok":true`)) != 2 ||
		!bytes.Contains(out, []byte("AWAITING_DEPOSIT")) {
		t.Errorf("%v: %s", err, out)
	}
}

var npmClient struct {
	once sync.Once
	dir  string
	err  error
}

// installClient makes jose and the compiler available, once a machine, and returns where.
func installClient(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here; the client in TypeScript is compiled and run with it", program)
		}
	}
	c := &npmClient
	c.once.Do(func() {
		cache, err := os.UserCacheDir()
		if c.err = err; err != nil {
			return
		}
		c.dir = filepath.Join(cache, "hub", "client-1")
		if _, err := os.Stat(filepath.Join(c.dir, "node_modules", ".package-lock.json")); err == nil {
			return
		}
		c.err = os.MkdirAll(c.dir, 0o755)
		for _, name := range []string{"package.json", "package-lock.json"} {
			b, err := os.ReadFile(filepath.Join("testdata", "client", name))
			c.err = errors.Join(c.err, err, os.WriteFile(filepath.Join(c.dir, name), b, 0o644))
		}
		if c.err != nil {
			return
		}
		cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = c.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			c.err = fmt.Errorf("npm ci: %w: %s", err, out)
		}
	})
	if c.err != nil {
		t.Skipf("jose and typescript cannot be installed: %v", c.err)
	}
	return c.dir
}

func typescriptClient(t *testing.T, x *shop) {
	code := guideBlock(t, "ts")
	if n := lines(code); n > 30 {
		t.Errorf("it has %d lines", n)
	}
	installed := installClient(t)
	// Modules are looked for beside the file and above it.
	dir, err := os.MkdirTemp(installed, "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "client.ts"), []byte(code+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.CommandContext(
		t.Context(),
		"node",
		filepath.Join(installed, "node_modules", "typescript", "bin", "tsc"),
		"--strict",
		"--target",
		"es2022",
		"--module",
		"nodenext",
		"--moduleResolution",
		"nodenext",
		"--types",
		"node",
		"--skipLibCheck",
		"client.ts",
	)
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v: %s", err, out)
	}
	run := exec.CommandContext(t.Context(), "node", "client.js")
	run.Dir, run.Env = dir, x.environ()
	out, err := run.CombinedOutput()
	if got := strings.Fields(
		string(out),
	); err != nil || len(got) != 4 || !strings.HasPrefix(got[0], "po_") || got[1] != "AWAITING_DEPOSIT" ||
		got[2] == "undefined" {
		t.Errorf("%v: %s", err, out)
	}
}
