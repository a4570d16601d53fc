package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
)

// person is a user of the console.
type person struct{ ID, Email, Name, Password string }

// person adds a user with auth's own command.
func (s *suite) person(name string, roles ...string) person {
	s.t.Helper()
	u := person{Email: strings.ToLower(strings.ReplaceAll(name, " ", ".")) + "@example.com", Name: name}
	args := []string{"user", "add", u.Email, "--name", name, "--json"}
	if len(roles) > 0 {
		args = append(args, "--roles", strings.Join(roles, ","))
	}
	out := s.run("auth", s.env["auth"], args...)
	if err := json.Unmarshal([]byte(out), &u); err != nil || u.Password == "" {
		s.t.Fatalf("user add: %v: %s", err, out)
	}
	return u
}

// signedIn opens a window for somebody who has signed in before, at a path of the console.
func (s *suite) signedIn(t testing.TB, u person, path string) *page {
	t.Helper()
	p := s.window(t, u)
	p.Open(path)
	return p
}

// window opens an empty window that has a new session of somebody's.
func (s *suite) window(t testing.TB, u person) *page {
	t.Helper()
	p := newPage(t, s.url)
	for _, c := range s.signIn(t, u) {
		do(
			p,
			network.SetCookie,
			network.SetCookieParams{Name: c.Name, Value: c.Value, URL: s.url, Path: "/", Secure: new(true), HTTPOnly: new(true)},
		)
	}
	return p
}

// signsIn opens a window in which somebody signs in by the form, which leads to a path of the console.
func (s *suite) signsIn(t testing.TB, u person, path string) *page {
	t.Helper()
	p := newPage(t, s.url)
	p.Open(path)
	p.signIn(u.Email, u.Password)
	if want, _, _ := strings.Cut(path, "?"); p.Path() != want && path != "/" {
		t.Fatalf("the log-in leads to %s, not to %s", p.URL(), path)
	}
	return p
}

// session signs somebody in without a browser.
func (s *suite) session(t testing.TB, u person) credential {
	t.Helper()
	for _, c := range s.signIn(t, u) {
		if c.Name == "__Host-hub" {
			return credential{"Cookie": c.Name + "=" + c.Value}
		}
	}
	return nil
}

// signIn posts the form of the log-in, and returns the cookies that it sets.
func (s *suite) signIn(t testing.TB, u person) []*http.Cookie {
	t.Helper()
	form := url.Values{"email": {u.Email}, "password": {u.Password}}.Encode()
	r := attempt{method: "POST", path: "/login", body: form, kind: "application/x-www-form-urlencoded"}.send(t, s.url, nil)
	cookies := r.Cookies()
	if r.StatusCode != http.StatusSeeOther || !slices.ContainsFunc(cookies, func(c *http.Cookie) bool { return c.Name == "__Host-hub" }) {
		t.Fatalf("%s signs in: %d", u.Email, r.StatusCode)
	}
	return cookies
}

func (p *page) signIn(email, password string) {
	p.t.Helper()
	p.Field("E-mail").Fill(email)
	p.Field("Password").Fill(password)
	p.Button("Sign in").Click()
}

