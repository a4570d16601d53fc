package e2e_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
)

// attempt is a request that decides, suppresses or looks when somebody makes it who may.
type attempt struct {
	method, path, body string
	// kind is the body's content type.
	kind string
	// inner attempts are at what no session reaches either.
	inner bool
}

func (a attempt) String() string { return a.method + " " + a.path }

// credential is what an agent may try to get in with.
type credential map[string]string

// credentials are all that an agent may hold, in each place where a request can carry it.
func (s *suite) credentials(t *testing.T, reviewer person) map[string]credential {
	t.Helper()
	keys := map[string]string{"all scopes": s.key, "wrong": "crm_" + strings.Repeat("0", 42), "malformed": "crm_x"}
	for scope := range strings.SplitSeq(allScopes, ",") {
		keys[scope] = s.issue(
			"--scopes",
			scope,
			"--user-per-minute",
			"6000000",
			"--user-burst",
			"100000",
			"--service-per-minute",
			"6000000",
			"--service-burst",
			"100000",
		).Key
	}
	revoked := s.issue("--scopes", allScopes)
	s.run("auth", s.env["auth"], "apikey", "revoke", revoked.ID, "--reason", "test")
	keys["revoked"] = revoked.Key
	all := map[string]credential{"none": {}}
	for name, key := range keys {
		all[name+" as Authorization"] = credential{"Authorization": "Bearer " + key}
		all[name+" as X-Api-Key"] = credential{"X-Api-Key": key}
		all[name+" as cookie"] = credential{"Cookie": "__Host-hub=" + key + "; hub_session=" + key}
		all[name+" as Hub-Token"] = credential{"Hub-Token": key, "Authorization": "Bearer " + key}
		all[name+" for somebody"] = credential{
			"Authorization":      "Bearer " + key,
			"X-External-User-Id": reviewer.Email,
			"Hub-User":           reviewer.ID,
			"X-Forwarded-User":   reviewer.Email,
			"X-Hub-Roles":        "reviewer,admin",
		}
	}
	as := caller.Caller{
		Kind:           caller.User,
		Service:        "console",
		ExternalUserID: reviewer.Email,
		HubUser:        reviewer.ID,
		Email:          reviewer.Email,
		Name:           reviewer.Name,
		Roles:          []string{"reviewer", "admin"},
		CredentialID:   "ses_01",
	}
	inside := callertest.NewToken(caller.Gateway, "review-control", as)
	for name, made := range map[string]callertest.Token{"forged": inside.By("an unknown process", caller.Gateway), "true": inside} {
		token := made.String()
		all[name+" internal token"] = credential{"Hub-Token": token}
		all[name+" internal token and a key"] = credential{"Hub-Token": token, "Authorization": "Bearer " + s.key}
		all[name+" internal token, shown"] = credential{"Hub-Caller-Token": made.Signed(), "Authorization": "Bearer " + s.key}
		all[name+" internal token as key"] = credential{"Authorization": "Bearer " + token}
		all[name+" internal token as cookie"] = credential{"Cookie": "__Host-hub=" + token}
	}
	none := base64.RawURLEncoding.EncodeToString(
		[]byte(`{"alg":"none","typ":"JWT"}`),
	) + "." + base64.RawURLEncoding.EncodeToString(
		fmt.Appendf(
			nil,
			`{"kind":"user","usr":%q,"eml":%q,"rol":["reviewer","admin"],"iss":"hub","iat":%d,"exp":%d}`,
			reviewer.ID,
			reviewer.Email,
			time.Now().Unix(),
			time.Now().Add(time.Minute).Unix(),
		),
	) + "."
	all["token without a signature"] = credential{"Hub-Token": none}
	all["session of nobody"] = credential{"Cookie": "__Host-hub=" + strings.Repeat("A", 43)}
	return all
}

// make sends the attempt with a credential. It follows redirects to the same in a tidier
// form, and no others.
func (a attempt) make(t testing.TB, origin string, c credential) *http.Response {
	t.Helper()
	r := a.send(t, origin, c)
	for hops := 0; hops < 3 && slices.Contains([]int{http.StatusMovedPermanently, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect}, r.StatusCode); hops++ {
		a.path = strings.TrimPrefix(r.Header.Get("Location"), origin)
		r = a.send(t, origin, c)
	}
	return r
}

func (a attempt) send(t testing.TB, origin string, c credential) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hubtest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, a.method, origin, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	// As it is: no client tidies what an attacker writes.
	path, query, _ := strings.Cut(a.path, "?")
	req.URL.Opaque = "//" + req.URL.Host + path
	req.URL.RawQuery = query
	if a.kind != "" {
		req.Header.Set("Content-Type", a.kind)
	}
	for name, value := range c {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	resp.Body = io.NopCloser(strings.NewReader(string(b)))
	return resp
}

