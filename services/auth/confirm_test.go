package auth_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/links"
)

func base64url(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// allowed is the code that an app gets when a user of it allows a link.
func (b *browser) allowed(t *testing.T, user string, scopes ...string) string {
	t.Helper()
	res, page := b.say(t, "allow", b.open(t, b.h.ticket(t, user, scopes...), shopReturn))
	code, ok := strings.CutPrefix(res.Header.Get("Location"), shopReturn+"&code=")
	if !ok || len(code) != 43 {
		t.Fatalf("%d %s %s", res.StatusCode, res.Header.Get("Location"), page)
	}
	return code
}

// TestConfirming: in this mode a link holds when the app has confirmed it, once, within a minute, for the same user.
func TestConfirming(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Confirm)
	b := h.at(t, ada)
	code := b.allowed(t, "u-77", "pay:read")
	if l, found, err := h.link(t.Context(), "shop", "u-77"); err != nil || !found || l.Status != links.Pending {
		t.Errorf("%+v %t %v", l, found, err)
	}
	if a, err := h.apps.Inspect(h.ctx, "shop"); err != nil || a.Links != 0 {
		t.Errorf("%d links, %v", a.Links, err)
	}
	if _, page := b.visit(t, "GET", "/account/links", nil); !strings.Contains(page, "No app is linked") {
		t.Errorf("%s", page)
	}
	for _, wrong := range []string{"x", strings.Repeat("A", 43), code + "A", code[:42]} {
		if _, err := h.confirm(t, "shop", "u-77", wrong); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := h.confirm(t, "shop", "u-77", ""); !fault.Is(err, fault.Validation) {
		t.Error(err)
	}
	h.clock.Advance(links.GrantLife - time.Millisecond)
	var worked atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			switch _, err := h.confirm(t, "shop", "u-77", code); {
			case err == nil:
				worked.Add(1)
			case !fault.Is(err, fault.NotFound):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if worked.Load() != 1 {
		t.Errorf("the code was good %d times", worked.Load())
	}
	// An app whose answer was lost tries again: the link holds, so it must not send its user to another one before it has looked.
	if _, err := h.confirm(t, "shop", "u-77", code); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "may hold already") {
		t.Errorf("once more: %v", err)
	}
	l, found, err := h.link(t.Context(), "shop", "u-77")
	if err != nil || !found || l.Status != links.Active || !l.LinkedAt.Equal(h.clock.Now()) {
		t.Errorf("%+v %t %v", l, found, err)
	}
	if got := h.query(
		t,
		`SELECT string_agg(concat_ws(' ', tool, service, external_user_id), ',' ORDER BY tool) FROM audit.calls `+
			`WHERE tool LIKE 'link.%' OR tool = 'connect.confirm'`,
	); got != "connect.confirm shop u-77,link.consent console "+ada {
		t.Errorf("audit: %s", got)
	}
	if dump := h.query(
		t,
		`SELECT concat((SELECT string_agg(c::text, '') FROM audit.calls c), (SELECT string_agg(g::text, '') FROM auth.connect_grants g))`,
	) + h.log.String(); strings.Contains(
		dump,
		code,
	) {
		t.Error("the store or the log holds a code")
	}
	// More is wanted later: what holds goes on to hold until the app has confirmed that, too.
	more := b.allowed(t, "u-77", "pay:write")
	if l, _, err := h.link(t.Context(), "shop", "u-77"); err != nil || l.Status != links.Active || l.Covers([]string{"pay:write"}) {
		t.Errorf("%+v %v", l, err)
	}
	if got, err := h.confirm(
		t,
		"shop",
		"u-77",
		more,
	); err != nil || strings.Join(got.Link.Scopes, ",") != "pay:read,pay:write" ||
		got.Link.Status != "ACTIVE" {
		t.Errorf("%+v %v", got, err)
	}
}

// TestConfirmExample executes the example of the route; its code, its id and its time are those of another link.
func TestConfirmExample(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Confirm)
	list := tool.Examples(os.DirFS("."), "connect.confirm")
	var want auth.Confirmed
	if err := json.Unmarshal(list[0].Data, &want); err != nil || len(list) != 1 || list[0].Count != 1 {
		t.Fatal(list, err)
	}
	got, err := h.confirm(t, "shop", "u-77", h.at(t, ada).allowed(t, "u-77", "pay:read"))
	if err != nil || len(got.Link.ID) != len(want.Link.ID) || len(got.Link.LinkedAt) != len(want.Link.LinkedAt) {
		t.Fatalf("%+v %v", got, err)
	}
	want.Link.ID, want.Link.LinkedAt = got.Link.ID, got.Link.LinkedAt
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, and the example says %+v", got, want)
	}
}

