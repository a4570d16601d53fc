package e2e_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
)

// shownOnce is the secret that the page shows, this once.
func (p *page) shownOnce(label string) string {
	p.t.Helper()
	secret := p.Field(label).Value()
	if secret == "" {
		p.t.Fatalf("%s shows no %s", p.URL(), label)
	}
	return secret
}

// TestAdministration walks through keys, users and apps as an administrator does, and judges each page.
func TestAdministration(t *testing.T) {
	t.Parallel()
	installAxe(t)
	s := start(t, options{})
	ada := s.person("Ada Lovelace", "admin")
	p := s.signedIn(t, ada, "/admin/keys")
	const password = "correct horse battery staple"
	secrets := map[string]string{"the password that was set": password}

	t.Run("keys", func(t *testing.T) {
		p.in(t)
		p.Inspect("keys-empty")
		p.Link("Issue a key").Nth(0).Click()
		p.Inspect("key-new")
		p.Field("Name").Fill("캠페인 agent of a name that goes on and on, to see what becomes of it")
		p.Field("User").Fill("crm-bot")
		p.Button("Issue the key").Click()
		key := p.shownOnce("API key")
		p.Inspect("key-issued")
		if r := s.call("search_brands", `{}`, "Authorization", "Bearer "+key); !r.OK {
			t.Errorf("the key does not work: %s", r.raw)
		}
		p.Link("To the key").Click()
		p.Inspect("key")
		p.Button("Rotate the key").Click()
		next := p.shownOnce("API key")
		secrets["a key"], secrets["the key after it"] = key, next
		p.Sees("The old key stops at")
		if !s.call("search_brands", `{}`, "Authorization", "Bearer "+key).OK ||
			!s.call("search_brands", `{}`, "Authorization", "Bearer "+next).OK {
			t.Error("the keys do not overlap")
		}
		p.Link("To the new key").Click()
		p.Link("Revoke the key").Click()
		p.Inspect("key-revoke")
		p.Press("y") // an empty reason is asked for
		p.Field("Reason").Fill("leaked in a ticket")
		p.Button("Revoke").Click()
		p.Sees("The key is revoked.")
		if r := s.call("search_brands", `{}`, "Authorization", "Bearer "+next); r.Error.Code != "E_AUTH_REVOKED" {
			t.Errorf("the revoked key: %s", r.raw)
		}
		p.Inspect("key-revoked")
		p.Open("/admin/keys?show=all")
		p.Inspect("keys")
		p.Press("j", "o")
		p.Sees("What it is")
		p.Open("/admin/keys/new")
		p.Evaluate("document.querySelector('form[action=\"/admin/keys\"]').noValidate = true", nil)
		p.Field("Expires").Choose("never")
		p.Button("Issue the key").Click()
		p.Inspect("key-new-wrong")
	})

	t.Run("users", func(t *testing.T) {
		p.in(t)
		p.Open("/admin/users")
		p.Link("Invite a user").Click()
		p.Inspect("user-new")
		p.Field("E-mail").Fill("grace.hopper@example.com")
		p.Field("Name").Fill("Grace Hopper")
		p.Button("Invite the user").Click()
		link := p.shownOnce("Link")
		p.Inspect("user-invited")
		if !strings.HasPrefix(link, s.url+"/login/invitation?t=") {
			t.Fatalf("the link is %s", link)
		}
		_, secrets["the invitation"], _ = strings.Cut(link, "?t=")
		theirs := newPage(t, s.url)
		theirs.Open(strings.TrimPrefix(link, s.url))
		theirs.Inspect("invitation")
		theirs.Field("New password").Fill(password)
		theirs.Button("Set the password and sign in").Click()
		theirs.Sees("Grace Hopper")
		if theirs.Path() != "/drafts" {
			t.Errorf("an invited reviewer lands at %s", theirs.URL())
		}
		theirs.Open(strings.TrimPrefix(link, s.url))
		theirs.Sees("This link does not work")
		if status := theirs.Open("/admin/users"); status != http.StatusForbidden {
			t.Errorf("a reviewer sees the users: %d", status)
		}
		p.Open("/admin/users")
		p.Inspect("users")
		p.role("grace.hopper@example.com is admin", false, "checkbox").Click()
		p.Button("Save the roles").Click()
		p.Sees("The roles of grace.hopper@example.com are changed.")
		changed := time.Now()
		theirs.eventually("the role reaches the session", func() bool { return theirs.Open("/admin/users") == http.StatusOK })
		t.Logf("the role reached the session after %v", time.Since(changed))
		p.Open("/admin/users?q=grace")
		p.Link("Grace Hopper").Click()
		p.Inspect("user")
		p.Button("Sign out everywhere").Click()
		p.Sees("1 browser is signed out.")
		theirs.eventually("the session has ended", func() bool { theirs.Reload(); return theirs.Path() == "/login" })
		p.Link("Disable the user").Click()
		p.Inspect("user-disable")
		p.Button("Disable").Click()
		p.Sees("is disabled and signed out")
		p.Inspect("user-disabled")
		// The only one who is left cannot leave the others without anybody.
		p.Open("/admin/users")
		p.role("ada.lovelace@example.com is admin", false, "checkbox").Click()
		p.Button("Save the roles").Click()
		p.Sees("is the last administrator who can sign in")
	})

	t.Run("apps", func(t *testing.T) {
		p.in(t)
		p.Open("/admin/apps")
		p.Inspect("apps-empty")
		p.Link("Create an app").Nth(0).Click()
		p.Inspect("app-new")
		p.Field("Code").Fill("shop")
		p.Field("Name").Fill("The shop")
		p.Field("Redirect URLs").Fill("http://shop.example/back")
		p.Button("Create the app").Click()
		p.Sees("must begin with https://")
		p.Inspect("app-new-wrong")
		p.Field("Redirect URLs").Fill("https://shop.example/back")
		p.role("pay:read", false, "checkbox").Click()
		p.Button("Create the app").Click()
		p.Sees("The app is created.")
		p.Inspect("app-created")
		p.Button("Issue a secret").Click()
		first := p.shownOnce("Shared secret")
		secrets["the webhook secret of an app"] = p.shownOnce("Webhook secret")
		p.Link("To the app").Click()
		p.Button("Rotate the secret").Click()
		second := p.shownOnce("Shared secret")
		if second == first {
			t.Error("the secret was not rotated")
		}
		secrets["a secret of an app"], secrets["the secret after it"] = first, second
		p.Link("To the app").Click()
		p.Sees("Two secrets are good")
		p.Inspect("app")
		p.Link("Edit").Click()
		p.Inspect("app-edit")
		p.Field("Name").Fill("The other shop")
		p.Button("Save").Click()
		p.Sees("The app is changed.")
		if r := s.call(
			"inspect_connected_app",
			`{"service_code":"shop"}`,
		); !r.OK || !strings.Contains(r.raw, `"name":"The other shop"`) || !strings.Contains(r.raw, `"has_secret":true`) ||
			strings.Contains(r.raw, "hss_") {
			t.Errorf("%s", r.raw)
		}
		p.Link("Suspend").Click()
		p.Field("Reason").Fill("complaints")
		p.Button("Suspend").Click()
		p.Sees("The app is suspended.")
		p.Link("Revoke").Nth(0).Click()
		p.Inspect("app-revoke")
		p.Field("Type shop to confirm").Fill("shoop")
		p.Field("Reason").Fill("over")
		p.Button("Revoke").Click()
		p.Sees("must be the code of the app: shop")
		p.Field("Type shop to confirm").Fill("shop")
		p.Button("Revoke").Click()
		p.Sees("The app is revoked.")
		p.Inspect("app-revoked")
		p.Open("/admin/apps")
		p.Inspect("apps")
		if r := s.call("list_connected_apps", `{"status":"REVOKED"}`); r.Count != 1 {
			t.Errorf("%s", r.raw)
		}
	})

	session := s.session(t, ada)
	t.Run("no secret is kept", func(t *testing.T) { s.keepsNone(t, session, secrets) })
	t.Run("a revoked key stops", func(t *testing.T) {
		quickest := time.Hour
		for tries := 0; quickest > hubtest.Here(100*time.Millisecond) && tries < 20; tries++ { // the machine may be busy
			k := s.issue("--scopes", "query")
			if r := s.call("search_brands", `{}`, "Authorization", "Bearer "+k.Key); !r.OK {
				t.Fatalf("%s", r.raw)
			}
			r := attempt{
				method: "POST",
				path:   "/admin/keys/" + k.ID + "/revoke",
				body:   "reason=leaked",
				kind:   "application/x-www-form-urlencoded",
			}.send(
				t,
				s.url,
				session,
			)
			if r.StatusCode != http.StatusSeeOther {
				t.Fatalf("%d", r.StatusCode)
			}
			revoked := time.Now()
			for s.call("search_brands", `{}`, "Authorization", "Bearer "+k.Key).OK {
				if time.Since(revoked) > hubtest.Patience {
					t.Fatal("the key goes on")
				}
			}
			quickest = min(quickest, time.Since(revoked))
		}
		if t.Logf("a revoked key stopped after %v", quickest); quickest > hubtest.Here(100*time.Millisecond) {
			t.Errorf("a revoked key stops after %v", quickest)
		}
	})

	t.Run("10,000 of each", func(t *testing.T) {
		for _, sql := range []string{
			`INSERT INTO auth.api_keys (id, name, service, hash, pepper_id, head, tail, scopes, user_per_minute, user_burst, service_per_minute,
				service_burst, created_by, created_at)
				SELECT 'ak_0' || lpad(n::text, 25, '0'), 'agent ' || n, 's', sha256(n::text::bytea), 'p', 'crm_abcd', 'wxyz', '{query}', 1, 1, 1, 1,
					'ada', now() FROM generate_series(1, 10000) n`,
			`INSERT INTO auth.users (id, email, name, roles, password_hash, created_by, created_at) SELECT 'usr_' || n, ` +
				`'user' || n || '@example.com', 'User ' || n, '{reviewer}', 'x', 'ada', now() FROM generate_series(1, 10000) n`,
			`INSERT INTO auth.connected_apps SELECT 'app-' || n, 'App ' || n, 'ACTIVE', '', '{}', '{}', '{pay:read}', 'consent', 1, 1, 1, 1, 1, ` +
				`'ada', now(), now() FROM generate_series(1, 10000) n`,
			`ANALYZE auth.api_keys, auth.users, auth.connected_apps`,
		} {
			query[int](t, s, sql)
		}
		for _, path := range []string{"/admin/keys", "/admin/keys?q=agent+77", "/admin/users", "/admin/users?q=user77", "/admin/apps",
			"/admin/apps?q=nobody"} {
			hubtest.Within(t, 150*time.Millisecond, path, func() {
				if r := (attempt{method: "GET", path: path}).send(t, s.url, session); r.StatusCode != http.StatusOK {
					t.Fatalf("%s: %d", path, r.StatusCode)
				}
			})
		}
		p.in(t)
		p.Open("/admin/users?q=user")
		p.Press("n")
		p.Sees("First page")
		p.Inspect("users-many")
	})
}