// refused tells that an answer let nobody in.
func refused(r *http.Response) bool {
	if r.StatusCode == http.StatusSeeOther {
		return strings.HasPrefix(r.Header.Get("Location"), "/login")
	}
	return r.StatusCode >= 400
}

// forms lists what the buttons of the page would send.
func (p *page) forms() []attempt {
	p.t.Helper()
	var found []struct{ Method, Path, Body, Kind string }
	p.Evaluate(
		`[...document.forms].filter((f) => f.method !== "dialog")
			.flatMap((f) => [...f.querySelectorAll("button, input[type=submit]")].map((b) => {
		const data = new FormData(f);
		if (b.name) data.append(b.name, b.value);
		return {
			method: (b.formMethod || f.method).toUpperCase(), kind: "application/x-www-form-urlencoded",
			path: new URL(b.getAttribute("formaction") ?? f.getAttribute("action") ?? location.href, location.href).pathname,
			body: new URLSearchParams([...data].map(([k, v]) => [k, typeof v === "string" ? v : ""])).toString(),
		};
	}))`,
		&found,
	)
	var list []attempt
	for _, f := range found {
		list = append(list, attempt{f.Method, f.Path, f.Body, f.Kind, false})
	}
	return list
}

var (
	// pattern finds what services hand to a ServeMux.
	pattern = regexp.MustCompile(`"(GET|POST) (/[^"\s]*)"`)
	// internal finds what they serve to one another.
	internal = regexp.MustCompile(`"(/internal/[^"\s]*)"`)
	// variable is a part of a pattern.
	variable = regexp.MustCompile(`\{[^}]*\}`)
)

// written finds in the services' sources what matches.
func written(t *testing.T, re *regexp.Regexp, services ...string) (found [][]string) {
	t.Helper()
	for _, service := range services {
		err := filepath.WalkDir(filepath.Join(hubtest.Root(t), "services", service), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "pgsim" {
				return fs.SkipDir // no part of the service: it plays the provider, for others
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			found = append(found, re.FindAllStringSubmatch(string(b), -1)...)
			return err
		})
		if err != nil {
			t.Fatalf("the sources of %s: %v", service, err)
		}
	}
	return found
}

// state is all that review-control, authoring and the other schemas keep, table by table, but
// for what a job queue does by itself.
func (s *suite) state(t *testing.T, schemas ...string) map[string]string {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, s.store.SuperuserURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(ctx, `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
		WHERE schemaname = ANY($1) AND tablename NOT LIKE 'river%' ORDER BY 1`, append(schemas, "authoring", "review_control"))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	for _, table := range tables {
		var sum string
		if err := conn.QueryRow(
			ctx,
			`SELECT count(*) || ' rows ' || coalesce(md5(string_agg(t::text, E'\n' ORDER BY t::text)), '') FROM `+table+` t`,
		).Scan(
			&sum,
		); err != nil {
			t.Fatal(err)
		}
		state[table] = sum
	}
	return state
}

