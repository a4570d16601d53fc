package console_test

import (
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/seal"
	"hub.internal/services/payments/console"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// office is the pages on a store of their own; seen is everything that they have answered.
type office struct {
	t    *testing.T
	mux  *http.ServeMux
	safe *credentials.Service
	seen strings.Builder
}

func newOffice(t *testing.T) *office {
	t.Helper()
	db := hubtest.MigratedStore(t, "payments", postgres.Migrate)
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.Open(keyset)
	if err != nil {
		t.Fatal(err)
	}
	o := &office{
		t:    t,
		mux:  http.NewServeMux(),
		safe: credentials.New(credentials.Config{Store: postgres.New(hubtest.Pool(t, db.URL("payments"))), Sealer: box, Now: time.Now}),
	}
	c, err := console.New(
		console.Config{Credentials: o.safe, Trusted: callertest.Keys(t, "payments", "gateway"), Logger: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		t.Fatal(err)
	}
	c.Mount(o.mux)
	return o
}

func as(roles ...string) caller.Caller {
	return caller.Caller{
		Kind:           caller.User,
		Service:        "console",
		ExternalUserID: "ada@example.com",
		CredentialID:   "ses_1",
		HubUser:        "usr_1",
		Email:          "ada@example.com",
		Name:           "Ada",
		Roles:          roles,
		RequestID:      "req_1",
	}
}

func (o *office) send(who caller.Caller, method, path string, form url.Values) *httptest.ResponseRecorder {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header = callertest.Header(o.t, "payments", who)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	o.mux.ServeHTTP(w, r)
	o.seen.WriteString(w.Body.String())
	for name, values := range w.Header() {
		o.seen.WriteString(name + strings.Join(values, " "))
	}
	return w
}

// get opens a page, which has to be there and to have the texts, but for those that begin with "!".
func (o *office) get(path string, texts ...string) {
	o.t.Helper()
	w := o.send(as("admin"), "GET", path, nil)
	if w.Code != http.StatusOK {
		o.t.Fatalf("GET %s: %d %s", path, w.Code, w.Body)
	}
	o.has(w, texts...)
}

var tags = regexp.MustCompile(`<[^>]*>`)

func (o *office) has(w *httptest.ResponseRecorder, texts ...string) {
	o.t.Helper()
	page := html.UnescapeString(tags.ReplaceAllString(w.Body.String(), ""))
	for _, text := range texts {
		if bare, without := strings.CutPrefix(text, "!"); strings.Contains(page, bare) == without {
			o.t.Errorf("%q in %s", text, page)
		}
	}
}

// post sends a form and wants to be sent on to a page.
func (o *office) post(path string, form url.Values, to string) {
	o.t.Helper()
	if w := o.send(as("admin"), "POST", path, form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
		o.t.Fatalf("POST %s: %d %s %s", path, w.Code, w.Header().Get("Location"), w.Body)
	}
}

const (
	clientID = "S2_canary0client0id0e01ec2059a56"
	secret   = "canary0secret0da9f9c02b128f2e5ee"
)

func given(more ...string) url.Values {
	v := url.Values{"client_id": {clientID}, "secret": {secret}}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

func TestCredentialsOnPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.get("/admin/credentials", "There is no credential yet")
	o.get("/admin/credentials?show=active", "No credential is active")
	o.get("/admin/credentials/new", "Provider", "Environment", "Client id", "Secret key")
	if w := o.send(
		as("admin"),
		"POST",
		"/admin/credentials",
		given("provider", "nicepay", "env", "live", "client_id", "canary "),
	); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("%d", w.Code)
	} else {
		o.has(w, "This must be one of sandbox, production", "This must be 8 to 200 printable characters")
	}
	o.post("/admin/credentials", given("provider", "nicepay", "env", "sandbox"), "/admin/credentials/1")
	if w := o.send(
		as("admin"),
		"POST",
		"/admin/credentials",
		given("provider", "nicepay", "env", "sandbox"),
	); w.Code != http.StatusConflict {
		t.Errorf("%d", w.Code)
	} else {
		o.has(w, "already. Rotate it.")
	}
	// The second was refused, and its id is gone.
	o.get("/admin/credentials/1", "S2_c****9a56", "sandbox", "Active", "by ada@example.com", "Rotate", "Deactivate")
	o.get("/admin/credentials/1/rotate", "!Environment", "Secret key")
	o.post("/admin/credentials/1/rotate", given("client_id", "S2_next0client0id"), "/admin/credentials/3")
	o.get("/admin/credentials/1", "Use for new orders", "!Deactivate")
	o.post("/admin/credentials/1/rotate", given(), "/admin/credentials/1")   // not active: a message says so
	o.post("/admin/credentials/1/activate", given(), "/admin/credentials/1") // another one is
	o.get("/admin/credentials", "nicepay 1", "nicepay 3", "S2_n****t0id")
	o.get("/admin/credentials?show=active", "!nicepay 1", "nicepay 3")
	o.get("/admin/credentials/3/deactivate", "Type nicepay sandbox to confirm", "No order can be made")
	if w := o.send(
		as("admin"),
		"POST",
		"/admin/credentials/3/deactivate",
		url.Values{"confirm": {"sandbox"}},
	); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("%d", w.Code)
	} else {
		o.has(w, "This must be what it is for: nicepay sandbox")
	}
	o.post("/admin/credentials/3/deactivate", url.Values{"confirm": {" nicepay sandbox "}}, "/admin/credentials/3")
	o.post("/admin/credentials/1/activate", url.Values{}, "/admin/credentials/1")
	if c, err := o.safe.Active(t.Context(), credentials.NicePay, credentials.Sandbox); err != nil || c.ID != 1 {
		t.Errorf("%v, %v", c, err)
	} else if id, key := c.Reveal(); id != clientID || key != secret {
		t.Error("another one than was given")
	}
	for _, path := range []string{"/admin/credentials/9", "/admin/credentials/x", "/admin/credentials/01", "/admin/credentials/9/rotate"} {
		if w := o.send(as("admin"), "GET", path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, part := range []string{"canary", clientID[4:20], secret[:12]} {
		if strings.Contains(o.seen.String(), part) {
			t.Errorf("%s shows", part)
		}
	}
}

func TestCredentialsAreForAdministrators(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, who := range []caller.Caller{as("reviewer"), as(), {Kind: caller.Visitor, Service: "console"}} {
		for _, page := range []struct{ method, path string }{{"GET", "/admin/credentials"}, {"GET", "/admin/credentials/new"},
			{"POST", "/admin/credentials"}, {"GET", "/admin/credentials/1"},
			{"POST", "/admin/credentials/1/rotate"}, {"POST", "/admin/credentials/1/activate"}, {"POST", "/admin/credentials/1/deactivate"}} {
			if w := o.send(
				who,
				page.method,
				page.path,
				given("provider", "nicepay", "env", "sandbox"),
			); w.Code != map[bool]int{true: http.StatusForbidden, false: http.StatusUnauthorized}[who.Kind == caller.User] {
				t.Errorf("%v: %s %s: %d", who.Roles, page.method, page.path, w.Code)
			}
		}
	}
	if list, err := o.safe.List(t.Context(), credentials.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestCredentialsInKorean(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.post("/admin/credentials", given("provider", "nicepay", "env", "sandbox"), "/admin/credentials/1")
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/admin/credentials/1/deactivate", nil)
	r.Header = callertest.Header(t, "payments", as("admin"))
	r.Header.Set("Accept-Language", "ko")
	w := httptest.NewRecorder()
	o.mux.ServeHTTP(w, r)
	o.has(w, "이 자격 증명을 사용 중지할까요?", "확인을 위해 nicepay sandbox 입력", "자격 증명 1", "계속 사용")
}
