package gateway_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hub.internal/services/gateway/edge"
)

// TestHubAnswersToItsOwnNamesAlone.
func TestHubAnswersToItsOwnNamesAlone(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	for name, c := range map[string]struct {
		public        string
		hosts         []string
		takes, refuse []string
	}{
		"a name": {"https://hub.example", []string{"hub.internal", "gateway:8080"},
			[]string{"hub.example", "HUB.example", "hub.example:443", "hub.example.", "hub.internal", "hub.internal:99", "gateway:8080",
				"127.0.0.1", "127.0.0.1:9"},
			[]string{"evil.example", "hub.example:8443", "hub.example.evil.example", "evilhub.example", "gateway", "gateway:80", "10.0.0.1",
				"[::1]:8080"}},
		"a port": {"https://hub.example:8443", nil, []string{"hub.example:8443"}, []string{"hub.example", "hub.example:443"}},
		"this machine": {"http://127.0.0.1:8080", nil, []string{"127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080",
			"127.0.0.2:8080", "localhost:9000"},
			[]string{"evil.example", "evil.example:8080", "localhost.evil.example:8080", "10.0.0.1:8080", "127.0.0.1.evil.example"}},
		"none": {"", nil, []string{"evil.example"}, nil},
	} {
		hosts, err := edge.NewHosts(c.public, c.hosts)
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		e.gateway.Routes(mux)
		server := httptest.NewServer(e.gateway.RestrictHosts(hosts, mux))
		t.Cleanup(server.Close)
		for _, host := range c.takes {
			if status, body := answerAt(t, server, host); status != http.StatusUnauthorized {
				t.Errorf("%s: %s: %d %s", name, host, status, body)
			}
		}
		for _, host := range c.refuse {
			status, body := answerAt(t, server, host)
			var failure struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal(
				[]byte(body),
				&failure,
			); err != nil || status != http.StatusMisdirectedRequest ||
				failure.Error.Code != "E_VALIDATION" ||
				!strings.Contains(failure.Error.Message, "use "+c.public) {
				t.Errorf("%s: %s: %d %s", name, host, status, body)
			}
		}
	}
}

// answerAt is what the server answers a call without a key that is for this host.
func answerAt(t *testing.T, server *httptest.Server, host string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /api/tools HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
