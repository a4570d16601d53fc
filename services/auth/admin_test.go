package auth_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
)

// office is a hall with an administrator in it.
type office struct {
	*hall
	ada auth.User
	// as is what the gateway says of her.
	as caller.Caller
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{hall: newHall(t)}
	o.ada = o.add(t, ada, "reviewer", "admin")
	s, _ := o.signIn(t, ada)
	o.as = caller.Caller{
		Kind:           caller.User,
		Service:        "console",
		ExternalUserID: o.ada.Email,
		HubUser:        o.ada.ID,
		Email:          o.ada.Email,
		Name:           o.ada.Name,
		CredentialID:   s.ID,
		Roles:          o.ada.Roles,
		RequestID:      "req_1",
	}
	return o
}

// get opens a page that is there.
func (o *office) get(t *testing.T, path string) string {
	t.Helper()
	res, page := o.visit(t, o.as, "GET", path, nil)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, res.StatusCode, page)
	}
	if loose := regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|\son[a-z]+=|style=|javascript:`).FindString(page); loose != "" {
		t.Errorf("%s has something inline: %s", path, loose)
	}
	return page
}

// post sends a form and returns the status, what the next page will say, and the page.
func (o *office) post(t *testing.T, path string, form url.Values) (status int, said, page string) {
	t.Helper()
	res, page := o.visit(t, o.as, "POST", path, form)
	if flash := cookie(res, "__Host-hub-flash"); flash != nil {
		_, next := o.visit(t, o.as, "GET", "/account/sessions", nil, "Cookie", flash.Name+"="+flash.Value)
		if m := regexp.MustCompile(`<p class="notice (?:done|wrong)"[^>]*>([^<]*)</p>`).FindStringSubmatch(next); m != nil {
			said = html.UnescapeString(m[1])
		}
	}
	return res.StatusCode, said, page
}

// done sends a form that has to work, and leads to a page.
func (o *office) done(t *testing.T, path string, form url.Values) string {
	t.Helper()
	status, said, page := o.post(t, path, form)
	if status != http.StatusSeeOther {
		t.Fatalf("POST %s: %d %s", path, status, page)
	}
	return said
}

// hiddenHad is what a page of a key was made of.
var hiddenHad = regexp.MustCompile(`<input type="hidden" name="had" value="([a-z:,]+)">`)

var onceShown = regexp.MustCompile(`<input id="secret" value="([^"]+)"`)

var keyForm = regexp.MustCompile(`^crm_[0-9A-Za-z]{42}$`)

// shown is the secret that a page shows, this once.
func shown(t *testing.T, page string) string {
	t.Helper()
	m := onceShown.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no secret is shown: %s", page)
	}
	return html.UnescapeString(m[1])
}

func (o *office) audited(t *testing.T, operation string) string {
	t.Helper()
	return o.query(
		t,
		`SELECT coalesce(string_agg(external_user_id || ' ' || service, ','), '') FROM audit.calls WHERE tool = $1`,
		operation,
	)
}

func TestKeysPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if page := o.get(t, "/admin/keys"); !strings.Contains(page, "There is no such key") {
		t.Errorf("an empty list: %s", page)
	}
	page := o.get(t, "/admin/keys/new")
	id := regexp.MustCompile(`name="id" value="(ak_[^"]+)"`).FindStringSubmatch(page)[1]
	for _, scope := range auth.Scopes() {
		if !strings.Contains(page, `value="`+scope+`"`) {
			t.Errorf("the form lacks the scope %s", scope)
		}
	}
	form := url.Values{
		"id":                 {id},
		"name":               {"캠페인 <agent>"},
		"service":            {"crm-bot"},
		"scopes":             {"query", "sql"},
		"expires":            {"30"},
		"user-per-minute":    {"7"},
		"user-burst":         {"8"},
		"service-per-minute": {"9"},
		"service-burst":      {"10"},
	}
	status, _, page := o.post(t, "/admin/keys", form)
	secret := shown(t, page)
	if status != http.StatusOK || !keyForm.MatchString(secret) {
		t.Fatalf("%d %s", status, page)
	}
	k, err := o.keys.Verify(o.ctx, secret)
	if err != nil || k.ID != id || k.Service != "crm-bot" || !slices.Equal(k.Scopes, []string{"sql", "query"}) ||
		k.Limits != (auth.Limits{UserPerMinute: 7, UserBurst: 8, ServicePerMinute: 9, ServiceBurst: 10}) ||
		k.ExpiresAt.Sub(k.CreatedAt) != 30*24*time.Hour ||
		k.CreatedBy != ada {
		t.Errorf("%+v %v", k, err)
	}
	if who := o.audited(t, "apikey.issue"); who != ada+" console" {
		t.Errorf("the audit log names %q", who)
	}
	// The form again, as a reload sends it, makes no other key.
	if status, said, page := o.post(
		t,
		"/admin/keys",
		form,
	); status != http.StatusSeeOther || !strings.Contains(said, "was issued already") ||
		strings.Contains(page, "crm_") {
		t.Errorf("once more: %d %q", status, said)
	}
	for _, path := range []string{"/admin/keys", "/admin/keys/" + id, "/admin/keys/" + id + "/revoke", "/admin/keys?q=" +
		url.QueryEscape("<AGENT>"), "/admin/keys?q=crm-bot", "/admin/keys?q=" + url.QueryEscape(secret)} {
		if page := o.get(
			t,
			path,
		); !strings.Contains(page, "캠페인 &lt;agent&gt;") || strings.Contains(page, secret[8:42]) && !strings.Contains(path, "crm_") ||
			!strings.Contains(page, secret[:8]+"…"+secret[42:]) {
			t.Errorf("%s: %s", path, page)
		}
	}
	if log := o.query(t, `SELECT string_agg(c::text, ' ') FROM audit.calls c`); strings.Contains(log, secret[8:42]) {
		t.Error("the audit log holds what was searched for")
	}
	wrong := url.Values{
		"id":                 {"nonsense"},
		"name":               {""},
		"service":            {"a b"},
		"scopes":             {"root"},
		"expires":            {"soon"},
		"user-per-minute":    {"-1"},
		"user-burst":         {"x"},
		"service-per-minute": {"0"},
		"service-burst":      {"99999999"},
	}
	status, _, page = o.post(t, "/admin/keys", wrong)
	for _, field := range []string{"name", "service", "scopes", "expires", "user-per-minute", "user-burst", "service-per-minute",
		"service-burst"} {
		if !strings.Contains(page, `id="`+field+`-error"`) {
			t.Errorf("nothing is said at %s", field)
		}
	}
	if status != http.StatusUnprocessableEntity || !strings.Contains(page, `<details class="fold" open>`) {
		t.Errorf("%d %s", status, page)
	}

	at := "/admin/keys/" + id
	if status, _, page := o.post(
		t,
		at+"/scopes",
		url.Values{},
	); status != http.StatusUnprocessableEntity ||
		!strings.Contains(page, `id="scopes-error"`) {
		t.Errorf("no scope: %d", status)
	}
	had := hiddenHad.FindStringSubmatch(o.get(t, at))
	if had == nil {
		t.Fatal("the page does not say which scopes it shows")
	}
	o.done(t, at+"/scopes", url.Values{"had": had[1:], "scopes": {"explore"}})
	for name, old := range map[string][]string{"the same page again": had[1:], "a page that does not say": nil} {
		said := o.done(t, at+"/scopes", url.Values{"had": old, "scopes": {"explore", "sql"}})
		if !strings.Contains(said, "Somebody else") || !strings.Contains(said, "explore now") {
			t.Errorf("%s: %q", name, said)
		}
	}
	if k, _ := o.keys.Verify(o.ctx, secret); !slices.Equal(k.Scopes, []string{"explore"}) || !slices.Contains(o.told.ids, id) {
		t.Errorf("%v, told %v", k.Scopes, o.told.ids)
	}
	if status, _, page := o.post(
		t,
		at+"/rotate",
		url.Values{"overlap": {"721"}},
	); status != http.StatusUnprocessableEntity ||
		!strings.Contains(page, `id="overlap-error"`) {
		t.Errorf("a long overlap: %d", status)
	}
	_, _, page = o.post(t, at+"/rotate", url.Values{"overlap": {"24"}})
	next := shown(t, page)
	if status, said, _ := o.post(
		t,
		at+"/rotate",
		url.Values{"overlap": {"24"}},
	); status != http.StatusSeeOther ||
		!strings.Contains(said, "rotated already") {
		t.Errorf("rotated twice: %d %q", status, said)
	}
	successor, _ := o.keys.Verify(o.ctx, next)
	said := o.done(t, at+"/scopes", url.Values{"had": {"explore"}, "scopes": {"query"}})
	if !strings.Contains(said, "Its successor "+successor.ID) {
		t.Errorf("nothing is said of the successor: %q", said)
	}
	status1, status2 := o.status(t, secret), o.status(t, next)
	o.clock.Advance(24 * time.Hour)
	if status1 != auth.Active || status2 != auth.Active || o.status(t, secret) != auth.Expired || o.status(t, next) != auth.Active {
		t.Errorf("the overlap does not hold: %s %s", status1, status2)
	}
	at = "/admin/keys/" + successor.ID
	if page := o.get(t, at); !strings.Contains(page, "/admin/keys/"+id) {
		t.Error("the page does not lead to the key before")
	}
	if status, _, page := o.post(
		t,
		at+"/revoke",
		url.Values{"reason": {" "}},
	); status != http.StatusUnprocessableEntity || !strings.Contains(page, `id="reason-error"`) ||
		o.status(t, next) != auth.Active {
		t.Errorf("no reason: %d", status)
	}
	o.done(t, at+"/revoke", url.Values{"reason": {"leaked in a ticket"}})
	if o.status(t, next) != auth.Revoked || o.told.ids[len(o.told.ids)-1] != successor.ID {
		t.Errorf("%s, told %v", o.status(t, next), o.told.ids)
	}
	if page := o.get(t, at); !strings.Contains(page, "leaked in a ticket") || strings.Contains(page, "Rotate the key") {
		t.Errorf("a revoked key: %s", page)
	}
	for show, want := range map[string]int{"active": 0, "expired": 1, "revoked": 1, "all": 2, "nonsense": 0} {
		if n := strings.Count(o.get(t, "/admin/keys?show="+show), "data-item"); n != want {
			t.Errorf("%d keys are shown as %s, want %d", n, show, want)
		}
	}
	for _, path := range []string{"/admin/keys/ak_nobody", "/admin/keys/%00", "/admin/keys/ak_nobody/revoke"} {
		if res, _ := o.visit(t, o.as, "GET", path, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// status is what a key is good for.
func (o *office) status(t *testing.T, secret string) auth.Status {
	t.Helper()
	k, err := o.keys.Verify(o.ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	return k.Status(o.clock.Now())
}

// TestListsGoOn pages through lists that are longer than a page, and finds each row once.
func TestListsGoOn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 60 {
		if _, _, err := o.keys.Issue(o.ctx, auth.Issue{Name: fmt.Sprint("key ", i), Scopes: []string{"query"}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.Invite(o.ctx, auth.NewUser{Email: fmt.Sprintf("User%d@example.com", i), Name: "U"}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.apps.Create(o.ctx, fmt.Sprintf("app-%d", i), apps.Settings{Name: "App"}); err != nil {
			t.Fatal(err)
		}
	}
	next := regexp.MustCompile(`<a class="button" href="([^"]+)" rel="next"`)
	link := regexp.MustCompile(`<a href="(/admin/[a-z]+/[^"?]+)" data-key="o">`)
	for path, want := range map[string]int{"/admin/keys": 60, "/admin/users": 61, "/admin/apps": 60, "/admin/keys?q=key+5": 11,
		"/admin/users?q=USER1": 11, "/admin/apps?q=app-2": 11,
		"/admin/keys?q=%25": 0, "/admin/users?q=_": 0, "/admin/apps?q=%00": 0, "/admin/users?show=pending": 60, "/admin/users?show=admin": 1,
		"/admin/apps?show=REVOKED": 0} {
		seen := map[string]bool{}
		for at, pages := path, 0; at != "" && pages < 9; pages++ {
			page := o.get(t, at)
			for _, m := range link.FindAllStringSubmatch(page, -1) {
				if seen[m[1]] {
					t.Errorf("%s: %s is listed twice", path, m[1])
				}
				seen[m[1]] = true
			}
			at = ""
			if m := next.FindStringSubmatch(page); m != nil {
				at = html.UnescapeString(m[1])
			}
		}
		if len(seen) != want {
			t.Errorf("%s lists %d, want %d", path, len(seen), want)
		}
	}
}

func TestUsersPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	status, _, page := o.post(t, "/admin/users", url.Values{"e-mail": {" bob@example.com "}, "name": {"Bob"}, "roles": {"reviewer"}})
	link := shown(t, page)
	if status != http.StatusOK || !strings.HasPrefix(link, "https://hub.example/login/invitation?t=") {
		t.Fatalf("%d %s", status, link)
	}
	for name, form := range map[string]url.Values{"e-mail-error": {"e-mail": {"nonsense"}, "name": {"x"}},
		"name-error":  {"e-mail": {"x@example.com"}, "name": {""}},
		"roles-error": {"e-mail": {"x@example.com"}, "name": {"x"}, "roles": {"root"}}} {
		if status, _, page := o.post(
			t,
			"/admin/users",
			form,
		); status != http.StatusUnprocessableEntity ||
			!strings.Contains(page, `id="`+name+`"`) {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status, _, page := o.post(
		t,
		"/admin/users",
		url.Values{"e-mail": {"BOB@example.com"}, "name": {"Bob"}},
	); status != http.StatusConflict || !strings.Contains(page, "already") ||
		strings.Contains(page, "?t=") {
		t.Errorf("invited twice: %d", status)
	}
	bob, err := o.UserByEmail(o.ctx, "bob@example.com")
	if err != nil || bob.State() != auth.UserPending || bob.CreatedBy != ada {
		t.Fatalf("%+v %v", bob, err)
	}
	at := "/admin/users/" + bob.ID
	if page := o.get(t, at); !strings.Contains(page, "Invited") || strings.Contains(page, strings.SplitAfter(link, "=")[1]) {
		t.Errorf("%s", page)
	}
	_, _, page = o.post(t, at+"/invite", url.Values{})
	again := shown(t, page)
	first := o.accept(t, strings.TrimPrefix(link, "https://hub.example"), "a good long password")
	if first.StatusCode != http.StatusNotFound {
		t.Errorf("the link before: %d", first.StatusCode)
	}
	path := strings.TrimPrefix(again, "https://hub.example")
	if res := o.accept(t, path, "short"); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a short password: %d", res.StatusCode)
	}
	res := o.accept(t, path, "a good long password")
	session := cookie(res, "__Host-hub")
	if res.StatusCode != http.StatusSeeOther || session == nil || o.code(session.Value) != "" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	if res := o.accept(t, path, "another long password"); res.StatusCode != http.StatusNotFound {
		t.Errorf("used twice: %d", res.StatusCode)
	}
	if _, err := o.SignIn(o.ctx, bob.Email, "a good long password", auth.Browser{Address: "192.0.2.9"}); err != nil {
		t.Error(err)
	}
	if who := o.audited(t, "user.invite"); who != ada+" console" {
		t.Errorf("invited by %q", who)
	}
	if who := o.audited(t, "user.accept"); who != "bob@example.com console" {
		t.Errorf("accepted by %q", who)
	}
	if log := o.query(
		t,
		`SELECT string_agg(c::text, ' ') || (SELECT string_agg(i::text, '') FROM auth.users i) FROM audit.calls c`,
	) + o.log.String(); strings.Contains(
		log,
		path[len(auth.InvitationPath)+3:],
	) {
		t.Error("the link is kept")
	}

	if page := o.get(t, at); !strings.Contains(page, `name="session"`) {
		t.Errorf("no session is shown: %s", page)
	}
	r, _ := o.Resolve(o.ctx, session.Value)
	o.done(t, at+"/sessions", url.Values{"session": {r.Session.ID}})
	if o.code(session.Value) != fault.AuthRevoked {
		t.Errorf("the session is %s", o.code(session.Value))
	}
	in, _ := o.SignIn(o.ctx, bob.Email, "a good long password", auth.Browser{Address: "192.0.2.9"})
	if said := o.done(
		t,
		at+"/sessions",
		url.Values{"session": {"all"}},
	); o.code(in.Secret.Reveal()) != fault.AuthRevoked ||
		!strings.Contains(said, "signed out") {
		t.Errorf("%q %s", said, o.code(in.Secret.Reveal()))
	}
	// A session of somebody else is not ended there.
	if o.done(t, at+"/sessions", url.Values{"session": {o.as.CredentialID}}); len(must(o.Sessions(o.ctx, o.ada.ID))) != 1 {
		t.Error("Ada's session was ended on Bob's page")
	}
	in, _ = o.SignIn(o.ctx, bob.Email, "a good long password", auth.Browser{Address: "192.0.2.9"})
	o.post(t, at+"/invite", url.Values{})
	o.done(t, at+"/disable", url.Values{})
	if o.code(in.Secret.Reveal()) != fault.AuthRevoked || o.query(t, `SELECT count(*)::text FROM auth.invitations`) != "0" {
		t.Error("a disabled user keeps a way in")
	}
	if status, said, _ := o.post(t, at+"/invite", url.Values{}); status != http.StatusSeeOther || !strings.Contains(said, "disabled") {
		t.Errorf("a link for a disabled user: %d %q", status, said)
	}
	o.done(t, at+"/enable", url.Values{})
	if _, err := o.SignIn(o.ctx, bob.Email, "a good long password", auth.Browser{Address: "192.0.2.9"}); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/admin/users/usr_nobody", "/admin/users/%00", "/admin/users/usr_nobody/disable"} {
		if res, _ := o.visit(t, o.as, "GET", path, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// accept opens a link and chooses a password there, as a browser does.
func (o *office) accept(t *testing.T, link, password string) *http.Response {
	t.Helper()
	res, _ := o.visit(t, visitor, "GET", link, nil)
	c := cookie(res, "__Host-hub-invitation")
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != auth.InvitationPath || c == nil || !c.HttpOnly || !c.Secure {
		t.Fatalf("%s: %d %v", link, res.StatusCode, res.Header)
	}
	keep := c.Name + "=" + c.Value
	if page, text := o.visit(t, visitor, "GET", auth.InvitationPath, nil, "Cookie", keep); page.StatusCode != http.StatusOK {
		return page
	} else if strings.Contains(text, c.Value) {
		t.Error("the page holds the secret")
	}
	res, _ = o.visit(t, visitor, "POST", auth.InvitationPath, url.Values{"password": {password}}, "Cookie", keep)
	return res
}

func TestInvitationsEnd(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, i, err := o.Invite(o.ctx, auth.NewUser{Email: "bob@example.com", Name: "Bob"})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"", "x", strings.Repeat("A", 43), "\x00"} {
		if _, err := o.Accept(o.ctx, secret, "a good long password", auth.Browser{}); code(err) != fault.NotFound {
			t.Errorf("%q: %v", secret, err)
		}
	}
	// As many who have it as may wait for one user's password to be hashed: one of them chooses it.
	var won sync.Map
	var all sync.WaitGroup
	for n := range 5 {
		all.Go(func() {
			password := fmt.Sprint("a good long password ", n)
			if _, err := o.Accept(o.ctx, i.Secret.Reveal(), password, auth.Browser{Address: "192.0.2.1"}); err == nil {
				won.Store(password, true)
			} else if code(err) != fault.NotFound {
				t.Error(err)
			}
		})
	}
	all.Wait()
	winners := 0
	won.Range(func(password, _ any) bool {
		winners++
		_, err := o.SignIn(o.ctx, "bob@example.com", password.(string), auth.Browser{Address: "192.0.2.1"})
		return err == nil
	})
	if winners != 1 {
		t.Errorf("%d have chosen a password", winners)
	}
	_, late, err := o.InviteAgain(o.ctx, "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	o.clock.Advance(auth.InvitationLife)
	if _, err := o.Accept(o.ctx, late.Secret.Reveal(), "a good long password", auth.Browser{}); code(err) != fault.NotFound {
		t.Errorf("too late: %v", err)
	}
}

func TestRolesMatrix(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	bob, carl := o.add(t, "bob@example.com", "reviewer"), o.add(t, "carl@example.com")
	page := o.get(t, "/admin/users")
	for _, box := range []string{`name="roles.` + o.ada.ID + `" value="admin" checked`, `name="roles.` + bob.ID +
		`" value="reviewer" checked`, `name="roles.` + bob.ID + `" value="admin">`, `name="had.` + bob.ID + `" value="reviewer"`} {
		if !strings.Contains(page, box) {
			t.Errorf("the matrix lacks %s", box)
		}
	}
	roles := func(email string) string { return strings.Join(must(o.UserByEmail(o.ctx, email)).Roles, ",") }
	// Two are changed, one is not.
	form := url.Values{
		"at":                {"/admin/users?q=x"},
		"user":              {o.ada.ID, bob.ID, carl.ID},
		"had." + o.ada.ID:   {"reviewer,admin"},
		"roles." + o.ada.ID: {"reviewer", "admin"},
		"had." + bob.ID:     {"reviewer"},
		"roles." + bob.ID:   {"admin"},
		"had." + carl.ID:    {""},
		"roles." + carl.ID:  {"reviewer"},
	}
	if said := o.done(
		t,
		"/admin/users/roles",
		form,
	); roles("bob@example.com") != "admin" || roles("carl@example.com") != "reviewer" ||
		!strings.Contains(said, "2 users") {
		t.Errorf("%q: %s, %s", said, roles("bob@example.com"), roles("carl@example.com"))
	}
	if n := strings.Count(o.audited(t, "user.roles"), ada+" console"); n != 2 {
		t.Errorf("%d changes are in the audit log", n)
	}
	// The same form once more was made of what is over.
	if said := o.done(
		t,
		"/admin/users/roles",
		form,
	); !strings.Contains(
		said,
		"just changed the roles of bob@example.com: they are admin now",
	) {
		t.Errorf("a stale matrix: %q", said)
	}
	if said := o.done(
		t,
		"/admin/users/roles",
		url.Values{"user": {bob.ID}, "had." + bob.ID: {"admin"}, "roles." + bob.ID: {"admin", "root"}},
	); !strings.Contains(said, "unknown role") ||
		roles("bob@example.com") != "admin" {
		t.Errorf("an unknown role: %q", said)
	}
	for _, to := range []string{"https://evil.example/", "//evil.example", "/drafts", "/admin/users/../../logout"} {
		res, _ := o.visit(t, o.as, "POST", "/admin/users/roles", url.Values{"at": {to}})
		if got := res.Header.Get("Location"); !strings.HasPrefix(got, "/admin/users") || strings.Contains(got, "evil") {
			t.Errorf("at=%s leads to %s", to, got)
		}
	}
}

// TestTheLastAdministratorStays: whatever administrators do in the console to themselves and to each other, at once too,
// one of them is left who can sign in.
func TestTheLastAdministratorStays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	at, ctx := "/admin/users/"+o.ada.ID, caller.With(o.ctx, o.as)
	matrix := url.Values{"user": {o.ada.ID}, "had." + o.ada.ID: {"reviewer,admin"}, "roles." + o.ada.ID: {"reviewer"}}
	// Somebody who was invited, or is disabled, does not count.
	if _, _, err := o.Invite(o.ctx, auth.NewUser{Email: "later@example.com", Name: "L", Roles: []string{"admin"}}); err != nil {
		t.Fatal(err)
	}
	o.add(t, "gone@example.com", "admin")
	if _, err := o.Disable(ctx, "gone@example.com"); err != nil {
		t.Fatal(err)
	}
	for what, said := range map[string]string{"roles": o.done(t, "/admin/users/roles", matrix),
		"disable": o.done(t, at+"/disable", url.Values{})} {
		if !strings.Contains(said, "is the last administrator who can sign in. Make somebody else an administrator first.") {
			t.Errorf("%s: %q", what, said)
		}
	}
	if u := must(o.UserByEmail(o.ctx, ada)); !u.Administers() {
		t.Fatalf("%+v", u)
	}
	for round := range 5 {
		o.add(t, fmt.Sprintf("bob%d@example.com", round), "admin")
		var all sync.WaitGroup
		refusals := make(chan error, 2)
		for _, email := range []string{ada, fmt.Sprintf("bob%d@example.com", round)} {
			all.Go(func() {
				var err error
				if round%2 == 0 {
					_, err = o.SetRoles(ctx, email, nil)
				} else {
					_, err = o.Disable(ctx, email)
				}
				refusals <- err
			})
		}
		all.Wait()
		close(refusals)
		refused := 0
		for err := range refusals {
			if code(err) == fault.Conflict {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if left := o.query(
			t,
			`SELECT count(*)::text FROM auth.users WHERE 'admin' = ANY(roles) AND disabled_at IS NULL AND password_hash <> ''`,
		); left != "1" ||
			refused != 1 {
			t.Fatalf("%s administrators are left, %d were refused", left, refused)
		}
		// The terminal brings them back, and is held to nothing.
		for _, u := range must2(o.Users(o.ctx, auth.UserFilter{})) {
			_, _ = o.SetRoles(o.ctx, u.Email, nil)
		}
		_, _ = o.Enable(o.ctx, ada)
		if _, err := o.SetRoles(o.ctx, ada, []string{"admin"}); err != nil {
			t.Fatal(err)
		}
	}
}

func must2[T any](v T, _ string, err error) T { return must(v, err) }

func TestAppsPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if page := o.get(t, "/admin/apps"); !strings.Contains(page, "There is no such app") {
		t.Errorf("an empty list: %s", page)
	}
	o.get(t, "/admin/apps/_new")
	limits := url.Values{"user-per-minute": {"1"}, "user-burst": {"2"}, "service-per-minute": {"3"}, "service-burst": {"4"}}
	with := func(more url.Values) url.Values {
		form := url.Values{}
		for _, from := range []url.Values{limits, more} {
			for name, values := range from {
				form[name] = values
			}
		}
		return form
	}
	form := with(
		url.Values{
			"service_code":  {"shop"},
			"name":          {"The <shop>"},
			"redirect_urls": {"https://shop.example/back\r\nhttp://localhost:3000/x\r\n"},
			"origins":       {"https://shop.example"},
			"scopes":        {"pay:refund", "pay:read"},
			"link_mode":     {"confirm"},
		},
	)
	if said := o.done(t, "/admin/apps", form); !strings.Contains(said, "created") {
		t.Errorf("%q", said)
	}
	a, err := o.apps.Inspect(o.ctx, "shop")
	if err != nil || !slices.Equal(a.RedirectURLs, []string{"https://shop.example/back", "http://localhost:3000/x"}) ||
		!slices.Equal(a.Scopes, []string{"pay:read", "pay:refund"}) ||
		a.LinkMode != apps.Confirm ||
		a.Limits != (apps.Limits{UserPerMinute: 1, UserBurst: 2, ServicePerMinute: 3, ServiceBurst: 4}) ||
		a.CreatedBy != ada {
		t.Errorf("%+v %v", a, err)
	}
	if status, _, page := o.post(
		t,
		"/admin/apps",
		form,
	); status != http.StatusConflict ||
		!strings.Contains(page, "There is an app with the code shop already.") {
		t.Errorf("created twice: %d", status)
	}
	wrong := url.Values{
		"service_code":  {"_new"},
		"name":          {""},
		"redirect_urls": {"http://evil.example/ https://x.example/#a"},
		"origins":       {"https://shop.example/path"},
		"scopes":        {"sql"},
		"link_mode":     {"x"},
	}
	status, _, page := o.post(t, "/admin/apps", wrong)
	for _, field := range []string{"service_code", "name", "redirect_urls", "origins", "scopes", "link_mode", "user-burst"} {
		if !strings.Contains(page, `id="`+field+`-error"`) {
			t.Errorf("nothing is said at %s", field)
		}
	}
	if status != http.StatusUnprocessableEntity || !strings.Contains(page, "http://evil.example/ https://x.example/#a") {
		t.Errorf("%d %s", status, page)
	}
	at := "/admin/apps/shop"
	for _, path := range []string{"/admin/apps", at, at + "/edit", at + "/suspend", at + "/revoke"} {
		if page := o.get(t, path); !strings.Contains(page, "The &lt;shop&gt;") && !strings.Contains(page, "Edit shop") {
			t.Errorf("%s: %s", path, page)
		}
	}
	edited := with(
		url.Values{
			"version":       {"1"},
			"name":          {"The shop"},
			"redirect_urls": {""},
			"origins":       {""},
			"scopes":        {"pay:read"},
			"link_mode":     {"consent"},
		},
	)
	o.done(t, at+"/edit", edited)
	if a, _ := o.apps.Inspect(o.ctx, "shop"); a.Name != "The shop" || len(a.RedirectURLs) != 0 || a.Version != 2 {
		t.Errorf("%+v", a)
	}
	if status, said, _ := o.post(t, at+"/edit", edited); status != http.StatusSeeOther || !strings.Contains(said, "The app is changed") {
		t.Errorf("the same form again: %d %q", status, said)
	}
	mine := with(edited)
	mine.Set("name", "My shop")
	mine.Set("redirect_urls", "https://shop.example/mine")
	status, _, page = o.post(t, at+"/edit", mine)
	for _, part := range []string{"Somebody else has changed the app", `value="My shop"`, "https://shop.example/mine", "It is now: The shop",
		"It is empty now.", `name="version" value="2"`} {
		if !strings.Contains(page, part) {
			t.Errorf("a form of an earlier version does not say %q", part)
		}
	}
	if a, _ := o.apps.Inspect(o.ctx, "shop"); status != http.StatusConflict || a.Name != "The shop" ||
		strings.Contains(page, `id="scopes-error"`) {
		t.Errorf("a form of an earlier version: %d %+v", status, a)
	}
	mine.Set("version", "2")
	o.done(t, at+"/edit", mine)
	if a, _ := o.apps.Inspect(o.ctx, "shop"); a.Name != "My shop" || a.Version != 3 {
		t.Errorf("saved over it: %+v", a)
	}

	_, _, page = o.post(t, at+"/secrets", url.Values{})
	secret, issued := shown(t, page), page
	webhook := regexp.MustCompile(`id="webhook" value="whsec_[A-Za-z0-9+/&#;]{40,}=`)
	if !webhook.MatchString(issued) {
		t.Errorf("no webhook secret: %s", issued)
	}
	if status, said, _ := o.post(
		t,
		at+"/secrets",
		url.Values{},
	); status != http.StatusSeeOther ||
		!strings.Contains(said, "has a secret already") {
		t.Errorf("issued twice: %d %q", status, said)
	}
	_, _, page = o.post(t, at+"/secrets/rotate", url.Values{"overlap": {"24"}})
	if next := shown(t, page); next == secret {
		t.Error("the secret was not rotated")
	}
	if status, said, _ := o.post(
		t,
		at+"/secrets/rotate",
		url.Values{"overlap": {"24"}},
	); status != http.StatusSeeOther ||
		!strings.Contains(said, "two secrets") {
		t.Errorf("rotated again: %d %q", status, said)
	}
	if _, _, again := o.post(
		t,
		at+"/webhook-secrets/rotate",
		url.Values{},
	); !webhook.MatchString(again) ||
		webhook.FindString(again) == webhook.FindString(issued) {
		t.Errorf("the webhook secret: %s", again)
	}
	if status, said, _ := o.post(
		t,
		at+"/webhook-secrets/rotate",
		url.Values{},
	); status != http.StatusSeeOther ||
		!strings.Contains(said, "two secrets") {
		t.Errorf("the webhook secret rotated again: %d %q", status, said)
	}
	page = o.get(t, at)
	if n := len(
		regexp.MustCompile(`<code>w_[0-9A-Z]{26}</code>`).FindAllString(page, -1),
	); n != 2 || strings.Contains(page, "whsec_") ||
		!strings.Contains(page, "Two webhook secrets are good") {
		t.Errorf("%d webhook secrets: %s", n, page)
	}
	ids := regexp.MustCompile(`/secrets/(s_[0-9A-Z]{26})/revoke`).FindAllStringSubmatch(page, -1)
	if len(ids) != 2 || strings.Contains(page, secret[4:20]) {
		t.Fatalf("%d secrets: %s", len(ids), page)
	}
	o.get(t, at+"/secrets/"+ids[1][1]+"/revoke")
	o.done(t, at+"/secrets/"+ids[1][1]+"/revoke", url.Values{})
	if res, _ := o.visit(t, o.as, "POST", at+"/secrets/"+ids[1][1]+"/revoke", url.Values{}); res.StatusCode != http.StatusNotFound {
		t.Errorf("revoked twice: %d", res.StatusCode)
	}

	if status, _, page := o.post(
		t,
		at+"/suspend",
		url.Values{},
	); status != http.StatusUnprocessableEntity ||
		!strings.Contains(page, `id="reason-error"`) {
		t.Errorf("suspended without a reason: %d", status)
	}
	o.done(t, at+"/suspend", url.Values{"reason": {"too many complaints"}})
	if page := o.get(t, at); !strings.Contains(page, "too many complaints") || !strings.Contains(page, ">Resume</button>") {
		t.Errorf("%s", page)
	}
	o.done(t, at+"/resume", url.Values{})
	if said := o.done(t, at+"/resume", url.Values{}); !strings.Contains(said, "is ACTIVE, so it cannot become ACTIVE") {
		t.Errorf("resumed twice: %q", said)
	}
	if status, _, page := o.post(
		t,
		at+"/revoke",
		url.Values{"confirm": {"the shop"}, "reason": {"over"}},
	); status != http.StatusUnprocessableEntity ||
		!strings.Contains(page, `id="confirm-error"`) {
		t.Errorf("revoked without typing its code: %d", status)
	}
	o.done(t, at+"/revoke", url.Values{"confirm": {"shop"}, "reason": {"over"}})
	if page := o.get(
		t,
		at,
	); strings.Contains(page, "<form") && strings.Contains(page, "/secrets") || strings.Contains(page, at+"/edit") ||
		!strings.Contains(page, "Revoked") {
		t.Errorf("%s", page)
	}
	for _, operation := range []string{"app.create", "app.edit", "app.issue_secret", "app.rotate_secret", "app.rotate_webhook_secret",
		"app.revoke_secret", "app.suspend", "app.resume", "app.revoke"} {
		for who := range strings.SplitSeq(o.audited(t, operation), ",") {
			if who != ada+" console" {
				t.Errorf("%s: %q", operation, who)
			}
		}
	}
	for _, path := range []string{"/admin/apps/nobody", "/admin/apps/%00", "/admin/apps/nobody/edit", "/admin/apps/nobody/revoke", at +
		"/secrets/s_x/revoke"} {
		if res, _ := o.visit(t, o.as, "GET", path, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}
