package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// client runs bin/hub as a script would, with a directory of its own.
type client struct {
	bin string
	env []string
}

func (c *client) run(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.bin, "hub"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, strings.NewReader(in), &stdout, &stderr
	_ = cmd.Run() // its exit code is what counts
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// client holds bin/hub to what the other transports have answered: data of a write that was done with the key "once".
func (s *suite) client(t *testing.T, url, narrow, example string, data json.RawMessage) {
	t.Helper()
	dir := t.TempDir()
	directories := []string{atOnce, "HUB_CONFIG_DIR=" + filepath.Join(dir, "config"), "HUB_CACHE_DIR=" + filepath.Join(dir, "cache")}
	c := &client{s.bin, directories}
	if code, out, errs := c.run(
		t,
		s.key+"\n",
		"login",
		"--url",
		url,
		"--key-stdin",
	); code != 0 || !strings.Contains(errs, fmt.Sprintf("%[1]d of %[1]d tools", tools(t))) ||
		strings.Contains(out+errs, s.key) {
		t.Errorf("login: %d %s%s", code, out, errs)
	}
	code, out, errs := c.run(t, example, "call", "create_segment", "--idempotency-key", "once")
	var answer struct{ Data json.RawMessage }
	var compact bytes.Buffer
	if err := json.Unmarshal(
		[]byte(out),
		&answer,
	); err != nil || code != 0 || json.Compact(&compact, answer.Data) != nil || compact.String() != string(data) ||
		!strings.Contains(errs, "nothing was written again") {
		t.Errorf("%v: %d %s%s, want %s", err, code, out, errs, data)
	}
	if code, out, errs := c.run(
		t,
		"",
		"call",
		"execute_read_sql",
		"sql=SELECT 7 AS n, '=1+1' AS f",
		"-o",
		"csv",
	); code != 0 ||
		out != "n,f\n7,'=1+1\n" {
		t.Errorf("%d %q%s", code, out, errs)
	}
	for args, want := range map[string]int{"call get_brand brandId=0": 4, "call get_brand brandId=-1": 2, "call get_brand brand=1": 2,
		"call create_segment " + strings.ReplaceAll(example, " ", "") + " name=other --idempotency-key once": 5,
		"call queue_for_review draftId=999999": 4, "show search_brands": 0, "tools -o csv": 0} {
		if code, out, errs := c.run(t, "", strings.Split(args, " ")...); code != want {
			t.Errorf("%s: %d, want %d: %s%s", args, code, want, out, errs)
		}
	}
	other := &client{s.bin, append(directories, "HUB_API_KEY="+narrow)}
	if code, _, errs := other.run(t, "", "call", "search_brands", "limit=1"); code != 3 || !strings.Contains(errs, "E_SCOPE") {
		t.Errorf("a key without the scope: %d %s", code, errs)
	}
}
