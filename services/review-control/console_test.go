package reviewcontrol_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/console"
	"hub.internal/services/review-control/mailer"
)

// office is a house with its pages.
type office struct {
	*house
	mux *http.ServeMux
}

func newOffice(t *testing.T, change ...func(*reviewcontrol.Config)) *office {
	t.Helper()
	h := newHouse(t, change...)
	c, err := console.New(h.service, h.suppressed, h.keys, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := &office{h, http.NewServeMux()}
	c.Mount(o.mux)
	return o
}

// session is what the gateway says of a signed-in user.
func session(r reviewcontrol.Reviewer, roles ...string) caller.Caller {
	return caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: r.Email, CredentialID: "ses_1", HubUser: r.ID,
		Email: r.Email, Name: r.Name, Roles: roles, RequestID: "req_3"}
}

var (
	visitor  = caller.Caller{Kind: caller.Visitor, Service: "console"}
	asAda    = session(ada, "reviewer", "admin")
	scripted = []string{"HX-Request", "true"}
)

func (o *office) send(who caller.Caller, method, path, kind, body string, headers ...string) *httptest.ResponseRecorder {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), method, path, strings.NewReader(body))
	r.Header = callertest.Header(o.t, "review-control", who)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	o.mux.ServeHTTP(w, r)
	return w
}