// elsewhere signs in as another window of this browser does, which has its cookies.
func (p *page) elsewhere(email, password string) {
	p.t.Helper()
	form, err := json.Marshal(url.Values{"email": {email}, "password": {password}}.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	var status int
	p.Evaluate(`fetch("/login", {method: "POST", headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: `+string(form)+
		`}).then(r => r.status)`, &status)
	if status != http.StatusOK {
		p.t.Fatalf("%s signs in: %d", email, status)
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	ada := s.person("Ada Lovelace", "reviewer")
	bob := s.person("Bob", "admin")
	nobody := s.person("Nobody")

	t.Run("wrong password", func(t *testing.T) {
		p := newPage(t, s.url)
		p.Open("/account/sessions")
		if p.Path() != "/login" {
			t.Fatalf("without a session one lands at %s", p.URL())
		}
		p.signIn(ada.Email, "a wrong one, surely")
		wrong := p.Notice()
		if p.Path() != "/login" || p.Status() != 401 || p.Field("E-mail").Value() != ada.Email || p.Field("Password").Value() != "" {
			t.Errorf("%d %s", p.Status(), p.URL())
		}
		p.signIn("somebody.else@example.com", "a wrong one, surely")
		if unknown := p.Notice(); unknown != wrong || wrong == "" {
			t.Errorf("a wrong password is answered %q, an unknown address %q", wrong, unknown)
		}
		p.signIn(ada.Email, ada.Password)
		if p.Path() != "/account/sessions" {
			t.Errorf("the log-in leads to %s", p.URL())
		}
		p.Sees("Ada Lovelace")
	})

	t.Run("cookie", func(t *testing.T) {
		p := newPage(t, s.url)
		p.Open("/login")
		do(
			p,
			network.SetCookie,
			network.SetCookieParams{
				Name:     "__Host-hub",
				Value:    strings.Repeat("A", 43),
				URL:      s.url,
				Path:     "/",
				Secure:   new(true),
				HTTPOnly: new(true),
			},
		)
		p.Open("/login")
		p.signIn(ada.Email, ada.Password)
		held := map[string]*network.Cookie{}
		for _, c := range do(p, network.GetCookies, network.GetCookiesParams{}).Cookies {
			if strings.HasPrefix(c.Name, "__Host-hub") && !strings.Contains(c.Name, "flash") {
				held[c.Name] = c
			}
		}
		session, known := held["__Host-hub"], held["__Host-hub-browser"]
		if len(held) != 2 || session == nil || known == nil || session.Value == strings.Repeat("A", 43) || !session.Session ||
			known.Session {
			t.Fatalf("cookies %+v", held)
		}
		for _, c := range held {
			if !c.HTTPOnly || !c.Secure || c.SameSite != network.CookieSameSiteLax || c.Path != "/" {
				t.Errorf("cookie %+v", c)
			}
		}
		var seen string
		if p.Evaluate("document.cookie", &seen); seen != "" {
			t.Errorf("scripts see %q", seen)
		}
	})

	t.Run("sign out", func(t *testing.T) {
		p := s.signsIn(t, ada, "/account/sessions")
		p.Button("Sign out").Click()
		p.Sees("You are signed out.")
		if p.Path() != "/login" {
			t.Errorf("signing out leads to %s", p.URL())
		}
		p.Back()
		if p.Path() != "/login" {
			t.Errorf("the back button shows %s", p.URL())
		}
		p.SeesNot(ada.Email)
		if p.Open("/account/sessions"); p.Path() != "/login" {
			t.Errorf("after signing out %s is served", p.URL())
		}
	})

	t.Run("visitors", func(t *testing.T) {
		grace := s.person("Grace Hopper", "reviewer")
		own := s.signsIn(t, grace, "/account/sessions")
		for range 11 {
			if _, err := s.anonymous(
				"POST",
				"/login",
				url.Values{"email": {grace.Email}, "password": {"a wrong one, surely"}}.Encode(),
			); err != nil {
				t.Fatal(err)
			}
		}
		other := newPage(t, s.url)
		other.Open("/login")
		other.signIn(grace.Email, grace.Password)
		if notice := other.Notice(); other.Status() != http.StatusTooManyRequests ||
			!strings.HasPrefix(notice, "Too many failed tries. Wait for ") {
			t.Errorf("another browser there: %d %q", other.Status(), notice)
		}
		own.Button("Sign out").Click()
		own.signIn(grace.Email, grace.Password)
		if own.Path() == "/login" {
			t.Errorf("her own browser: %d %q", own.Status(), own.Notice())
		}
	})

	t.Run("sessions", func(t *testing.T) {
		eve := s.person("Eve", "reviewer")
		here, there := s.signsIn(t, eve, "/account/sessions"), s.signsIn(t, eve, "/account/sessions")
		here.Reload()
		if n := here.role("Sign out Chrome", false, "button").Count(); n != 2 {
			t.Fatalf("%d sessions are listed, not 2", n)
		}
		here.Button("Sign out all other browsers").Click()
		here.Sees("The other browser is signed out.")
		signedOut := func() bool { there.Reload(); return there.Path() == "/login" } // two seconds later at most
		there.eventually("the other browser is signed out", signedOut)
		there.signIn(eve.Email, eve.Password)
		here.Reload()
		here.Field("Current password").Fill("a wrong one, surely")
		here.Field("New password").Fill("correct horse battery staple")
		here.Button("Change password").Click()
		here.Sees("This is not your current password.")
		here.Field("Current password").Fill(eve.Password)
		here.Field("New password").Fill("correct horse battery staple")
		here.Button("Change password").Click()
		here.Sees("Your password is changed.")
		there.eventually("the other browser is signed out with the old password", signedOut)
		there.signIn(eve.Email, eve.Password)
		if there.Status() != 401 {
			t.Errorf("the old password still opens %s", there.URL())
		}
		there.signIn(eve.Email, "correct horse battery staple")
		if there.Path() != "/account/sessions" {
			t.Errorf("the new password leads to %s", there.URL())
		}

		// A form that is sent when the session has ended is not lost: who has signed in elsewhere sends it by a reload.
		there.Field("Current password").Fill("correct horse battery staple")
		there.Field("New password").Fill("correct horse battery stapler")
		here.Reload()
		here.Button("Sign out all other browsers").Click()
		there.eventually("the session has ended", func() (ended bool) { // two seconds later at most
			there.Evaluate(`fetch("/account/sessions", {redirect: "manual", headers: {Accept: "text/html"}})
				.then(r => r.type === "opaqueredirect")`, &ended)
			return ended
		})
		there.Button("Change password").Click()
		there.Sees("Nothing of what you sent was carried out.")
		there.Link("Sign in in a new window")
		there.elsewhere(eve.Email, "correct horse battery staple")
		there.Reload()
		there.Sees("Your password is changed.")
	})

	t.Run("roles", func(t *testing.T) {
		windows := map[string]*page{
			"reviewer": s.signsIn(t, ada, "/account/sessions"),
			"admin":    s.signsIn(t, bob, "/account/sessions"),
			"":         s.signsIn(t, nobody, "/account/sessions"),
		}
		for _, m := range manifests(t) {
			for _, r := range m.Console {
				if r.Public {
					continue
				}
				for role, p := range windows {
					want := http.StatusOK
					if r.Role != "" && r.Role != role {
						want = http.StatusForbidden
					}
					if status := p.Open(r.Prefix); status != want {
						t.Errorf("%s answers the role %q with %d, want %d", r.Prefix, role, status, want)
					}
					if shown := r.Title == "" || p.Link(r.Title).Count() > 0; want == http.StatusForbidden && shown && r.Title != "" {
						t.Errorf("the navigation shows %s to the role %q", r.Prefix, role)
					}
					if want == http.StatusForbidden {
						p.Sees("This page is for users with the role " + r.Role)
					}
				}
			}
		}
		if status := windows["reviewer"].Open("/account/nothing"); status != http.StatusNotFound {
			t.Errorf("an unknown page answers %d", status)
		}
	})

	// A browser without Sec-Fetch-Site, as each is at a name without TLS, tells a form of ours from a stranger's by its Origin alone.
	t.Run("old browser", func(t *testing.T) {
		target, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		hub := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Sec-Fetch-Site")
		}}
		site := httptest.NewServer(hub)
		defer site.Close()
		p := newPage(t, site.URL)
		p.Open("/account/sessions")
		p.signIn(ada.Email, ada.Password)
		if p.Path() != "/account/sessions" || p.Status() != http.StatusOK {
			t.Errorf("the log-in is answered %d at %s", p.Status(), p.URL())
		}
	})

	t.Run("other sites", func(t *testing.T) {
		p := s.signsIn(t, ada, "/account/sessions")
		p.hostile = true
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			switch r.URL.Path {
			case "/form":
				fmt.Fprintf(w, `<form method="post" action="%s/logout"><button>Win a prize</button></form>`, s.url)
			case "/frame":
				fmt.Fprintf(w, `<p>Look here</p><iframe src="%s/account/sessions" width="800" height="600"></iframe>`, s.url)
			}
		}))
		defer other.Close()
		p.openForeign(other.URL + "/form")
		p.Button("Win a prize").Click()
		p.Sees("This request came from another site")
		if status := p.Open("/account/sessions"); status != 200 || p.Path() != "/account/sessions" {
			t.Errorf("another site's form has signed the user out: %d %s", status, p.URL())
		}
		p.openForeign(other.URL + "/frame")
		for _, child := range do(p, pageFrames, cdp.Empty{}).FrameTree.ChildFrames {
			if u, err := url.Parse(child.Frame.URL); err == nil && strings.HasPrefix(child.Frame.URL, s.url) {
				t.Errorf("another site can frame %s", u.Path)
			}
		}
	})
}
