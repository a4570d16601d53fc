package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

const (
	shopUser  = "customer-1"
	simSecret = "CANARY-secret-of-the-simulator"
)

// shop is a Connected App with a linked user, the provider that its orders are paid at, and its receiver.
type shop struct {
	*suite
	sim, echo     string // their addresses
	secret        string
	webhookSecret string
	owner         person // whose account the user has linked
}

// newShop starts the suite, and seeds it as the local stack is.
func newShop(t *testing.T, gateways int) *shop {
	t.Helper()
	return newShopWith(t, options{raced: true, gateways: gateways})
}

func newShopWith(t *testing.T, o options) *shop {
	t.Helper()
	x := &shop{}
	// Programs of before may know nothing of a pooler.
	o.shop, o.pooled = x, len(o.runs) == 0
	x.suite = start(t, o)
	x.owner = x.person("Ada Admin", "admin")
	credential := exec.Command(x.path(x.commands, "payments"), "credential", "add", "--env", "sandbox", "--client-id", "pgsim-test")
	credential.Env, credential.Stdin = x.env["payments"], strings.NewReader(simSecret)
	if out, err := credential.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	auth := func(args ...string) string { return x.run("auth", x.env["auth"], args...) }
	auth("app", "create", "shop", "--name", "The corner shop", "--scopes", "pay:read,pay:write,pay:refund", "--redirect-url", x.echo+"/return",
		"--user-per-minute", "60000", "--user-burst", "1000", "--service-per-minute", "60000", "--service-burst", "1000")
	var issued struct {
		Secret  string
		Webhook struct{ Secret string }
	}
	if err := json.Unmarshal([]byte(auth("app", "issue-secret", "shop", "--json")), &issued); err != nil {
		t.Fatal(err)
	}
	x.secret, x.webhookSecret = issued.Secret, issued.Webhook.Secret
	if err := os.WriteFile(x.secretFile(), []byte(x.webhookSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	auth("link", "add", "--app", "shop", "--external-user", shopUser, "--user", x.owner.Email, "--scopes", "pay:read,pay:write,pay:refund")
	return x
}

func (x *shop) secretFile() string {
	return filepath.Join(x.bin, "..", "webhook-secret-"+strings.ReplaceAll(x.echo, "/", ""))
}

// open starts what stands outside of Hub.
func (x *shop) open(s *suite) {
	s.t.Helper()
	var addrs [2]string
	for i := range addrs {
		port, err := localserver.FreePort()
		if err != nil {
			s.t.Fatal(err)
		}
		addrs[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	x.sim, x.echo = "http://"+addrs[0], "http://"+addrs[1]
	s.t.Cleanup(func() { os.Remove(x.secretFile()) })
	outside := func(name string, env []string, args ...string) {
		p, err := localserver.StartProgram(
			localserver.Program{Path: filepath.Join(s.bin, name), Args: args, Env: append(env, atOnce), Dir: s.t.TempDir(), Output: s.logs},
		)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(p.Kill)
	}
	x.suite = s
	outside(
		"pgsim",
		[]string{
			"HUB_PGSIM_ADDR=" + addrs[0],
			"HUB_PGSIM_CLIENT_ID=pgsim-test",
			"HUB_PGSIM_SECRET=" + simSecret,
			"HUB_PGSIM_OPEN_CONTROL=true",
			"HUB_PGSIM_WEBHOOK_URL=" + s.url + "/v1/pay/webhooks/nicepay",
		},
	)
	outside("echo", nil, "--addr", addrs[1], "--secret-file", x.secretFile())
}

// environ is what the local stack's dev.env tells a shell.
func (x *shop) environ() []string {
	return append(
		os.Environ(),
		"HUB_URL="+x.url,
		"HUB_SERVICE_CODE=shop",
		"HUB_SERVICE_SECRET="+x.secret,
		"HUB_WEBHOOK_SECRET="+x.webhookSecret,
		"HUB_LINKED_USER="+shopUser,
		"HUB_PGSIM_URL="+x.sim,
		"HUB_ECHO_URL="+x.echo,
		"PATH="+x.bin+":"+os.Getenv("PATH"),
		atOnce,
	)
}

// token is one of the shop's, for a user.
func (x *shop) token(user string) string {
	return serviceJWT(x.secret, "", map[string]any{"iss": "shop", "sub": user})
}

// v1 is a call with a token of its own for the linked user, unless a header says otherwise.
func (x *shop) v1(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	return x.v1At(t, x.url, method, path, body, headers...)
}

func (x *shop) v1At(t *testing.T, at, method, path, body string, headers ...string) reply {
	t.Helper()
	r, err := x.send(
		context.Background(),
		at,
		method,
		path,
		body,
		append([]string{"Authorization", "Bearer " + x.token(shopUser)}, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// payOrder is an order as tests read it.
type payOrder struct {
	Code, Status, CheckoutURL string
	RefundableAmount          int64
}

// made makes an order, which has to succeed.
func (x *shop) made(t *testing.T, body string, headers ...string) payOrder {
	t.Helper()
	r := x.v1(t, "POST", "/v1/pay/orders", body, headers...)
	if r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	return orderOf(t, r)
}

func orderOf(t *testing.T, r reply) payOrder {
	t.Helper()
	var data struct{ Order payOrder }
	if err := json.Unmarshal(r.Data, &data); err != nil || data.Order.Code == "" {
		t.Fatalf("%v: %s", err, r.raw)
	}
	return data.Order
}

// becomes waits until an order has a status.
func (x *shop) becomes(t *testing.T, code, status string) {
	t.Helper()
	hubtest.Eventually(t, code+" is "+status, func() bool {
		return orderOf(t, x.v1(t, "GET", "/v1/pay/orders/"+code, "")).Status == status
	})
}

// control plays payer and bank.
func (x *shop) control(t *testing.T, action, body string) {
	t.Helper()
	resp, err := http.Post(x.sim+"/_control/"+action, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", action, resp.StatusCode, answer)
	}
}

// plain is a request without a credential: the status, the header and the body, whatever that is.
func plain(t *testing.T, method, address, kind, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp, b.String()
}
