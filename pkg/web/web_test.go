package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/web"
)

var pages = fstest.MapFS{
	"pages/_part.html": {Data: []byte(`{{define "line"}}<i>{{.}}</i>{{end}}`)},
	"pages/one.html": {
		Data: []byte(
			`{{define "main"}}{{template "line" .Data.Text}} {{when .Data.At}} {{number 1234567}} {{plural 1 "draft" "drafts"}}
		{{plural 2000 "draft" "drafts"}}
		{{template "field" .Data.Field}} {{template "empty" (dict "Title" "No drafts yet")}} {{template "loading"}}
		{{block "part" .}}<b>{{.Data.Text}}</b>{{end}}{{end}}`,
		),
	},
	"pages/two.html": {
		Data: []byte(
			`{{define "head"}}<link rel="stylesheet" href="{{asset "own.css"}}">{{end}}{{define "main"}}{{template "bar" ` +
				`.Data}}{{size 65536}}{{end}}`,
		),
	},
	"assets/own.css":    {Data: []byte("b{}")},
	"pages/broken.html": {Data: []byte(`{{define "main"}}before{{.Data.Nothing.There}}{{end}}`)},
}

// desk is a site with pages that misbehave on demand.
type desk struct {
	mux *http.ServeMux
	log *bytes.Buffer
}

type data struct {
	Text  string
	At    time.Time
	Field web.Field
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{http.NewServeMux(), &bytes.Buffer{}}
	site, err := web.New(
		web.Options{
			Service: "desk",
			Files:   pages,
			Keys:    callertest.Keys(t, "desk", caller.Gateway, "query"),
			Logger:  slog.New(slog.NewTextHandler(d.log, nil)),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	site.Mount(d.mux)
	hostile := data{
		Text: `<script>alert("1")</script>`,
		At:   time.Date(2026, 1, 31, 9, 5, 0, 0, time.FixedZone("KST", 9*3600)),
		Field: web.Field{
			Name:  "note",
			Label: "Note",
			Type:  "textarea",
			Value: `</textarea><img src=x onerror=alert(1)>`,
			Error: `a "bad" note`,
			Hint:  "Why?",
		},
	}
	for path, h := range map[string]web.Handler{
		"/page": func(w http.ResponseWriter, r *http.Request) error {
			return site.Render(w, r, "one", web.Page{Title: "A <title>", Lead: "lead",
				Crumbs: []web.Link{{Text: "up", Href: "javascript:alert(1)"}}, Data: hostile,
				Keys: []web.Key{{Press: "a", Does: "Approve"}}, FormActions: []string{"https://app.example", "https://x; script-src *"}})
		},
		"/part": func(w http.ResponseWriter, r *http.Request) error {
			return site.RenderPart(w, r, "one", "part", web.Page{Data: hostile})
		},
		"/broken": func(w http.ResponseWriter, r *http.Request) error {
			return site.Render(w, r, "broken", web.Page{Data: data{}})
		},
		"/bar": func(w http.ResponseWriter, r *http.Request) error {
			return site.Render(w, r, "two", web.Page{Data: web.Bar{Label: `1 "of" 2000`, Total: 2000,
				Parts: []web.Part{{Kind: "good", Count: 1}, {Kind: "warn"}, {Kind: "bad", Count: 1999}}}})
		},
		"/none": func(w http.ResponseWriter, r *http.Request) error { return site.Render(w, r, "none", web.Page{}) },
		"/fault": func(http.ResponseWriter, *http.Request) error {
			return fault.New(fault.Conflict, "Bo <b> was faster.").After(1500 * time.Millisecond)
		},
		"/error": func(http.ResponseWriter, *http.Request) error { return errors.New("dial tcp 10.0.0.7: secret") },
		"/panic": func(http.ResponseWriter, *http.Request) error { panic("dial tcp 10.0.0.7: secret") },
		"/body": func(w http.ResponseWriter, r *http.Request) error {
			form, err := web.Form(r)
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, form.Get("a"))
			return err
		},
		"/say": func(w http.ResponseWriter, r *http.Request) error {
			web.Done(w, r, "Saved <b>김민아</b>.")
			return web.Go(w, r, "/page")
		},
	} {
		site.Handle(d.mux, path, web.Anybody, h)
	}
	site.HandleUpTo(d.mux, "POST /upload", web.Anybody, 3<<20, func(w http.ResponseWriter, r *http.Request) error {
		file, form, err := web.Upload(r, "file")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s %d %s", file.Name, len(file.Data), form.Get("reason"))
		return err
	})
	return d
}

var user = caller.Caller{
	Kind:         caller.User,
	HubUser:      "usr_1",
	Email:        "ada@example.com",
	Name:         "Ada",
	CredentialID: "ses_1",
	Roles:        []string{"reviewer"},
	RequestID:    "req_7",
}

func (d *desk) do(t *testing.T, who caller.Caller, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header = callertest.Header(t, "desk", who)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, req)
	return w
}

