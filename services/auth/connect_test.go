package auth_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/links"
)

const (
	grace      = "grace@example.com"
	shopReturn = "https://shop.example/back?from=hub"
)

// browser is somebody at a browser that keeps its cookies.
type browser struct {
	h       *hall
	who     caller.Caller
	cookies map[string]string
}

// at is a browser that a new user has signed in with.
func (h *hall) at(t *testing.T, email string) *browser {
	t.Helper()
	u := h.add(t, email)
	s, _ := h.signIn(t, email)
	return &browser{
		h,
		caller.Caller{
			Kind:           caller.User,
			Service:        "console",
			ExternalUserID: u.Email,
			HubUser:        u.ID,
			Email:          u.Email,
			Name:           u.Name,
			CredentialID:   s.ID,
			RequestID:      "req_1",
		},
		map[string]string{},
	}
}

func (b *browser) visit(t *testing.T, method, path string, form url.Values, headers ...string) (*http.Response, string) {
	t.Helper()
	var jar []string
	for name, value := range b.cookies {
		jar = append(jar, name+"="+value)
	}
	res, page := b.h.visit(t, b.who, method, path, form, append([]string{"Cookie", strings.Join(jar, "; ")}, headers...)...)
	for _, c := range res.Cookies() {
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return res, page
}

var formValue = regexp.MustCompile(`name="form" value="([^"]+)"`)

// open follows the link that an app has sent its user to, up to the consent; it returns the form's value.
func (b *browser) open(t *testing.T, link, returnURL string) string {
	t.Helper()
	path := strings.TrimPrefix(link, "https://hub.example")
	if returnURL != "" {
		path += "&returnUrl=" + url.QueryEscape(returnURL)
	}
	if res, page := b.visit(
		t,
		"GET",
		path,
		nil,
	); res.StatusCode != http.StatusSeeOther ||
		res.Header.Get("Location") != "/connect/consent" {
		t.Fatalf("%d %s %s", res.StatusCode, res.Header.Get("Location"), page)
	}
	return b.form(t)
}

func (b *browser) form(t *testing.T) string {
	t.Helper()
	res, page := b.visit(t, "GET", "/connect/consent", nil)
	m := formValue.FindStringSubmatch(page)
	if res.StatusCode != http.StatusOK || m == nil {
		t.Fatalf("%d %s", res.StatusCode, page)
	}
	return html.UnescapeString(m[1])
}

func (b *browser) say(t *testing.T, answer, form string, headers ...string) (*http.Response, string) {
	t.Helper()
	return b.visit(t, "POST", "/connect/consent", url.Values{"answer": {answer}, "form": {form}}, headers...)
}

// shop makes an app that users can link to.
func (h *hall) shop(t *testing.T, mode apps.LinkMode) {
	t.Helper()
	_, err := h.apps.Create(
		h.ctx,
		"shop",
		apps.Settings{
			Name:         "The <shop>",
			RedirectURLs: []string{"https://shop.example/", shopReturn},
			Scopes:       []string{"pay:read", "pay:write"},
			LinkMode:     mode,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
}

func (h *hall) ticket(t *testing.T, user string, scopes ...string) string {
	t.Helper()
	link, until, err := h.links.Invite("shop", user, scopes)
	if err != nil || !strings.HasPrefix(link, "https://hub.example/connect?t=") || until.Sub(h.clock.Now()) > links.TicketLife ||
		until.Sub(h.clock.Now()) < links.TicketLife-time.Second {
		t.Fatal(link, until, err)
	}
	return link
}

// stored is what of links is in the store.
func (h *hall) stored(t *testing.T) string {
	t.Helper()
	return h.query(
		t,
		`SELECT concat_ws(' ', (SELECT string_agg(concat_ws(' ', external_user_id, status, array_to_string(scopes, ','), consent_version),
			'; ' ORDER BY external_user_id, status DESC) FROM auth.identity_links),
		'consents', (SELECT count(*) FROM auth.link_consents), 'nonces', (SELECT count(*) FROM auth.connect_nonces), 'grants',
			(SELECT count(*) FROM auth.connect_grants))`,
	)
}

// confirm is what an app does with a code.
func (h *hall) confirm(t *testing.T, service, user, code string) (auth.Confirmed, error) {
	t.Helper()
	who := caller.Caller{
		Kind:           caller.App,
		Service:        service,
		ExternalUserID: user,
		CredentialID:   "s_1",
		Scopes:         []string{"pay:read"},
		RequestID:      "req_2",
	}
	body, _ := json.Marshal(map[string]string{"code": code})
	req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+rpc.RoutePath("connect.confirm"), strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = callertest.Header(t, "auth", who)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out auth.Confirmed
	if res.Header.Get(rpc.FaultHeader) != "" {
		var f fault.Error
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err, string(b))
		}
		return out, &f
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err, string(b))
	}
	return out, nil
}

