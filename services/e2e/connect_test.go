package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/seal"
	"hub.internal/services/auth/links"
)

// TestConnecting is the way of a user whom an app sends to Hub: with scripts and without, on wide and narrow windows.
func TestConnecting(t *testing.T) {
	t.Parallel()
	installAxe(t)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(
			[]byte(`<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><main><h1>Welcome back</h1></main>`),
		)
	}))
	t.Cleanup(shop.Close)
	s := start(t, options{without: []string{"payments"}}) // of which a part of this test has one of its own
	ada, grace := s.person("Ada Lovelace", "reviewer"), s.person("Grace Hopper")
	back := shop.URL + "/back"
	app := func(code, name string, more ...string) {
		s.run(
			"auth",
			s.env["auth"],
			append(
				[]string{"app", "put", code, "--name", name, "--redirect-url", back, "--scopes", "pay:read,pay:write,pay:refund"},
				more...)...)
	}
	app("shop", "The corner shop with a name that is rather long for a small window")
	app("bank", "The bank", "--link-mode", "confirm")
	var secret struct{ Secret string }
	if err := json.Unmarshal(
		[]byte(s.run("auth", s.env["auth"], "app", "issue-secret", "bank", "--json")),
		&secret,
	); err != nil ||
		secret.Secret == "" {
		t.Fatal(err)
	}
	box, err := seal.Open(keyset)
	if err != nil {
		t.Fatal(err)
	}
	l := links.New(links.Config{Sealer: box, Now: time.Now})
	ticket := func(code, user string, scopes ...string) string {
		link, _, err := l.Invite(code, user, scopes)
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	returning := "&returnUrl=" + url.QueryEscape(back)

	p := newPage(t, s.url)
	p.Open("/connect?t=nonsense")
	p.Sees("Ask the service that sent you for a new link.")
	p.Inspect("connect-bad")
	p.Open(ticket("shop", "customer-4711", "pay:read", "pay:write", "pay:refund") + returning)
	if p.Path() != "/login" {
		t.Fatalf("a visitor is at %s", p.URL())
	}
	p.signIn(grace.Email, grace.Password)
	if p.URL() != s.url+"/connect/consent" {
		t.Fatalf("the log-in leads to %s", p.URL())
	}
	p.Sees("cu…11")
	p.Inspect("connect-consent")
	p.Button("Not you?").Click()
	p.Sees("You are signed out.")
	p.signIn(ada.Email, ada.Password)
	p.Sees(ada.Email)
	p.Button("Allow").Click()
	p.Sees("Welcome back")
	if p.URL() != back {
		t.Errorf("the browser is at %s", p.URL())
	}
	p.Open("/connect/consent")
	p.Sees("is linked")
	p.Inspect("connect-linked")
	p.Open("/account/links")
	p.Sees("Make payment orders for you")
	p.Inspect("account-links")

	t.Run("somebody else", func(t *testing.T) {
		other := s.signedIn(t, grace, "/account/links")
		other.Sees("No app is linked")
		other.Inspect("account-links-empty")
		other.Open(ticket("shop", "customer-4711", "pay:read"))
		other.Sees("unlink it there first")
		other.Inspect("connect-taken")
		other.Open(ticket("shop", "customer-4712", "pay:read"))
		other.Button("Cancel").Click()
		other.Sees("Nothing was linked")
		other.Inspect("connect-declined")
		other.Open(ticket("shop", "customer-4712", "pay:read") + returning)
		other.Button("Cancel").Click()
		other.eventually("the browser goes back", func() bool { return other.URL() == back+"?error=access_denied" })
		other.Open(ticket("bank", "customer-4712", "pay:read"))
		other.Sees("has to say where you go back to")
		code := func() string {
			other.Open(ticket("bank", "customer-4712", "pay:read") + returning)
			other.Button("Allow").Click()
			other.eventually("the browser goes back with a code", func() bool { return strings.HasPrefix(other.URL(), back+"?code=") })
			return strings.TrimPrefix(other.URL(), back+"?code=")
		}
		confirm := func(user, code string) reply {
			r, err := s.send(
				t.Context(),
				s.url,
				"POST",
				"/v1/connect/confirm",
				`{"code":"`+code+`"}`,
				"Content-Type",
				"application/json",
				"Authorization",
				"Bearer "+serviceJWT(secret.Secret, "", map[string]any{"iss": "bank", "sub": user}),
			)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		forwarded := code()
		if r := confirm("customer-4799", forwarded); r.status != http.StatusConflict || !strings.Contains(r.raw, "LINK_MISMATCH") {
			t.Errorf("in the session of somebody else: %d %s", r.status, r.raw)
		}
		if r := confirm("customer-4712", forwarded); r.status != http.StatusNotFound {
			t.Errorf("after that: %d %s", r.status, r.raw)
		}
		other.Open("/account/links")
		other.Sees("No app is linked")
		good := code()
		if r := confirm("customer-4712", good); r.status != http.StatusOK || !strings.Contains(r.raw, `"status":"ACTIVE"`) {
			t.Errorf("%d %s", r.status, r.raw)
		}
		if r := confirm("customer-4712", good); r.status != http.StatusNotFound {
			t.Errorf("once more: %d %s", r.status, r.raw)
		}
		other.Open("/account/links")
		other.Sees("The bank")
		other.went(shop.URL)
	})
	t.Run("by a call", func(t *testing.T) {
		s.ordersOfApps(t)
		s.run("auth", s.env["auth"], "app", "put", "cafe", "--name", "The café", "--redirect-url", back, "--scopes", "pay:read,pay:write")
		var key struct{ Secret string }
		if err := json.Unmarshal([]byte(s.run("auth", s.env["auth"], "app", "issue-secret", "cafe", "--json")), &key); err != nil {
			t.Fatal(err)
		}
		call := func() reply {
			r, err := s.send(
				t.Context(),
				s.url,
				"POST",
				"/v1/orders/mine",
				`{}`,
				"Authorization",
				"Bearer "+serviceJWT(key.Secret, "", map[string]any{"iss": "cafe"}),
			)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		hubtest.Eventually(t, "the gateway knows the route", func() bool { return call().Error.Code == "ACCOUNT_LINK_REQUIRED" })
		required := func(reason string) (link string) {
			r := call()
			var details struct {
				LinkURL string `json:"link_url"`
				Reason  string `json:"reason"`
			}
			if err := json.Unmarshal(
				r.Error.Details,
				&details,
			); err != nil || r.status != http.StatusUnauthorized || details.Reason != reason ||
				!strings.HasPrefix(details.LinkURL, s.url+"/connect?t=") {
				t.Fatalf("%d %s", r.status, r.raw)
			}
			return strings.TrimPrefix(details.LinkURL, s.url)
		}
		guest := s.signedIn(t, ada, "/account/links")
		required("NOT_LINKED")
		guest.Open(ticket("cafe", "u-77", "pay:read"))
		guest.Button("Allow").Click()
		guest.Sees("is linked")
		more := required("SCOPE_INCREASED")
		guest.Open(more + returning)
		guest.Sees("asks for more than you have allowed it so far")
		guest.Inspect("connect-more")
		guest.Button("Allow").Click()
		guest.Sees("Welcome back")
		if r := call(); r.status != http.StatusCreated {
			t.Errorf("linked for more: %d %s", r.status, r.raw)
		}
		guest.Open(more)
		guest.Sees("is linked")
		guest.Open("/account/links")
		guest.Link("Unlink The café").Click()
		guest.Button("Unlink").Click()
		guest.Sees("The app is unlinked.")
		required("NOT_LINKED")
		guest.went(shop.URL)
	})
	t.Run("without JavaScript", func(t *testing.T) {
		plain := s.signedIn(t, ada, "/account/links")
		plain.WithoutJavaScript()
		plain.Open(ticket("shop", "customer-4713", "pay:read") + returning)
		plain.Button("Allow").Click()
		plain.eventually("the browser goes back", func() bool { return plain.URL() == back })
		plain.Open("/account/links")
		plain.Sees("cu…13")
		plain.went(shop.URL)
	})
	p.Link("Unlink The corner shop with a name that is rather long for a small window").Click()
	p.Button("Unlink").Click()
	p.Sees("The app is unlinked.")
	p.went(shop.URL)
}

// ordersOfApps starts the orders of the tests, for which apps can call.
func (s *suite) ordersOfApps(t *testing.T) {
	t.Helper()
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	s.ordersAt(s.ordersEnviron(t, []string{"HUB_ADDR=" + at, "HUB_OPS_ADDR=127.0.0.1:0"}))
	for i, setting := range s.env["gateway"] {
		if strings.HasPrefix(setting, "HUB_STATIC=") {
			s.env["gateway"][i] += ",payments=" + at
		}
	}
	s.process["gateway"].Kill()
	s.start("gateway")
	s.ready("gateway")
}

// went takes note that the window was at another site, as it should.
func (p *page) went(origin string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.foreign)
	p.foreign = slices.DeleteFunc(p.foreign, func(address string) bool { return strings.HasPrefix(address, origin+"/") })
	if len(p.foreign) == before {
		p.t.Errorf("the window was never at %s", origin)
	}
}