// TestForwardedLinks: somebody allows a link that another user of the app has sent them. Whose session the code ends up in
// tells, and nobody is linked.
func TestForwardedLinks(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Confirm)
	if _, err := h.apps.Create(h.ctx, "other", apps.Settings{Name: "Other", Scopes: []string{"pay:read"}}); err != nil {
		t.Fatal(err)
	}
	victim := h.at(t, ada)
	code := victim.allowed(t, "attacker", "pay:read")
	if _, err := h.confirm(
		t,
		"shop",
		"victim",
		code,
	); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(fault.From(err).Message, "dropped") {
		t.Errorf("%v", err)
	}
	if _, err := h.confirm(t, "shop", "attacker", code); !fault.Is(err, fault.NotFound) {
		t.Errorf("after that: %v", err)
	}
	if got := h.stored(t); got != "attacker REVOKED pay:read 1 consents 1 nonces 1 grants 0" {
		t.Errorf("stored: %s", got)
	}
	if got := h.query(t, `SELECT string_agg(detail->>'why', ',') FROM audit.calls WHERE tool = 'link.drop'`); got != "mismatch" {
		t.Errorf("audit: %s", got)
	}
	// Another app that has got hold of a code hears nothing of what it was for, and the link is dropped.
	code = victim.allowed(t, "u-77", "pay:read")
	if _, err := h.confirm(t, "other", "u-77", code); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, found, err := h.link(t.Context(), "shop", "u-77"); found || err != nil {
		t.Error(found, err)
	}
	// Whoever allows it last is who the app can confirm.
	first := victim.allowed(t, "u-78", "pay:read")
	owner := h.at(t, grace)
	second := owner.allowed(t, "u-78", "pay:read")
	if _, err := h.confirm(t, "shop", "u-78", first); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, err := h.confirm(t, "shop", "u-78", second); err != nil {
		t.Error(err)
	}
	if l, _, err := h.link(t.Context(), "shop", "u-78"); err != nil || l.HubUser != owner.who.HubUser {
		t.Errorf("%+v %v", l, err)
	}
}

// TestUnconfirmed: a link that nobody confirms ends, and what it leaves is swept.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Confirm)
	b := h.at(t, ada)
	for _, returnURL := range []string{"", "https://evil.example/"} {
		path := strings.TrimPrefix(h.ticket(t, "u-77", "pay:read"), "https://hub.example") + "&returnUrl=" + url.QueryEscape(returnURL)
		b.visit(t, "GET", path, nil)
		if res, page := b.visit(
			t,
			"GET",
			"/connect/consent",
			nil,
		); res.StatusCode != http.StatusConflict || !strings.Contains(page, "has to say where you go back to") ||
			strings.Contains(page, "Allow</button>") {
			t.Errorf("%d %s", res.StatusCode, page)
		}
	}
	form := b.open(t, h.ticket(t, "u-77", "pay:read"), shopReturn)
	text, _, _ := strings.Cut(b.cookies["__Host-hub-connect"], ".")
	b.cookies["__Host-hub-connect"] = text + "." // and says otherwise after it was shown
	if res, _ := b.say(t, "allow", form); res.StatusCode != http.StatusConflict {
		t.Error(res.StatusCode)
	}
	if got := h.stored(t); got != "consents 0 nonces 0 grants 0" {
		t.Errorf("stored: %s", got)
	}
	code := b.allowed(t, "u-77", "pay:read")
	h.clock.Advance(links.GrantLife)
	if _, found, err := h.link(t.Context(), "shop", "u-77"); found || err != nil {
		t.Error("a link that nobody has confirmed is there", err)
	}
	if _, err := h.confirm(t, "shop", "u-77", code); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := h.links.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.stored(t); got != "u-77 REVOKED pay:read 1 consents 1 nonces 1 grants 0" {
		t.Errorf("stored: %s", got)
	}
	if got := h.query(
		t,
		`SELECT string_agg(concat_ws(' ', service, count), ',') FROM audit.calls WHERE tool = 'link.lapse'`,
	); got != "auth 1" {
		t.Errorf("audit: %s", got)
	}
	h.clock.Advance(2 * time.Hour)
	if err := h.links.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.stored(t); got != "u-77 REVOKED pay:read 1 consents 1 nonces 0 grants 0" {
		t.Errorf("stored: %s", got)
	}
	// The user, an app that is suspended meanwhile, and one whose code is late.
	code = b.allowed(t, "u-77", "pay:read")
	if _, err := h.apps.Suspend(h.ctx, "shop", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.confirm(t, "shop", "u-77", code); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if _, err := h.apps.Resume(h.ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.confirm(t, "shop", "u-77", code); err != nil {
		t.Error("refused once, refused for ever: ", err)
	}
}
