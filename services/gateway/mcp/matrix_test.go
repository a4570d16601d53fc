package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// program is `hub mcp` with a key.
type program struct {
	in  io.WriteCloser
	out *bufio.Scanner
	// end closes the program's input and returns what it ended with.
	end func() error
}

// newProgram starts `hub mcp`, which ends with the test.
func newProgram(t testing.TB, url, key string) *program {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), buildHub(t), "mcp")
	cmd.Env = []string{"HUB_URL=" + url, "HUB_API_KEY=" + key, "HUB_CONFIG_DIR=" + dir, "HUB_CACHE_DIR=" + dir}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceValue(func() error {
		in.Close()
		return cmd.Wait()
	})
	t.Cleanup(func() { _ = end() }) // the test's end may have killed it
	p := &program{in: in, out: bufio.NewScanner(out), end: end}
	p.out.Buffer(nil, 64<<20)
	return p
}

func (p *program) post(t testing.TB, body string) answer {
	t.Helper()
	if _, err := io.WriteString(p.in, body+"\n"); err != nil {
		t.Fatal(err)
	}
	if !p.out.Scan() {
		t.Fatal(p.out.Err())
	}
	a := answer{body: p.out.Text()}
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		t.Fatalf("%v\n%s", err, p.out.Text())
	}
	return a
}

// TestEveryTransportHasTheSameVerdict tries every tool over REST, MCP over HTTP and MCP over stdio with every kind of key. Without a
// key `hub mcp` does not start, which the client's own tests hold it to.
func TestEveryTransportHasTheSameVerdict(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	url := e.urls[0]
	keys := map[string]string{
		"no key":         "",
		"malformed":      "crm_x",
		"an app's token": "eyJhbGciOiJIUzI1NiJ9.e30.AAAA",
		"unknown":        unknown,
		"revoked":        revoked,
		"reads":          readOnly,
		"all but reads":  writeOnly,
		"all scopes":     allScopes,
	}
	n := 0
	for kind, key := range keys {
		var program *program
		if key != "" {
			program = newProgram(t, url, key)
		}
		for _, entry := range e.catalog.Entries() {
			for _, input := range []string{string(entry.Spec.Examples[0].Request), `{"noSuchProperty":1}`} {
				n++
				rest := e.send(t, http.MethodPost, url+"/api/tools/"+entry.Spec.Name, key, input, "Idempotency-Key", fmt.Sprint("rest-", n))
				message := call(n, entry.Spec.Name, input, "")
				overHTTP := e.post(t, url, key, message)
				answers := map[string]answer{"HTTP": overHTTP}
				if program != nil {
					answers["stdio"] = program.post(t, call(n+100_000, entry.Spec.Name, input, ""))
				}
				want := rest.code(t)
				var envelope struct{ Data json.RawMessage }
				if err := json.Unmarshal([]byte(rest.body), &envelope); err != nil {
					t.Fatal(err)
				}
				for transport, a := range answers {
					if got := a.code(t); got != want {
						t.Errorf("%s with %s over %s: %q, REST %q\n%s", entry.Spec.Name, kind, transport, got, want, a.body)
					}
					// The same call again is told to be one; what it answers is the same.
					if want == "" && len(a.Result.Content) > 1 && !entry.Spec.Write {
						t.Errorf("%s over %s says more: %s", entry.Spec.Name, transport, a.body)
					}
					// stdio says its revision with each request, so that the data need no copy as text.
					text := string(envelope.Data)
					if transport == "stdio" && len(a.Result.Content) > 0 &&
						strings.HasPrefix(a.Result.Content[0].Text, entry.Spec.Name+": the answer is ") {
						text = a.Result.Content[0].Text
					}
					if want == "" &&
						(string(a.Result.StructuredContent) != string(envelope.Data) || len(a.Result.Content) == 0 ||
							a.Result.Content[0].Text != text) {
						t.Errorf("%s over %s: %s\n%s", entry.Spec.Name, transport, a.body, rest.body)
					}
				}
				if refused := rest.status == 401 ||
					rest.status == 403 && want != "E_SCOPE"; refused != (overHTTP.status == rest.status) &&
					rest.status != 200 {
					t.Errorf("%s with %s: HTTP %d, REST %d", entry.Spec.Name, kind, overHTTP.status, rest.status)
				}
			}
		}
	}
	if n != 2*len(e.catalog.Entries())*len(keys) {
		t.Errorf("%d combinations", n)
	}
}

func TestAListHoldsWhatTheKeyMayUse(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	for key, holds := range map[string]func(scope string) bool{allScopes: func(string) bool { return true },
		readOnly: func(s string) bool { return s == "query" }, writeOnly: func(s string) bool { return s != "query" }} {
		a := e.post(t, e.urls[0], key, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		var names, want []string
		for _, l := range a.Result.Tools {
			names = append(names, l.Name)
			spec := e.catalog.Entry(l.Name).Spec
			if l.Annotations["readOnlyHint"] == spec.Write || l.Annotations["destructiveHint"] != false || l.Annotations["idempotentHint"] != true ||
				l.Annotations["openWorldHint"] != false || l.Title == "" ||
				string(l.InputSchema) != string(spec.Input) ||
				l.Description != spec.Description {
				t.Errorf("%+v", l)
			}
		}
		for _, entry := range e.catalog.Entries() {
			if holds(entry.Spec.Scope) {
				want = append(want, entry.Spec.Name)
			}
		}
		if !slices.Equal(names, want) || a.Result.CacheScope != "private" || a.Result.NextCursor != "" {
			t.Errorf("%s: %q, want %q", key, names, want)
		}
	}
}