var inline = regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|<[^>]*\son[a-z]+\s*=|<[^>]*\sstyle\s*=|href="javascript:`)

func TestPage(t *testing.T) {
	d := newDesk(t)
	nav := web.EncodeNavigation(
		[]web.Tab{
			{Slug: "system", Name: "System", Items: []web.Item{{Name: "Other", Href: "/other"}, {Name: "This", Href: "/page"}}},
			{Slug: "admin", Name: "Admin", Icon: "★", Items: []web.Item{{Name: "Keys", Href: "/admin/keys"}}},
		},
		"/page",
	)
	w := d.do(t, user, "GET", "/page", "", web.NavigationHeader, nav)
	page := w.Body.String()
	if w.Code != 200 || inline.MatchString(page) {
		t.Errorf("%d; inline %q", w.Code, inline.FindString(page))
	}
	for _, want := range []string{"<title>A &lt;title&gt; · Hub</title>", "&lt;script&gt;",
		`<time datetime="2026-01-31T00:05:00Z" title="2026-01-31 00:05 UTC">2026-01-31 00:05 <span class="zone">UTC</span></time>`,
		"1,234,567", "1 draft", "2,000 drafts",
		`<label for="note">Note`, `aria-describedby="note-error note-hint"`, `aria-invalid="true"`, `&lt;/textarea&gt;`, "No drafts yet",
		`class="skip" href="#main"`, `<html lang="en">`,
		`<a href="/other" aria-current="true"><bdi>System</bdi></a>`, `<a href="/page" aria-current="page"><bdi>This</bdi></a>`,
		`<a href="/admin/keys">`, `title="ada@example.com"`, `action="/logout"`, `<kbd>a</kbd>`, `#ZgotmplZ`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "form-action 'self' https://app.example;") || strings.Contains(csp, "script-src *") ||
		strings.Contains(csp, "unsafe") ||
		!strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("policy %s", csp)
	}
	if part := d.do(t, user, "GET", "/part", "").Body.String(); part != `<b>&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;</b>` {
		t.Errorf("part %s", part)
	}
	if w := d.do(t, user, "HEAD", "/page", ""); w.Body.Len() != 0 || w.Code != 200 {
		t.Errorf("HEAD: %d", w.Code)
	}
	for _, bad := range []string{"", "%%%", "bnVsbA", "W3s"} {
		if w := d.do(t, user, "GET", "/page", "", web.NavigationHeader, bad); w.Code != 200 {
			t.Errorf("navigation %q: %d", bad, w.Code)
		}
	}
}

