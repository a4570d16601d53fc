package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
)

// held keeps the answers of a window's previews back until they are let go.
type held struct {
	p  *page
	mu sync.Mutex
	// waiting are the previews that were asked for, by their address.
	waiting map[string]fetch.RequestID
}

// hold keeps back what matches a pattern of addresses.
func (p *page) hold(pattern string) *held {
	p.t.Helper()
	h := &held{p: p, waiting: map[string]fetch.RequestID{}}
	err := chromedp.Listen(p.ctx, func(event any) {
		if e, ok := event.(*fetch.EventRequestPaused); ok {
			h.mu.Lock()
			h.waiting[e.Request.URL] = e.RequestID
			h.mu.Unlock()
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	do(
		p,
		fetch.Enable,
		fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern, RequestStage: fetch.RequestStageRequest}}},
	)
	return h
}

// forget forgets what was asked for by a page that is gone.
func (h *held) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.waiting)
}

// of is what is held back of a target.
func (h *held) of(index int) (fetch.RequestID, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for url, id := range h.waiting {
		if strings.HasSuffix(url, "&ahead=1") { // it never comes, and its mail is asked for as if nothing came ahead
			continue
		}
		if strings.Contains(url, fmt.Sprintf("/targets/%d/preview", index)) {
			delete(h.waiting, url)
			return id, true
		}
	}
	return "", false
}

// letGo lets the preview of a target come; with an error it is that the browser gets instead.
func (h *held) letGo(index int, failure string) {
	h.p.t.Helper()
	var id fetch.RequestID
	h.p.eventually(fmt.Sprintf("the preview of target %d is asked for", index), func() (is bool) { id, is = h.of(index); return is })
	switch failure {
	case "":
		do(h.p, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id})
	case "network":
		do(h.p, fetch.FailRequest, fetch.FailRequestParams{RequestID: id, ErrorReason: "ConnectionReset"})
	default:
		do(
			h.p,
			fetch.FulfillRequest,
			fetch.FulfillRequestParams{
				RequestID:       id,
				ResponseCode:    200,
				ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}},
				Body:            []byte(failure),
			},
		)
	}
}

// pass lets whatever is held back go on.
func (h *held) pass() {
	h.p.t.Helper()
	for _, id := range h.taken() {
		do(h.p, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id})
	}
}

// taken waits until something is held back, and holds it no more.
func (h *held) taken() (ids []fetch.RequestID) {
	h.p.t.Helper()
	h.p.eventually("something is held back", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		ids = slices.Collect(maps.Values(h.waiting))
		clear(h.waiting)
		return len(ids) > 0
	})
	return ids
}

// fail answers whatever is held back with a failure of that status, as the edge does for a part of a page.
func (h *held) fail(status int64) {
	h.p.t.Helper()
	for _, id := range h.taken() {
		do(
			h.p,
			fetch.FulfillRequest,
			fetch.FulfillRequestParams{
				RequestID:    id,
				ResponseCode: status,
				Body:         []byte("<p class=notice>away for a moment</p>"),
				ResponseHeaders: []*fetch.HeaderEntry{
					{Name: "Content-Type", Value: "text/html"},
					{Name: "HX-Retarget", Value: "#toast"},
					{Name: "HX-Reswap", Value: "innerHTML"},
					{Name: "HX-Reselect", Value: ".notice"},
					{Name: "HX-Push-Url", Value: "false"},
				},
			},
		)
	}
}

// approveShown presses the button where it is, without scrolling to it.
func (p *page) approveShown() {
	p.t.Helper()
	p.Evaluate("document.querySelector('.shownform button').click()", nil)
	p.Settle()
}

// shown are the targets that Approve shown would take now.
func (p *page) shown() (list []int) {
	p.t.Helper()
	p.Evaluate(`(() => {
		const form = document.getElementById("approve-shown");
		return Object.entries(JSON.parse(sessionStorage.getItem("hub-shown-" + form?.dataset.draft) ?? "{}")).filter(([,
			text]) => text).map(([index]) => Number(index));
	})()`, &list)
	return list
}

// scrollMail scrolls what the mail on the page is read in to a part of its way, from 0 to 1.
func (p *page) scrollMail(part float64) {
	p.t.Helper()
	p.Evaluate(fmt.Sprintf(`(async () => {
		const mail = document.querySelector("article.target > .mail");
		const el = getComputedStyle(mail).overflowY === "auto" ? mail : document.scrollingElement;
		el.scrollTop = (el.scrollHeight - el.clientHeight) * %g;
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
	})()`, part), nil)
	p.Settle()
}

