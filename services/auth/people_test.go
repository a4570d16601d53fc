package auth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/service"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/console"
	"hub.internal/services/auth/console/connect"
	"hub.internal/services/auth/links"
	"hub.internal/services/auth/postgres"
)

const (
	ada      = "Ada.Lovelace@example.com"
	password = "correct horse battery staple"
)

// hall is People on a store of their own, with a clock, the pages and everything that was logged.
type hall struct {
	*auth.People
	keys  *auth.Service
	apps  *apps.Service
	links *links.Service
	// linked is where the links are.
	linked *postgres.Store
	box    *seal.Box
	told   *told
	store  auth.UserStore
	db     hubtest.WriteStoreDB
	clock  *hubtest.Clock
	log    *hubtest.Buffer
	url    string
	ctx    context.Context
}

func newHall(t *testing.T, sso ...auth.SingleSignOn) *hall {
	t.Helper()
	db := hubtest.MigratedStore(t, "auth", postgres.Migrate)
	store := postgres.New(hubtest.Pool(t, db.URL("auth")))
	h := &hall{store: store, db: db, clock: hubtest.NewClock(time.Now().UTC().Truncate(time.Millisecond)), log: &hubtest.Buffer{}}
	logger := slog.New(slog.NewTextHandler(h.log, nil))
	var err error
	if h.People, err = auth.NewPeople(auth.PeopleConfig{Store: store, Now: h.clock.Now, Logger: logger}.Cheap()); err != nil {
		t.Fatal(err)
	}
	keys := callertest.Keys(t, "auth", caller.Gateway)
	var provider auth.SingleSignOn
	if len(sso) > 0 {
		provider = sso[0]
	}
	peppers, err := auth.NewPeppers(pepper, "")
	if err != nil {
		t.Fatal(err)
	}
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.Open(keyset)
	if err != nil {
		t.Fatal(err)
	}
	h.told = &told{}
	h.keys = auth.New(auth.Config{Store: store, Peppers: peppers, Notices: h.told, Now: h.clock.Now, Logger: logger})
	h.apps = apps.New(apps.Config{Store: store, Sealer: box, Now: h.clock.Now})
	pages, err := console.New(
		console.Config{People: h.People, Service: h.keys, Apps: h.apps, SingleSignOn: provider, RolesFromProvider: provider != nil,
			PublicURL: "https://hub.example/", Trusted: keys, Now: h.clock.Now, Logger: logger},
	)
	if err != nil {
		t.Fatal(err)
	}
	h.box = box
	h.linked = store
	h.links = links.New(links.Config{Store: store, Sealer: box, PublicURL: "https://hub.example/", Now: h.clock.Now, Logger: logger})
	consent, err := connect.New(connect.Config{Links: h.links, PublicURL: "https://hub.example/", Trusted: keys, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := rpc.Server{Mux: mux, Keys: keys, Logger: logger}
	service.Operations(server, append(auth.Operations(nil, h.People), console.Operations(pages)...)...)
	for _, r := range auth.Routes(h.links) {
		server.Route(r)
	}
	pages.Mount(mux)
	consent.Mount(mux)
	listener := httptest.NewServer(mux)
	t.Cleanup(listener.Close)
	h.url = listener.URL
	h.ctx = caller.With(t.Context(), caller.Caller{Kind: caller.User, Service: "auth-cli", ExternalUserID: "root"})
	return h
}

// dear gives the hall People whose passwords cost what they do in production.
func (h *hall) dear(t *testing.T) *hall {
	t.Helper()
	people, err := auth.NewPeople(auth.PeopleConfig{Store: h.store, Now: h.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h.People = people
	return h
}

func (h *hall) add(t *testing.T, email string, roles ...string) auth.User {
	t.Helper()
	u, err := h.Add(h.ctx, auth.NewUser{Email: email, Name: "Ada", Roles: roles}, password)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (h *hall) signIn(t *testing.T, email string) (auth.Session, string) {
	t.Helper()
	in, err := h.SignIn(h.ctx, email, password, auth.Browser{Address: "192.0.2.1", Agent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return in.Session, in.Secret.Reveal()
}

// code is the code of Resolve's answer; empty for a session that holds.
func (h *hall) code(secret string) fault.Code {
	_, err := h.Resolve(h.ctx, secret)
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

func (h *hall) query(t *testing.T, sql string, args ...any) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), h.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var text string
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAddUser(t *testing.T) {
	t.Parallel()
	h := newHall(t).dear(t)
	u := h.add(t, ada, "admin", "reviewer", "admin")
	if !strings.HasPrefix(u.ID, "usr_") || strings.Join(u.Roles, ",") != "reviewer,admin" ||
		!strings.HasPrefix(u.PasswordHash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("%+v", u)
	}
	if _, err := h.Add(h.ctx, auth.NewUser{Email: strings.ToUpper(ada), Name: "x"}, password); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same address in another case: %v", err)
	}
	for name, c := range map[string]struct {
		in       auth.NewUser
		password string
	}{
		"no address":         {auth.NewUser{Name: "x"}, password},
		"name in address":    {auth.NewUser{Email: "Bob <b@example.com>", Name: "x"}, password},
		"no dot":             {auth.NewUser{Email: "b@localhost", Name: "x"}, password},
		"literal":            {auth.NewUser{Email: "b@[127.0.0.1]", Name: "x"}, password},
		"comment":            {auth.NewUser{Email: "b(c)@example.com", Name: "x"}, password},
		"unicode":            {auth.NewUser{Email: "bö@example.com", Name: "x"}, password},
		"line break":         {auth.NewUser{Email: "b@example.com\r\nBcc: c@example.com", Name: "x"}, password},
		"no name":            {auth.NewUser{Email: "b@example.com"}, password},
		"unknown role":       {auth.NewUser{Email: "b@example.com", Name: "x", Roles: []string{"root"}}, password},
		"short password":     {auth.NewUser{Email: "b@example.com", Name: "x"}, "elevenchars"},
		"a dot at the end":   {auth.NewUser{Email: "b@localhost.", Name: "x"}, password},
		"few long letters":   {auth.NewUser{Email: "b@example.com", Name: "x"}, strings.Repeat("ä", 11)},
		"two lines":          {auth.NewUser{Email: "b@example.com", Name: "x"}, "correct horse\nbattery staple"},
		"long password":      {auth.NewUser{Email: "b@example.com", Name: "x"}, strings.Repeat("x", 513)},
		"password = address": {auth.NewUser{Email: "bob@example.com", Name: "x"}, "BOB@example.com"},
	} {
		if _, err := h.Add(h.ctx, c.in, c.password); !fault.Is(err, fault.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := h.query(t, `SELECT string_agg(tool || ' ' || external_user_id, ',') FROM audit.calls`); got != "user.add root" {
		t.Errorf("audit %s", got)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada, "reviewer")
	_, secret := h.signIn(t, "  ada.LOVELACE@example.com ")
	r, err := h.Resolve(h.ctx, secret)
	if err != nil || r.User.ID != u.ID || r.User.Email != ada || !slices.Equal(r.User.Roles, []string{"reviewer"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if len(secret) != 43 {
		t.Errorf("a secret of %d characters does not hold 256 bits", len(secret))
	}
	dump := h.query(t, `SELECT coalesce(string_agg(s::text, ''), '') || (SELECT string_agg(u::text, '') FROM auth.users u) ||
		(SELECT string_agg(c::text, '') FROM audit.calls c) || (SELECT coalesce(string_agg(b::text, ''), '') FROM auth.throttles b)
			FROM auth.sessions s`)
	if strings.Contains(dump, secret) || strings.Contains(dump, password) || strings.Contains(h.log.String(), secret) {
		t.Error("the store or the log holds a secret")
	}
	if s := (auth.SessionSecret{Secret: "hunter2"}); fmt.Sprintf("%v %+v %#v", s, s, s) != "*** *** ***" {
		t.Errorf("a secret shows itself: %v %+v %#v", s, s, s)
	}
}

// TestOldHash signs in with a password whose hash was made under other parameters.
func TestOldHash(t *testing.T) {
	t.Parallel()
	h := newHall(t).dear(t)
	h.add(t, ada)
	old, err := argon2id.CreateHash(
		password,
		&argon2id.Params{Memory: 8 << 10, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32},
	)
	if err != nil {
		t.Fatal(err)
	}
	h.query(t, `UPDATE auth.users SET password_hash = $1 RETURNING ''`, old)
	_, secret := h.signIn(t, ada)
	if hash := h.query(
		t,
		`SELECT password_hash FROM auth.users`,
	); hash == old || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") ||
		h.code(secret) != "" {
		t.Errorf("%s, %s", hash, h.code(secret))
	}
	h.signIn(t, ada)
}

// TestSignInVerified: the provider's roles hold for who may sign in, and change nobody else.
func TestSignInVerified(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada, "reviewer")
	signIn := func(email string, roles ...string) error {
		_, err := h.SignInVerified(h.ctx, email, " ", roles, auth.Browser{})
		return err
	}
	if err := signIn(strings.ToLower(ada), "admin"); err != nil || h.query(t, `SELECT roles::text FROM auth.users`) != "{admin}" {
		t.Error(err)
	}
	if _, err := h.Disable(h.ctx, ada); err != nil {
		t.Fatal(err)
	}
	if err := signIn(ada, "reviewer"); !fault.Is(err, fault.AuthInvalid) || h.query(t, `SELECT roles::text FROM auth.users`) != "{admin}" {
		t.Errorf("disabled: %v", err)
	}
	if err := signIn("new@example.com"); !fault.Is(err, fault.AuthInvalid) {
		t.Errorf("unknown, and Hub's own roles: %v", err)
	}
	if err := signIn(
		"new@example.com",
		"reviewer",
	); err != nil ||
		h.query(t, `SELECT name || roles::text FROM auth.users WHERE email = 'new@example.com'`) != "new@example.com{reviewer}" {
		t.Error(err)
	}
}

// TestLongNamesOfTheProvider: no name that the provider has, nor a long address in its place, keeps anybody out.
func TestLongNamesOfTheProvider(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	long := strings.Repeat("long", 15) + "@" + strings.Repeat("host.", 12) + "example"
	for email, c := range map[string]struct{ name, want string }{
		"a@example.com": {strings.Repeat("이", 101), strings.Repeat("이", 99) + "…"},
		"b@example.com": {strings.Repeat("x", 98) + " Contractor", strings.Repeat("x", 98) + "…"},
		"c@example.com": {strings.Repeat("이", 100), strings.Repeat("이", 100)},
		long:            {"\u200b", long[:99] + "…"},
	} {
		_, err := h.SignInVerified(h.ctx, email, c.name, []string{"reviewer"}, auth.Browser{})
		if got := h.query(t, `SELECT coalesce(max(name), '') FROM auth.users WHERE email = '`+email+`'`); err != nil || got != c.want {
			t.Errorf("%s is %q: %v", email, got, err)
		}
	}
}

// TestWhoHasNoRoleAtTheProvider: who has lost the last group there loses the roles here, in open sessions and by password, and is not let
// in; who is disabled keeps theirs, and nobody is made.
func TestWhoHasNoRoleAtTheProvider(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada, "admin", "reviewer")
	h.add(t, "gone@example.com", "reviewer")
	if _, err := h.Disable(h.ctx, "gone@example.com"); err != nil {
		t.Fatal(err)
	}
	open, err := h.SignInVerified(h.ctx, ada, "Ada", []string{"admin"}, auth.Browser{})
	if err != nil {
		t.Fatal(err)
	}
	for email, says := range map[string]string{ada: "no role in Hub", "gone@example.com": "may not use Hub",
		"new@example.com": "no role in Hub"} {
		_, err := h.SignInVerified(h.ctx, email, "x", []string{}, auth.Browser{})
		if !fault.Is(err, fault.AuthInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", email, err)
		}
	}
	if r, err := h.Resolve(h.ctx, open.Secret.Reveal()); err != nil || len(r.User.Roles) != 0 {
		t.Errorf("an open session: %v, %v", r.User.Roles, err)
	}
	_, byPassword := h.signIn(t, ada)
	if r, err := h.Resolve(h.ctx, byPassword); err != nil || len(r.User.Roles) != 0 {
		t.Errorf("by password: %v, %v", r.User.Roles, err)
	}
	stored := h.query(t, `SELECT string_agg(email || roles::text, ' ' ORDER BY email) FROM auth.users`)
	if want := ada + "{} gone@example.com{reviewer}"; stored != want {
		t.Errorf("stored: %s", stored)
	}
	change := h.query(t, `SELECT service || ' ' || (detail->>'roles') FROM audit.calls
		WHERE tool = 'user.roles' AND detail->>'roles_before' = '["admin"]'`)
	if change != `oidc []` {
		t.Errorf("audit: %s", change)
	}
	refusals := h.query(t, `SELECT string_agg(detail->>'why', ' ' ORDER BY detail->>'why') FROM audit.calls WHERE outcome <> 'ok'`)
	if refusals != "disabled no role no role" {
		t.Errorf("refusals: %s", refusals)
	}
}

// TestRefusals wants one answer to every failure, and no quick one.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h := newHall(t).dear(t)
	h.add(t, ada)
	h.add(t, "gone@example.com")
	if _, err := h.Add(h.ctx, auth.NewUser{Email: "long@example.com", Name: "x"}, strings.Repeat("x", 512)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Add(h.ctx, auth.NewUser{Email: "sso@example.com", Name: "x"}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Disable(h.ctx, "GONE@example.com"); err != nil {
		t.Fatal(err)
	}
	took := map[string]time.Duration{}
	for name, c := range map[string]struct{ email, password string }{
		"unknown": {"nobody@example.com", password}, "wrong": {ada, "wrong wrong wrong"}, "disabled": {"gone@example.com", password},
		"no password": {"sso@example.com", ""}, "empty": {ada, ""}, "nobody at all": {"", ""}, "hostile": {"' OR 1=1 --\x00\xff", "\x00\xff"},
		"huge": {ada, strings.Repeat("x", 1<<16)}, "right and more": {ada, password + strings.Repeat(" ", 600)},
		"more than the longest": {"long@example.com", strings.Repeat("x", 513)}, "wrong field": {password, ""},
	} {
		began := time.Now()
		_, err := h.SignIn(h.ctx, c.email, c.password, auth.Browser{Address: name})
		took[name] = time.Since(began)
		if f := fault.From(
			err,
		); f.Code != fault.AuthInvalid || f.Message != "The e-mail address or the password is not right." ||
			f.Details != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, d := range took {
		if d < 3*time.Millisecond {
			t.Errorf("%s took %v: no password was hashed", name, d)
		}
	}
	if got := h.query(
		t,
		`SELECT count(*)::text FROM audit.calls WHERE tool = 'session.start' AND outcome = 'E_AUTH_INVALID'`,
	); got != "11" {
		t.Errorf("%s refusals are in the audit log", got)
	}
	if got := h.query(
		t,
		`SELECT string_agg(c::text, ' ') FROM audit.calls c`,
	); strings.Contains(got, password) ||
		!strings.Contains(got, "nobody@example.com") {
		t.Errorf("the audit log: %s", got)
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada)
	idle := func(use time.Duration, times int) (secret string) {
		_, secret = h.signIn(t, ada)
		for range times {
			h.clock.Advance(use)
			if code := h.code(secret); code != "" {
				t.Fatalf("in use: %s", code)
			}
		}
		return secret
	}
	secret := idle(29*time.Minute, 3)
	h.clock.Advance(30*time.Minute - time.Millisecond)
	if code := h.code(secret); code != "" {
		t.Errorf("a moment before the idle end: %s", code)
	}
	h.clock.Advance(30 * time.Minute)
	if code := h.code(secret); code != fault.AuthExpired {
		t.Errorf("at the idle end: %s", code)
	}
	if list, err := h.Sessions(h.ctx, u.ID); err != nil || len(list) != 0 {
		t.Errorf("%d sessions are listed behind their idle end, %v", len(list), err)
	}
	h.clock.Advance(-time.Minute)
	secret = idle(20*time.Minute, 35)
	h.clock.Advance(20*time.Minute - time.Millisecond)
	if r, err := h.Resolve(h.ctx, secret); err != nil || !r.Session.Ends().Equal(h.clock.Now().Add(time.Millisecond)) {
		t.Errorf("a moment before twelve hours: %+v, %v", r.Session, err)
	}
	h.clock.Advance(time.Millisecond)
	if code := h.code(secret); code != fault.AuthExpired {
		t.Errorf("after twelve hours of use: %s", code)
	}
	for _, wrong := range []string{"", "x", strings.Repeat("A", 43)} {
		if code := h.code(wrong); code != fault.AuthInvalid {
			t.Errorf("%q: %s", wrong, code)
		}
	}
	if err := h.People.SignOut(h.ctx, "", ""); err != nil {
		t.Error(err)
	}
}

func TestSessionsAreRevoked(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada, "reviewer")
	other := h.add(t, "bob@example.com")
	one, oneSecret := h.signIn(t, ada)
	_, twoSecret := h.signIn(t, ada)
	three, threeSecret := h.signIn(t, ada)
	_, bobs := h.signIn(t, "bob@example.com")
	if list, err := h.Sessions(h.ctx, u.ID); err != nil || len(list) != 3 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
	if err := h.SignOut(h.ctx, other.ID, one.ID); err != nil || h.code(oneSecret) != "" {
		t.Errorf("somebody else ended the session: %v", err)
	}
	if err := h.SignOut(h.ctx, u.ID, one.ID); err != nil || h.code(oneSecret) != fault.AuthRevoked {
		t.Errorf("%v, %s", err, h.code(oneSecret))
	}
	if n, err := h.SignOutOthers(
		h.ctx,
		u.ID,
		three.ID,
	); err != nil || n != 1 || h.code(twoSecret) != fault.AuthRevoked ||
		h.code(threeSecret) != "" {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := h.SetRoles(h.ctx, ada, []string{"admin"}); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Resolve(h.ctx, threeSecret); err != nil || !slices.Equal(r.User.Roles, []string{"admin"}) {
		t.Errorf("roles %v, %v", r.User.Roles, err)
	}
	if _, err := h.SetPassword(h.ctx, ada, "another good password"); err != nil || h.code(threeSecret) != fault.AuthRevoked {
		t.Errorf("a new password left the session: %v", err)
	}
	if _, err := h.SignIn(h.ctx, ada, password, auth.Browser{}); !fault.Is(err, fault.AuthInvalid) {
		t.Errorf("the old password: %v", err)
	}
	h.query(t, `UPDATE auth.users SET disabled_at = now() WHERE email = 'bob@example.com' RETURNING ''`)
	if code := h.code(bobs); code != fault.AuthRevoked {
		t.Errorf("a disabled user: %s", code)
	}
	if _, err := h.Disable(h.ctx, "bob@example.com"); err != nil || h.code(bobs) != fault.AuthRevoked {
		t.Errorf("disabled: %v", err)
	}
	if _, err := h.Enable(h.ctx, "bob@example.com"); err != nil || h.code(bobs) != fault.AuthRevoked {
		t.Errorf("an old session came back with its user: %v", err)
	}
	h.signIn(t, "bob@example.com")
	if _, err := h.Disable(h.ctx, "nobody@example.com"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// link is the link of an app's user, as a token finds it.
func (h *hall) link(ctx context.Context, service, externalUser string) (links.Link, bool, error) {
	l, found, err := h.linked.LinkOf(ctx, service, externalUser)
	return l.Link, found && !l.Disabled && !l.Lapsed(h.clock.Now()), err
}

// meanwhile is a store in which something happens behind the first look for a user.
type meanwhile struct {
	auth.UserStore
	once sync.Once
	do   func()
}

func (m *meanwhile) UserByEmail(ctx context.Context, email string) (auth.User, bool, error) {
	u, found, err := m.UserStore.UserByEmail(ctx, email)
	m.once.Do(m.do)
	return u, found, err
}

// TestChangedWhileSigningIn: what ends all sessions of a user ends the one that is just being
// made too.
func TestChangedWhileSigningIn(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada, "reviewer")
	signIn := func(do func()) error {
		p, err := auth.NewPeople(
			auth.PeopleConfig{
				Store:  &meanwhile{UserStore: h.store, do: do},
				Now:    h.clock.Now,
				Logger: slog.New(slog.DiscardHandler),
			}.Cheap(),
		)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.SignIn(h.ctx, ada, password, auth.Browser{})
		return err
	}
	for name, change := range map[string]func() error{
		"another password": func() error {
			_, err := h.SetPassword(h.ctx, ada, "another good password")
			return err
		},
		"disabled": func() error { _, err := h.Disable(h.ctx, ada); return err },
	} {
		err := signIn(func() {
			if err := change(); err != nil {
				t.Error(err)
			}
		})
		if list, listErr := h.Sessions(h.ctx, u.ID); !fault.Is(err, fault.AuthInvalid) || listErr != nil || len(list) != 0 {
			t.Errorf("%s: %v, %d sessions, %v", name, err, len(list), listErr)
		}
		if _, err := h.Enable(h.ctx, ada); err != nil {
			t.Fatal(err)
		}
		if _, err := h.SetPassword(h.ctx, ada, password); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.query(
		t,
		`SELECT count(*)::text FROM audit.calls WHERE tool = 'session.start' AND outcome = 'E_AUTH_INVALID' AND detail ->> 'why' = 'changed'`,
	); n != "2" {
		t.Errorf("%s refusals are in the audit log", n)
	}
	h.signIn(t, ada)
}

// TestThrottleAtOnce takes from two replicas at the same time: the burst holds exactly.
func TestThrottleAtOnce(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken, refused := 0, 0
	for r := range 2 {
		store := postgres.New(hubtest.Pool(t, h.db.URL("auth")))
		for i := range 30 {
			wg.Go(func() {
				// Two orders of the same two buckets: nobody may wait for the other in a circle.
				buckets := []auth.Bucket{
					{Name: "address", Throttle: auth.NetworkThrottle},
					{Name: fmt.Sprint("account", i%2), Throttle: auth.NetworkThrottle},
				}
				if i%3 == r {
					slices.Reverse(buckets)
				}
				wait, _, err := store.Take(h.ctx, h.clock.Now(), buckets)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if wait == 0 {
					taken++
				} else {
					refused++
				}
			})
		}
	}
	wg.Wait()
	if taken != auth.NetworkThrottle.Burst || refused != 60-taken {
		t.Errorf("%d taken, %d refused", taken, refused)
	}
	// Whoever is refused leaves nothing behind, whatever they typed.
	unknown := []auth.Bucket{{Name: "account of nobody", Throttle: auth.AccountThrottle}, {Name: "address", Throttle: auth.NetworkThrottle}}
	if wait, _, err := h.store.Take(h.ctx, h.clock.Now(), unknown); wait <= 0 || err != nil {
		t.Errorf("%v, %v", wait, err)
	}
	if n := h.query(t, `SELECT count(*)::text FROM auth.throttles`); n != "3" {
		t.Errorf("%s buckets are kept", n)
	}
}

func TestReap(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada)
	h.signIn(t, ada)
	_, _ = h.SignIn(h.ctx, ada, "wrong", auth.Browser{})
	h.clock.Advance(8 * 24 * time.Hour)
	_, kept := h.signIn(t, ada)
	ctx, cancel := context.WithCancel(h.ctx)
	done := make(chan error, 1)
	go func() { done <- h.Reap(ctx) }()
	hubtest.Eventually(t, "old sessions are deleted", func() bool {
		return h.query(t, `SELECT count(*)::text FROM auth.sessions`) == "1"
	})
	cancel()
	if err := <-done; err != nil || h.code(kept) != "" {
		t.Errorf("%v", err)
	}
}

// visit is a request as the gateway passes it on.
func (h *hall) visit(t *testing.T, who caller.Caller, method, path string, form url.Values, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = callertest.Header(t, "auth", who)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("X-Forwarded-For", "192.0.2.7")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

var visitor = caller.Caller{Kind: caller.Visitor, RequestID: "req_1"}

func cookie(res *http.Response, name string) *http.Cookie {
	for _, c := range res.Cookies() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func TestLoginPage(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada, "reviewer")
	res, page := h.visit(t, visitor, "GET", "/login?next=%2Fdrafts%3Fa%3D1%26b%3D%22", nil)
	for _, want := range []string{`<label for="email">E-mail</label>`, `<label for="password">Password</label>`, `>Sign in</button>`,
		`name="next" value="/drafts?a=1&amp;b=&#34;"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if res.StatusCode != 200 || regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|\son[a-z]+=|style=|javascript:`).MatchString(page) {
		t.Errorf("%d; something inline: %s", res.StatusCode, page)
	}
	good := url.Values{"email": {ada}, "password": {password}, "next": {"/drafts?a=1"}}
	res, _ = h.visit(t, visitor, "POST", "/login", good)
	c := cookie(res, "__Host-hub")
	if res.StatusCode != 303 || res.Header.Get("Location") != "/drafts?a=1" || c == nil {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 ||
		!c.Expires.IsZero() {
		t.Errorf("cookie %s", c.Raw)
	}
	r, err := h.Resolve(h.ctx, c.Value)
	if err != nil || r.Session.Address != "192.0.2.7" {
		t.Fatalf("%+v, %v", r, err)
	}
	// Signing in again makes another session and ends this one.
	user := caller.Caller{Kind: caller.User, HubUser: u.ID, Email: u.Email, CredentialID: r.Session.ID, Roles: u.Roles}
	res, _ = h.visit(t, user, "POST", "/login", good)
	again := cookie(res, "__Host-hub")
	if again == nil || again.Value == c.Value || h.code(c.Value) != fault.AuthRevoked || h.code(again.Value) != "" {
		t.Errorf("no rotation: %v, %s", again, h.code(c.Value))
	}
	// A planted cookie is never taken up.
	res, _ = h.visit(t, visitor, "POST", "/login", good, "Cookie", "__Host-hub="+strings.Repeat("A", 43))
	if planted := cookie(res, "__Host-hub"); planted == nil || planted.Value == strings.Repeat("A", 43) {
		t.Error("a session that somebody planted was taken up")
	}
	res, _ = h.visit(t, visitor, "POST", "/login", good, "Hub-Plain-Cookies", "1")
	if plain := cookie(res, "hub_session"); plain == nil || plain.Secure || !plain.HttpOnly || plain.SameSite != http.SameSiteLaxMode {
		t.Errorf("over plain HTTP: %v", res.Header["Set-Cookie"])
	}
	res, page = h.visit(t, visitor, "POST", "/login", url.Values{"email": {`"><script>alert(1)</script>`}, "password": {"x"}})
	if res.StatusCode != 401 || strings.Contains(page, "<script>alert") || !strings.Contains(page, `role="alert"`) ||
		cookie(res, "__Host-hub") != nil {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	if res, _ = h.visit(t, user, "GET", "/login?next=/p/a/b", nil); res.StatusCode != 303 || res.Header.Get("Location") != "/p/a/b" {
		t.Errorf("signed in already: %d %s", res.StatusCode, res.Header.Get("Location"))
	}
	for range auth.PlaceThrottle.Burst + 1 {
		res, page = h.visit(t, visitor, "POST", "/login", url.Values{"email": {"x@example.com"}, "password": {"x"}})
	}
	if res.StatusCode != 429 || res.Header.Get("Retry-After") == "" || !strings.Contains(page, "Too many failed tries") {
		t.Errorf("throttled: %d", res.StatusCode)
	}
	if res, _ = h.visit(t, visitor, "POST", "/login", url.Values{"x": {strings.Repeat("x", 2<<20)}}); res.StatusCode != 400 {
		t.Errorf("a huge form: %d", res.StatusCode)
	}
}

func TestOpenRedirect(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada)
	// Who is signed in goes on at once, as after a log-in, but without its cost.
	user := caller.Caller{Kind: caller.User, HubUser: u.ID, Email: u.Email, CredentialID: "ses_1"}
	for next, want := range map[string]string{
		"/drafts": "/drafts", "/drafts/drf_1?x=1#f": "/drafts/drf_1?x=1#f", "/p/%2Fevil/x": "/p/%2Fevil/x", "": "/",
		"//evil": "/", `/\evil`: "/", `\\evil`: "/", "https://evil": "/", "HTTPS://evil": "/", "javascript:alert(1)": "/", "evil": "/",
		"/\t/evil": "/", "/\n/evil": "/",
		"/%5cevil": "/", "/%09/evil": "/%09/evil", " //evil": "/", "https:/evil": "/", "///evil": "/", "/login": "/",
		"/login?next=//evil": "/", "/logout": "/", "?x": "/", "/a\\b": "/",
		"//evil@/": "/", "/%2f/evil": "/", "/" + strings.Repeat("x", 3000): "/",
	} {
		res, _ := h.visit(t, user, "GET", "/login?next="+url.QueryEscape(next), nil)
		if got := res.Header.Get("Location"); res.StatusCode != 303 || got != want {
			t.Errorf("next=%q leads to %q, want %q", next, got, want)
		}
	}
	for _, next := range []string{"//evil", `/\evil`, "https://evil"} {
		res, _ := h.visit(t, visitor, "POST", "/login", url.Values{"email": {ada}, "password": {password}, "next": {next}})
		if got := res.Header.Get("Location"); res.StatusCode != 303 || got != "/" {
			t.Errorf("after the log-in, next=%q leads to %q", next, got)
		}
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada)
	s, secret := h.signIn(t, ada)
	user := caller.Caller{Kind: caller.User, HubUser: u.ID, Email: u.Email, Name: u.Name, CredentialID: s.ID}
	if res, page := h.visit(
		t,
		user,
		"GET",
		"/logout",
		nil,
	); res.StatusCode != 200 || !strings.Contains(page, `action="/logout"`) ||
		h.code(secret) != "" {
		t.Errorf("GET /logout: %d", res.StatusCode)
	}
	res, _ := h.visit(t, user, "POST", "/logout", url.Values{})
	if c := cookie(res, "__Host-hub"); res.StatusCode != 303 || c == nil || c.MaxAge >= 0 || h.code(secret) != fault.AuthRevoked {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	flash := cookie(res, "__Host-hub-flash")
	res, page := h.visit(t, visitor, "GET", "/login", nil, "Cookie", flash.Name+"="+flash.Value)
	if !strings.Contains(page, "You are signed out.") || cookie(res, flash.Name).MaxAge >= 0 {
		t.Error("no word of goodbye, or one that stays")
	}
	if res, _ := h.visit(t, visitor, "POST", "/logout", url.Values{}); res.StatusCode != 303 {
		t.Errorf("nobody signs out: %d", res.StatusCode)
	}
}

// TestLanguage: the choice of a language is kept with the browser, and with who is signed in, whose next browser has it as well.
func TestLanguage(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada, "admin")
	s, _ := h.signIn(t, ada)
	user := caller.Caller{Kind: caller.User, HubUser: u.ID, Email: u.Email, Name: u.Name, CredentialID: s.ID, Roles: u.Roles}
	const name = "__Host-hub-language"
	chooses := func(who caller.Caller, to, next string) (status int, location, chosen string) {
		res, _ := h.visit(t, who, "POST", "/language", url.Values{"to": {to}, "next": {next}})
		if c := cookie(res, name); c != nil {
			chosen = c.Value
			if c.MaxAge != 365*24*60*60 || !c.HttpOnly || !c.Secure {
				t.Errorf("cookie %s", c.Raw)
			}
		}
		return res.StatusCode, res.Header.Get("Location"), chosen
	}
	good := url.Values{"email": {ada}, "password": {password}}
	if res, _ := h.visit(t, visitor, "POST", "/login", good); res.StatusCode != 303 || cookie(res, name) != nil {
		t.Errorf("a log-in without a choice: %d %v", res.StatusCode, res.Header)
	}
	const login = "/login?next=%2Fdrafts"
	if status, to, chosen := chooses(visitor, "ko", login); status != 303 || to != login || chosen != "ko" {
		t.Errorf("a visitor: %d %q %q", status, to, chosen)
	}
	if kept := must(h.User(h.ctx, u.ID)).Language; kept != "" {
		t.Errorf("a visitor has chosen %q for somebody", kept)
	}
	for _, bad := range []string{"", "de", "KO", "ko; Path=/x", strings.Repeat("k", 5000)} {
		if status, _, chosen := chooses(user, bad, "/"); status != 400 || chosen != "" {
			t.Errorf("%.20q: %d %q", bad, status, chosen)
		}
	}
	for _, l := range i18n.Languages {
		for next, want := range map[string]string{"/drafts?a=b": "/drafts?a=b", "//evil.example": "/", "": "/"} {
			if status, to, chosen := chooses(user, l.Code(), next); status != 303 || to != want || chosen != l.Code() {
				t.Errorf("%s to %q: %d %q %q", l.Code(), next, status, to, chosen)
			}
		}
		if kept := must(h.User(h.ctx, u.ID)).Language; kept != l.Code() {
			t.Errorf("kept is %q, not %s", kept, l.Code())
		}
		res, _ := h.visit(t, visitor, "POST", "/login", good, "Cookie", name+"=en")
		if c := cookie(res, name); c == nil || c.Value != l.Code() {
			t.Errorf("another browser: %v", res.Header)
		}
	}
	if res, _ := h.visit(t, visitor, "GET", "/language", nil); res.StatusCode != 405 {
		t.Errorf("looked at: %d", res.StatusCode)
	}
	_, page := h.visit(t, user, "GET", "/account/sessions", nil, "Accept-Language", "en", "Cookie", name+"=ko")
	if !strings.Contains(page, `<html lang="ko">`) || !strings.Contains(page, "로그인된 곳") {
		t.Errorf("in Korean: %s", page)
	}
	_, page = h.visit(t, visitor, "POST", "/login", url.Values{"email": {ada}, "password": {"x"}}, "Accept-Language", "ko")
	if !strings.Contains(page, `<span lang="en">The e-mail address or the password is not right.</span>`) {
		t.Errorf("a refusal, whose words are the API's: %s", page)
	}
	for language, kind := range map[string]string{"": "Users", "en": "Users", "ko": "사용자", "xx": "Users"} {
		req := must(http.NewRequestWithContext(t.Context(), "POST", h.url+web.FindPath,
			strings.NewReader(fmt.Sprintf(`{"text":"lovelace","language":%q}`, language))))
		req.Header = callertest.Header(t, "auth", user)
		res := must(http.DefaultClient.Do(req))
		defer res.Body.Close()
		if body := must(io.ReadAll(res.Body)); !strings.Contains(string(body), `"kind":"`+kind+`"`) {
			t.Errorf("found in %q: %s", language, body)
		}
	}
}

func TestAccountPage(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada, "reviewer")
	s, secret := h.signIn(t, ada)
	other, otherSecret := h.signIn(t, ada)
	user := caller.Caller{Kind: caller.User, HubUser: u.ID, Email: u.Email, Name: "Ada <b>", CredentialID: s.ID, Roles: u.Roles}
	res, page := h.visit(t, user, "GET", "/account/sessions", nil)
	if res.StatusCode != 200 || !strings.Contains(page, other.ID) || !strings.Contains(page, "Ada &lt;b&gt;") ||
		strings.Contains(page, secret) {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	if res, _ = h.visit(
		t,
		user,
		"POST",
		"/account/sessions/end",
		url.Values{"session": {other.ID}},
	); res.StatusCode != 303 ||
		h.code(otherSecret) != fault.AuthRevoked {
		t.Errorf("%d", res.StatusCode)
	}
	change := func(old, next string) (*http.Response, string) {
		return h.visit(t, user, "POST", "/account/sessions/password", url.Values{"old": {old}, "new": {next}})
	}
	if res, page = change("wrong wrong wrong", "a new good password"); res.StatusCode != 422 || !strings.Contains(page, `id="old-error"`) {
		t.Errorf("%d", res.StatusCode)
	}
	if res, page = change(password, "short"); res.StatusCode != 422 || !strings.Contains(page, `id="new-error"`) {
		t.Errorf("%d", res.StatusCode)
	}
	// Whoever found the browser open cannot try passwords there.
	for range auth.PlaceThrottle.Burst - 1 {
		_, _ = change("wrong wrong wrong", "a new good password")
	}
	if res, page = change(
		password,
		"a new good password",
	); res.StatusCode != 429 || res.Header.Get("Retry-After") == "" ||
		!strings.Contains(page, "Too many failed tries") {
		t.Errorf("throttled: %d %v", res.StatusCode, res.Header)
	}
	h.clock.Advance(2 * auth.PlaceThrottle.Every)
	res, _ = change(password, "a new good password")
	c := cookie(res, "__Host-hub")
	if res.StatusCode != 303 || c == nil || h.code(secret) != fault.AuthRevoked || h.code(c.Value) != "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	// Ending the session that one is in is signing out.
	now, err := h.Resolve(h.ctx, c.Value)
	if err != nil {
		t.Fatal(err)
	}
	user.CredentialID = now.Session.ID
	if res, _ = h.visit(
		t,
		user,
		"POST",
		"/account/sessions/end",
		url.Values{"session": {now.Session.ID}},
	); res.Header.Get("Location") != "/login" || cookie(res, "__Host-hub").MaxAge >= 0 ||
		h.code(c.Value) != fault.AuthRevoked {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	for _, path := range []string{"/account/sessions/end", "/account/sessions/password"} {
		if res, _ := h.visit(t, visitor, "POST", path, url.Values{}); res.StatusCode != 401 {
			t.Errorf("a visitor at %s: %d", path, res.StatusCode)
		}
	}
	if res, _ := h.visit(t, visitor, "GET", "/account/sessions", nil); res.StatusCode != 401 {
		t.Errorf("a visitor: %d", res.StatusCode)
	}
}

// TestPagesNeedAToken asks every page directly, past the gateway.
func TestPagesNeedAToken(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	for _, path := range []string{"/login", "/logout", "/language", "/account/sessions", "/login/oidc", "/assets/auth/x/hub.css",
		auth.ResolvePath, auth.KnownPath} {
		res, err := http.Post(h.url+path, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 401 && res.StatusCode != 405 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestResolveOverTheWire(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada, "admin")
	s, secret := h.signIn(t, ada)
	path := auth.ResolvePath
	ask := func(body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = callertest.Header(t, "auth", caller.Itself(caller.Gateway))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	status, body := ask(`{"id":"` + secret + `","later":1}`)
	var got auth.ResolveResponse
	if err := json.Unmarshal(
		[]byte(body),
		&got,
	); err != nil || status != 200 || got.User != u.ID || got.Session != s.ID || got.Email != ada || got.Name != "Ada" ||
		!slices.Equal(got.Roles, []string{"admin"}) || !got.ExpiresAt.Equal(h.clock.Now().Add(30*time.Minute)) ||
		strings.Contains(body, secret) {
		t.Errorf("%d %s, %v", status, body, err)
	}
	// Asking is using, and the answer says so.
	h.clock.Advance(20 * time.Minute)
	if _, body = ask(
		`{"id":"` + secret + `"}`,
	); json.Unmarshal([]byte(body), &got) != nil ||
		!got.ExpiresAt.Equal(h.clock.Now().Add(30*time.Minute)) {
		t.Errorf("used: %s", body)
	}
	if status, body := ask(`{"id":"` + strings.Repeat("A", 43) + `"}`); status != 401 || strings.Contains(body, "AAAA") {
		t.Errorf("%d %s", status, body)
	}
	// A browser is known by something else than a session, and nobody is told whose it is.
	path = auth.KnownPath
	_, known := h.try(t, ada, password, from("192.0.2.1"))
	for id, want := range map[string]string{known: `{"known":true}`, secret: `{"known":false}`, strings.Repeat("A", 43): `{"known":false}`,
		"": `{"known":false}`} {
		if status, body := ask(`{"id":"` + id + `"}`); status != 200 || body != want {
			t.Errorf("%d %s, want %s", status, body, want)
		}
	}
}