func TestFailures(t *testing.T) {
	d := newDesk(t)
	for path, c := range map[string]struct {
		status int
		text   string
	}{
		"/fault": {409, "Bo &lt;b&gt; was faster."}, "/error": {500, "An unexpected error occurred."},
		"/panic":  {500, "An unexpected error occurred."},
		"/broken": {500, "An unexpected error occurred."}, "/none": {500, "An unexpected error occurred."},
	} {
		w := d.do(t, user, "GET", path, "", "HX-Request", "true")
		page := w.Body.String()
		if w.Code != c.status || !strings.Contains(page, c.text) || (w.Code >= 500) != strings.Contains(page, "req_7") ||
			strings.Contains(page, "10.0.0.7") ||
			strings.Contains(page, "before") {
			t.Errorf("%s: %d %s", path, w.Code, page)
		}
		if w.Header().Get("HX-Retarget") != "#toast" || w.Header().Get("HX-Reselect") != ".notice" ||
			!strings.HasPrefix(page, `<p class="notice `) ||
			w.Header().Get("HX-Push-Url") != "false" ||
			strings.Contains(page, "<html") ||
			w.Header().Get("Content-Security-Policy") == "" ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	if got := d.do(t, user, "GET", "/fault", "").Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %s", got)
	}
	if n := strings.Count(d.log.String(), "req_7"); n < 4 || !strings.Contains(d.log.String(), "10.0.0.7") {
		t.Errorf("the log has %d lines of it", n)
	}
	if w := d.do(t, user, "POST", "/body", "a="+strings.Repeat("x", 2<<20)); w.Code != 400 {
		t.Errorf("too large: %d", w.Code)
	}
	if w := d.do(t, user, "POST", "/body", "a=%zz"); w.Code != 400 {
		t.Errorf("broken: %d", w.Code)
	}
	if w := d.do(t, user, "POST", "/body?a=2", "a=1"); w.Body.String() != "1" {
		t.Errorf("form %s", w.Body)
	}
	bare := httptest.NewRecorder()
	d.mux.ServeHTTP(bare, httptest.NewRequest("GET", "/page", nil))
	if bare.Code != 401 {
		t.Errorf("without a token: %d", bare.Code)
	}
	for _, path := range []string{"/page", "/assets/desk/000000000000/own.css"} {
		for _, f := range append(callertest.Forgeries(caller.Gateway, "desk", user, "query", "desk"),
			callertest.Forgery{Name: "an agent", Header: callertest.Header(t, "desk",
				caller.Caller{Kind: caller.Key, Roles: user.Roles, HubUser: user.HubUser})},
			callertest.Forgery{Name: "a neighbour", Header: callertest.HeaderOf(t, "query", "desk")}) {
			req, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
			req.Header = f.Header
			if d.mux.ServeHTTP(w, req); w.Code != 401 && w.Code != 403 {
				t.Errorf("%s at %s: %d", f.Name, path, w.Code)
			}
		}
	}
}

