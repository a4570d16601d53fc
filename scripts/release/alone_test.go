package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestAModuleAloneIsMadeOfTheSame: the tests and programs of each module have the same versions of others with the workspace as without
// it. So a service passes the tests of its release where it has passed those of the workspace.
func TestAModuleAloneIsMadeOfTheSame(t *testing.T) {
	root := hubtest.Root(t)
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	modules := regexp.MustCompile(`(?m)^\t\./(\S+)$`).FindAllStringSubmatch(string(work), -1)
	if len(modules) < 8 {
		t.Fatalf("go.work names %v", modules)
	}
	with := madeOf(t, root, "GOWORK=", "work")
	for _, m := range modules {
		t.Run(m[1], func(t *testing.T) {
			t.Parallel()
			alone := madeOf(t, filepath.Join(root, m[1]), "GOWORK=off", "./...")
			for path, version := range alone {
				if with[path] != version {
					t.Errorf("alone it has %s %s, and in the workspace %s: make tidy", path, version, with[path])
				}
			}
			if len(alone) == 0 {
				t.Error("it is made of nothing")
			}
		})
	}
}

// madeOf are the versions of the modules that packages and their tests are made of.
func madeOf(t *testing.T, dir, workspace, packages string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", packages)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), workspace)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, &errs)
	}
	made := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, version, _ := strings.Cut(strings.TrimSpace(line), " "); path != "" && !strings.HasPrefix(path, "hub.internal/") {
			made[path] = version
		}
	}
	return made
}
