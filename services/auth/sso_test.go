package auth_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/auth"
	"hub.internal/services/auth/oidc"
)

const publicURL = "http://127.0.0.1:9"

var providerProgram struct {
	once sync.Once
	dir  string
	err  error
}

// installProvider makes the npm package oidc-provider available, once a machine.
func installProvider(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here; the log-in through OIDC is tested against the npm package oidc-provider", program)
		}
	}
	providerProgram.once.Do(func() {
		cache, err := os.UserCacheDir()
		if err != nil {
			providerProgram.err = err
			return
		}
		dir := filepath.Join(cache, "hub", "oidc-provider-9.13.3")
		providerProgram.dir = dir
		if providerProgram.err = os.MkdirAll(dir, 0o755); providerProgram.err != nil {
			return
		}
		for _, name := range []string{"package.json", "package-lock.json", "provider.mjs"} {
			b, err := os.ReadFile(filepath.Join("testdata", "oidc-provider", name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
			}
			if err != nil {
				providerProgram.err = err
				return
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil {
			return
		}
		cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			providerProgram.err = fmt.Errorf("npm ci: %w: %s", err, out)
		}
	})
	if providerProgram.err != nil {
		t.Skipf("oidc-provider cannot be installed: %v", providerProgram.err)
	}
	return providerProgram.dir
}

// startProvider runs the provider and returns its issuer.
func startProvider(t *testing.T) string {
	t.Helper()
	dir := installProvider(t)
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "provider.mjs", fmt.Sprint(port), publicURL+"/login/oidc/callback")
	cmd.Dir = dir
	stdin, err := cmd.StdinPipe() // its end is the provider's end, also when the test is killed
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	issuer := fmt.Sprintf("http://127.0.0.1:%d", port)
	hubtest.Eventually(t, "the provider answers", func() bool {
		res, err := http.Get(issuer + "/.well-known/openid-configuration")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
	return issuer
}

func ssoConfig(issuer string) oidc.Config {
	return oidc.Config{Issuer: issuer, ClientID: "hub", ClientSecret: "a secret of the tests", PublicURL: publicURL}
}

var formAction = regexp.MustCompile(`action="([^"]+)"`)

// atProvider signs in at the provider as a browser would, and returns what it sends the browser back with.
func atProvider(t *testing.T, start, login string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var back *url.URL
	client := &http.Client{Jar: jar, Timeout: 20 * time.Second, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), publicURL) {
			back = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	res, err := client.Get(start)
	for i := 0; err == nil && back == nil && i < 4; i++ {
		page, _ := io.ReadAll(res.Body)
		res.Body.Close()
		action := formAction.FindSubmatch(page)
		if action == nil {
			t.Fatalf("%d: no form in %s", res.StatusCode, page)
		}
		to, parseErr := res.Request.URL.Parse(string(action[1]))
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		prompt := "login"
		if strings.Contains(string(page), `value="consent"`) {
			prompt = "consent"
		}
		res, err = client.PostForm(to.String(), url.Values{"prompt": {prompt}, "login": {login}, "password": {"any"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if back == nil {
		t.Fatal("the provider does not send the browser back")
	}
	return back.Query()
}

// begin starts a log-in and returns the provider's address and the browser's cookie.
func (h *hall) begin(t *testing.T, next string) (string, string) {
	t.Helper()
	res, page := h.visit(t, visitor, "GET", "/login/oidc?next="+url.QueryEscape(next), nil)
	c := cookie(res, "__Host-hub-signin")
	if res.StatusCode != 303 || c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 {
		t.Fatalf("%d %v %s", res.StatusCode, res.Header, page)
	}
	return res.Header.Get("Location"), c.Name + "=" + c.Value
}

func (h *hall) finish(t *testing.T, cookies string, q url.Values) (*http.Response, string) {
	t.Helper()
	return h.visit(t, visitor, "GET", "/login/oidc/callback?"+q.Encode(), nil, "Cookie", cookies)
}

func TestSingleSignOn(t *testing.T) {
	t.Parallel()
	issuer := startProvider(t)
	provider, err := oidc.New(ssoConfig(issuer))
	if err != nil {
		t.Fatal(err)
	}
	h := newHall(t, provider)
	u := h.add(t, ada, "reviewer")
	h.add(t, "gone@example.com")
	if _, err := h.Disable(h.ctx, "gone@example.com"); err != nil {
		t.Fatal(err)
	}
	if _, page := h.visit(t, visitor, "GET", "/login?next=/drafts", nil); !strings.Contains(page, `href="/login/oidc?next=%2fdrafts"`) {
		t.Errorf("no way to the provider: %s", page)
	}
	start, cookies := h.begin(t, "/drafts")
	if q, _ := url.Parse(
		start,
	); q.Query().Get("code_challenge_method") != "S256" || q.Query().Get("nonce") == "" ||
		q.Query().Get("state") == "" {
		t.Errorf("%s", start)
	}
	q := atProvider(t, start, ada)
	res, _ := h.finish(t, cookies, q)
	c := cookie(res, "__Host-hub")
	if res.StatusCode != 303 || res.Header.Get("Location") != "/drafts" || c == nil || cookie(res, "__Host-hub-signin").MaxAge >= 0 {
		t.Fatalf("%d %v; %s", res.StatusCode, res.Header, h.log)
	}
	if r, err := h.Resolve(h.ctx, c.Value); err != nil || r.User.ID != u.ID || r.Session.Method != auth.ByOIDC {
		t.Errorf("%+v, %v", r, err)
	}
	if res, _ := h.finish(t, cookies, q); res.StatusCode != 401 || cookie(res, "__Host-hub") != nil {
		t.Errorf("the same code again: %d", res.StatusCode)
	}
	for name, login := range map[string]string{"unknown": "nobody@example.com", "not verified": "unverified+" + ada,
		"disabled": "gone@example.com"} {
		start, cookies := h.begin(t, "/")
		if res, page := h.finish(
			t,
			cookies,
			atProvider(t, start, login),
		); res.StatusCode != 401 || cookie(res, "__Host-hub") != nil ||
			!strings.Contains(page, `role="alert"`) {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
	tampered := func(change func(*auth.Flow)) string {
		start, cookies = h.begin(t, "/")
		name, value, _ := strings.Cut(cookies, "=")
		b, _ := base64.RawURLEncoding.DecodeString(value)
		var f auth.Flow
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		change(&f)
		b, _ = json.Marshal(f)
		return name + "=" + base64.RawURLEncoding.EncodeToString(b)
	}
	for name, c := range map[string]struct {
		cookies func() string
		query   func(url.Values)
		status  int
	}{
		"another browser": {func() string { start, _ = h.begin(t, "/"); return "x=1" }, func(url.Values) {}, 400},
		"another state": {func() string { start, cookies = h.begin(t, "/"); return cookies }, func(q url.Values) { q.Set("state", "x") },
			400},
		"another nonce": {func() string { return tampered(func(f *auth.Flow) { f.Nonce = "x" }) }, func(url.Values) {}, 401},
		"another verifier": {func() string { return tampered(func(f *auth.Flow) { f.Verifier = strings.Repeat("x", 43) }) },
			func(url.Values) {}, 401},
		"another code": {func() string { start, cookies = h.begin(t, "/"); return cookies }, func(q url.Values) { q.Set("code", "x") },
			401},
		"another issuer": {func() string { start, cookies = h.begin(t, "/"); return cookies },
			func(q url.Values) { q.Set("iss", "https://evil.example") }, 401},
		"refused there": {func() string { start, cookies = h.begin(t, "/"); return cookies },
			func(q url.Values) { q.Set("error", "access_denied") }, 401},
		"foreign next, kept": {func() string { return tampered(func(f *auth.Flow) { f.Next = "//evil.example" }) }, func(url.Values) {}, 303},
	} {
		cookies := c.cookies()
		q := atProvider(t, start, ada)
		c.query(q)
		res, _ := h.finish(t, cookies, q)
		if res.StatusCode != c.status || (cookie(res, "__Host-hub") != nil) != (c.status == 303) ||
			c.status == 303 && res.Header.Get("Location") != "/" {
			t.Errorf("%s: %d %v", name, res.StatusCode, res.Header)
		}
	}
}

func TestSingleSignOnWithRoles(t *testing.T) {
	t.Parallel()
	issuer := startProvider(t)
	config := ssoConfig(issuer)
	config.RolesClaim, config.Roles = "groups", map[string]string{"hub-reviewers": "reviewer", "hub-admins": "admin"}
	provider, err := oidc.New(config)
	if err != nil {
		t.Fatal(err)
	}
	h := newHall(t, provider)
	h.add(t, ada, "admin", "reviewer")
	roles := func(login string) string {
		start, cookies := h.begin(t, "/")
		res, _ := h.finish(t, cookies, atProvider(t, start, login))
		c := cookie(res, "__Host-hub")
		if c == nil {
			return fmt.Sprint(res.StatusCode)
		}
		r, err := h.Resolve(h.ctx, c.Value)
		if err != nil {
			t.Fatal(err)
		}
		return r.User.Email + " " + strings.Join(r.User.Roles, ",")
	}
	for login, want := range map[string]string{ada: ada + " reviewer", "new@example.com": "new@example.com reviewer",
		"boss+chief@example.com": "chief@example.com admin", "none+other@example.com": "401"} {
		if got := roles(login); got != want {
			t.Errorf("%s: %s, want %s", login, got, want)
		}
	}
	if got := h.query(
		t,
		`SELECT string_agg(tool || ' ' || service, ',' ORDER BY tool) FROM audit.calls WHERE tool IN ('user.roles', 'user.add') `+
			`AND service = 'oidc'`,
	); got != "user.add oidc,user.add oidc,user.roles oidc" {
		t.Errorf("audit %s", got)
	}
	for _, c := range []struct{ login, left string }{{"silent+" + ada, "{reviewer}"}, {"none+" + ada, "{}"}} {
		got, left := roles(c.login), h.query(t, `SELECT roles::text FROM auth.users WHERE email = '`+ada+`'`)
		if got != "401" || left != c.left {
			t.Errorf("%s: %s, and the roles %s are left", c.login, got, left)
		}
	}
}

func TestSingleSignOnConfiguration(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oidc.Config){
		"no public URL": func(c *oidc.Config) { c.PublicURL = "" }, "a path": func(c *oidc.Config) { c.PublicURL = "https://x.example/hub" },
		"no scheme": func(c *oidc.Config) { c.PublicURL = "x.example" },
		"no client": func(c *oidc.Config) { c.ClientID = "" }, "issuer": func(c *oidc.Config) { c.Issuer = "x" },
		"claim alone": func(c *oidc.Config) { c.RolesClaim = "groups" },
		"roles alone": func(c *oidc.Config) { c.Roles = map[string]string{"a": "admin"} },
		"unknown role": func(c *oidc.Config) {
			c.RolesClaim, c.Roles = "groups", map[string]string{"a": "admin", "b": "reviwer"}
		},
	} {
		c := ssoConfig("https://issuer.example")
		change(&c)
		if _, err := oidc.New(c); err == nil || strings.Contains(err.Error(), "secret of the tests") {
			t.Errorf("%s: %v", name, err)
		}
	}
	provider, err := oidc.New(ssoConfig("http://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	h := newHall(t, provider)
	if res, _ := h.visit(t, visitor, "GET", "/login/oidc", nil); res.StatusCode != 503 {
		t.Errorf("without the provider: %d", res.StatusCode)
	}
	if res, _ := h.visit(t, visitor, "GET", "/login", nil); res.StatusCode != 200 {
		t.Errorf("the page without the provider: %d", res.StatusCode)
	}
	h = newHall(t)
	for _, path := range []string{"/login/oidc", "/login/oidc/callback?state=x&code=y"} {
		if res, _ := h.visit(t, caller.Caller{Kind: caller.Visitor}, "GET", path, nil); res.StatusCode != 404 {
			t.Errorf("not set up, %s: %d", path, res.StatusCode)
		}
	}
}