func TestPart(t *testing.T) {
	d := newDesk(t)
	page := d.do(t, user, "GET", "/bar", "").Body.String()
	head, _, _ := strings.Cut(page, "</head>")
	if !regexp.MustCompile(`<link rel="stylesheet" href="/assets/desk/[0-9a-f]{12}/own.css">`).MatchString(head) ||
		inline.MatchString(page) {
		t.Errorf("head %s", head)
	}
	for _, want := range []string{`aria-label="1 &#34;of&#34; 2000"`,
		`<rect class="good" x="0" width="8" height="10"/><rect class="bad" x="8" width="992" height="10"/></svg>`, "64 KiB"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(d.do(t, user, "GET", "/page", "").Body.String(), "own.css") {
		t.Error("another page has that head too")
	}
	for n, want := range map[int]string{0: "0 bytes", 1: "1 byte", 1023: "1,023 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 16 << 20: "16 MiB",
		3<<20 + 1<<19: "3.5 MiB"} {
		if got := web.Size(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestUpload(t *testing.T) {
	d := newDesk(t)
	form := func(field, name string, size int) (kind, body string) {
		var b bytes.Buffer
		m := multipart.NewWriter(&b)
		_ = m.WriteField("reason", "why")
		part, _ := m.CreateFormFile(field, name)
		_, _ = part.Write(bytes.Repeat([]byte("x"), size))
		_ = m.Close()
		return m.FormDataContentType(), b.String()
	}
	for name, c := range map[string]struct {
		field, file string
		size        int
		status      int
		want        string
	}{
		"above a form's bound": {"file", "a.csv", 2 << 20, 200, "a.csv 2097152 why"},
		"a path":               {"file", "/etc/../a.csv", 1, 200, "a.csv 1 why"}, "no file": {"other", "a.csv", 1, 200, " 0 why"},
		"above its bound": {"file", "a.csv", 3 << 20, 400, "larger than 3 MiB"},
	} {
		kind, body := form(c.field, c.file, c.size)
		w := d.do(t, user, "POST", "/upload", body, "Content-Type", kind)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %.200s", name, w.Code, w.Body)
		}
	}
	for kind, body := range map[string]string{"application/x-www-form-urlencoded": "file=x",
		"multipart/form-data; boundary=x": "--x\r\nContent-Disposition: form-data; name=a\r\n\r\ncut", "multipart/form-data": "x"} {
		if w := d.do(t, user, "POST", "/upload", body, "Content-Type", kind); w.Code != 400 {
			t.Errorf("%s: %d", kind, w.Code)
		}
	}
}

func TestProblems(t *testing.T) {
	var two schema.Violations
	two.Add("/email", "format", "must be an address")
	two.Add("/email", "maxLength", "is long")
	two.Add("/note", "required", "is required.")
	wire := fault.New(fault.Validation, "x").With(json.RawMessage(`{"violations":[{"path":"/email","rule":"x","message":"is wrong"}]}`))
	for name, c := range map[string]struct {
		err  error
		want map[string]string
	}{
		"fields":   {two.Err(), map[string]string{"email": "This must be an address.", "note": "This is required."}},
		"far":      {wire, map[string]string{"email": "This is wrong."}},
		"no field": {fault.New(fault.Validation, "All of it."), map[string]string{"": "All of it."}},
		"others":   {fault.New(fault.Conflict, "x"), nil}, "none": {nil, nil}, "foreign": {errors.New("x"), nil},
	} {
		if got := web.Problems(c.err); !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestUser(t *testing.T) {
	for kind, want := range map[string]bool{caller.User: true, caller.Visitor: false, caller.Key: false, caller.App: false,
		caller.Service: false, "": false} {
		c := user
		c.Kind = kind
		if u, ok := web.UserOf(
			caller.With(t.Context(), c),
		); ok != want ||
			ok && (u.ID != "usr_1" || u.Session != "ses_1" || !u.Is("reviewer") || u.Is("admin") || u.Initial() != "A") {
			t.Errorf("%s: %+v %v", kind, u, ok)
		}
	}
	if (web.User{Email: "x@example.com"}).Display() != "x@example.com" || (web.User{Name: "김민아"}).Initial() != "김" {
		t.Error("a user without a name")
	}
}

// TestBack: what was done is told on the page, as is an error of one of the codes; any other error is answered as it is.
func TestBack(t *testing.T) {
	for _, c := range []struct {
		err  error
		told string
	}{
		{nil, "done"}, {fault.New(fault.Conflict, "no"), "wrong"}, {fmt.Errorf("deep: %w", fault.New(fault.DB, "no")), "wrong"},
		{fault.New(fault.Scope, "no"), ""}, {errors.New("foreign"), ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
		err := web.Back(w, r, "/there", "yes", c.err, fault.Conflict, fault.DB)
		if c.told == "" {
			if !errors.Is(err, c.err) || w.Header().Get("Location") != "" || len(w.Result().Cookies()) > 0 {
				t.Errorf("%v: %v, %v", c.err, err, w.Header())
			}
			continue
		}
		want, _ := json.Marshal(web.Flash{Kind: c.told, Text: map[string]string{"done": "yes", "wrong": "no"}[c.told]})
		if err != nil || w.Code != 303 || w.Header().Get("Location") != "/there" ||
			!strings.HasSuffix(w.Result().Cookies()[0].Value, base64.RawURLEncoding.EncodeToString(want)) {
			t.Errorf("%v: %v, %d, %v", c.err, err, w.Code, w.Header())
		}
	}
}

func TestFlash(t *testing.T) {
	d := newDesk(t)
	w := d.do(t, user, "POST", "/say", "")
	c := w.Result().Cookies()[0]
	if w.Code != 303 || c.Name != "__Host-hub-flash" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 60 {
		t.Fatalf("%d %v", w.Code, c)
	}
	if w := d.do(t, user, "GET", "/part", "", "Cookie", c.Name+"="+c.Value); len(w.Result().Cookies()) != 0 {
		t.Errorf("a part takes what the next page has to say: %v", w.Result().Cookies())
	}
	ahead := d.do(t, user, "GET", "/page", "", "Cookie", c.Name+"="+c.Value, "Purpose", "prefetch")
	if len(ahead.Result().Cookies()) != 0 || strings.Contains(ahead.Body.String(), "Saved") {
		t.Errorf("a page that is fetched ahead takes what the next one has to say: %v", ahead.Result().Cookies())
	}
	w = d.do(t, user, "GET", "/page", "", "Cookie", c.Name+"="+c.Value)
	if !strings.Contains(w.Body.String(), `<p class="notice done" role="status">Saved &lt;b&gt;김민아&lt;/b&gt;.</p>`) ||
		w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("%s", w.Body)
	}
	for _, bad := range []string{"x", "e30", "bnVsbA", strings.Repeat("A", 5000)} {
		if w := d.do(
			t,
			user,
			"GET",
			"/page",
			"",
			"Cookie",
			c.Name+"="+bad,
		); w.Code != 200 ||
			strings.Contains(w.Body.String(), `class="notice`) {
			t.Errorf("%s", bad)
		}
	}
	if w := d.do(
		t,
		user,
		"POST",
		"/say",
		"",
		web.PlainHeader,
		"1",
	); w.Result().Cookies()[0].Name != "hub_flash" ||
		w.Result().Cookies()[0].Secure {
		t.Errorf("%v", w.Result().Cookies())
	}
}

func TestAssets(t *testing.T) {
	d := newDesk(t)
	page := d.do(t, user, "GET", "/page", "").Body.String()
	found := regexp.MustCompile(`(?:src|href)="(/assets/desk/[0-9a-f]{12}/[a-z.-]+)"`).FindAllStringSubmatch(page, -1)
	if len(found) != 9 {
		t.Fatalf("%d assets in %s", len(found), page)
	}
	for _, f := range found {
		w := d.do(t, caller.Caller{Kind: caller.Visitor}, "GET", f[1], "", "Accept-Encoding", "gzip, br")
		h := w.Header()
		if w.Code != 200 || h.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			h.Get("X-Content-Type-Options") != "nosniff" ||
			w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", f[1], w.Code, h)
		}
		if w := d.do(
			t,
			user,
			"GET",
			f[1],
			"",
			"If-None-Match",
			h.Get("ETag"),
			"Accept-Encoding",
			"gzip, br",
		); w.Code != 304 || w.Body.Len() != 0 ||
			w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s again: %d", f[1], w.Code)
		}
		plain := d.do(t, user, "GET", f[1], "", "If-None-Match", h.Get("ETag"), "Accept-Encoding", "gzip;q=0, *")
		packed := h.Get("Content-Encoding") == "gzip"
		if packed != (plain.Code == 200 && plain.Header().Get("ETag") != h.Get("ETag")) || plain.Header().Get("Content-Encoding") != "" ||
			packed && unpacked(t, w.Body.Bytes()) != plain.Body.String() {
			t.Errorf("%s unpacked: %d %v", f[1], plain.Code, plain.Header())
		}
		if head := d.do(
			t,
			user,
			"HEAD",
			f[1],
			"",
			"Accept-Encoding",
			"gzip, br",
		); head.Body.Len() != 0 || head.Header().Get("Content-Length") != h.Get("Content-Length") ||
			head.Header().Get("ETag") != h.Get("ETag") {
			t.Errorf("%s HEAD: %v", f[1], head.Header())
		}
	}
	if w := d.do(
		t,
		user,
		"GET",
		"/assets/desk/000000000000/own.css",
		"",
	); w.Code != 200 || w.Body.String() != "b{}" ||
		w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("another release's: %d %v", w.Code, w.Header())
	}
	for _, path := range []string{"/assets/desk/", "/assets/desk/x", "/assets/desk/x/", "/assets/desk/x/nothing.css",
		"/assets/desk/x/..%2fweb.go"} {
		if w := d.do(t, user, "GET", path, ""); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCompression compresses what is not short, for those who take it.
func TestCompression(t *testing.T) {
	d := newDesk(t)
	plain := d.do(t, user, "GET", "/page", "").Body.String()
	for accept, packs := range map[string]bool{
		"gzip": true, "gzip, deflate, br, zstd": true, "br;q=1, GZIP ; q=0.2": true,
		"": false, "gzip;q=0": false, "gzip; q=0.000, *": false, "br": false, "identity": false, "gzipped": false, "gzip;q=x": false,
	} {
		for name, c := range map[string]struct {
			path    string
			headers []string
			short   bool
		}{
			"page": {path: "/page"}, "error page": {path: "/fault"}, "part": {path: "/part", short: true},
			"refusal for htmx": {path: "/fault", headers: []string{"HX-Request", "true"}, short: true},
		} {
			headers := append([]string{"Accept-Encoding", accept}, c.headers...)
			w := d.do(t, user, "GET", c.path, "", headers...)
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != (packs && !c.short) {
				t.Errorf("%s to %q: %v", name, accept, w.Header())
			}
			if vary := w.Header().Values(
				"Vary",
			); !slices.Contains(vary, "Accept-Encoding") || !slices.Contains(vary, "HX-Request") ||
				w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%s to %q: %v", name, accept, w.Header())
			}
			if head := d.do(t, user, "HEAD", c.path, "", headers...); head.Body.Len() != 0 || head.Code != w.Code {
				t.Errorf("HEAD %s to %q: %d, %d bytes", name, accept, head.Code, head.Body.Len())
			}
			if c.path == "/page" && packs && (unpacked(t, w.Body.Bytes()) != plain || w.Body.Len() > len(plain)/2) {
				t.Errorf("%s to %q is %d bytes of %d", name, accept, w.Body.Len(), len(plain))
			}
		}
	}
}

func TestBrokenPageStopsTheStart(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"syntax":           {"pages/a.html": {Data: []byte(`{{define "main"}}{{`)}},
		"unknown function": {"pages/a.html": {Data: []byte(`{{define "main"}}{{nothing}}{{end}}`)}},
		"part":             {"pages/_a.html": {Data: []byte(`{{`)}},
	} {
		if _, err := web.New(web.Options{Service: "desk", Files: files}); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

func TestLocalPath(t *testing.T) {
	for next, ok := range map[string]bool{
		"/": true, "/drafts": true, "/drafts?x=1&y=%2F#z": true, "/p/a/b": true, "/@evil": true, "/a:b": true,
		"": false, "//evil": false, `/\evil`: false, `\/evil`: false, "http://evil": false, "https:evil": false, "javascript:x": false,
		"drafts": false, "/\tx": false, "/\x00": false, "/ x": false,
		"/%2f%2fevil": false, "/%5cevil": false, "/\u007f": false, "/\xff": false, "/%zz": false,
	} {
		if got := web.LocalPath(next, "no"); (got == next) != ok || !ok && got != "no" {
			t.Errorf("%q: %q", next, got)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/drafts", "//evil", `/\evil`, "https://evil", "/a?b#c", "/%2f"} {
		f.Add(seed)
	}
	base, _ := url.Parse("https://hub.example/login")
	f.Fuzz(func(t *testing.T, next string) {
		got := web.LocalPath(next, "/")
		u, err := base.Parse(got)
		if err != nil || u.Host != "hub.example" || u.Scheme != "https" || strings.HasPrefix(u.Path, "//") {
			t.Errorf("%q leads to %v, %v", next, u, err)
		}
	})
}

// TestAccess: a page is for whom it says, and one that says nothing stops the program.
func TestAccess(t *testing.T) {
	mux := http.NewServeMux()
	site, err := web.New(
		web.Options{Service: "desk", Files: pages, Keys: callertest.Keys(t, "desk", caller.Gateway), Logger: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{mux: mux}
	for path, access := range map[string]web.Access{"/anybody": web.Anybody, "/user": web.SignedIn, "/reviewer": web.Role("reviewer"),
		"/admin": web.Role("admin")} {
		site.Handle(mux, path, access, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(204); return nil })
	}
	visitor := caller.Caller{Kind: caller.Visitor}
	for _, c := range []struct {
		path   string
		who    caller.Caller
		status int
	}{
		{"/anybody", visitor, 204}, {"/anybody", user, 204}, {"/user", visitor, 401}, {"/user", user, 204},
		{"/reviewer", visitor, 401}, {"/reviewer", user, 204}, {"/admin", user, 403}, {"/admin", visitor, 401},
	} {
		if w := d.do(t, c.who, "GET", c.path, ""); w.Code != c.status {
			t.Errorf("%s by %s: %d, want %d", c.path, c.who.Kind, w.Code, c.status)
		}
	}
	for _, access := range []web.Access{{}, web.Role("")} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a page for nobody is served")
				}
			}()
			site.Handle(http.NewServeMux(), "/", access, nil)
		}()
	}
}

func TestMark(t *testing.T) {
	var v schema.Violations
	v.Add("/email", "format", "must be an address")
	v.Add("/hidden", "required", "is required")
	email, note := web.Field{Name: "email"}, web.Field{Name: "note", Error: "of before"}
	if rest, ok := web.Mark(
		v.Err(),
		&email,
		&note,
	); !ok || rest != "hidden: This is required." || email.Error != "This must be an address." ||
		note.Error != "" {
		t.Errorf("%q, %v, %+v, %+v", rest, ok, email, note)
	}
	if rest, ok := web.Mark(fault.New(fault.Conflict, "no"), &email); ok || rest != "" || email.Error == "" {
		t.Errorf("%q, %v: another error is not the form's", rest, ok)
	}
}

func TestKit(t *testing.T) {
	mux := http.NewServeMux()
	site, err := web.New(
		web.Options{
			Service: "desk",
			Keys:    callertest.Keys(t, "desk", caller.Gateway),
			Logger:  slog.New(slog.DiscardHandler),
			Files: fstest.MapFS{
				"pages/kit.html": {
					Data: []byte(
						`{{define "main"}}{{template "badge" .Data.Badge}}{{template "badge" (badge "warn" "Unknown")}}{{template "pager" ` +
							`.Data.Pager}}{{end}}`,
					),
				},
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	type kit struct {
		Badge        web.Badge
		Pager        web.Pager
		Confirmation web.Confirmation
	}
	shown := kit{
		Confirmation: web.Confirmation{
			Button:  "Cancel draft",
			Text:    "No mail of it will leave.",
			Warning: "Two are decided.",
			Action:  "/drafts/7/cancel",
			Hidden:  map[string]string{"id": `"7"`},
			Fields:  []web.Field{{ID: "note-7", Name: "note", Label: "Note", Error: "This is too long."}},
			Facts: []web.Fact{
				{Label: "Draft", Value: "<b>"},
				{Label: "Since", At: time.Date(2026, 1, 31, 9, 5, 0, 0, time.UTC)},
			},
			Keep: web.Link{Text: "Keep it", Href: "/drafts/7"},
		},
	}
	site.Handle(mux, "/", web.Anybody, func(w http.ResponseWriter, r *http.Request) error {
		return site.Render(w, r, "kit", web.Page{Data: shown})
	})
	site.Handle(mux, "/ask", web.Anybody, func(w http.ResponseWriter, r *http.Request) error {
		return site.Confirm(w, r, web.Page{Title: "Cancel this draft?", Status: http.StatusUnprocessableEntity}, shown.Confirmation)
	})
	d := &desk{mux: mux}
	w := d.do(t, user, "GET", "/ask", "")
	page := w.Body.String()
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(page, "<kbd>y</kbd></dt><dd>Cancel draft</dd>") ||
		!strings.Contains(page, "<kbd>Esc</kbd></dt><dd>Keep it</dd>") {
		t.Errorf("%d: %s", w.Code, page)
	}
	for _, want := range []string{`<form method="post" action="/drafts/7/cancel">`,
		`<button class="danger" data-key="y" aria-keyshortcuts="y">Cancel draft</button>`, `value="&#34;7&#34;"`, "&lt;b&gt;",
		`href="/drafts/7" data-key="Escape" aria-keyshortcuts="Escape">Keep it`, `for="note-7"`, `id="note-7" name="note"`,
		`id="note-7-error"`, `aria-describedby="note-7-error"`, "Two are decided.",
		`<dd dir="auto"><time datetime="2026-01-31T09:05:00Z" title="2026-01-31 09:05 UTC">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if page = d.do(t, user, "GET", "/", "").Body.String(); strings.Contains(page, `"pager"`) {
		t.Error("a list of one page has a pager")
	}
	shown.Badge, shown.Pager = web.Badge{
		Kind: "good",
		Text: "Sent",
	}, web.Pager{
		Label: "More drafts",
		Next:  web.Link{Text: "Next", Href: "/?after=1"},
		Key:   "n",
	}
	page = d.do(t, user, "GET", "/", "").Body.String()
	for _, want := range []string{`<span class="badge good">Sent</span>`, `<span class="badge warn">Unknown</span>`,
		`<nav class="pager" aria-label="More drafts"><span></span><a class="button" href="/?after=1" rel="next" data-key="n"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestKitOfLists renders what stands above a list, boxes to check and a secret that is shown once.
func TestKitOfLists(t *testing.T) {
	t.Parallel()
	site, err := web.New(
		web.Options{
			Service: "desk",
			Keys:    callertest.Keys(t, "desk", caller.Gateway),
			Logger:  slog.New(slog.DiscardHandler),
			Files: fstest.MapFS{
				"pages/list.html": {
					Data: []byte(
						`{{define "main"}}{{template "finder" .Data.Finder}}{{template "field" .Data.Boxes}}{{template "once" .Data.Once}}{{end}}`,
					),
				},
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	site.Handle(mux, "GET /keys", web.Anybody, func(w http.ResponseWriter, r *http.Request) error {
		return site.Render(w, r, "list", web.Page{Data: map[string]any{
			"Finder": web.Finder{
				Action: "/keys",
				Label:  "Name",
				Value:  `"x"`,
				Hidden: map[string]string{"show": "all", "none": ""},
				Clear:  "/keys?show=all",
				Which:  "Which keys",
				Choices: []web.Choice{
					{Text: "All", Href: "/keys?show=all", Active: true, Count: -1},
					{Text: "Active", Href: "/keys", Count: 1200},
				},
				Add: web.Link{Text: "Issue a key", Href: "/keys/new"},
			},
			"Boxes": web.Field{
				Name:    "scopes",
				Label:   "Scopes",
				Type:    "checks",
				Values:  []string{"b"},
				Error:   "at least one",
				Options: []web.Option{{Value: "a", Text: "A", Hint: "first"}, {Value: "b", Text: "B"}},
			},
			"Once": web.Once{ID: "secret", Label: "API key", Value: `crm_"`, Hint: "Keep it."},
		}})
	})
	r := httptest.NewRequest(http.MethodGet, "/keys", nil)
	r.Header = callertest.Header(t, "desk", user)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	page := w.Body.String()
	for _, want := range []string{`<label class="unseen" for="q">Name</label><input id="q" name="q" type="search" value="&#34;x&#34;"`,
		`<input type="hidden" name="show" value="all">`, `href="/keys?show=all">Clear</a>`,
		`<nav aria-label="Which keys">`, `<a href="/keys?show=all" aria-current="true">All</a>`, `<span class="count">1,200</span>`,
		`<a class="button primary" href="/keys/new">Issue a key</a>`,
		`<legend>Scopes</legend>`, `name="scopes" value="a">`, `name="scopes" value="b" checked>`, `aria-describedby="scopes-error"`,
		`id="scopes-error">at least one`, `<strong>A</strong> <span class="muted">first</span>`,
		`<label for="secret">API key</label>`, `<input id="secret" value="crm_&#34;" readonly`, `data-copy="secret" hidden>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if w.Code != http.StatusOK || strings.Contains(page, `name="none"`) {
		t.Errorf("%d %s", w.Code, page)
	}
}

// TestLanguages asks for the same page in both languages, by the browser's header and by what the reader has chosen.
func TestLanguages(t *testing.T) {
	d := newDesk(t)
	nav := web.EncodeNavigation([]web.Tab{{Name: "System", Items: []web.Item{{Name: "Drafts", Href: "/page"}}},
		{Name: "Orders", Menu: true, Items: []web.Item{{Name: "Orders", Href: "/orders"}}}}, "/page")
	for _, c := range []struct{ accepted, chosen, lang, signOut string }{
		{"", "", "en", "Sign out"}, {"ko-KR,ko;q=0.9,en;q=0.8", "", "ko", "로그아웃"}, {"ko", "en", "en", "Sign out"}, {"en", "ko", "ko", "로그아웃"},
	} {
		w := d.do(t, user, "GET", "/page?a=b", "", "Accept-Language", c.accepted, "Cookie", "__Host-hub-language="+c.chosen,
			web.NavigationHeader, nav)
		body := w.Body.String()
		// The console's own names are in the reader's language, those of menus as they were written.
		names := map[string][]string{"en": {"System", "Drafts", "Orders"}, "ko": {"시스템", "초안", "Orders"}}[c.lang]
		for _, name := range names {
			if !strings.Contains(body, "<bdi>"+name+"</bdi>") {
				t.Errorf("%+v: no %s in %s", c, name, body)
			}
		}
		for _, part := range []string{`<html lang="` + c.lang + `">`, ">" + c.signOut + "</button>",
			`<button class="quiet small" name="to" value="` + c.lang + `" lang="` + c.lang + `" aria-current="true">`,
			`name="next" value="/page?a=b"`} {
			if !strings.Contains(body, part) {
				t.Errorf("%+v: no %s in %s", c, part, body)
			}
		}
		if strings.Contains(body, `id="messages"`) != (c.lang == "ko") {
			t.Errorf("%+v: messages for scripts: %s", c, body)
		}
	}
	// What a fault says is in English where no catalogue has it.
	w := d.do(t, user, "GET", "/fault?t=secret", "", "Accept-Language", "ko")
	if body := w.Body.String(); !strings.Contains(body, `name="next" value="/fault"`) ||
		!strings.Contains(body, `<span lang="en">`) || !strings.Contains(body, "처음으로") {
		t.Errorf("%s", body)
	}
}
