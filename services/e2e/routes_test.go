package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// ordersAt starts the service that owns routes, as a process of its own that announces itself.
func (s *suite) ordersAt(environ []string) *localserver.Process {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := localserver.StartProgram(localserver.Program{Path: self, Args: []string{"serve"}, Env: environ, Output: s.logs})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { p.Kill() })
	return p
}

// ordersEnviron makes the store of the service that owns routes, and returns its environment.
func (s *suite) ordersEnviron(t *testing.T, discovery []string) []string {
	t.Helper()
	environ := append(
		[]string{
			"HUB_TEST_AS_PROGRAM=1",
			"HUB_WRITE_STORE_URL=" + s.store.URL("payments"),
			"HUB_MIGRATE_URL=" + s.store.OwnerURL,
			atOnce,
			"PATH=" + os.Getenv(
				"PATH",
			),
			"HOME=" + t.TempDir(),
			"GOCOVERDIR=" + t.TempDir(),
		},
		append(discovery, callertest.Environ("payments", "payments", "gateway")...)...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	migrate := exec.CommandContext(t.Context(), self, "migrate")
	migrate.Env = environ
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	owner, err := pgx.Connect(t.Context(), s.store.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	if _, err := owner.Exec(
		t.Context(),
		`CREATE TABLE payments.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, amount bigint NOT NULL);
		GRANT SELECT, INSERT ON payments.orders TO hub_payments`,
	); err != nil {
		t.Fatal(err)
	}
	return environ
}

// TestAServiceThatAppearsLater: an owner of routes that nobody has heard of starts, is found in Consul, and
// its part of /v1 answers through a gateway that was not started again; it goes, and its routes say so.
func TestAServiceThatAppearsLater(t *testing.T) {
	discovery := []string{"HUB_DISCOVERY=consul", "HUB_CONSUL_ADDR=" + hubtest.Consul(t).Addr()}
	s := start(t, options{env: discovery, without: []string{"payments"}})
	hubtest.Eventually(t, "a tool answers", func() bool { return s.call("search_brands", `{}`).OK })
	call := func(method, path, body string, headers ...string) reply {
		t.Helper()
		r, err := s.send(context.Background(), s.url, method, path, body, headers...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := call("POST", "/v1/orders", `{"amount":1}`); r.status != 404 {
		t.Fatalf("before there is an owner: %s", r.raw)
	}
	environ := s.ordersEnviron(t, discovery)
	p := s.ordersAt(environ)
	hubtest.Eventually(t, "the newcomer is found", func() bool {
		return call("GET", "/v1/orders/999", "").Error.Code == "E_NOT_FOUND" && call("POST", "/v1/orders", `{}`).status == 400
	})

	first := call("POST", "/v1/orders", `{"amount":11000}`, "Idempotency-Key", "once", "X-Request-Id", "req-of-an-order")
	if first.status != 201 || first.header.Get("Location") != "/v1/orders/1" || string(first.Data) != `{"orderId":"1","amount":11000}` ||
		strings.Contains(first.raw, `"tool"`) {
		t.Fatalf("%d %v %s", first.status, first.header, first.raw)
	}
	again := call("POST", "/v1/orders", `{ "amount": 11000 }`, "Idempotency-Key", "once")
	if again.status != 201 || string(again.Data) != string(first.Data) || again.header.Get("Idempotent-Replayed") != "true" ||
		again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("replayed: %d %v %s", again.status, again.header, again.raw)
	}
	for what, c := range map[string]struct {
		r      reply
		status int
		code   string
	}{
		"without a key": {call("POST", "/v1/orders", `{"amount":1}`), 400, "E_VALIDATION"},
		"another input": {call("POST", "/v1/orders", `{"amount":2}`, "Idempotency-Key", "once"), 409, "E_IDEMPOTENCY"},
		"no amount":     {call("POST", "/v1/orders", `{}`, "Idempotency-Key", "two"), 400, "E_VALIDATION"},
		"one":           {call("GET", "/v1/orders/1", ""), 200, ""},
		"none":          {call("GET", "/v1/orders/2", ""), 404, "E_NOT_FOUND"},
		"no number":     {call("GET", "/v1/orders/x", ""), 400, "E_VALIDATION"},
		"accepted":      {call("POST", "/v1/orders/1/redeliver", ``), 202, ""},
		"see other":     {call("POST", "/v1/orders/latest", ``), 200, ""}, // net/http goes there with a GET
		"nobody":        {call("GET", "/v1/orders/1", "", "Authorization", ""), 401, "E_AUTH_MISSING"},
		"without a scope": {call("POST", "/v1/orders", `{"amount":1}`, "Authorization", "Bearer "+s.issue("--scopes", "query").Key), 403,
			"E_SCOPE"},
		"as a tool":        {call("POST", "/api/tools/orders.create", `{"amount":1}`, "Idempotency-Key", "t"), 404, "E_NOT_FOUND"},
		"its internal way": {call("POST", "/internal/routes/orders.create", `{"amount":1}`), 404, "E_NOT_FOUND"},
	} {
		if c.r.status != c.status || c.r.Error.Code != c.code {
			t.Errorf("%s: %d %s", what, c.r.status, c.r.raw)
		}
	}
	if rows := s.audited("req-of-an-order"); len(rows) != 1 || rows[0].Tool != "orders.create" || rows[0].Outcome != "ok" {
		t.Errorf("audit log %+v", rows)
	}
	if r := call("GET", "/openapi.json", ""); !strings.Contains(r.raw, `"/v1/orders/{orderId}"`) {
		t.Error("the API's description does not hold the routes")
	}
	var made sync.Map
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r, err := s.send(context.Background(), s.url, "POST", "/v1/orders", `{"amount":5}`, "Idempotency-Key", "together")
			if err != nil || r.status != 201 {
				t.Errorf("together: %v %s", err, r.raw)
			}
			made.Store(string(r.Data), true)
		})
	}
	all.Wait()
	n := 0
	made.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("one key made %d orders", n)
	}
	s.strangersBodies(t)

	p.Kill()
	hubtest.Eventually(t, "its routes say that it is away", func() bool {
		r := call("GET", "/v1/orders/1", "")
		return r.status == 503 && r.Error.Code == "E_DB" && r.Error.Retryable && strings.Contains(r.Error.Message, "payments")
	})
	if r := s.call("search_brands", `{}`); !r.OK {
		t.Errorf("the others do not go on: %s", r.raw)
	}
	s.ordersAt(environ)
	hubtest.Eventually(t, "it is back", func() bool { return call("GET", "/v1/orders/1", "").OK })
}

// strangersBodies announces bodies without a key and sends none: the answer comes all the same.
func (s *suite) strangersBodies(t *testing.T) {
	t.Helper()
	for _, length := range []string{"Content-Length: 60000", "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(hubtest.Patience))
		fmt.Fprintf(conn, "POST /v1/orders HTTP/1.1\r\nHost: hub\r\n%s\r\n\r\n", length)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %v %v", length, resp, err)
		}
		_ = conn.Close()
	}
}