// get opens a page and wants it to be there.
func (o *office) get(path string, headers ...string) string {
	o.t.Helper()
	w := o.send(asAda, "GET", path, "", "", headers...)
	if w.Code != http.StatusOK {
		o.t.Fatalf("GET %s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

func (o *office) post(path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	o.t.Helper()
	return o.send(asAda, "POST", path, "application/x-www-form-urlencoded", form.Encode(), headers...)
}

// flash is the message that the answer leaves for the next page.
func (o *office) flash(w *httptest.ResponseRecorder) string {
	o.t.Helper()
	for _, c := range w.Result().Cookies() {
		if c.Name == "__Host-hub-flash" && c.MaxAge >= 0 {
			page := o.get("/drafts", "Cookie", c.Name+"="+c.Value)
			if m := regexp.MustCompile(`<p class="notice (?:done|wrong)" role="(?:status|alert)">([^<]*)</p>`).FindStringSubmatch(page); m != nil {
				return html.UnescapeString(m[1])
			}
		}
	}
	return ""
}

// form is what the page's form for a target sends.
func form(t testing.TB, page string, index int, choice, note string) url.Values {
	t.Helper()
	_, card, found := strings.Cut(page, fmt.Sprintf(`id="t-%d"`, index))
	target := regexp.MustCompile(`name="target" value="([^"]*)"`).FindStringSubmatch(card)
	back := regexp.MustCompile(`name="back" value="([^"]*)"`).FindStringSubmatch(card)
	if !found || target == nil || back == nil {
		t.Fatalf("the page has no form for target %d", index)
	}
	return url.Values{"target": {target[1]}, "back": {html.UnescapeString(back[1])}, "choice": {choice}, "note": {note}}
}

// has fails for each text that a page lacks, or has when the text begins with "!".
func has(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if bare, without := strings.CutPrefix(text, "!"); strings.Contains(page, bare) == without {
			t.Errorf("the page: %s", text)
		}
	}
}

const (
	pagePolicy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
		"frame-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	previewPolicy = "sandbox allow-same-origin; default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)

// consoleRoutes are the pages with the role that each is for; "" is everybody.
func consoleRoutes(id reviewcontrol.ID, imported reviewcontrol.ID) map[string]string {
	return map[string]string{
		"GET /drafts": "reviewer", fmt.Sprintf("GET /drafts/%s", id): "reviewer", fmt.Sprintf("GET /drafts/%s/progress", id): "reviewer",
		fmt.Sprintf("GET /drafts/%s/inspection", id): "reviewer",
		fmt.Sprintf("POST /drafts/%s/here", id):      "reviewer", fmt.Sprintf("POST /drafts/%s/decide", id): "reviewer",
		fmt.Sprintf("POST /drafts/%s/approve-shown", id): "reviewer", fmt.Sprintf("POST /drafts/%s/variants/1/approve", id): "reviewer",
		fmt.Sprintf("POST /drafts/%s/reject", id): "reviewer",
		fmt.Sprintf("GET /drafts/%s/cancel", id):  "reviewer", fmt.Sprintf("POST /drafts/%s/cancel", id): "reviewer",
		fmt.Sprintf("GET /drafts/%s/targets/0", id): "reviewer", fmt.Sprintf("GET /drafts/%s/targets/0/preview", id): "reviewer",
		"GET /admin/suppressions": "admin", "POST /admin/suppressions": "admin",
		"GET /admin/suppressions/remove?email=x@partner.example": "admin", "POST /admin/suppressions/remove": "admin",
		"POST /admin/suppressions/imports": "admin", fmt.Sprintf("GET /admin/suppressions/imports/%s", imported): "admin",
		"GET /unsubscribe/AAAA": "", "POST /unsubscribe/AAAA": "",
	}
}

// TestConsoleRoles lets nobody see or do what their role does not have, and nobody change
// anything by looking.
func TestConsoleRoles(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(2)
	in, err := o.suppressed.StartImport(signedIn(t.Context(), ada), ada.Email, "a.csv", "", []byte("a@partner.example\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.suppressed.Add(signedIn(t.Context(), ada), ada.Email, "x@partner.example", "asked"); err != nil {
		t.Fatal(err)
	}
	before := o.review(id)
	rows := func() string {
		return one[string](o.house, `SELECT concat((SELECT count(*) FROM audit.calls), ' ', (SELECT count(*) FROM review_control.river_job), `+
			`' ', (SELECT count(*) FROM review_control.suppressions))`)
	}
	written := rows()
	for route, role := range consoleRoutes(id, in.ID) {
		method, path, _ := strings.Cut(route, " ")
		for name, who := range map[string]caller.Caller{"visitor": visitor, "nobody": session(ben), "reviewer": session(ben, "reviewer"),
			"admin": session(ben, "admin"),
			"agent": {Kind: caller.Key, CredentialID: "ak_1", Roles: []string{"reviewer", "admin"}}} {
			if role == "" || name == role && method == "POST" {
				continue
			}
			w := o.send(who, method, path, "application/x-www-form-urlencoded", "")
			want := http.StatusForbidden
			switch name {
			case "visitor":
				want = http.StatusUnauthorized
			case role:
				want = http.StatusOK
				if strings.HasSuffix(path, "/progress") || strings.HasSuffix(path, "/inspection") {
					want = http.StatusSeeOther // htmx asks for it
				}
			}
			if w.Code != want {
				t.Errorf("%s as %s: %d, want %d", route, name, w.Code, want)
			}
		}
	}
	if after := o.review(id); after.Counts != before.Counts || after.Version != before.Version || rows() != written {
		t.Errorf("looking changed something: %+v, %s", after, rows())
	}
	// A form says what is decided, and the session by whom.
	form := form(t, o.get("/drafts/"+id.String()), 0, "approved", "")
	form.Set("by", ben.Email)
	form.Set("email", ben.Email)
	o.post("/drafts/"+id.String()+"/decide", form)
	if by := o.target(id, 0).Decision.By; by != ada.Email {
		t.Errorf("decided by %q", by)
	}
}

// TestALargeDraftIsASmallPage answers a draft of thousands of mails in what a phone loads in a moment.
func TestALargeDraftIsASmallPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.inspected(3000, func(d *draftRow) {
		for i := range d.targets {
			d.targets[i].ToName = fmt.Sprintf("김민아 Contact %x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
			d.targets[i].Subject = fmt.Sprintf("An offer %x", sha256.Sum256([]byte(d.targets[i].ToName)))
		}
	})
	server := httptest.NewServer(o.mux)
	defer server.Close()
	for _, path := range []string{"/drafts/" + id.String(), fmt.Sprintf("/drafts/%s/targets/2900?q=contact", id)} {
		var sizes []int
		for _, accept := range []string{"gzip", "gzip;q=0"} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = callertest.Header(t, "review-control", asAda)
			r.Header.Set("Accept-Encoding", accept)
			res, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 || (res.Header.Get("Content-Encoding") == "gzip") != (accept == "gzip") {
				t.Errorf("%s: %v, %d %v", path, err, res.StatusCode, res.Header)
			}
			sizes = append(sizes, len(b))
		}
		t.Logf("%s: %v bytes", path, sizes)
		if sizes[0] > 60<<10 || sizes[0] > sizes[1]/2 {
			t.Errorf("%s: %d bytes compressed, %d plain", path, sizes[0], sizes[1])
		}
	}
}

func TestConsolePolicies(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(1)
	in, err := o.suppressed.StartImport(signedIn(t.Context(), ada), ada.Email, "a.csv", "", []byte("a@partner.example\n"))
	if err != nil {
		t.Fatal(err)
	}
	routes := consoleRoutes(id, in.ID)
	for _, path := range []string{"/drafts/" + id.String() + "/targets/7/preview", "/drafts/x/targets/0/preview",
		"/drafts/99/targets/0/preview", "/drafts/99", "/drafts/x", "/drafts/" + id.String() + "/targets/7", "/drafts/" + id.String() +
			"/targets/-1"} {
		routes["GET "+path] = "reviewer"
	}
	for route := range routes {
		method, path, _ := strings.Cut(route, " ")
		want := pagePolicy
		if strings.HasSuffix(path, "/preview") {
			want = previewPolicy
		}
		h := o.send(asAda, method, path, "application/x-www-form-urlencoded", "").Header()
		if h.Get("Content-Security-Policy") != want || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" ||
			h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", route, h)
		}
	}
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

// active is anything that would run, load or submit.
var active = regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|<script>|<img|<[^>]*\son[a-z]+\s*=|` +
	`<[^>]*\sstyle\s*=|(?:href|src|action)="?\s*(?:javascript|data):`)

func TestHostileDraft(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	text := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	id := o.authoring.draft(2, func(d *draftRow) {
		d.Name, d.SegmentName, d.SegmentKind, d.SubjectTemplate, d.BodyTemplate = hostile, hostile, hostile, hostile, hostile
		d.CreatedBy, d.SenderName, d.SenderEmail = new(hostile), new(hostile), new("a@hub.example")
		x := &d.targets[0]
		x.ToName, x.Subject, x.HTML = hostile, hostile, true
		x.Body = hostile + `<p onclick="alert(3)">Dear <a href="javascript:alert(4)">you</a> <a ` +
			`href="https://evil.example/x">https://hub.example</a></p><form action="https://evil.example"><input name=a></form><iframe ` +
			`src="https://evil.example"></iframe>` +
			`<meta http-equiv=refresh content="0;url=https://evil.example"><base href="https://evil.example/"><p style="display:none">approve ` +
			`me</p><img src="https://evil.example/p.gif">`
		x.Context = text(map[string]any{hostile: []any{hostile, nil, true, 1.5, map[string]any{}, ""}})
		x.Snapshot = text(map[string]any{"deep": map[string]any{hostile: map[string]any{"a": hostile}}})
		d.targets[1].Body = hostile + "\nplain"
	})
	if _, err := o.house.send(agent(t.Context()), newKey(),
		fmt.Sprintf(`{"draftId":"%s","actor":"<b>x</b>","note":"<i>y</i>"}`, id)); err != nil {
		t.Fatal(err)
	}
	page := "/drafts/" + id.String()
	o.post(page+"/decide", form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 1)), 1, "rejected", hostile))
	for _, path := range []string{"/drafts", page, page + "/targets/0", page + "/targets/1", page + "?q=" + url.QueryEscape(hostile)} {
		got := o.get(path)
		// The layout's own scripts, and what stands in quotation marks as a text.
		got = regexp.MustCompile(`<script src="/assets/[^"]*" defer></script>| (?:value|title|aria-label)="[^"]*"`).ReplaceAllString(got, "")
		if found := active.FindString(got); found != "" {
			t.Errorf("%s has %s", path, found)
		}
	}
	got := o.get(page + "/targets/0")
	has(t, got, html.EscapeString(`<img src=x onerror=alert(2)>`), "approve me", "evil.example", "names another host", "remote picture",
		`sandbox="allow-same-origin"`, "taken out of this mail", "style display", "&lt;meta", `class="bool">true`, `class="null">null`,
		`class="number">1.5`, "empty text",
		"&lt;b&gt;x&lt;/b&gt;", "&lt;i&gt;y&lt;/i&gt;", `title="Preview of mail `)
	preview := o.get(page + "/targets/0/preview")
	runs := regexp.MustCompile(`(?i)<script|onerror=|onclick=|javascript:|<form|<input|<iframe|<base [^t]|<meta http-equiv`)
	if found := runs.FindString(preview); found != "" {
		t.Errorf("the preview has %s", found)
	}
	has(t, preview, "<p>Dear ", "Picture not loaded: no text, from evil.example", "!<img")
	has(t, o.get(page+"/targets/1/preview"), html.EscapeString(hostile)+"\r\nplain\r\n</pre>")
}