// TestNoAgentCredentialDecides tries everything that a reviewer's and an administrator's pages
// can send, every pattern that the services serve, and every internal operation, with every
// credential that an agent can hold or make up; and then shows that the same requests work for
// a person.
func TestNoAgentCredentialDecides(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_FAILED_AUTH_PER_MINUTE=6000000", "HUB_FAILED_AUTH_BURST=1000000"}})
	reviewer := s.person("Ada Lovelace", "reviewer", "admin")
	draft := s.queued(t, s.draft(t, draftOptions{targets: 3}))
	s.draft(t, draftOptions{targets: 2}) // one that nobody has queued
	credentials := s.credentials(t, reviewer)

	window := s.signedIn(t, reviewer, "/drafts")
	attempts := map[string]attempt{}
	add := func(list ...attempt) {
		for _, a := range list {
			attempts[a.method+" "+a.path+" "+a.body] = a
		}
	}
	pages := []string{"/drafts", "/drafts/" + draft, "/drafts/" + draft + "/targets/0", "/admin/suppressions"}
	for _, path := range pages {
		if status := window.Open(path); status != http.StatusOK {
			t.Fatalf("%s answers %d", path, status)
		}
		for _, a := range window.forms() {
			if !strings.HasPrefix(a.path, "/logout") && a.path != "/language" && a.method == http.MethodPost { // which are anybody's
				add(a)
			}
		}
	}
	decisions := 0
	for _, a := range attempts {
		if strings.Contains(a.path, "/drafts/"+draft) {
			decisions++
		}
	}
	if decisions < 3 { // two mails are decided on, and what was shown
		t.Fatalf("the pages send only %v", slices.Collect(maps.Values(attempts)))
	}
	everything := url.Values{
		"hash":     {strings.Repeat("0", 64)},
		"revision": {"0"},
		"choice":   {"approved"},
		"decision": {"approved"},
		"note":     {"x"},
		"index":    {"0"},
		"shown":    {"0"},
		"email":    {"somebody@example.com"},
		"reason":   {"x"},
	}.Encode()
	for _, match := range written(t, pattern, "review-control") {
		path := variable.ReplaceAllStringFunc(match[2], func(name string) string {
			return map[bool]string{true: draft, false: "0"}[name == "{id}" || name == "{draft}"]
		})
		if strings.HasPrefix(path, "/unsubscribe") || strings.HasPrefix(path, "/assets") {
			continue // open to everybody, and protected by its token
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			a := attempt{method: method, path: path}
			if method != "GET" {
				a.body, a.kind = everything, "application/x-www-form-urlencoded"
			}
			add(a)
		}
	}
	for _, match := range written(t, internal, "review-control", "authoring", "auth", "query") {
		path := match[1]
		if strings.HasSuffix(path, "/") {
			path += "queue_for_review"
		}
		for _, way := range []string{path, "/" + path, "/api" + path, "/drafts/.." + path, "/drafts/%2e%2e" + path,
			"/assets/review-control/../.." + path, "/drafts/" + draft + path,
			"/%69nternal" + strings.TrimPrefix(path, "/internal"), path + "?x=/drafts", "/login/../" + path, "/unsubscribe/.." + path,
			"/unsubscribe/%2e%2e%2f" + path[1:]} {
			for _, method := range []string{"GET", "POST"} {
				add(
					attempt{
						method,
						way,
						fmt.Sprintf(
							`{"draft_id":%q,"from":["in_review"],"to":"approved","operation_id":"x","limit":1,"version":99,"decisions":{"pending":0,`+
								`"approved":3,"rejected":0},"delivery":{}}`,
							draft,
						),
						"application/json",
						true,
					},
				)
			}
		}
	}
	for _, name := range []string{"approve", "decide", "send", "cancel_draft", "approve_target", "queue_for_review/approve", "../drafts/" +
		draft + "/approve-shown"} {
		add(attempt{"POST", "/api/tools/" + name, `{"draftId":"` + draft + `"}`, "application/json", false})
	}
	before := s.state(t)
	if len(before) < 4 {
		t.Fatalf("only the tables %v were found", before)
	}
	names := slices.Sorted(maps.Keys(credentials))
	requests := 0
	for _, a := range attempts {
		for _, name := range names {
			if a.inner && !strings.Contains(name, "internal token") && !strings.Contains(name, "all scopes") && name != "none" {
				continue
			}
			r := a.make(t, s.url, credentials[name])
			requests++
			if !refused(r) {
				b, _ := io.ReadAll(r.Body)
				t.Errorf("%s with %s answers %d %s: %.200s", a, name, r.StatusCode, r.Header.Get("Location"), b)
			}
			if r.StatusCode >= 500 {
				t.Errorf("%s with %s answers %d", a, name, r.StatusCode)
			}
		}
	}
	if after := s.state(t); !maps.Equal(before, after) {
		t.Errorf("something was changed:\n%v\n%v", before, after)
	}
	// Tools may do what their scopes allow, but nothing to a review.
	review := func() map[string]string {
		state := s.state(t)
		maps.DeleteFunc(state, func(table, _ string) bool { return strings.HasPrefix(table, "authoring.") })
		return state
	}
	before = review()
	for _, m := range manifests(t) {
		for _, spec := range m.Tools {
			for i, example := range append(slices.Clone(spec.Examples), spec.Examples[0]) {
				input := string(example.Request)
				if spec.Name == "queue_for_review" {
					input = fmt.Sprintf(`{"draftId":%q,"actor":%q}`, draft, reviewer.Email)
				}
				for _, name := range names {
					c := maps.Clone(credentials[name])
					c["Idempotency-Key"] = fmt.Sprint(name, i)
					requests++
					r := attempt{"POST", "/api/tools/" + spec.Name, input, "application/json", false}.make(t, s.url, c)
					if spec.Name == "queue_for_review" && !refused(r) {
						t.Errorf("%s with %s answers %d", spec.Name, name, r.StatusCode)
					}
				}
			}
		}
	}
	if after := review(); !maps.Equal(before, after) {
		t.Errorf("tools have changed a review:\n%v\n%v", before, after)
	}
	t.Logf("%d requests: %d routes and forms, %d credentials", requests, len(attempts), len(names))

	// For a person the same requests work.
	window.Open("/drafts/" + draft)
	window.Button("Approve").Nth(0).Click()
	if maps.Equal(review(), before) {
		t.Errorf("the page's own button decides nothing: %s", window.Notice())
	}
}
