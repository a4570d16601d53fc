package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hub.internal/pkg/tool"
)

// mcpAnswer is what both transports of the Model Context Protocol answer to a call.
type mcpAnswer struct {
	Result struct {
		Meta              map[string]any  `json:"_meta"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           bool            `json:"isError"`
	} `json:"result"`
	Error struct {
		Code any `json:"code"` // the envelope has a text there, the protocol a number
		Data struct {
			Error struct{ Code string } `json:"error"`
		} `json:"data"`
	} `json:"error"`
}

func (a mcpAnswer) code(t *testing.T) string {
	t.Helper()
	var envelope struct {
		Error struct{ Code string } `json:"error"`
	}
	if a.Result.IsError {
		if err := json.Unmarshal(a.Result.StructuredContent, &envelope); err != nil {
			t.Error(err)
		}
		return envelope.Error.Code
	}
	if code, isText := a.Error.Code.(string); isText {
		return code
	}
	return a.Error.Data.Error.Code
}

func mcpCall(id int, name, input, key string) string {
	return fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"hub/idempotencyKey":%q}}}`,
		id,
		name,
		input,
		key,
	)
}

// stdio is `hub mcp` as a process.
type stdio struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func (s *suite) stdio(t *testing.T, url, key string) *stdio {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.bin, "hub"), "mcp")
	cmd.Env = []string{"HUB_URL=" + url, "HUB_API_KEY=" + key, atOnce}
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
	return &stdio{in, bufio.NewReader(out), cmd}
}

func (p *stdio) call(t *testing.T, message string) (a mcpAnswer) {
	t.Helper()
	if _, err := io.WriteString(p.in, message+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return a
}

// TestMCP tries every tool over REST, MCP over HTTP and MCP over stdio with every kind of key, before two gateways that
// take turns; a write is done once, whichever transport repeats it, bin/hub among them.
func TestMCP(t *testing.T) {
	t.Parallel()
	s := start(t, options{raced: true, gateways: 2, env: []string{"HUB_FAILED_AUTH_PER_MINUTE=6000000", "HUB_FAILED_AUTH_BURST=1000000"}})
	urls := []string{s.url, "http://" + s.addr["gateway-2"]}
	r, err := s.send(t.Context(), s.url, http.MethodGet, "/api/tools", "")
	var catalog struct {
		Tools []struct{ Name, Scope string }
	}
	if err != nil || json.Unmarshal(r.Data, &catalog) != nil || len(catalog.Tools) != tools(t) {
		t.Fatalf("%v %s", err, r.raw)
	}
	many := []string{
		"--user-per-minute",
		"6000000",
		"--user-burst",
		"100000",
		"--service-per-minute",
		"6000000",
		"--service-burst",
		"100000",
	}
	revoked := s.issue("--scopes", allScopes)
	s.run("auth", s.env["auth"], "apikey", "revoke", revoked.ID, "--reason", "test")
	keys := map[string]string{"none": "", "unknown": "crm_" + strings.Repeat("0", 42), "revoked": revoked.Key,
		"explore": s.issue(append([]string{"--scopes", "explore"}, many...)...).Key, "all": s.key}
	n := 0
	for kind, key := range keys {
		var program *stdio
		if key != "" { // without one the program does not start
			program = s.stdio(t, urls[1], key)
		}
		for _, listed := range catalog.Tools {
			n++
			authorization := "Bearer " + key
			if key == "" {
				authorization = ""
			}
			// Nothing is written: what is judged first is the key, and then the input.
			const input = `{"noSuchProperty":1}`
			rest, err := s.send(
				t.Context(),
				urls[n%2],
				http.MethodPost,
				"/api/tools/"+listed.Name,
				input,
				"Authorization",
				authorization,
				tool.KeyHeader,
				fmt.Sprint("m-", n),
			)
			if err != nil {
				t.Fatal(err)
			}
			over := s.mcp(t, urls[(n+1)%2], authorization, mcpCall(n, listed.Name, input, fmt.Sprint("m-", n)))
			answers := map[string]mcpAnswer{"HTTP": over}
			if program != nil {
				answers["stdio"] = program.call(t, mcpCall(n, listed.Name, input, fmt.Sprint("m-", n)))
			}
			want := rest.Error.Code
			for transport, a := range answers {
				if got := a.code(t); got != want || want == "" {
					t.Errorf("%s with key %s over %s: %q, REST %q", listed.Name, kind, transport, got, want)
				}
			}
		}
		if program != nil {
			program.in.Close()
			if err := program.cmd.Wait(); err != nil {
				t.Errorf("at the end of its input: %v", err)
			}
		}
	}
	example := s.example(t, "create_segment")
	first, again := s.mcp(
		t,
		urls[0],
		"Bearer "+s.key,
		mcpCall(1, "create_segment", example, "once"),
	), s.mcp(
		t,
		urls[1],
		"Bearer "+s.key,
		mcpCall(9, "create_segment", example, "once"),
	)
	program := s.stdio(t, urls[1], s.key)
	third := program.call(t, mcpCall(3, "create_segment", example, "once"))
	rest := s.call("create_segment", example, tool.KeyHeader, "once")
	if first.Result.IsError || again.Result.Meta["hub/replayed"] != true || third.Result.Meta["hub/replayed"] != true ||
		rest.header.Get("Idempotent-Replayed") != "true" ||
		string(first.Result.StructuredContent) != string(again.Result.StructuredContent) ||
		string(rest.Data) != string(first.Result.StructuredContent) ||
		string(third.Result.StructuredContent) != string(rest.Data) {
		t.Errorf("%+v\n%+v\n%+v\n%s", first, again, third, rest.raw)
	}
	s.client(t, urls[0], keys["explore"], example, rest.Data)
	if a := program.call(
		t,
		mcpCall(4, "execute_read_sql", `{"sql":"SELECT COUNT(*) AS n FROM brand"}`, "x"),
	); a.Result.IsError ||
		a.Result.StructuredContent == nil {
		t.Errorf("%+v", a)
	}
	if err := program.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.cmd.Wait(); err != nil {
		t.Errorf("on SIGTERM: %v", err)
	}
}

// example is the request of a tool's first example.
func (s *suite) example(t *testing.T, name string) string {
	t.Helper()
	r, err := s.send(t.Context(), s.url, http.MethodGet, "/api/tools/"+name+"/detail", "")
	var detail struct {
		Examples []struct{ Request json.RawMessage }
	}
	if err != nil || json.Unmarshal(r.Data, &detail) != nil || len(detail.Examples) == 0 {
		t.Fatalf("%v %s", err, r.raw)
	}
	return string(detail.Examples[0].Request)
}

func (s *suite) mcp(t *testing.T, url, authorization, message string) (a mcpAnswer) {
	t.Helper()
	r, err := s.send(
		t.Context(),
		url,
		http.MethodPost,
		"/mcp",
		message,
		"Authorization",
		authorization,
		"Accept",
		"application/json, text/event-stream",
	)
	if err != nil && r.raw == "" {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(r.raw), &a); err != nil {
		t.Fatalf("%v: %s", err, r.raw)
	}
	return a
}
