package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const serviceSecret = "hss_a secret of the app"

// edge answers what a test wants, and remembers the last request and its claims.
type edge struct {
	method, path, body, key, kind string
	claims                        jwt.RegisteredClaims
	jtis                          map[string]bool

	status int
	answer string
}

func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	e.method, e.path, e.body, e.key, e.kind = r.Method, r.URL.String(), string(
		b,
	), r.Header.Get(
		"Idempotency-Key",
	), r.Header.Get(
		"Content-Type",
	)
	e.claims = jwt.RegisteredClaims{}
	_, err := jwt.ParseWithClaims(
		strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
		&e.claims,
		func(*jwt.Token) (any, error) { return []byte(serviceSecret), nil },
		jwt.WithValidMethods([]string{"HS256"}),
		jwt.WithAudience("hub"),
	)
	if err != nil || len(e.claims.ID) < 20 || e.jtis[e.claims.ID] {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	e.jtis[e.claims.ID] = true
	w.WriteHeader(e.status)
	_, _ = io.WriteString(w, e.answer)
}

// paying runs commands against an edge.
func paying(t *testing.T) (e *edge, environ map[string]string, hub func(args ...string) (string, error)) {
	t.Helper()
	e = &edge{
		jtis:   map[string]bool{},
		status: http.StatusOK,
		answer: `{"ok":true,"data":{"order":{"code":"po_1","amount":11000,"failure":null}}}`,
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	environ = map[string]string{
		"HUB_URL":            server.URL,
		"HUB_SERVICE_CODE":   "shop",
		"HUB_SERVICE_SECRET": serviceSecret,
		"HUB_LINKED_USER":    "kim",
	}
	return e, environ, func(args ...string) (string, error) {
		s := shellOf(t, environ)
		if s.run(append([]string{"pay"}, args...)...); s.code != 0 {
			return s.out, errors.New(strings.TrimSuffix(s.err, "\n"))
		}
		return s.out, nil
	}
}

const code = "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8S"

func TestPayRequests(t *testing.T) {
	e, _, hub := paying(t)
	at := "/v1/pay/orders/" + code
	for _, c := range []struct {
		args         string
		method, path string
		body         string
	}{
		{"create --supply-amount 10000 --vat 0", "POST", "/v1/pay/orders", `{"supplyAmount":10000,"vat":0}`},
		{"create --amount 11000 --method vbank --valid-hours 3 --holder Hub --notify-url https://a.example/x --return-url " +
			"https://a.example/y --client-order-id c-1 --name Ink --metadata a=b",
			"POST", "/v1/pay/orders", `{"amount":11000,"clientOrderId":"c-1","metadata":{"a":"b"},"orderName":"Ink","payMethod":"vbank",` +
				`"payment_notify_url":"https://a.example/x","returnUrl":"https://a.example/y","vbank":{"holder":"Hub","validHours":3}}`},
		{"show " + code, "GET", at, ""},
		{"events " + code, "GET", at + "/events", ""},
		{"cancel " + code, "POST", at + "/cancel", "{}"},
		{"refund " + code, "POST", at + "/refund", "{}"},
		{"refund " + code + " --amount 4000 --expected 11000 --reason late --bank 004 --account 1 --holder Kim", "POST", at + "/refund",
			`{"amount":4000,"expectedRefundable":11000,"reason":"late","refundAccount":{"accountNumber":"1","bankCode":"004","holder":"Kim"}}`},
		{"list --status PAID --method card --attention --limit 5 --cursor x", "GET",
			"/v1/pay/orders?attention=true&cursor=x&limit=5&payMethod=card&status=PAID", ""},
	} {
		out, err := hub(strings.Fields(c.args)...)
		if err != nil || !strings.Contains(out, `"code": "po_1"`) {
			t.Errorf("%s: %v: %s", c.args, err, out)
		}
		if e.method != c.method || e.path != c.path || e.body != c.body {
			t.Errorf("%s: %s %s %s", c.args, e.method, e.path, e.body)
		}
		if writes := c.method == "POST"; (e.key != "") != writes || (e.kind == "application/json") != writes {
			t.Errorf("%s: key %q, %q", c.args, e.key, e.kind)
		}
		if e.claims.Issuer != "shop" || e.claims.Subject != "kim" || e.claims.ExpiresAt.Sub(e.claims.IssuedAt.Time) > 5*time.Minute {
			t.Errorf("%s: %+v", c.args, e.claims)
		}
	}
	if _, err := hub(
		"cancel",
		code,
		"--idempotency-key",
		"mine",
		"--user",
		"lee",
	); err != nil || e.key != "mine" ||
		e.claims.Subject != "lee" {
		t.Errorf("%v: %s %+v", err, e.key, e.claims)
	}
	e.status = http.StatusAccepted
	for member, want := range map[string]string{"order.code": "po_1\n", "order.amount": "11000\n", "order.failure": "null\n"} {
		if out, err := hub("show", code, "--print", member); err != nil || out != want {
			t.Errorf("%s: %v: %q", member, err, out)
		}
	}
	out, err := hub("token", "--lifetime", "1m")
	var claims jwt.RegisteredClaims
	if _, _, parsed := jwt.NewParser().ParseUnverified(strings.TrimSpace(out), &claims); err != nil || parsed != nil ||
		claims.ExpiresAt.Sub(claims.IssuedAt.Time) != time.Minute {
		t.Errorf("%v, %v: %+v", err, parsed, claims)
	}
}

// TestPayWritesCanBeTriedAgain: a write of hub pay, or of hub api below /v1/, that has no answer says with which
// Idempotency-Key the same command does it once.
func TestPayWritesCanBeTriedAgain(t *testing.T) {
	keys := make(chan string, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(silent.Close)
	_, environ, _ := paying(t)
	environ["HUB_URL"] = silent.URL
	for _, args := range []string{"pay create --amount 11000", "pay refund " + code + " --amount 4000", "pay cancel " + code,
		"pay refund " + code + " --idempotency-key mine", "api POST /v1/pay/orders"} {
		s := shellOf(t, environ)
		s.run(strings.Fields(args)...)
		key := <-keys
		if s.code != exitUnavailable ||
			!strings.HasSuffix(s.err, "hint: whether the write happened is not known; the same command with --idempotency-key "+key+
				" does it once\n") {
			t.Errorf("%s, sent %q: %d, %s", args, key, s.code, s.err)
		}
	}
}

// TestPayErrorsNameWhatToFix: an error is one line.
func TestPayErrorsNameWhatToFix(t *testing.T) {
	refused := func(code, details string) string {
		return fmt.Sprintf(`{"ok":false,"error":{"code":%q,"message":"It is so.","details":%s},"request_id":"req_1"}`, code, details)
	}
	for name, c := range map[string]struct {
		environ [2]string
		status  int
		answer  string
		args    string
		want    []string
	}{
		"no URL":      {[2]string{"HUB_URL", ""}, 0, "", "list", []string{"HUB_URL is not set", "dev.env"}},
		"no code":     {[2]string{"HUB_SERVICE_CODE", ""}, 0, "", "list", []string{"HUB_SERVICE_CODE is not set"}},
		"no secret":   {[2]string{"HUB_SERVICE_SECRET", ""}, 0, "", "token", []string{"HUB_SERVICE_SECRET is not set"}},
		"no user":     {[2]string{"HUB_LINKED_USER", ""}, 0, "", "list", []string{"--user", "HUB_LINKED_USER"}},
		"nobody":      {[2]string{"HUB_URL", "http://127.0.0.1:1"}, 0, "", "list", []string{"HUB_URL is http://127.0.0.1:1", "refused"}},
		"odd code":    {[2]string{}, 0, "", "show ../x", []string{`"../x" is not the code of an order`}},
		"long token":  {[2]string{}, 0, "", "token --lifetime 6m", []string{"--lifetime"}},
		"no member":   {[2]string{}, 200, `{"data":{"order":{}}}`, "show " + code + " --print order.code", []string{`no "code"`}},
		"no envelope": {[2]string{}, 502, `<html>`, "list", []string{"502"}},
		"conflict": {[2]string{}, 409, refused("E_CONFLICT", `{"code":"ORDER_NOT_REFUNDABLE"}`), "refund " + code,
			[]string{"E_CONFLICT ORDER_NOT_REFUNDABLE: It is so. (req_1)"}},
		"amount": {[2]string{}, 400, refused("BAD_AMOUNT", `{"code":"BAD_AMOUNT","rule":"SUM"}`), "create",
			[]string{"BAD_AMOUNT: It is so."}},
		"odd details": {[2]string{}, 429, refused("E_RATE_LIMIT", `["x"]`), "list", []string{"E_RATE_LIMIT: It is so."}},
		"bad secret":  {[2]string{}, 401, refused("E_AUTH_INVALID", `null`), "list", []string{"HUB_SERVICE_SECRET"}},
		"not linked": {[2]string{}, 401, refused("ACCOUNT_LINK_REQUIRED",
			`{"code":"ACCOUNT_LINK_REQUIRED","link_url":"https://hub.example/connect?t=x"}`), "create --amount 1",
			[]string{"ACCOUNT_LINK_REQUIRED", "open https://hub.example/connect?t=x"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, environ, hub := paying(t)
			e.status, e.answer = c.status, c.answer
			if c.environ[0] != "" {
				environ[c.environ[0]] = c.environ[1]
			}
			_, err := hub(strings.Fields(c.args)...)
			if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), serviceSecret) {
				t.Fatalf("%v", err)
			}
			for _, text := range c.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v, want %q", err, text)
				}
			}
			if !json.Valid([]byte(c.answer)) && c.answer != "" && strings.Contains(err.Error(), c.answer) {
				t.Errorf("%v", err)
			}
		})
	}
}
