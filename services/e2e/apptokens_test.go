package e2e_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// appRoutes are those of the test's orders that take the token of an app, or nobody's credential.
func (o orderBook) appRoutes() []tool.APIRoute {
	declare := func(name, path, scope, credential, form string, input *schema.Schema, success int) tool.RouteDeclaration {
		return tool.RouteDeclaration{
			Declaration: tool.Declaration{
				Name:        name,
				Description: "Orders of the tests.",
				Scope:       scope,
				Input:       input,
				Output:      schema.FreeObject(""),
				MaxBody:     64 << 10,
			},
			Method:      "POST",
			Path:        path,
			Success:     []int{success},
			Idempotency: tool.KeyIgnored,
			Credential:  credential,
			Form:        form,
		}
	}
	return []tool.APIRoute{
		tool.NewRoute(declare("orders.mine", "/v1/orders/mine", "pay:write", tool.AppCredential, tool.JSONForm, schema.Object(), 201),
			func(ctx context.Context, _ struct{}) (map[string]bool, error) {
				_, err := o.store.Exec(ctx, `INSERT INTO payments.orders (amount) VALUES (1)`)
				return map[string]bool{"made": true}, postgres.Explain(err, "payments")
			}),
		tool.NewRoute(declare("orders.hook", "/v1/orders/hooks/test", "", tool.NoCredential, tool.RawForm, tool.RawInput(), 200),
			func(_ context.Context, in tool.RawRequest) (tool.RawAnswer, error) {
				b, err := in.Bytes()
				return tool.RawAnswer{Status: 200, ContentType: "text/html;charset=utf-8", Body: append([]byte("OK "), b...)}, err
			}),
	}
}