// TestLinking is the way of a user who allows it, and what they see then.
func TestLinking(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	link := h.ticket(t, "u-77-한국어-<b>", "pay:read", "pay:refund")
	if strings.Contains(link, "u-77") || !regexp.MustCompile(`\?t=[A-Za-z0-9_-]+$`).MatchString(link) {
		t.Errorf("the ticket shows something, or cannot be in an address: %s", link)
	}
	// Somebody who is not signed in goes to the log-in and comes back.
	b := &browser{h, visitor, map[string]string{}}
	res, _ := b.visit(t, "GET", strings.TrimPrefix(link, "https://hub.example")+"&returnUrl="+url.QueryEscape(shopReturn), nil)
	c := cookie(res, "__Host-hub-connect")
	if res.Header.Get("Location") != "/connect/consent" || c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode ||
		c.Path != "/" ||
		c.MaxAge > 900 ||
		c.MaxAge < 890 {
		t.Errorf("%s %+v", res.Header.Get("Location"), c)
	}
	if res, _ := b.visit(t, "GET", "/connect/consent", nil); res.Header.Get("Location") != "/login?next=%2Fconnect%2Fconsent" {
		t.Errorf("a visitor is sent to %s", res.Header.Get("Location"))
	}
	b.who = h.at(t, ada).who
	res, page := b.visit(t, "GET", "/connect/consent", nil)
	for _, want := range []string{"The &lt;shop&gt;", "<code>shop</code>", "<bdi>u-…b&gt;</bdi>", "See your payment orders", ada,
		"Not you?", "Continue only if you started this in",
		`<button class="primary" name="answer" value="allow">Allow</button>`, `value="cancel">Cancel</button>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the consent lacks %q", want)
		}
	}
	if strings.Contains(page, "Pay back") || strings.Contains(page, "u-77-한국어") || strings.Contains(page, "<script>") {
		t.Errorf("the consent shows more than it should: %s", page)
	}
	for name, want := range map[string]string{"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store"} {
		if got := res.Header.Get(name); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' https:;") {
		t.Errorf("the browser may not go back: %s", csp)
	}
	if res, page := b.say(t, "allow", b.form(t)); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != shopReturn {
		t.Errorf("%d %s %s", res.StatusCode, res.Header.Get("Location"), page)
	}
	l, found, err := h.link(t.Context(), "shop", "u-77-한국어-<b>")
	if err != nil || !found || l.Status != links.Active || l.HubUser != b.who.HubUser || !slices.Equal(l.Scopes, []string{"pay:read"}) {
		t.Errorf("%+v %t %v", l, found, err)
	}
	if a, err := h.apps.Inspect(h.ctx, "shop"); err != nil || a.Links != 1 {
		t.Errorf("%d links, %v", a.Links, err)
	}
	if got := h.query(
		t,
		`SELECT string_agg(concat_ws(' ', tool, external_user_id, detail->>'link', detail->>'external_user'), ',') FROM audit.calls `+
			`WHERE tool LIKE 'link.%'`,
	); got != "link.consent "+ada+" "+l.ID+" u-77-한국어-<b>" {
		t.Errorf("audit: %s", got)
	}
	if res, page := b.visit(
		t,
		"GET",
		"/connect/consent",
		nil,
	); res.StatusCode != http.StatusOK || !strings.Contains(page, "is linked") || strings.Contains(page, "Allow</button>") ||
		!strings.Contains(page, html.EscapeString(shopReturn)) {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	// The list, and the end.
	_, page = b.visit(t, "GET", "/account/links", nil)
	for _, want := range []string{"The &lt;shop&gt;", "See your payment orders", l.ID + "/revoke", "u-…b&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the list lacks %q: %s", want, page)
		}
	}
	other := h.at(t, grace)
	if _, page := other.visit(t, "GET", "/account/links", nil); !strings.Contains(page, "No app is linked") {
		t.Errorf("somebody else sees %s", page)
	}
	for _, method := range []string{"GET", "POST"} {
		if res, _ := other.visit(t, method, "/account/links/"+l.ID+"/revoke", url.Values{}); res.StatusCode != http.StatusNotFound {
			t.Errorf("somebody else, %s: %d", method, res.StatusCode)
		}
	}
	if res, page := b.visit(
		t,
		"GET",
		"/account/links/"+l.ID+"/revoke",
		nil,
	); res.StatusCode != 200 ||
		!strings.Contains(page, "Keep it linked") {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	for range 2 { // twice is harmless
		if res, _ := b.visit(t, "POST", "/account/links/"+l.ID+"/revoke", url.Values{}); res.Header.Get("Location") != "/account/links" {
			t.Error(res.StatusCode)
		}
	}
	if _, found, err := h.link(t.Context(), "shop", l.ExternalUser); found || err != nil {
		t.Error(found, err)
	}
	if res, _ := b.visit(t, "GET", "/account/links?after=%00%ff", nil); res.StatusCode != http.StatusOK {
		t.Errorf("nonsense for a place: %d", res.StatusCode)
	}
}

// TestNobodyLinksForAnother: what did not come from the page, in the session and for the ticket that it was shown for, links
// nothing.
func TestNobodyLinksForAnother(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	b, eve := h.at(t, ada), h.at(t, grace)
	evesForm := eve.open(t, h.ticket(t, "eve", "pay:read"), "")
	before := b.open(t, h.ticket(t, "u-77", "pay:read"), "")
	good := b.open(t, h.ticket(t, "u-77", "pay:read"), "")
	ours := b.who
	for name, c := range map[string]struct {
		form    string
		headers []string
		session string
		status  int
	}{
		"no token":                     {"", nil, "", 409},
		"nonsense":                     {"x", nil, "", 409},
		"a ticket for a token":         {b.cookies["__Host-hub-connect"], nil, "", 409},
		"the token of somebody else":   {evesForm, nil, "", 409},
		"the token of another ticket":  {before, nil, "", 409},
		"the token of another session": {good, nil, "ses_other", 409},
		"foreign Origin":               {good, []string{"Origin", "https://evil.example"}, "", 403},
		"no Origin that is one":        {good, []string{"Origin", "null"}, "", 403},
		"cross-site":                   {good, []string{"Sec-Fetch-Site", "cross-site"}, "", 403},
		"same-site":                    {good, []string{"Sec-Fetch-Site", "same-site"}, "", 403},
	} {
		if b.who = ours; c.session != "" {
			b.who.CredentialID = c.session
		}
		for _, answer := range []string{"allow", "cancel"} {
			kept := maps.Clone(b.cookies)
			if res, page := b.say(
				t,
				answer,
				c.form,
				c.headers...); res.StatusCode != c.status ||
				b.cookies["__Host-hub-connect"] != kept["__Host-hub-connect"] {
				t.Errorf("%s, %s: %d %s", name, answer, res.StatusCode, page)
			}
		}
	}
	b.who = ours
	for _, form := range []url.Values{{"form": {good}}, {"form": {good}, "answer": {"Allow"}}} {
		if res, _ := b.visit(t, "POST", "/connect/consent", form); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", form, res.StatusCode)
		}
	}
	if res, _ := (&browser{h, visitor, b.cookies}).say(t, "allow", good); res.Header.Get("Location") != "/login?next=%2Fconnect%2Fconsent" {
		t.Errorf("a visitor: %d", res.StatusCode)
	}
	if got := h.stored(t); got != "consents 0 nonces 0 grants 0" {
		t.Errorf("stored: %s", got)
	}
	if res, page := b.say(t, "allow", good, "Origin", "https://hub.example"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	if res, page := b.say(t, "allow", good); res.StatusCode != http.StatusConflict || !strings.Contains(page, "already used") {
		t.Errorf("once more: %d %s", res.StatusCode, page)
	}
	if got := h.stored(t); got != "u-77 ACTIVE pay:read 1 consents 1 nonces 1 grants 0" {
		t.Errorf("stored: %s", got)
	}
}

// TestTwoClicks: however often and at once a user allows it, there is one link.
func TestTwoClicks(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	for round := range 5 {
		user := fmt.Sprint("u-", round)
		b := h.at(t, fmt.Sprintf("ada%d@example.com", round))
		// Two tickets for one user, opened in browsers of their own, and each clicked on four times.
		tabs := []*browser{{h, b.who, map[string]string{}}, {h, b.who, map[string]string{}}}
		statuses, pages := make(chan int, 8), make(chan string, 8)
		var forms []string
		for _, tab := range tabs {
			forms = append(forms, tab.open(t, h.ticket(t, user, "pay:read"), shopReturn))
		}
		var wg sync.WaitGroup
		for i, tab := range tabs {
			form := forms[i]
			for range 4 {
				clicked := &browser{h, tab.who, maps.Clone(tab.cookies)}
				wg.Go(func() {
					res, page := clicked.say(t, "allow", form)
					statuses <- res.StatusCode
					if res.StatusCode != http.StatusSeeOther {
						pages <- page
					}
				})
			}
		}
		wg.Wait()
		close(statuses)
		close(pages)
		counts := map[int]int{}
		for s := range statuses {
			counts[s]++
		}
		if !maps.Equal(counts, map[int]int{303: 2, 409: 6}) {
			t.Errorf("%v", counts)
		}
		for page := range pages {
			if !strings.Contains(page, "This link was already used") || !strings.Contains(page, "is linked to your Hub account already") ||
				!strings.Contains(page, html.EscapeString(shopReturn)) {
				t.Errorf("%s", page)
			}
		}
		if got := h.query(
			t,
			`SELECT concat_ws(' ', count(*), max(status), max(consent_version)) FROM auth.identity_links WHERE external_user_id = $1`,
			user,
		); got != "1 ACTIVE 2" {
			t.Errorf("%s", got)
		}
	}
}

// TestBadTickets: what is too old, changed, or sealed by somebody else opens nothing and is told without details; a flood of
// it stores nothing.
func TestBadTickets(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	good := strings.TrimPrefix(h.ticket(t, "u-77", "pay:read"), "https://hub.example/connect?t=")
	other, _, err := newHall(t).links.Invite("shop", "u-77", []string{"pay:read"})
	if err != nil {
		t.Fatal(err)
	}
	nobody, _, err := h.links.Invite("nobody", "u-77", nil)
	if err != nil {
		t.Fatal(err)
	}
	flipped := []byte(good)
	flipped[len(flipped)/2] ^= 1
	tickets := map[string]string{
		"none":              "",
		"truncated":         good[:len(good)-1],
		"half":              good[:len(good)/2],
		"flipped":           string(flipped),
		"with more":         good + "A",
		"with a sign":       good + "=",
		"of another keyset": strings.TrimPrefix(other, "https://hub.example/connect?t="),
		"of an app that is not": strings.TrimPrefix(
			nobody,
			"https://hub.example/connect?t=",
		),
		"long":        strings.Repeat("A", 5000),
		"with a line": good + "\n",
		"not text":    "\x00\xff",
	}
	b := h.at(t, ada)
	form := b.open(t, "/connect?t="+good, "")
	rows := h.query(t, `SELECT count(*)::text FROM audit.calls`)
	v := &browser{h, visitor, map[string]string{}}
	for name, text := range tickets {
		for range 20 {
			res, page := v.visit(t, "GET", "/connect?t="+url.QueryEscape(text)+"&returnUrl="+url.QueryEscape(shopReturn), nil)
			if res.StatusCode != http.StatusNotFound || !strings.Contains(page, "Ask the service that sent you for a new link.") ||
				cookie(res, "__Host-hub-connect") != nil ||
				res.Header.Get("Location") != "" ||
				strings.Contains(page, "shop") {
				t.Errorf("%s: %d %s", name, res.StatusCode, page)
			}
		}
		forged := &browser{h, b.who, map[string]string{"__Host-hub-connect": url.QueryEscape(text) + "."}}
		if res, _ := forged.visit(t, "GET", "/connect/consent", nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s, in a cookie: %d", name, res.StatusCode)
		}
		if res, _ := forged.say(t, "allow", form); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s, allowed: %d", name, res.StatusCode)
		}
	}
	for range 100 {
		if res, _ := v.visit(t, "GET", "/connect?t="+good, nil); res.StatusCode != http.StatusSeeOther {
			t.Fatal(res.StatusCode)
		}
	}
	h.clock.Advance(links.TicketLife)
	for _, path := range []string{"/connect?t=" + good, "/connect/consent"} {
		if res, page := b.visit(
			t,
			"GET",
			path,
			nil,
		); res.StatusCode != http.StatusNotFound ||
			!strings.Contains(page, "Ask The &lt;shop&gt; for a new link.") {
			t.Errorf("%s, too old: %d %s", path, res.StatusCode, page)
		}
	}
	if res, _ := b.say(t, "allow", form); res.StatusCode != http.StatusNotFound {
		t.Errorf("allowed too late: %d", res.StatusCode)
	}
	if got := h.stored(
		t,
	) + " rows " + h.query(
		t,
		`SELECT count(*)::text FROM audit.calls`,
	); got != "consents 0 nonces 0 grants 0 rows "+rows {
		t.Errorf("stored: %s, before %s", got, rows)
	}
	if strings.Contains(h.log.String(), good) {
		t.Error("the log holds a ticket")
	}
	for name, c := range map[string][2]string{"no app": {"", "u"}, "long app": {strings.Repeat("a", 41), "u"}, "no user": {"shop", ""},
		"long user": {"shop", strings.Repeat("é", 201)}, "NUL": {"shop", "a\x00b"}, "not text": {"shop", "\xff"}} {
		if _, _, err := h.links.Invite(c[0], c[1], nil); !fault.Is(err, fault.Validation) {
			t.Errorf("%s: %v", name, err)
		}
		if _, found, err := h.link(t.Context(), c[0], c[1]); found || err != nil {
			t.Errorf("%s: %t %v", name, found, err)
		}
	}
	// The longest that there can be fits into a cookie.
	long, _, err := h.links.Invite("shop", strings.Repeat("<", 200), apps.Scopes())
	if err != nil || len(long) > links.MaxTicket {
		t.Error(len(long), err)
	}
	b.open(t, long, shopReturn)
	if n := len(b.cookies["__Host-hub-connect"]); n > 3500 {
		t.Errorf("a cookie of %d bytes", n)
	}
}

// TestRedirects: a browser goes to no address but one of the app's, byte for byte.
func TestRedirects(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	for i, c := range []struct {
		returnURL string
		ok        bool
	}{
		{shopReturn, true}, {"https://shop.example/", true},
		{"", false}, {"https://shop.example", false}, {"https://shop.example/back", false}, {"https://shop.example/back?from=hub&x=1", false},
		{"https://shop.example/back?from=hub#x", false},
		{"https://SHOP.example/", false}, {"HTTPS://shop.example/", false}, {"https://shop.example//", false},
		{"https://shop.example/.", false}, {"https://shop.example/%2e", false},
		{"https://shop.example:443/", false}, {"https://shop.example./", false}, {"https://user@shop.example/", false},
		{"https://shop.example@evil.example/", false}, {"https://evil.example/", false},
		{"https://evil.example/https://shop.example/", false}, {"//shop.example/", false}, {"/", false}, {"/login", false},
		{"javascript:alert(1)", false}, {"http://shop.example/", false},
		{" https://shop.example/", false}, {"https://shop.example/ ", false}, {"https://shop.example/\n", false},
		{"https://shop.example/\x00", false}, {`https:\\shop.example\`, false},
		{"https%3A%2F%2Fshop.example%2F", false}, {"https://shop.example/" + strings.Repeat("x", 600), false}, {"https://shоp.example/", false},
	} {
		user, b := fmt.Sprint("u-", i), h.at(t, fmt.Sprintf("u%d@example.com", i))
		allowed, cancelled := "/connect/consent", "/connect/declined"
		if c.ok {
			allowed, cancelled = c.returnURL, c.returnURL+"?error=access_denied"
			if strings.Contains(c.returnURL, "?") {
				cancelled = c.returnURL + "&error=access_denied"
			}
		}
		if res, _ := b.say(
			t,
			"cancel",
			b.open(t, h.ticket(t, user, "pay:read"), c.returnURL),
		); res.Header.Get("Location") != cancelled ||
			b.cookies["__Host-hub-connect"] != "" {
			t.Errorf("%q, cancelled: %s", c.returnURL, res.Header.Get("Location"))
		}
		form := b.open(t, h.ticket(t, user, "pay:read"), c.returnURL)
		// What a browser keeps is judged again.
		text, _, _ := strings.Cut(b.cookies["__Host-hub-connect"], ".")
		if !c.ok && c.returnURL != "" {
			b.cookies["__Host-hub-connect"] = text + "." + base64url(c.returnURL)
			if res, page := b.visit(
				t,
				"GET",
				"/connect/consent",
				nil,
			); strings.Contains(page, "evil") ||
				strings.Contains(res.Header.Get("Content-Security-Policy"), "form-action 'self' ") {
				t.Errorf("%q is believed", c.returnURL)
			}
		}
		if res, _ := b.say(t, "allow", form); res.Header.Get("Location") != allowed {
			t.Errorf("%q, allowed: %s", c.returnURL, res.Header.Get("Location"))
		}
		if res, page := b.visit(
			t,
			"GET",
			"/connect/consent",
			nil,
		); res.StatusCode != http.StatusOK || !strings.Contains(page, "is linked") ||
			strings.Contains(page, "Go back to") != c.ok {
			t.Errorf("%q, the done page: %d %s", c.returnURL, res.StatusCode, page)
		}
	}
	if res, page := (&browser{h, visitor, map[string]string{}}).visit(
		t,
		"GET",
		"/connect/declined",
		nil,
	); res.StatusCode != http.StatusOK ||
		!strings.Contains(page, "Nothing was linked") {
		t.Errorf("%d %s", res.StatusCode, page)
	}
}

// TestTaken: a user of an app belongs to one account, until that one unlinks; nobody else is told whose it is.
func TestTaken(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	b, eve := h.at(t, ada), h.at(t, grace)
	form := eve.open(t, h.ticket(t, "u-77", "pay:read"), "")
	late := &browser{h, eve.who, map[string]string{}}
	lateForm := late.open(t, h.ticket(t, "u-77", "pay:read"), "")
	b.say(t, "allow", b.open(t, h.ticket(t, "u-77", "pay:read"), ""))
	if res, page := eve.say(
		t,
		"allow",
		form,
	); res.StatusCode != http.StatusConflict || !strings.Contains(page, "unlink it there first") ||
		strings.Contains(page, ada) {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	eve.visit(t, "GET", strings.TrimPrefix(h.ticket(t, "u-77", "pay:read"), "https://hub.example"), nil)
	if res, page := eve.visit(
		t,
		"GET",
		"/connect/consent",
		nil,
	); res.StatusCode != http.StatusConflict || !strings.Contains(page, "unlink it there first") ||
		strings.Contains(page, ada) {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	l, _, err := h.link(t.Context(), "shop", "u-77")
	if err != nil || l.HubUser != b.who.HubUser {
		t.Fatal(l, err)
	}
	if _, err := h.links.Unlink(h.ctx, l.ID, eve.who.HubUser); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	// An account that is disabled acts for nobody, and its link stays its own.
	if _, err := h.Disable(h.ctx, ada); err != nil {
		t.Fatal(err)
	}
	token := sha256.Sum256([]byte("a token"))
	if _, _, used, err := h.linked.Use(t.Context(), "shop", token, h.clock.Now(), "u-77"); used != nil || err != nil {
		t.Error("the link of a disabled user holds", err)
	}
	// Nobody can sign in to it, so whoever asks is sent to somebody who can end the link, before they agree as after.
	says := func(res *http.Response, page string) {
		t.Helper()
		if res.StatusCode != http.StatusConflict || !strings.Contains(page, "Ask an administrator of Hub") || strings.Contains(page, ada) ||
			strings.Contains(page, "unlink it there first") || strings.Contains(page, "Use another account") {
			t.Errorf("%d %s", res.StatusCode, page)
		}
	}
	says(eve.visit(t, "GET", "/connect/consent", nil))
	says(late.say(t, "allow", lateForm))
	if _, err := h.links.Add(h.ctx, "shop", "u-77", grace, []string{"pay:read"}); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "auth link revoke") {
		t.Errorf("an operator is told %v", err)
	}
	if _, err := h.links.Revoke(h.ctx, l.ID); err != nil {
		t.Fatal(err)
	}
	if res, page := eve.say(t, "allow", eve.form(t)); res.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	if got := h.stored(t); got != "u-77 REVOKED pay:read 1; u-77 ACTIVE pay:read 1 consents 2 nonces 2 grants 0" {
		t.Errorf("stored: %s", got)
	}
}

// TestScopeIncrease: a user is asked for what is new, and agrees to what was shown: not to what the app has been given since.
func TestScopeIncrease(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	b := h.at(t, ada)
	b.say(t, "allow", b.open(t, h.ticket(t, "u-77", "pay:read"), ""))
	form := b.open(t, h.ticket(t, "u-77", "pay:read", "pay:write", "pay:refund"), "")
	_, page := b.visit(t, "GET", "/connect/consent", nil)
	if !strings.Contains(page, "asks for more than you have allowed") || !strings.Contains(page, "Make payment orders") ||
		strings.Count(page, "(as before)") != 1 ||
		strings.Contains(page, "Pay back") {
		t.Errorf("%s", page)
	}
	a, err := h.apps.Inspect(h.ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	a.Scopes = apps.Scopes()
	if _, err := h.apps.Edit(h.ctx, "shop", a.Version, a.Settings); err != nil {
		t.Fatal(err)
	}
	b.say(t, "allow", form)
	if got := h.stored(t); got != "u-77 ACTIVE pay:read,pay:write 2 consents 2 nonces 2 grants 0" {
		t.Errorf("stored: %s", got)
	}
	b.say(t, "allow", b.open(t, h.ticket(t, "u-77", "pay:refund"), ""))
	l, _, err := h.link(t.Context(), "shop", "u-77")
	if err != nil || !l.Covers(apps.Scopes()) || l.Version != 3 {
		t.Errorf("%+v %v", l, err)
	}
	if got := h.query(
		t,
		`SELECT string_agg(tool || ' ' || (detail->>'version'), ',' ORDER BY tool, detail->>'version') FROM audit.calls WHERE tool LIKE 'link.%'`,
	); got != "link.consent 1,link.widen 2,link.widen 3" {
		t.Errorf("audit: %s", got)
	}
}

// TestAppEndsMeanwhile: the state of the app counts when the user allows it.
func TestAppEndsMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	b := h.at(t, ada)
	b.say(t, "allow", b.open(t, h.ticket(t, "before", "pay:read"), ""))
	form := b.open(t, h.ticket(t, "u-77", "pay:read"), shopReturn)
	if _, err := h.apps.Suspend(h.ctx, "shop", "complaints"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if res, page := b.say(
			t,
			"allow",
			form,
		); res.StatusCode != http.StatusConflict || !strings.Contains(page, "is not active") ||
			strings.Contains(page, "complaints") {
			t.Errorf("%d %s", res.StatusCode, page)
		}
		if res, page := b.visit(
			t,
			"GET",
			"/connect/consent",
			nil,
		); res.StatusCode != http.StatusConflict ||
			!strings.Contains(page, "is not active") {
			t.Errorf("%d %s", res.StatusCode, page)
		}
	}
	if _, page := b.visit(t, "GET", "/account/links", nil); !strings.Contains(page, "suspended") {
		t.Errorf("%s", page)
	}
	if _, err := h.apps.Resume(h.ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if res, _ := b.say(t, "allow", form); res.Header.Get("Location") != shopReturn {
		t.Error(res.StatusCode)
	}
	if _, err := h.apps.Revoke(h.ctx, "shop", "shop", "over"); err != nil {
		t.Fatal(err)
	}
	if got := h.stored(t); got != "before REVOKED pay:read 1; u-77 REVOKED pay:read 1 consents 2 nonces 2 grants 0" {
		t.Errorf("stored: %s", got)
	}
	if _, err := h.links.Add(h.ctx, "shop", "u-78", ada, nil); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}

// TestNotYou signs out, and comes back as somebody else.
func TestNotYou(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	b := h.at(t, ada)
	form := b.open(t, h.ticket(t, "u-77", "pay:read"), "")
	for next, want := range map[string]string{"/connect/consent": "/login?next=%2Fconnect%2Fconsent", "https://evil.example/": "/login",
		"//evil.example": "/login", "/logout": "/login", "": "/login"} {
		if res, _ := b.visit(t, "POST", "/logout", url.Values{"next": {next}}); res.Header.Get("Location") != want {
			t.Errorf("%q leads to %s", next, res.Header.Get("Location"))
		}
	}
	h.add(t, grace)
	res, _ := h.visit(t, visitor, "POST", "/login", url.Values{"email": {grace}, "password": {password}, "next": {"/connect/consent"}})
	if res.Header.Get("Location") != "/connect/consent" {
		t.Fatal(res.Header.Get("Location"))
	}
	now, err := h.Resolve(h.ctx, cookie(res, "__Host-hub").Value)
	if err != nil || now.Session.ID == b.who.CredentialID {
		t.Fatal("the session is the same", err)
	}
	b.who.HubUser, b.who.Email, b.who.CredentialID = now.User.ID, grace, now.Session.ID
	if res, page := b.say(t, "allow", form); res.StatusCode != http.StatusConflict || !strings.Contains(page, grace) {
		t.Errorf("what was shown to another: %d %s", res.StatusCode, page)
	}
	b.say(t, "allow", b.form(t))
	if l, _, err := h.link(t.Context(), "shop", "u-77"); err != nil || l.HubUser != now.User.ID {
		t.Errorf("%+v %v", l, err)
	}
}