// keepsNone looks for secrets that were shown once in what an administrator can open, in what tools answer, in what the
// services log, and in each row of the store, as they are and in hexadecimal.
func (s *suite) keepsNone(t *testing.T, session credential, secrets map[string]string) {
	t.Helper()
	places := map[string]string{"the logs": s.logs.String()}
	for _, tool := range []string{"list_connected_apps", "list_segments", "list_drafts"} {
		places[tool] = s.call(tool, `{}`).raw
	}
	next := []string{"/admin", "/admin/audit", "/admin/audit?last=24h", "/admin/keys?show=all", "/admin/users", "/admin/apps"}
	for len(next) > 0 && len(places) < 150 {
		path := next[0]
		next = next[1:]
		r := (attempt{method: "GET", path: path}).send(t, s.url, session)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		places[path] = string(body)
		for _, link := range regexp.MustCompile(`href="(/admin/[^"#]+)"`).FindAllStringSubmatch(string(body), -1) {
			to := strings.ReplaceAll(link[1], "&amp;", "&")
			if _, seen := places[to]; !seen && !slices.Contains(next, to) {
				next = append(next, to)
			}
		}
	}
	if len(places) < 20 {
		t.Errorf("only %d places were looked at", len(places))
	}
	tables := query[string](t, s, `SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	for what, secret := range secrets {
		if len(secret) < 16 {
			t.Fatalf("%s is %q", what, secret)
		}
		for place, text := range places {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s", place, what)
			}
		}
		for _, table := range tables {
			n := query[int](
				t,
				s,
				`SELECT count(*) FROM `+table+` x WHERE strpos(x::text, $1) > 0 OR strpos(x::text, encode($1::text::bytea, 'hex')) > 0`,
				secret,
			)
			if n[0] > 0 {
				t.Errorf("%s has %s", table, what)
			}
		}
	}
	t.Logf("%d secrets, %d places, %d tables", len(secrets), len(places), len(tables))
}

// TestOnlyAdministratorsAdminister tries each page and action below the prefixes that the manifests give to
// administrators, as the services' sources register them, and each form that an administrator's pages hold, as
// a reviewer, as a user without a role, as nobody and with a key of all scopes; and then shows that the
// requests were good ones.
func TestOnlyAdministratorsAdminister(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_FAILED_AUTH_PER_MINUTE=6000000", "HUB_FAILED_AUTH_BURST=1000000"}})
	ada, bob, nobody := s.person("Ada Lovelace", "admin", "reviewer"), s.person("Bob", "reviewer"), s.person("Nobody")
	key := s.issue("--scopes", "query")
	s.run("auth", s.env["auth"], "app", "put", "shop", "--name", "The shop")
	s.run("auth", s.env["auth"], "app", "issue-secret", "shop")
	window := s.signedIn(t, ada, "/admin/users")

	prefixes := map[string]string{} // of the console, by their service
	for _, m := range manifests(t) {
		for _, r := range m.Console {
			if r.Role == "admin" {
				prefixes[r.Prefix] = m.Service
			}
		}
	}
	attempts := map[string]attempt{}
	add := func(a attempt) { attempts[a.method+" "+a.path+" "+a.body] = a }
	everything := url.Values{
		"roles":           {"admin"},
		"user":            {bob.ID},
		"had." + bob.ID:   {"reviewer"},
		"roles." + bob.ID: {"admin"},
		"e-mail":          {"mallory@example.com"},
		"email":           {"mallory@example.com"},
		"name":            {"Mallory"},
		"scopes": {
			"query",
		},
		"expires":            {"0"},
		"overlap":            {"0"},
		"reason":             {"x"},
		"confirm":            {"shop"},
		"service_code":       {"evil"},
		"session":            {"all"},
		"version":            {"1"},
		"link_mode":          {"consent"},
		"user-per-minute":    {"1"},
		"user-burst":         {"1"},
		"service-per-minute": {"1"},
		"service-burst":      {"1"},
	}.Encode()
	ids := map[string]string{"/admin/users": ada.ID, "/admin/keys": key.ID}
	for prefix, service := range prefixes {
		found := 0
		for _, match := range written(t, pattern, service) {
			if path := match[2]; path != prefix && !strings.HasPrefix(path, prefix+"/") {
				continue
			}
			found++
			path := strings.ReplaceAll(strings.ReplaceAll(match[2], "{code}", "shop"), "{id}", ids[prefix])
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
				a := attempt{method: method, path: variable.ReplaceAllString(path, "1")}
				if method != "GET" && method != "HEAD" {
					a.body, a.kind = everything, "application/x-www-form-urlencoded"
				}
				add(a)
			}
		}
		if found == 0 {
			t.Errorf("the sources of %s have no page at %s", service, prefix)
		}
	}
	for _, service := range services {
		for _, match := range written(t, pattern, service) {
			if strings.HasPrefix(match[2], "/admin") &&
				!slices.ContainsFunc(
					slices.Collect(maps.Keys(prefixes)),
					func(prefix string) bool { return strings.HasPrefix(match[2]+"/", prefix+"/") },
				) {
				t.Errorf("%s is below no prefix of administrators", match[0])
			}
		}
	}
	forms := 0
	for _, path := range []string{"/admin/users", "/admin/users/new", "/admin/users/" + bob.ID, "/admin/users/" + bob.ID + "/disable",
		"/admin/keys", "/admin/keys/new", "/admin/keys/" + key.ID, "/admin/keys/" + key.ID + "/revoke",
		"/admin/apps/_new", "/admin/apps/shop", "/admin/apps/shop/edit", "/admin/apps/shop/suspend", "/admin/apps/shop/revoke",
		"/admin/suppressions"} {
		if status := window.Open(path); status != http.StatusOK {
			t.Fatalf("%s answers %d", path, status)
		}
		for _, a := range window.forms() {
			if strings.HasPrefix(a.path, "/admin/") && a.method == http.MethodPost {
				forms++
				add(a)
			}
		}
	}
	if forms < 12 {
		t.Fatalf("the pages have only %d forms", forms)
	}
	as := map[string]credential{
		"a reviewer":            s.session(t, bob),
		"a user without a role": s.session(t, nobody),
		"nobody":                {},
		"a key":                 {"Authorization": "Bearer " + s.key},
		"a key as cookie":       {"Cookie": "__Host-hub=" + s.key},
		"a session of nobody":   {"Cookie": "__Host-hub=" + strings.Repeat("A", 43)},
	}
	state := func() map[string]string {
		all := s.state(t, "auth")
		for _, used := range []string{"auth.sessions", "auth.throttles"} { // being there changes when somebody was last seen
			delete(all, used)
		}
		return all
	}
	before := state()
	for _, a := range attempts {
		for who, c := range as {
			r := a.make(t, s.url, c)
			body, _ := io.ReadAll(r.Body)
			if !refused(r) || strings.Contains(string(body), key.ID) || strings.Contains(string(body), "shop") {
				t.Errorf("%s as %s: %d %s: %.200s", a, who, r.StatusCode, r.Header.Get("Location"), body)
			}
			if r.StatusCode >= 500 {
				t.Errorf("%s as %s: %d", a, who, r.StatusCode)
			}
		}
	}
	if after := state(); !maps.Equal(before, after) {
		t.Errorf("something was changed:\n%v\n%v", before, after)
	}
	t.Logf("%d requests of %d kinds, %d of them forms of an administrator's pages", len(attempts)*len(as), len(attempts), forms)

	admin := s.session(t, ada)
	done := regexp.MustCompile(`^POST /admin/(keys|apps|users)(/[^/]+)?(/(roles|rotate|scopes|suspend|disable))?$`)
	good := 0
	for _, a := range attempts {
		if done.MatchString(a.String()) && a.body != everything {
			r := a.make(t, s.url, admin)
			if good++; r.StatusCode >= 500 || r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized {
				t.Errorf("%s as an administrator: %d", a, r.StatusCode)
			}
		}
	}
	if after := state(); good < 5 || maps.Equal(before, after) {
		t.Errorf("%d forms of an administrator change nothing: %s", good, fmt.Sprint(after))
	}
}