func TestDecideWithoutScript(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(5)
	page := "/drafts/" + id.String()
	w := o.post(page+"/decide", form(t, o.get(page+"/targets/2?decision=pending&q=partner"), 2, "approved", "  Looks\r\ngood. "))
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != page+"/targets/3?decision=pending&q=partner" {
		t.Fatalf("%d to %s", w.Code, to)
	}
	if text := o.flash(w); text != "Mail 3 is approved." {
		t.Errorf("flash %q", text)
	}
	has(t, o.get(page+"/targets/2"), "1 of 5", "1 approved", "4 to decide", "Looks\ngood.", "ada@hub.example")
	has(t, o.get(page+"?decision=pending"), "!data-row=\"2\"", "data-row=\"1\"", `id="t-0"`)
	has(t, o.get(page+"?decision=approved"), "data-row=\"2\"", "!data-row=\"1\"")
	has(t, o.get(page+"?q=501"), "data-row=\"1\"", "!data-row=\"2\"")
	has(t, o.get(page+"?q=nobody"), "No mail matches")

	// The same form again is no other decision.
	stale := form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 3)), 3, "rejected", "")
	for range 2 {
		if w := o.post(page+"/decide", stale); w.Code != http.StatusSeeOther {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if n := o.target(id, 3).Decision.Revision; n != 1 {
		t.Errorf("%d decisions", n)
	}
	// Another reviewer, whose page is older, decides otherwise: nothing is lost, and nothing done.
	stale.Set("choice", "approved")
	stale.Set("note", "But <why>?")
	w = o.send(session(ben, "reviewer"), "POST", page+"/decide", "application/x-www-form-urlencoded", stale.Encode())
	if w.Code != http.StatusConflict {
		t.Fatalf("%d", w.Code)
	}
	_, card, _ := strings.Cut(w.Body.String(), `id="t-3"`)
	card, _, _ = strings.Cut(card, "</article>")
	has(t, card, `role="alert"`, "ada@hub.example", "But &lt;why&gt;?</textarea>", "Rejected")
	if got := o.target(id, 3).Decision; got.Choice != reviewcontrol.Reject || got.By != ada.Email {
		t.Errorf("%+v", got)
	}
	// On a newer page the decision can be changed.
	if w := o.post(page+"/decide", form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 3)), 3, "approved",
		"")); w.Code != http.StatusSeeOther || o.target(id, 3).Decision.Choice != reviewcontrol.Approve {
		t.Errorf("%d", w.Code)
	}
	// What is wrong with a note stands at the note, on the page and in the part that a script asks for.
	for _, headers := range [][]string{nil, scripted} {
		w := o.post(page+"/decide", form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 0)), 0, "approved", strings.Repeat("x", 2001)), headers...)
		if w.Code != http.StatusBadRequest {
			t.Errorf("a long note: %d", w.Code)
		}
		has(t, w.Body.String(), `<p class="error" role="alert" id="note-0-error">This must have at most 2000 characters, not 2001.</p>`,
			`id="note-0" name="note"`, `aria-describedby="note-0-error note-0-hint" aria-invalid="true">xxxx`, `!id="note-error"`, "!notice wrong")
	}
	for name, bad := range map[string]url.Values{
		"nothing": {}, "no choice": {"target": {"0:" + o.shown(id, 0).Hash + ":0"}},
		"another choice": {"target": {"0:" + o.shown(id, 0).Hash + ":0"}, "choice": {"pending"}},
		"no hash":        {"target": {"0::0"}, "choice": {"approved"}},
		"another hash":   {"target": {"0:" + strings.Repeat("0", 64) + ":0"}, "choice": {"approved"}},
		"no index":       {"target": {"x:y:0"}, "choice": {"approved"}},
		"far index":      {"target": {"9:" + strings.Repeat("0", 64) + ":0"}, "choice": {"approved"}},
		"no revision":    {"target": {"0:y:"}, "choice": {"approved"}}, "negative": {"target": {"0:y:-1"}, "choice": {"approved"}},
	} {
		if w := o.post(page+"/decide", bad); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if c := o.review(id).Counts; c.Approved != 2 || c.Pending != 3 {
		t.Errorf("%+v", c)
	}
	// The way back is a page of the draft, whatever the form says.
	away := form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 0)), 0, "approved", "")
	away.Set("back", "https://evil.example/?x=y")
	if to := o.post(page+"/decide", away).Header().Get("Location"); to != page+"/targets/1" {
		t.Errorf("to %s", to)
	}
}

func TestDecideWithScript(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(3)
	page := "/drafts/" + id.String()
	has(t, o.get(page), `id="t-0"`, `hx-post="`+page+`/decide"`, `hx-target="#triage"`, "data-todo", `data-key="a"`,
		`you have read</button>`, ">Approve</button>", ">Reject</button>", ">Cancel draft</button>")
	w := o.post(page+"/decide", form(t, o.get(page), 0, "approved", ""), scripted...)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != page+"/targets/1" || o.flash(w) != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	w = o.send(asAda, "GET", page+"/targets/1", "", "", scripted...)
	if to := w.Header().Get("HX-Push-Url"); to != page+"/targets/1" {
		t.Errorf("the address becomes %q", to)
	}
	has(t, w.Body.String(), `id="t-1"`, "1 of 3", "Last: 1 mail approved.", `class="row approved" data-row="0"`)
	// The form of a target that was decided on is good for another decision.
	o.post(page+"/decide", form(t, o.get(page+"/targets/0"), 0, "rejected", "No."), scripted...)
	has(t, o.get(page+"/targets/0"), `verdict rejected`, "No.")

	stale := form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 1)), 1, "approved", "mine")
	if _, err := o.service.Decide(signedIn(t.Context(), ben), ben, id, o.shown(id, 1),
		reviewcontrol.Judgement{Choice: reviewcontrol.Reject}); err != nil {
		t.Fatal(err)
	}
	w = o.post(page+"/decide", stale, scripted...)
	if w.Code != http.StatusConflict || w.Header().Get("HX-Retarget") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	has(t, w.Body.String(), `verdict rejected`, `role="alert"`, "ben@hub.example", ">mine</textarea>", "2 of 3")
	has(t, o.get(page), `id="t-2"`, "One mail is left. Your decision ends the review: if you approve it, it is sent; "+
		"if you reject it, nothing is.")

	w = o.post(page+"/decide", form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 2)), 2, "approved", ""), scripted...)
	if w.Code != http.StatusOK || w.Header().Get("HX-Redirect") != page+"/targets/2" ||
		o.flash(w) != "That ends the review. 1 mail is on its way." {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	has(t, o.get(page), "the last decision can be undone", "!>Approve</button>", "!you have read", ">Cancel draft</button>",
		`hx-trigger="every 2s"`)
	w = o.post(page+"/decide", url.Values{"target": {fmt.Sprintf("2:%s:1", o.shown(id, 2).Hash)}, "choice": {"rejected"}}, scripted...)
	if w.Code != http.StatusConflict || strings.Contains(w.Body.String(), ">Approve</button>") ||
		!strings.Contains(w.Body.String(), "review has ended") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	// What breaks on our side costs a notice, and not the page.
	o.authoring.say(fmt.Errorf("dial tcp 10.0.0.7: refused"))
	w = o.post(page+"/decide", url.Values{"target": {"2:x:1"}, "choice": {"rejected"}}, scripted...)
	if w.Code < 500 || w.Header().Get("HX-Retarget") != "#toast" || strings.Contains(w.Body.String(), "10.0.0.7") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestFourEyesOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.authoring.draft(2, func(d *draftRow) { d.CreatedBy = new("ADA@hub.example") })
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	page := "/drafts/" + id.String()
	for _, path := range []string{page, page + "/targets/0"} {
		has(t, o.get(path), "You made this draft", "!>Approve</button>", "!you have read", "!data-key=\"a\"")
	}
	decision := url.Values{"target": {fmt.Sprintf("0:%s:0", o.shown(id, 0).Hash)}, "choice": {"approved"}, "note": {"mine"}}
	for name, headers := range map[string][]string{"without": nil, "with": scripted} {
		w := o.post(page+"/decide", decision, headers...)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "another reviewer has to decide") ||
			w.Header().Get("HX-Retarget") != "" {
			t.Errorf("%s script: %d %s", name, w.Code, w.Body)
		}
	}
	w := o.post(page+"/approve-shown", url.Values{"target": decision["target"]})
	if w.Code != http.StatusSeeOther || !strings.Contains(o.flash(w), "another reviewer has to decide") {
		t.Errorf("%d", w.Code)
	}
	if c := o.review(id).Counts; c.Pending != 2 {
		t.Errorf("%+v", c)
	}
}

func TestApproveShownOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.authoring.draft(23, func(d *draftRow) {
		d.targets[4].HTML, d.targets[4].Body = true, "<p>"+strings.Repeat("long ", 20_000)+"END"
		d.targets[5].Snapshot = json.RawMessage(`{"a":"` + strings.Repeat("x", 70_000) + `"}`)
		d.targets[6].Snapshot = json.RawMessage(`[` + strings.Repeat("1,", 5000) + `1]`)
	})
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	page := "/drafts/" + id.String()
	o.decide(id, 1, reviewcontrol.Reject)
	if page := o.get(page + "/targets/4"); !strings.Contains(page, "END") || strings.Contains(page, "data-together") {
		t.Error("a long mail is not there whole, or is approved with others")
	}
	// Without scripts what was opened counts: whose preview the browser was given.
	cookie := ""
	open := func(index int) {
		w := o.send(asAda, "GET", fmt.Sprintf("%s/targets/%d/preview?of=%s", page, index, o.shown(id, index).Hash), "", "", "Cookie", cookie)
		for _, c := range w.Result().Cookies() {
			if strings.Contains(c.Name, "opened") {
				cookie = c.Name + "=" + c.Value
			}
		}
	}
	if err := o.service.Inspect(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	shown := func() (out []string) {
		_, f, _ := strings.Cut(o.get(page, "Cookie", cookie), `id="approve-shown"`)
		f, _, _ = strings.Cut(f, "</form>")
		_, f, _ = strings.Cut(f, "<noscript>")
		f, _, _ = strings.Cut(f, "</noscript>")
		for _, m := range regexp.MustCompile(`<input type="hidden" name="target" value="([^"]*)">`).FindAllStringSubmatch(f, -1) {
			out = append(out, m[1])
		}
		return out
	}
	if list := shown(); len(list) > 0 {
		t.Errorf("%v were not opened", list)
	}
	for _, index := range []int{0, 1, 2, 3, 4, 5, 6, 7} {
		open(index)
	}
	targets := shown()
	opened := ""
	for _, x := range targets {
		index, _, _ := strings.Cut(x, ":")
		opened += index
	}
	if opened != "023567" { // 1 is rejected, and 4 is too long
		t.Errorf("%s were opened and can be approved", opened)
	}
	// Somebody is faster with one of them.
	o.decide(id, 2, reviewcontrol.Reject)
	w := o.post(page+"/approve-shown", url.Values{"target": targets, "back": {"decision=pending"}})
	want := fmt.Sprintf("%d mails are approved.", len(targets)-1)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != page+"?decision=pending" || o.flash(w) != want {
		t.Errorf("%d %v %q", w.Code, w.Header(), o.flash(w))
	}
	if c := o.review(id).Counts; c.Approved != len(targets)-1 || c.Rejected != 2 {
		t.Errorf("%+v", c)
	}
	w = o.post(page+"/approve-shown", url.Values{"target": targets})
	if o.flash(w) != "Nothing changed: all of them were decided on already." {
		t.Errorf("again: %q", o.flash(w))
	}
	if w := o.post(page+"/approve-shown", url.Values{}); !strings.HasPrefix(o.flash(w),
		"Nothing was left to approve that has been shown in full.") {
		t.Errorf("nothing: %q", o.flash(w))
	}
	for i := range 23 {
		if o.target(id, i).Decision.Choice == reviewcontrol.Pending {
			w = o.post(page+"/decide", form(t, o.get(fmt.Sprintf("%s/targets/%d", page, i)), i, "rejected", ""))
		}
	}
	if to := w.Header().Get("Location"); !strings.HasPrefix(to, page+"/targets/22") ||
		!strings.HasPrefix(o.flash(w), "That ends the review.") {
		t.Errorf("%s %q", to, o.flash(w))
	}
}

func TestCancelDraft(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	drafted, queued := o.authoring.draft(1), o.queued(2)
	for _, id := range []reviewcontrol.ID{drafted, queued} {
		page := "/drafts/" + id.String()
		has(t, o.get(page), `<form method="get" action="`+page+`/cancel"`, `data-key="c"`, ">Cancel draft</button>")
		has(t, o.get(page+"/cancel"), `<form method="post" action="`+page+`/cancel">`, ">Cancel draft</button>", `<label for="note">`,
			`<a class="button" href="`+page+`"`, ">Keep the draft</a>", "the draft cannot be taken up again")
		has(t, o.get(page), ">Cancel draft</button>", "!This draft was cancelled") // asking does nothing
		w := o.post(page+"/cancel", url.Values{"note": {strings.Repeat("x", 2001)}})
		if w.Code != http.StatusUnprocessableEntity {
			t.Errorf("a long note: %d", w.Code)
		}
		has(t, w.Body.String(), `id="note-error"`, `aria-invalid="true"`, "xxxx", "This must have at most 2000 characters, not 2001.",
			`<form method="post" action="`+page+`/cancel">`)
		w = o.post(page+"/cancel", url.Values{"note": {"no longer needed"}})
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != page || o.flash(w) != "The draft is cancelled. Nothing of it is sent." {
			t.Errorf("%d %q", w.Code, o.flash(w))
		}
	}
	has(t, o.get("/drafts/"+queued.String()), "This draft was cancelled", "!>Cancel draft</button>", "!>Approve</button>", "ada@hub.example")
	for _, ask := range []func() *httptest.ResponseRecorder{
		func() *httptest.ResponseRecorder {
			return o.send(asAda, "GET", "/drafts/"+queued.String()+"/cancel", "", "")
		},
		func() *httptest.ResponseRecorder { return o.post("/drafts/"+queued.String()+"/cancel", nil) },
	} {
		if w := ask(); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/drafts/"+queued.String() ||
			!strings.Contains(o.flash(w), "cannot be cancelled") {
			t.Errorf("again: %d %q", w.Code, o.flash(w))
		}
	}
	// The question tells how many mails are left as what.
	numbers := o.queued(9)
	for i, choice := range []reviewcontrol.Choice{reviewcontrol.Approve, reviewcontrol.Approve, reviewcontrol.Reject} {
		o.decide(numbers, i, choice)
	}
	has(t, o.get("/drafts/"+numbers.String()+"/cancel"), "None of its 9 mails is sent", "2 mails were approved and are not sent.",
		"<dt>Left undecided</dt><dd dir=\"auto\"><bdi>6</bdi></dd>", "<dt>Approved</dt><dd dir=\"auto\"><bdi>2</bdi></dd>",
		"<dt>Rejected</dt><dd dir=\"auto\"><bdi>1</bdi></dd>")
	// Once a mail was on its way it is too late.
	attempted := o.approved(2)
	has(t, o.get("/drafts/"+attempted.String()), ">Cancel draft</button>")
	o.deliver(attempted, 0)
	has(t, o.get("/drafts/"+attempted.String()), "!>Cancel draft</button>")
	// A form from before the end changes nothing, and does not say that mails are on their way.
	late := o.queued(1)
	page := "/drafts/" + late.String()
	before := form(t, o.get(fmt.Sprintf("%s/targets/%d", page, 0)), 0, "approved", "")
	for _, path := range []string{"/decide", "/cancel"} {
		o.post(page+path, before)
	}
	for _, path := range []string{"/decide", "/approve-shown"} {
		if w := o.post(page+path, before); w.Code != http.StatusSeeOther ||
			o.flash(w) != "Nothing changed: the draft is cancelled, and nothing more of it is sent." {
			t.Errorf("%s: %d %q", path, w.Code, o.flash(w))
		}
	}
	if r := o.review(late); r.Status != reviewcontrol.Cancelled || r.Counts.Approved != 1 {
		t.Errorf("%+v", r)
	}
}

func TestDraftsPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	has(t, o.get("/drafts?status=all"), "No drafts yet", "!Next page</a>")
	for range 22 {
		o.authoring.draft(1)
	}
	id := o.queued(3)
	o.decide(id, 0, reviewcontrol.Approve)
	o.authoring.change(id, func(d *draftRow) { d.Name = "second wave" })
	page := o.get("/drafts?status=all")
	has(t, page, "second wave", "2 of 3 left", ">In review</span>", "Not queued yet", "/drafts?after=4&amp;status=all",
		`aria-current="true">All <span class="count">23<`, "campaign-agent", "3 mails")
	if n := strings.Count(page, "<li data-item"); n != 20 {
		t.Errorf("%d drafts", n)
	}
	has(t, o.get("/drafts?after=4&status=all"), `href="/drafts/3"`, `href="/drafts/1"`, "!href=\"/drafts/4\"", "First page")
	has(t, o.get("/drafts?status=in_review"), "second wave", "!Not queued", `aria-current="true">In review`)
	// What authoring has not heard of yet holds here already.
	ended := o.queued(1)
	o.decide(ended, 0, reviewcontrol.Approve)
	has(t, o.get("/drafts?status=in_review"), "second wave", `!href="/drafts/`+ended.String()+`"`, `In review <span class="count">1<`,
		`Approved <span class="count">1<`)
	has(t, o.get("/drafts?status=approved"), `href="/drafts/`+ended.String()+`"`, "!second wave")
	has(t, o.get("/drafts?status=%3Cb%3E&after=x"), "second wave", `aria-current="true">Waiting for me`)
	has(t, o.get("/drafts?after=1&status=all"), "There are no more drafts", `href="/drafts?status=all"`)
}

func TestDraftBeforeItsReview(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.authoring.draft(25)
	page := "/drafts/" + id.String()
	has(t, o.get(page), "not in review yet", "Not in review", "!>Approve</button>", "!you have read", `id="t-0"`, "data-row=\"24\"",
		"Dear {{toName}}")
	has(t, o.get(page+"/targets/24"), `id="t-24"`, "data-row=\"20\"", "data-row=\"0\"", "!First page")
	has(t, o.get(page+"/targets/24/preview"), "Dear Contact 24")
}

// TestAPreviewHasAboutItsHeight before it is measured: a browser without scripts shows a short mail without white below
// it, and a long one with a bar to scroll by.
func TestAPreviewHasAboutItsHeight(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.authoring.draft(4, func(d *draftRow) {
		d.targets[1].Body, d.targets[2].Body = strings.Repeat("word ", 120), strings.Repeat("line\n", 20)
		d.targets[3].Body, d.targets[3].HTML = "<p>a</p>"+strings.Repeat("<br>", 300)+"<p>b</p>", true
	})
	for i, about := range [][2]int{{120, 120}, {250, 400}, {450, 560}, {1500, 1500}} {
		_, card, _ := strings.Cut(o.get(fmt.Sprintf("/drafts/%s/targets/%d", id, i)), fmt.Sprintf(`id="t-%d"`, i))
		_, frame, _ := strings.Cut(card, `<iframe class="preview" height="`)
		frame, rest, _ := strings.Cut(frame, `"`)
		height, err := strconv.Atoi(frame)
		if err != nil || height < about[0] || height > about[1] || !strings.HasPrefix(rest, ` sandbox="allow-same-origin" `) {
			t.Errorf("target %d has a frame of %d pixels, want %v: %v, %.60s", i, height, about, err, rest)
		}
	}
}

// TestSeveralMailsToOneAddress: whether that is meant, a reviewer can only judge who sees it.
func TestSeveralMailsToOneAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.authoring.draft(4, func(d *draftRow) {
		d.targets[0].ToEmail, d.targets[2].ToEmail = "twice@partner.example", "Twice@Partner.example"
	})
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	page := "/drafts/" + id.String()
	for i, said := range []bool{true, false, true, false} {
		if got := strings.Contains(o.get(fmt.Sprintf("%s/targets/%d", page, i)), "2 mails to this address"); got != said {
			t.Errorf("said of target %d: %t", i, got)
		}
	}
	has(t, o.get(page+"?q=twice%40partner.example"), `data-row="0"`, `data-row="2"`, `!data-row="1"`)
	has(t, o.get(page+"/targets/2"), `href="`+page+`?q=Twice%40Partner.example"`)
}

func TestTargetPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(3)
	page := fmt.Sprintf("/drafts/%s/targets/1", id)
	w := o.post("/drafts/"+id.String()+"/decide", form(t, o.get(page), 1, "rejected", "First look."))
	if w.Header().Get("Location") != "/drafts/"+id.String()+"/targets/2" {
		t.Errorf("to %s", w.Header().Get("Location"))
	}
	o.post("/drafts/"+id.String()+"/decide", form(t, o.get(page), 1, "approved", "Second look."))
	got := o.get(page)
	has(t, got, "First look.", "Second look.", `href="/drafts/`+id.String()+`/targets/0"`, `href="/drafts/`+id.String()+`/targets/2"`)
	_, history, _ := strings.Cut(got, "Decisions on this mail")
	if strings.LastIndex(history, "Second look.") > strings.Index(history, "First look.") {
		t.Error("the newest decision is not the first")
	}
	for _, path := range []string{"/targets/3", "/targets/x", "/targets/01", "/targets/-1", "/targets/99999999999999999999"} {
		if w := o.send(asAda, "GET", "/drafts/"+id.String()+path, "", ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	w = o.send(session(ben, "reviewer"), "POST", "/drafts/"+id.String()+"/decide", "application/x-www-form-urlencoded",
		url.Values{"target": {fmt.Sprintf("1:%s:1", o.shown(id, 1).Hash)}, "choice": {"rejected"}, "back": {""}, "note": {"late"}}.Encode())
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `id="t-1"`) ||
		!strings.Contains(w.Body.String(), ">late</textarea>") {
		t.Errorf("%d", w.Code)
	}
}

func TestDeliveryOnThePage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.approved(4)
	page := "/drafts/" + id.String()
	has(t, o.get(page), "0 of 4 sent", "Waiting to be sent", "4 waiting")
	target := func(i int) string { return o.target(id, i).ToEmail }
	o.sender.to(target(1), answer{refuse: &mailer.SendError{Verdict: mailer.Never, Reason: "550 <no> such user"}})
	o.sender.to(target(2), answer{say: &mailer.SendError{Verdict: mailer.Perhaps, Reason: "connection lost"}})
	if _, err := o.suppressed.Add(signedIn(t.Context(), ada), ada.Email, target(3), "asked"); err != nil {
		t.Fatal(err)
	}
	o.deliver(id, 0)
	part := o.send(asAda, "GET", page+"/progress", "", "", scripted...)
	has(t, part.Body.String(), "1 of 4 sent", `id="progress"`, `hx-trigger="every 2s"`, "!<html")
	if part.Header().Get("HX-Refresh") != "" {
		t.Error("it is not over yet")
	}
	for i := 1; i < 4; i++ {
		o.deliver(id, i)
	}
	if h := o.send(asAda, "GET", page+"/progress", "", "", scripted...).Header(); h.Get("HX-Refresh") != "true" {
		t.Errorf("it is over: %v", h)
	}
	has(t, o.get(page), "1 of 4 sent", "1 failed", "1 suppressed", "1 unknown", "1 mail is in doubt", "1 of 4 approved mails were sent",
		"!>Cancel draft</button>")
	has(t, o.get(page+"/targets/1"), "550 &lt;no&gt; such user")
	has(t, o.get(page+"?delivery=unknown"), "It may have arrived", "data-row=\"2\"", "!data-row=\"1\"", `<option value="unknown" selected>`)
	has(t, o.get(page+"?delivery=failed&decision=approved"), "data-row=\"1\"", "!data-row=\"2\"")
}

func TestSuppressionsPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const page = "/admin/suppressions"
	has(t, o.get(page), "Nobody is on the list", `<label for="email">E-mail`, `<label for="reason">Reason`, `enctype="multipart/form-data"`)
	w := o.post(page, url.Values{"email": {" Bo@Partner.example "}, "reason": {"asked <by> phone"}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != page || o.flash(w) != "Bo@Partner.example is on the list now." {
		t.Errorf("%d %q", w.Code, o.flash(w))
	}
	if w := o.post(page, url.Values{"email": {"bo@partner.example"}}); o.flash(w) != "bo@partner.example was on the list already; "+
		"nothing changed." {
		t.Errorf("%q", o.flash(w))
	}
	has(t, o.get(page), "Bo@Partner.example", "asked &lt;by&gt; phone", "By hand", "ada@hub.example")
	for field, bad := range map[string]url.Values{"email": {"email": {"Bo <bo@x.example>"}, "reason": {"why"}},
		"reason": {"email": {"b@x.example"}, "reason": {strings.Repeat("x", 2001)}}} {
		w := o.post(page, bad)
		has(t, w.Body.String(), field+`-error"`, `aria-invalid="true"`, html.EscapeString(bad.Get("email")))
		if w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", field, w.Code)
		}
	}
	for i := range 30 {
		o.post(page, url.Values{"email": {fmt.Sprintf("c%02d@other.example", i)}})
	}
	first := o.get(page)
	has(t, first, "c23@other.example", "!c24@other.example", "?after=c23%40other.example")
	has(t, o.get(page+"?after=c23%40other.example"), "c24@other.example", "c29@other.example", "First page")
	has(t, o.get(page+"?q=BO@"), "Bo@Partner.example", "!c01@")
	has(t, o.get(page+"?q=%40partner"), "Bo@Partner.example", "!c01@")
	has(t, o.get(page+"?q=%25"), "No address matches")

	remove := page + "/remove?email=" + url.QueryEscape("bo@PARTNER.example")
	has(t, o.get(remove), "Bo@Partner.example", "asked &lt;by&gt; phone", "approved mails go to this address again")
	w = o.post(page+"/remove", url.Values{"email": {"Bo@Partner.example"}, "reason": {" "}})
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "This is required.") {
		t.Errorf("%d", w.Code)
	}
	w = o.post(page+"/remove", url.Values{"email": {"Bo@Partner.example"}, "reason": {"asked again"}})
	if w.Code != http.StatusSeeOther || o.flash(w) != "Bo@Partner.example is no longer on the list." {
		t.Errorf("%d %q", w.Code, o.flash(w))
	}
	w = o.post(page+"/remove", url.Values{"email": {"Bo@Partner.example"}, "reason": {"twice"}})
	if w.Code != http.StatusSeeOther || o.flash(w) == "" {
		t.Errorf("twice: %d %q", w.Code, o.flash(w))
	}
	for _, gone := range []string{"bo@partner.example", "", "@other.example", "c", "c0"} {
		if w := o.send(asAda, "GET", page+"/remove?email="+url.QueryEscape(gone), "", ""); w.Code != http.StatusNotFound {
			t.Errorf("%q: %d", gone, w.Code)
		}
	}
}

// upload is a form with a file.
func upload(t testing.TB, name, data string, fields ...string) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		if err := m.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	part, err := m.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write([]byte(data))
	}
	if err == nil {
		err = m.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.FormDataContentType(), b.String()
}

func TestImportPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const imports = "/admin/suppressions/imports"
	send := func(name, data string, fields ...string) *httptest.ResponseRecorder {
		kind, body := upload(t, name, data, fields...)
		return o.send(asAda, "POST", imports, kind, body)
	}
	var file strings.Builder
	file.WriteString("email,reason\nx1@partner.example,left\nX1@partner.example,again\n")
	for i := range 60 {
		fmt.Fprintf(&file, "no <address> %d,\n", i)
	}
	w := send(`C:\list <1>.csv`, file.String(), "default_reason", "bounced")
	at := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(at, imports+"/") {
		t.Fatalf("%d %s %s", w.Code, at, w.Body)
	}
	has(t, o.get(at), "Waiting", "0 of 62", `hx-trigger="every 1s"`, `<noscript><meta http-equiv="refresh" content="2"></noscript>`,
		">Refresh</a>", "list &lt;1&gt;.csv")
	part := o.get(at, scripted...)
	has(t, part, `hx-get="`+at+`"`, "!<html")
	id, _ := schema.ParseID(strings.TrimPrefix(at, imports+"/"))
	if err := o.suppressed.RunImport(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got := o.get(at)
	has(t, got, "Done", "62 of 62", "!hx-trigger", "!http-equiv=\"refresh\"", "no &lt;address&gt; 0", "Bad lines", "?after=53",
		"!no &lt;address&gt; 50")
	has(t, o.get(at+"?after=53"), "no &lt;address&gt; 50", "!no &lt;address&gt; 49")
	has(t, o.get("/admin/suppressions"), "x1@partner.example", "left", "Imported", "list &lt;1&gt;.csv", "60 bad")

	for name, c := range map[string]struct {
		data, problem string
		status        int
	}{
		"empty":     {"", "Choose a file that is not empty.", 422},
		"no rows":   {"\n\n", "must have at least one address", 422},
		"binary":    {"PK\x03\x04\x00\x00", "looks like another kind of file", 422},
		"too large": {strings.Repeat("a@partner.example\n", 1_000_000), "The file is larger than 16 MiB.", 413},
	} {
		w := send("a.csv", c.data, "default_reason", "kept <value>")
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.problem) || !strings.Contains(w.Body.String(), `file-error"`) {
			t.Errorf("%s: %d, want %d and %q", name, w.Code, c.status, c.problem)
		}
		if c.status == 422 {
			has(t, w.Body.String(), "kept &lt;value&gt;")
		}
	}
	if w := o.send(asAda, "POST", imports, "multipart/form-data; boundary=x", "--x\r\nbroken"); w.Code != http.StatusBadRequest {
		t.Errorf("broken: %d", w.Code)
	}
	if w := o.send(asAda, "POST", imports, "application/x-www-form-urlencoded", "file=x"); w.Code != http.StatusBadRequest {
		t.Errorf("no upload: %d", w.Code)
	}
	almost := strings.Repeat("a@partner.example\n", (16<<20)/18)
	if w := send("a.csv", almost, "default_reason", strings.Repeat("x", 2000)); w.Code != http.StatusSeeOther {
		t.Errorf("a file of %d bytes: %d", len(almost), w.Code)
	}
	for _, path := range []string{"/x", "/999"} {
		if w := o.send(asAda, "GET", imports+path, "", ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestUnsubscribePage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.approved(3)
	var links []string
	for i := range 3 {
		o.deliver(id, i)
		mails := o.sender.mails()
		links = append(links, strings.TrimPrefix(mails[len(mails)-1].Unsubscribe, "https://hub.example"))
	}
	email := o.target(id, 0).ToEmail
	listed := func() int { return one[int](o.house, `SELECT count(*) FROM review_control.suppressions`) }
	w := o.send(visitor, "GET", links[0], "", "")
	has(t, w.Body.String(), ">Unsubscribe</button>", "C•••@partner.example", "!"+email)
	if w.Code != http.StatusOK || len(w.Result().Cookies()) > 0 || listed() != 0 {
		t.Errorf("%d, %v, %d on the list", w.Code, w.Result().Cookies(), listed())
	}
	for range 2 {
		w = o.send(visitor, "POST", links[0], "application/x-www-form-urlencoded", "")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "You are unsubscribed") || listed() != 1 {
			t.Errorf("%d, %d on the list: %s", w.Code, listed(), w.Body)
		}
	}
	has(t, o.send(visitor, "GET", links[0], "", "").Body.String(), "You are unsubscribed", "!<button class=\"primary\">")
	// RFC 8058: a mail program's server, without cookies and without an Origin.
	if w := o.send(visitor, "POST", links[1], "application/x-www-form-urlencoded",
		"List-Unsubscribe=One-Click"); w.Code != http.StatusOK || listed() != 2 || len(w.Result().Cookies()) > 0 {
		t.Errorf("one click: %d", w.Code)
	}
	kind, body := upload(t, "x", "", "List-Unsubscribe", "One-Click")
	if w := o.send(visitor, "POST", links[2], kind, body); w.Code != http.StatusOK || listed() != 3 {
		t.Errorf("one click in parts: %d", w.Code)
	}
	for _, unknown := range []string{"/unsubscribe/AAAAAAAAAAAAAAAAAAAAAA", "/unsubscribe/x", "/unsubscribe/%00", "/unsubscribe/" +
		strings.Repeat("A", 5000)} {
		for _, method := range []string{"GET", "POST"} {
			w := o.send(visitor, method, unknown, "", "")
			if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "This link does not work") {
				t.Errorf("%s %.40s: %d %s", method, unknown, w.Code, w.Body)
			}
		}
	}
	if n := listed(); n != 3 {
		t.Errorf("%d on the list", n)
	}
}

// TestPagesAreComplete wants every page to stand on its own feet: one heading of the first
// rank, labels for the inputs, no id twice.
func TestPagesAreComplete(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(4)
	o.decide(id, 0, reviewcontrol.Approve)
	in, err := o.suppressed.StartImport(signedIn(t.Context(), ada), ada.Email, "a.csv", "", []byte("a@partner.example\n"))
	if err != nil {
		t.Fatal(err)
	}
	o.post("/admin/suppressions", url.Values{"email": {"bo@partner.example"}})
	for _, path := range []string{"/drafts", "/drafts/" + id.String(), "/drafts/" + id.String() + "/targets/0", "/drafts/" + id.String() +
		"/cancel", "/admin/suppressions", "/admin/suppressions/remove?email=bo@partner.example", "/admin/suppressions/imports/" +
		in.ID.String()} {
		page := o.get(path, web.NavigationHeader, web.EncodeNavigation([]web.Tab{{Slug: "system", Name: "System",
			Items: []web.Item{{Name: "Drafts", Href: "/drafts"}}}}, path))
		if n := strings.Count(page, "<h1>"); n != 1 {
			t.Errorf("%s has %d first headings", path, n)
		}
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`\sid="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			if seen[m[1]] {
				t.Errorf("%s has the id %s twice", path, m[1])
			}
			seen[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`(?:for|aria-describedby|aria-labelledby)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			for name := range strings.FieldsSeq(m[1]) {
				if !seen[name] {
					t.Errorf("%s refers to %s", path, name)
				}
			}
		}
	}
}

// TestBigDraftPages reads pages of the largest draft there can be.
func TestBigDraftPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(10_000)
	page := "/drafts/" + id.String()
	for _, path := range []string{page, page + "?after=9979", page + "?decision=pending&after=5000", page + "?q=contact+9999", page +
		"/targets/9999", "/drafts"} {
		hubtest.Within(t, 2*time.Second, path, func() { o.get(path) }) // a few milliseconds, in fact
	}
}

