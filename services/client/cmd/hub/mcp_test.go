package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMCPStartsWithAnAddressAndAKey: what is missing is told in one line, and the output stays the protocol's.
func TestMCPStartsWithAnAddressAndAKey(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{"HUB_URL is not set": {"HUB_API_KEY": "crm_x"},
		"HUB_URL is no address":  {"HUB_URL": "hub.example.com", "HUB_API_KEY": "crm_x"},
		"HUB_API_KEY is not set": {"HUB_URL": "http://127.0.0.1:1"}} {
		s := shellOf(t, env)
		if s.run("mcp"); s.code == 0 || !strings.HasPrefix(s.err, "hub: "+name) || strings.Count(s.err, "\n") > 1 || s.out != "" {
			t.Errorf("%s: %d %s %q", name, s.code, s.err, s.out)
		}
	}
}

// TestMCPAnswersEachLine: what the gateway says is passed on as one line; what it does not say is an error of the message.
func TestMCPAnswersEachLine(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ Method string }
		if err := json.NewDecoder(
			r.Body,
		).Decode(
			&m,
		); err != nil || r.Header.Get("Authorization") != "Bearer crm_x" ||
			r.URL.Path != "/mcp" {
			t.Errorf("%v %v", err, r.Header)
		}
		switch m.Method {
		case "initialize":
			_, _ = w.Write([]byte("{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}"))
		case "ping":
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":2,"result":{"version":"` + r.Header.Get("Mcp-Protocol-Version") + `"}}`))
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
		default:
			http.Error(w, "<html>", http.StatusBadGateway)
		}
	}))
	t.Cleanup(gateway.Close)
	ask := func(url string, lines ...string) string {
		s := shellOf(t, map[string]string{"HUB_URL": url, "HUB_API_KEY": "crm_x"})
		s.in = strings.Join(lines, "\n")
		if s.run("mcp"); s.code != 0 {
			t.Error(s.code, s.err)
		}
		return s.out
	}
	for want, lines := range map[string][]string{
		"": {"", " "},
		"{\"jsonrpc\":\"2.0\", " +
			"\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"version\":\"2025-06-18\"}}\n": {
			`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"ping"}`},
		`{"error":{"code":-32700,"message":"the line is no JSON"},"id":null,"jsonrpc":"2.0"}` + "\n": {`{"id":1`},
		`{"error":{"code":-32000,"message":"the gateway answered 502 Bad Gateway"},"id":"x","jsonrpc":"2.0"}` +
			"\n": {`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`},
	} {
		if got := ask(gateway.URL, lines...); got != want {
			t.Errorf("%q:\n%s", lines, got)
		}
	}
	if got := ask(
		"http://127.0.0.1:1",
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	); !strings.Contains(got, `"E_DB"`) ||
		!strings.Contains(got, "nothing answers there") {
		t.Errorf("%s", got)
	}
}
