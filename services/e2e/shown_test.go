package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
)

// LookThrough scrolls through the page as a reader does, until every target that can be was shown.
func (p *page) LookThrough() {
	p.t.Helper()
	p.eventually("every target was shown", func() bool {
		var left int
		err := p.evaluate(`(async () => {
			const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
			for (let y = 0; y < document.documentElement.scrollHeight; y += 150) { scrollTo(0, y); await drawn(); }
			return document.querySelectorAll("input[data-shown]:disabled").length;
		})()`, &left)
		return err == nil && left == 0
	})
	p.Settle()
}

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
	do(p, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern, RequestStage: fetch.RequestStageRequest}}})
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
		do(h.p, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}}, Body: []byte(failure)})
	}
}

// glance scrolls down the window and up again, faster than anybody reads.
func (p *page) glance() {
	p.t.Helper()
	p.Evaluate(`(async () => {
		const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		const end = document.documentElement.scrollHeight;
		for (let y = 0; y < end; y += 150) { scrollTo(0, y); await drawn(); }
		for (let y = end; y >= 0; y -= 150) { scrollTo(0, Math.max(0, y)); await drawn(); }
		return true;
	})()`, nil)
}

// approveShown presses the button where it is, without scrolling to it.
func (p *page) approveShown() {
	p.t.Helper()
	p.Evaluate("document.querySelector('.shownform button').click()", nil)
	p.Settle()
}

// enabled are the places of the targets that Approve shown would take now.
func (p *page) enabled() (list []int) {
	p.t.Helper()
	p.Evaluate(`[...document.querySelectorAll("article")].flatMap((a, i) => a.querySelector("input[data-shown]:not(:disabled)") ? [i] : [])`, &list)
	return list
}

// inView are the places of the targets of which name, sender, subject and preview are all in the window, below
// what sticks to its top.
func (p *page) inView() (list []int) {
	p.t.Helper()
	p.Evaluate(`(() => {
		const bar = document.querySelector(".reviewbar"), head = document.querySelector("header.top");
		const sticks = (el) => getComputedStyle(el).position === "sticky";
		const top = sticks(bar) ? bar.getBoundingClientRect().bottom : sticks(head) ? head.getBoundingClientRect().bottom : 0;
		return [...document.querySelectorAll("article")].flatMap((a, i) => {
			const boxes = [...a.querySelectorAll("[data-see], iframe")].map((e) => e.getBoundingClientRect());
			return boxes.every((b) => b.top >= top - 2 && b.bottom <= innerHeight + 2) ? [i] : [];
		});
	})()`, &list)
	return list
}

// TestShownMeansShown: Approve shown takes what a reviewer had before their eyes, and no more.
func TestShownMeansShown(t *testing.T) {
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
	const nothing = "Nothing on that page was left to approve that has been shown in full."
	for _, window := range []struct {
		name  string
		width int64
	}{{"1280x800", 1280}, {"390x844", 390}} {
		t.Run(window.name, func(t *testing.T) {
			t.Run("before the previews have come", func(t *testing.T) {
				id := draft(t, 4, nil)
				p := s.signedIn(t, ada, "/drafts")
				p.Look("light", window.width)
				p.restless = true
				h := p.hold("*/preview*")
				p.Open("/drafts/" + id)
				p.glance()
				if got := p.enabled(); len(got) > 0 {
					t.Errorf("%v are taken for shown, and no preview has come", got)
				}
				p.approveShown()
				p.Sees(nothing)
				if n := approved(t, id); n != 0 {
					t.Errorf("%d are approved, and no preview has come", n)
				}
				// One comes, one breaks, one is another page, one does not come.
				h.forget()
				p.Open("/drafts/" + id)
				p.glance()
				h.letGo(0, "")
				h.letGo(1, "network")
				h.letGo(2, "<!doctype html><p>Dear reader, something else</p>")
				p.Settle()
				p.glance()
				p.eventually("the one that has come is taken for shown", func() bool { return len(p.enabled()) > 0 })
				if got := p.enabled(); !slices.Equal(got, []int{0}) {
					t.Errorf("%v are taken for shown", got)
				}
				p.approveShown()
				p.Sees("1 target is approved.")
				if n := approved(t, id); n != 1 {
					t.Errorf("%d are approved", n)
				}
			})

			t.Run("half below the fold", func(t *testing.T) {
				id := draft(t, 8, nil)
				p := s.signedIn(t, ada, "/drafts")
				p.Look("light", window.width)
				p.Open("/drafts/" + id)
				seen := map[int]bool{}
				for _, y := range []string{ // the first one at the top, then the middle of the third one's preview at the bottom
					`document.querySelector("article").getBoundingClientRect().top - 200`,
					`(() => { const b = document.querySelectorAll("iframe")[2].getBoundingClientRect(); return b.top + b.height / 2 - innerHeight; })()`,
				} {
					p.Evaluate("scrollBy(0, "+y+")", nil)
					p.Settle()
					for _, i := range p.inView() {
						seen[i] = true
					}
					p.eventually("what is in view is taken for shown", func() bool { return len(p.enabled()) >= len(seen) })
					p.Settle()
					if got := p.enabled(); len(got) != len(seen) || slices.ContainsFunc(got, func(i int) bool { return !seen[i] }) {
						t.Errorf("%v are taken for shown, and %v were in view", got, seen)
					}
				}
				if seen[2] {
					t.Fatal("the third is in view, where half of it should be")
				}
				n := len(p.enabled())
				p.approveShown()
				if got := approved(t, id); got != n || n == 0 {
					t.Errorf("%d are approved, and %d were shown", got, n)
				}
				// Seen in two halves is seen.
				p.LookThrough()
				if n := len(p.enabled()); n < 2 {
					t.Errorf("%d are taken for shown after all was", n)
				}
			})

			t.Run("flagged", func(t *testing.T) {
				bodies := []string{"<p>plain</p>", `<p style="color:#fff">white</p>`, `<img src="https://a.example/x.png" alt="x">`, `<a href="https://evil.com">bank.com</a>`, "<p>a</p>" + strings.Repeat("<br>", 300) + "<p>b</p>"}
				id := draft(t, len(bodies), func(i int, target map[string]any) { target["body"] = bodies[i] })
				p := s.signedIn(t, ada, "/drafts")
				p.Look("light", window.width)
				p.Open("/drafts/" + id)
				p.LookThrough()
				if got := p.enabled(); !slices.Equal(got, []int{0}) {
					t.Errorf("%v are taken for shown", got)
				}
				p.Button("Approve shown").Click()
				p.Sees("1 target is approved.")
			})

			t.Run("without JavaScript", func(t *testing.T) {
				id := draft(t, 3, nil)
				p := newPage(t, s.url)
				p.Look("light", window.width)
				p.WithoutJavaScript()
				p.Open("/drafts/" + id)
				p.signIn(ada.Email, ada.Password)
				p.Button("Approve shown").Click()
				p.Sees(nothing)
				p.Open("/drafts/" + id + "/targets/1")
				p.Open("/drafts/" + id)
				p.Button("Approve shown").Click()
				p.Sees("1 target is approved.")
				if n := approved(t, id); n != 1 || s.decisions(t, id, 1) != 1 {
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
			var list, shown []int
			p.eventually("what is in view is taken for shown", func() bool {
				list, shown = p.inView(), p.enabled()
				return len(shown) >= len(list)
			})
			if len(shown) > len(list)+1 {
				t.Errorf("%v are taken for shown, and %v are in view", shown, list)
			}
		}
	})
}