// TestAuthoringIsShownForWhomADraftMoves: the agent, the person, or nobody but review-control
// when a job ends what a call began.
func TestAuthoringIsShownForWhomADraftMoves(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	queued, left, cancelled := o.authoring.draft(1), o.authoring.draft(1), o.authoring.draft(1)
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(queued)); err != nil {
		t.Fatal(err)
	}
	// The call breaks off before authoring hears of it, and its job goes on.
	o.authoring.hook(func(transition) { o.authoring.say(fault.New(fault.DB, "away")) })
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(left)); err == nil {
		t.Fatal("the call was answered")
	}
	o.authoring.hook(nil)
	o.authoring.say(nil)
	if err := o.queue.Complete(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if w := o.post("/drafts/"+cancelled.String()+"/cancel", nil); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var got []string
	for _, c := range o.authoring.movers {
		got = append(got, strings.Join([]string{c.Kind, c.Service, c.CredentialID, c.HubUser, c.RequestID}, " "))
	}
	want := []string{"key crm ak_1  req_1", "service review-control review-control  ", "user console ses_1 " + ada.ID + " req_3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUndoOnAPage: without scripts and with them, what was decided last can be undone where it was decided.
func TestUndoOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(2)
	path := "/drafts/" + id.String()
	if page := o.get(path); strings.Contains(page, path+"/undo") {
		t.Error("there is nothing to undo yet")
	}
	o.post(path+"/decide", form(t, o.get(fmt.Sprintf("%s/targets/%d", path, 0)), 0, "rejected", "no"))
	page := o.get(path)
	has(t, page, `action="`+path+`/undo"`, `name="action" value="1"`, "Last: 1 mail rejected.")
	if w := o.post(path+"/undo", url.Values{"action": {"1"}, "back": {"decision=pending"}}); w.Code != http.StatusSeeOther ||
		w.Header().Get("Location") != path+"?decision=pending" || !strings.Contains(o.flash(w), "Undone: 1 mail is as it was before.") {
		t.Errorf("%d %v %q", w.Code, w.Header(), o.flash(w))
	}
	for _, action := range []string{"1", "", "x", "99"} {
		if w := o.post(path+"/undo", url.Values{"action": {action}}); w.Code == http.StatusOK ||
			o.target(id, 0).Decision.Choice != reviewcontrol.Pending {
			t.Errorf("%q: %d", action, w.Code)
		}
	}
	for i := range 2 {
		o.post(path+"/decide", form(t, o.get(fmt.Sprintf("%s/targets/%d", path, i)), i, "approved", ""))
	}
	has(t, o.get(path), "Until the first one leaves, the last decision can be undone.", "data-countdown")
	o.post(path+"/undo", url.Values{"action": {fmt.Sprint(o.review(id).Actions)}})
	if r := o.review(id); r.Status != reviewcontrol.InReview || r.Counts.Approved != 1 {
		t.Errorf("%+v", r)
	}
}

// TestFlagsOnAPage: above the mail, as filters with counts, and counted beside the other filters.
func TestFlagsOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.authoring.draft(4, func(d *draftRow) {
		d.targets[1].HTML, d.targets[1].Body = true, `<a href="https://evil.com">bank.com</a>`
		d.targets[2].ToEmail = "late@partner.example"
	})
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	if err := o.service.Inspect(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := o.suppressed.Add(signedIn(t.Context(), ada), ada.Email, "late@partner.example", ""); err != nil {
		t.Fatal(err)
	}
	path := "/drafts/" + id.String()
	page := o.get(path)
	has(t, page, `<a href="`+path+`?flag=link">Misleading link <span class="count">1</span></a>`, `<a href="`+path+
		`?flag=suppressed">Suppressed since <span class="count">1</span></a>`,
		`class="row pending" data-row="2"`, "Suppressed since</span>")
	page = o.get(path + "?flag=suppressed&q=late")
	has(t, page, "Its recipient is on the suppression list.", `data-row="2"`,
		`aria-current="true">Suppressed since <span class="count">1</span>`, `aria-current="true">All <span class="count">1</span>`)
	for _, other := range []string{`data-row="0"`, `data-row="1"`, `data-row="3"`, "Misleading link <span"} {
		if strings.Contains(page, other) {
			t.Errorf("the page has %s", other)
		}
	}
	w := o.post(path+"/approve-shown", url.Values{"target": {fmt.Sprintf("2:%s:0", o.shown(id, 2).Hash)}})
	if o.target(id, 2).Decision.Choice != reviewcontrol.Pending || !strings.Contains(o.flash(w), "its recipient is on the suppression list") {
		t.Errorf("%q", o.flash(w))
	}
}

// TestReasonsOnAPage: what was chosen is kept, shown, and there again when the decision is refused.
func TestReasonsOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(1)
	path := "/drafts/" + id.String()
	refused := form(t, o.get(fmt.Sprintf("%s/targets/%d", path, 0)), 0, "rejected", strings.Repeat("x", reviewcontrol.MaxNote+1))
	refused.Set("reason", "tone")
	has(t, o.post(path+"/decide", refused).Body.String(), `<option value="tone" selected>Tone or language</option>`)
	refused.Set("note", "")
	o.post(path+"/decide", refused)
	has(t, o.get(path), `<p class="small">Tone or language</p>`)
}

// TestVariantsOnAPage: mails that differ in placeholders alone can be looked through by themselves.
func TestVariantsOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.inspected(6, func(d *draftRow) {
		for i := range 2 {
			d.targets[i].BodyTemplate, d.targets[i].Body = new("Hi {{toName}}"), "Hi "+d.targets[i].ToName
		}
		d.targets[5].Body = "An own one"
	})
	path := "/drafts/" + id.String()
	number := o.target(id, 0).Inspection.Variant
	has(t, o.get(path), `Variant 2 <span class="count">3</span>`,
		fmt.Sprintf(`<a href="%s?variant=%d">Variant 1 <span class="count">2</span></a>`, path, number))
	has(t, o.get(fmt.Sprintf("%s?variant=%d", path, number)), `data-row="0"`, `data-row="1"`, `!data-row="2"`,
		`aria-current="true">Variant 1`, `<input type="hidden" name="variant"`)
	for _, bad := range []string{"x", "-1", "99999999999999999999", "77"} {
		o.get(path + "?variant=" + bad)
	}
	// They are counted beside what else is asked for, and so is that beside them.
	o.decide(id, 0, reviewcontrol.Reject)
	o.decide(id, 2, reviewcontrol.Reject)
	has(t, o.get(path+"?decision=pending"), `Variant 1 <span class="count">1</span>`, `Variant 2 <span class="count">2</span>`)
	has(t, o.get(fmt.Sprintf("%s?variant=%d", path, number)), `To decide <span class="count">1</span>`,
		`Variant 2 <span class="count">3</span>`)
	has(t, o.get(path+"?variant=-1"), `All <span class="count">1</span>`, `Variant 2 <span class="count">3</span>`)
	has(t, o.get(path+"?decision=approved"), `!Variant 1 <span class="count">`)
}