// serviceJWT signs a token as an app does, with claims of its own.
func serviceJWT(secret, kid string, claims map[string]any) string {
	now := time.Now().Unix()
	all := map[string]any{"iss": "shop", "sub": "u-77", "aud": "hub", "iat": now, "exp": now + 60, "jti": rand.Text()}
	maps.Copy(all, claims)
	header := map[string]string{"alg": "HS256", "typ": "JWT", "kid": kid}
	maps.DeleteFunc(header, func(_, v string) bool { return v == "" })
	head, _ := json.Marshal(header)
	body, _ := json.Marshal(all)
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// TestAppsAtTwoGateways: the token of an app is good once, wherever it is used; what is taken from the app holds at the
// next call, at both gateways; and what a provider sends arrives as it was sent.
func TestAppsAtTwoGateways(t *testing.T) {
	s := start(t, options{raced: true, gateways: 2, without: []string{"payments"}})
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	s.ordersAt(s.ordersEnviron(t, []string{"HUB_ADDR=" + at, "HUB_OPS_ADDR=127.0.0.1:0"}))
	for _, name := range []string{"gateway", "gateway-2"} {
		for i, setting := range s.env[name] {
			if strings.HasPrefix(setting, "HUB_STATIC=") {
				s.env[name][i] += ",payments=" + at
			}
		}
		s.process[name].Kill()
		s.start(name)
		s.ready(name)
	}
	owner, err := pgx.Connect(t.Context(), s.store.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	s.run(
		"auth",
		s.env["auth"],
		"app",
		"put",
		"shop",
		"--name",
		"Shop",
		"--scopes",
		"pay:read,pay:write",
		"--user-per-minute",
		"60000",
		"--user-burst",
		"1000",
		"--service-per-minute",
		"60000",
		"--service-burst",
		"1000",
	)
	type secret struct {
		ID, Secret string
		Webhook    struct{ Secret string }
	}
	var key secret
	if err := json.Unmarshal([]byte(s.run("auth", s.env["auth"], "app", "issue-secret", "shop", "--json")), &key); err != nil {
		t.Fatal(err)
	}
	gateways := []string{s.url, "http://" + s.addr["gateway-2"]}
	var sent []string
	pay := func(at, token string) reply {
		t.Helper()
		sent = append(sent, token)
		r, err := s.send(context.Background(), at, "POST", "/v1/orders/mine", `{}`, "Authorization", "Bearer "+token)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, at := range gateways {
		hubtest.Eventually(t, "the gateway knows the routes", func() bool {
			return pay(at, serviceJWT("x", "", nil)).Error.Code == "E_AUTH_INVALID"
		})
	}
	_, err = owner.Exec(
		t.Context(),
		`INSERT INTO auth.users (id, email, name, roles, created_by, created_at) VALUES ('usr_1', 'x@y.example', 'X', '{}', 'test', now());
		INSERT INTO auth.identity_links (id, service_code, external_user_id, hub_user_id, scopes, consent_version, status, linked_at, ip, ua)
		VALUES ('lnk_1', 'shop', 'u-77', 'usr_1', '{pay:read,pay:write}', 1, 'ACTIVE', now(), '', '')`,
	)
	if err != nil {
		t.Fatal(err)
	}
	made := func() (n int) {
		if err := owner.QueryRow(t.Context(), `SELECT count(*) FROM payments.orders`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := made(); n != 0 {
		t.Errorf("%d orders by tokens that do not hold", n)
	}

	var all sync.WaitGroup
	var good, refused atomic.Int64
	one := serviceJWT(key.Secret, key.ID, nil)
	for i := range 64 {
		all.Go(func() {
			r, err := s.send(context.Background(), gateways[i%2], "POST", "/v1/orders/mine", `{}`, "Authorization", "Bearer "+one)
			switch {
			case err == nil && r.status == 201:
				good.Add(1)
			case err == nil && r.status == 401 && r.Error.Code == "E_AUTH_INVALID":
				refused.Add(1)
			default:
				t.Errorf("%v %s", err, r.raw)
			}
		})
	}
	all.Wait()
	if good.Load() != 1 || refused.Load() != 63 || made() != 1 {
		t.Errorf("one token: %d good, %d refused, %d orders", good.Load(), refused.Load(), made())
	}
	sent = append(sent, one)

	if r := pay(
		gateways[1],
		serviceJWT(key.Secret, "", map[string]any{"aud": "another", "jti": "kept"}),
	); r.Error.Code != "E_AUTH_INVALID" ||
		!strings.Contains(r.raw, "aud must be") {
		t.Errorf("another audience: %s", r.raw)
	}
	if r := pay(gateways[0], serviceJWT(key.Secret, "", map[string]any{"jti": "kept"})); r.status != 201 {
		t.Errorf("the jti of a token that was refused: %s", r.raw)
	}
	s.run("auth", s.env["auth"], "app", "suspend", "shop", "--reason", "test")
	for _, at := range gateways {
		if r := pay(at, serviceJWT(key.Secret, key.ID, nil)); r.status != 403 || r.Error.Code != "E_AUTH_REVOKED" {
			t.Errorf("suspended: %s", r.raw)
		}
	}
	s.run("auth", s.env["auth"], "app", "resume", "shop")
	if r := pay(gateways[1], serviceJWT(key.Secret, key.ID, nil)); r.status != 201 {
		t.Errorf("resumed: %s", r.raw)
	}
	s.run("auth", s.env["auth"], "app", "revoke-secret", "shop", key.ID)
	if r := pay(gateways[0], serviceJWT(key.Secret, key.ID, nil)); r.status != 401 || r.Error.Code != "E_AUTH_INVALID" {
		t.Errorf("a revoked secret: %s", r.raw)
	}
	if n := made(); n != 3 {
		t.Errorf("%d orders", n)
	}

	resp, err := http.Post(gateways[1]+"/v1/orders/hooks/test", "application/json", strings.NewReader("\xff{"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(
		resp.Body,
	); err != nil || resp.StatusCode != 200 || answer.String() != "OK \xff{" ||
		resp.Header.Get("Content-Type") != "text/html;charset=utf-8" {
		t.Errorf("%d %v %q", resp.StatusCode, resp.Header, answer.String())
	}
	var audited string
	if err := owner.QueryRow(t.Context(), `SELECT coalesce(string_agg(c::text, ' '), '') FROM audit.calls c`).Scan(&audited); err != nil {
		t.Fatal(err)
	}
	for _, canary := range append(sent, key.Secret, key.Webhook.Secret) {
		if strings.Contains(s.logs.String()+audited, canary) {
			t.Errorf("a secret or a token is in the logs or in the audit log")
		}
	}
}