// TestShownMeansShown: Approve shown takes what a reviewer had before their eyes, and no more.
func TestShownMeansShown(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c"}})
	ada := s.person("Ada Lovelace", "reviewer")
	draft := func(t *testing.T, targets int, each func(i int, target map[string]any)) string {
		t.Helper()
		return s.queued(t, s.draft(t, draftOptions{name: t.Name(), targets: targets, madeUp: true, each: each}))
	}
	approved := func(t *testing.T, id string) int {
		t.Helper()
		return query[int](t, s, `SELECT count(*) FROM review_control.targets WHERE draft_id = $1::bigint AND choice = 'approved'`, id)[0]
	}
	const nothing = "Nothing was left to approve that has been shown in full."
	for _, window := range []struct {
		name  string
		width int64
	}{{"1280x800", 1280}, {"390x844", 390}} {
		t.Run(window.name, func(t *testing.T) {
			t.Parallel()
			t.Run("before the previews have come", func(t *testing.T) {
				id := draft(t, 5, nil)
				p := s.window(t, ada)
				p.Look("light", window.width)
				p.restless = true
				h := p.hold("*/preview*")
				p.Open("/drafts/" + id)
				p.read()
				if got := p.shown(); len(got) > 0 {
					t.Errorf("%v are taken for shown, and no preview has come", got)
				}
				p.approveShown()
				p.Sees(nothing)
				if n := approved(t, id); n != 0 {
					t.Errorf("%d are approved, and no preview has come", n)
				}
				// Nor does the mail's own button approve what has not come.
				one := func() {
					p.Evaluate(`document.querySelector("article .actions button").click()`, nil)
					p.Settle()
				}
				one()
				p.Sees("The mail has not come yet.")
				if n := approved(t, id); n != 0 {
					t.Errorf("%d are approved by a button, and no preview has come", n)
				}
				// One comes, one breaks, one is another page, one does not come.
				h.forget()
				p.Open("/drafts/" + id)
				for place, failure := range []string{"", "network", "<!doctype html><p>Dear reader, something else</p>"} {
					p.Target(place)
					h.letGo(place, failure)
					p.Settle()
					p.read()
					if place == 0 {
						p.eventually("the one that has come is taken for shown", func() bool { return len(p.shown()) > 0 })
					}
				}
				p.Target(3)
				p.read()
				if got := p.shown(); !slices.Equal(got, []int{0}) {
					t.Errorf("%v are taken for shown", got)
				}
				p.approveShown()
				p.Sees("1 mail is approved.")
				if n := approved(t, id); n != 1 {
					t.Errorf("%d are approved", n)
				}
				// Where something else has come its reader is asked once.
				h.forget()
				p.Open("/drafts/" + id + "/targets/1")
				h.letGo(1, "network")
				p.Settle()
				one()
				p.Sees("Is this the mail? Reload the page, or approve again.")
				if n := approved(t, id); n != 1 {
					t.Errorf("%d are approved, and the mail did not come", n)
				}
				one()
				p.eventually("it is approved", func() bool { return approved(t, id) == 2 })
			})

			t.Run("a refusal", func(t *testing.T) {
				id := draft(t, 3, func(i int, target map[string]any) {
					target["toEmail"] = fmt.Sprintf("refused%d-%d@company.example", i, window.width)
				})
				p := s.window(t, ada)
				p.Look("light", window.width)
				p.Open("/drafts/" + id)
				for place := range 3 {
					p.Target(place)
					p.read()
				}
				p.eventually("all are taken for shown", func() bool { return len(p.shown()) == 3 })
				query[int](t, s, `INSERT INTO review_control.suppressions SELECT lower(to_email), split_part(to_email, '@', 2), to_email,
					'asked', 'console', 'Bob', now() FROM review_control.targets WHERE draft_id = $1::bigint AND position = 1 RETURNING 1`, id)
				p.approveShown()
				p.Sees("has to be decided on by itself")
				if n, got := approved(t, id), p.shown(); n != 0 || len(got) != 3 {
					t.Errorf("%d are approved, and %v are still taken for shown", n, got)
				}
				p.Open("/drafts/" + id + "/targets/1")
				p.Press("r")
				p.eventually("the one is rejected", func() bool {
					return query[int](t, s, `SELECT count(*) FROM review_control.targets WHERE draft_id = $1::bigint AND choice = 'rejected'`, id)[0] == 1
				})
				p.Open("/drafts/" + id)
				p.approveShown()
				p.eventually("the others are approved", func() bool { return approved(t, id) == 2 })
				if got := p.shown(); len(got) != 0 {
					t.Errorf("%v are taken for shown, and all is decided", got)
				}
			})

			t.Run("half below the fold", func(t *testing.T) {
				id := draft(t, 3, func(_ int, target map[string]any) {
					target["body"] = strings.Repeat("<p>A mail that goes on and on.</p>", 30)
				})
				p := s.window(t, ada)
				p.Look("light", window.width)
				p.Open("/drafts/" + id)
				for place := range 3 {
					p.Target(place)
					p.scrollMail(0.5)
				}
				p.Target(0) // whose other half was not in view
				if got := p.shown(); len(got) > 0 {
					t.Errorf("%v are taken for shown, and half of each was in view", got)
				}
				p.approveShown()
				p.Sees(nothing)
				if n := approved(t, id); n != 0 {
					t.Errorf("%d are approved, and half of each was in view", n)
				}
				// Seen in two halves is seen.
				p.Target(1)
				p.eventually("what was in view is taken for shown", func() bool { p.read(); return slices.Equal(p.shown(), []int{1}) })
				p.Target(2)
				p.approveShown()
				p.Sees("1 mail is approved.")
				if approved(t, id) != 1 || s.decisions(t, id, 1) != 1 {
					t.Errorf("%d are approved, and the second was shown", approved(t, id))
				}
			})

			t.Run("flagged", func(t *testing.T) {
				bodies := []string{
					"<p>plain</p>",
					`<p style="color:#fff">white</p>`,
					`<img src="https://a.example/x.png" alt="x">`,
					`<a href="https://evil.com">bank.com</a>`,
					"<p>a</p>" + strings.Repeat("<br>", 300) + "<p>b</p>",
				}
				id := draft(t, len(bodies), func(i int, target map[string]any) { target["body"] = bodies[i] })
				p := s.window(t, ada)
				p.Look("light", window.width)
				p.Open("/drafts/" + id)
				p.LookThrough()
				if got := p.shown(); !slices.Equal(got, []int{0}) {
					t.Errorf("%v are taken for shown", got)
				}
				p.Sees("4 flagged: decide each on its own page.")
				p.role("you have read", false, "button").Click()
				p.Sees("1 mail is approved.")
			})

			t.Run("without JavaScript", func(t *testing.T) {
				id := draft(t, 4, nil)
				p := newPage(t, s.url)
				p.Look("light", window.width)
				p.WithoutJavaScript()
				p.Open("/drafts/" + id)
				p.signIn(ada.Email, ada.Password)
				p.role("you have read", false, "button").Click() // before that page, nothing was opened
				p.Sees(nothing)
				p.Open("/drafts/" + id + "/targets/2")
				p.Open("/drafts/" + id)
				p.role("you have read", false, "button").Click()
				p.Sees("2 mails are approved.")
				if n := approved(t, id); n != 2 || s.decisions(t, id, 0)+s.decisions(t, id, 2) != 2 {
					t.Errorf("%d are approved", n)
				}
			})
		})
	}
	t.Run("back and again", func(t *testing.T) {
		id := draft(t, 3, nil)
		p := s.signedIn(t, ada, "/drafts/"+id)
		p.LookThrough()
		p.Open("/drafts")
		p.Back()
		for _, again := range []func(){func() {}, p.Reload} {
			again()
			if got := p.shown(); !slices.Equal(got, []int{0, 1, 2}) {
				t.Errorf("%v are taken for shown, and all of them were", got)
			}
		}
		// What is decided is no longer to be approved, here or in another window.
		p.Button("Reject").In(p.Target(0)).Click()
		q := s.signedIn(t, ada, "/drafts/"+id)
		q.Button("Reject").In(q.Target(1)).Click()
		q.Target(1).Shows("Rejected")
		p.Reload()
		if got := p.shown(); !slices.Equal(got, []int{2}) {
			t.Errorf("%v are taken for shown, and the first two are rejected", got)
		}
		p.role("you have read", false, "button").Click()
		p.SeesEnd("1 mail is on its way.")
	})
}
