package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asHub makes the test's own program the client, so that it can be started without building one.
const asHub = "HUB_TEST_IS_HUB"

func TestMain(m *testing.M) {
	if os.Getenv(asHub) != "" {
		main()
	}
	os.Exit(m.Run())
}

// environ is that of a process which is the client.
func (g *gateway) environ(t *testing.T) []string {
	dir := t.TempDir()
	return append(
		os.Environ(),
		asHub+"=1",
		"GORACE=atexit_sleep_ms=0",
		"HUB_URL="+g.URL,
		"HUB_API_KEY="+goodKey,
		"HUB_CONFIG_DIR="+dir,
		"HUB_CACHE_DIR="+dir,
	)
}

// start starts the client with a standard input that nobody writes to.
func (g *gateway) start(t *testing.T, args ...string) (cmd *exec.Cmd, out, err *bytes.Buffer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = g.environ(t), out, err
	silent, writer, failed := os.Pipe()
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() { writer.Close() })
	cmd.Stdin = silent
	if failed := cmd.Start(); failed != nil {
		t.Fatal(failed)
	}
	silent.Close()
	return cmd, out, err
}

// TestASilentPipe: a tool that needs no input is called when nothing comes, and one that does ends by --timeout.
func TestASilentPipe(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	cmd, out, err := g.start(t, "call", "search_brands")
	if failed := cmd.Wait(); failed != nil || !json.Valid(out.Bytes()) ||
		!strings.Contains(err.String(), "nothing came on standard input") ||
		first(g.sent()) != "{}" {
		t.Errorf("%v %s%s", failed, out, err)
	}
	cmd, _, err = g.start(t, "call", "get_brand", "--timeout", "1s")
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(err.String(), "get_brand needs brandId") {
		t.Errorf("%d %s", cmd.ProcessState.ExitCode(), err)
	}
}

// TestSignals: Ctrl-C and SIGTERM end a call at once, whatever it waits for, and say so in the exit code alone.
func TestSignals(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no process sends another a signal there")
	}
	g := newGateway(t)
	g.answers(hang)
	for _, c := range []struct {
		signal os.Signal
		args   []string
		asks   string
		want   int
	}{{os.Interrupt, []string{"call", "search_brands", "limit=1"}, "POST", exitInterrupted},
		{syscall.SIGTERM, []string{"call", "search_brands", "limit=1"}, "POST", exitTerminated},
		{os.Interrupt, []string{"call", "get_brand", "-"}, "GET", exitInterrupted}, {syscall.SIGTERM, []string{"mcp"}, "", 0}} {
		for wait := 200 * time.Millisecond; ; wait *= 2 {
			g.takeAsked()
			cmd, out, err := g.start(t, c.args...)
			for wait := 0; c.asks != "" && wait < 500 && !slices.ContainsFunc(g.takeAsked(),
				func(s string) bool { return strings.HasPrefix(s, c.asks) }); wait++ {
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(wait)
			begun := time.Now()
			if failed := cmd.Process.Signal(c.signal); failed != nil {
				t.Fatal(failed)
			}
			_ = cmd.Wait()
			code := cmd.ProcessState.ExitCode()
			if code == killed && c.asks == "" && wait < 5*time.Second {
				continue // what asks nothing does not tell that it has begun: it was too early
			}
			if code != c.want || out.Len()+err.Len() > 0 || time.Since(begun) > time.Minute {
				t.Errorf("%v: %d after %s, want %d: %s%s", c.args, code, time.Since(begun), c.want, out, err)
			}
			break
		}
	}
}

// killed is the exit code of a process that a signal has ended.
const killed = -1

// TestAReaderThatGoes: `hub … | head` ends as any program does, without a word.
func TestAReaderThatGoes(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, "search_brands", 1, map[string]any{"brands": []any{map[string]any{"a": strings.Repeat("x", 256<<10)}}})
	})
	for _, format := range []string{asJSON, asCSV, asTable} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "call", "search_brands", "limit=1", "-o", format)
		var stderr bytes.Buffer
		cmd.Env, cmd.Stderr = g.environ(t), &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		out.Close()
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "broken pipe") || stderr.Len() > 0 {
			t.Errorf("%s: %v %s", format, err, &stderr)
		}
	}
}

// TestTheGuideIsTrue: the block of README.md runs, line by line, in bash.
func TestTheGuideIsTrue(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the guide's block is for bash, which is not here")
	}
	guide, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n## How to use it\n.*?```sh\n(.*?)```").FindSubmatch(guide)
	if block == nil {
		t.Fatal("no section on the client")
	}
	g := newGateway(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		filepath.Join(dir, "bin", "hub"),
		fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\"\n", os.Args[0]),
		0o755,
	); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bash, "-ec", string(block[1])+"complete -p bin/hub hub 2>&1 || true; cat brands.csv")
	cmd.Dir, cmd.Env = dir, g.environ(t)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"search_brands\tquery\tquery\tno\tyes", "hub call search_brands categoryId=12", `"brand_id": 3001`,
		"brand_id,brand_name,contact.email\n3001,", `"campaigns"`, "__start_hub"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%v: no %q in\n%s", err, want, out)
		}
	}
	if body := first(g.sent()); err != nil || body != `{"statusCodes":["1206"],"limit":2}` {
		t.Errorf("%v: %s", err, body)
	}
}
