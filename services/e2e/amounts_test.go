package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"

	"hub.internal/pkg/hubtest"
)

// reader decides a draft as a person in no hurry does: each screen is read for four seconds, and a key takes one.
type reader struct {
	*page
	screens, keys, stops int
}

func (r *reader) took() time.Duration {
	return time.Duration(r.screens)*4*time.Second + time.Duration(r.keys)*time.Second
}

// reads counts the screens of the page, and scrolls through it until the page knows that it was seen.
func (r *reader) reads() {
	r.t.Helper()
	var screens int
	r.Evaluate("Math.ceil(document.documentElement.scrollHeight / innerHeight)", &screens)
	r.screens += screens
	r.eventually("all was in view", func() bool { r.inView(); return strings.Contains(r.Text(), "All of it was in view.") })
}

// press counts a key.
func (r *reader) press(key string) { r.t.Helper(); r.keys++; r.Press(key) }

// swipe draws a finger over an element.
func (p *page) swipe(selector string, dx, dy float64) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	p.Evaluate(fmt.Sprintf(`(() => { const box = document.querySelector(%q).getBoundingClientRect();
		return {X: box.left + box.width / 2, Y: box.top + Math.min(box.height / 2, 60)}; })()`, selector), &at)
	touch := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		do(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
	}
	touch(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: at.X, Y: at.Y})
	for i := range 4 {
		part := float64(i+1) / 4
		touch(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: at.X + dx*part, Y: at.Y + dy*part})
	}
	do(p, input.DispatchTouchEvent,
		input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
	p.Settle()
}

// TestRealAmounts: 400 mails of two templates, one of which has a table, and a newsletter are approved variant by variant, page by page; no
// mail has to be decided by itself.
func TestRealAmounts(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c", "HUB_SEND_DELAY=2m"}})
	ada := s.person("Ada Lovelace", "reviewer")
	table := `<p>{{toName}}님, 안녕하세요.</p><table border="1" cellpadding="6"><tr><th>상품</th><th>수량</th><th>가격</th></tr>` +
		`<tr><td>Glow 세럼</td><td>{{context.n}}</td><td>₩1,200,000</td></tr><tr><td>Glow 크림</td><td>20</td><td>₩980,000</td></tr></table>` +
		`<p>감사합니다.</p>`
	invitation := `<p>Dear {{toName}},</p><p>Your last campaign had {{context.n}} applications.</p><p>Would you like to plan the next one?</p>`
	amounts := []struct {
		name    string
		targets int
		most    time.Duration
		each    func(i int, target map[string]any)
	}{
		{"400 mails of two templates", 400, 20 * time.Minute, func(i int, target map[string]any) {
			target["context"] = map[string]any{"n": 100 + i}
			if i%2 == 1 {
				target["subject"], target["body"] = "{{toName}}님께 드리는 제안", table
			}
		}},
		{"a newsletter", 3036, time.Hour, func(int, map[string]any) {}},
	}
	t.Run("a swipe turns the mail", func(t *testing.T) {
		id := s.queued(t, s.draft(t, draftOptions{name: "To be turned", targets: 3, madeUp: true}))
		p := s.signedIn(t, ada, "/drafts")
		p.Look("light", 390)
		p.Open("/drafts/" + id + "/targets/0")
		p.Settle()
		for _, swipe := range []struct {
			dx, dy float64
			at     string
		}{{-150, 10, "1"}, {-150, 0, "2"}, {150, 0, "1"}, {-40, 0, "1"}, {-100, 90, "1"}, {160, 20, "0"}} {
			p.swipe("iframe.preview", swipe.dx, swipe.dy)
			p.eventually("mail "+swipe.at, func() bool { return p.Path() == "/drafts/"+id+"/targets/"+swipe.at })
		}
		p.swipe("article.target > header", -150, 0)
		p.eventually("the next mail", func() bool { return p.Path() == "/drafts/"+id+"/targets/1" })
	})
	for _, amount := range amounts {
		t.Run(amount.name, func(t *testing.T) {
			if amount.targets > 1000 && os.Getenv("HUB_TEST_ALL") == "" {
				t.Skip("HUB_TEST_ALL=1 decides on the newsletter as well")
			}
			body := invitation
			if amount.targets > 1000 {
				body = strings.ReplaceAll(invitation, "Your last campaign had {{context.n}} applications.", "This is what is new in spring.")
			}
			id := s.queued(t, s.draft(t, draftOptions{name: amount.name, targets: amount.targets, madeUp: true, subject: "For {{toName}}",
				body: body, each: amount.each}))
			hubtest.Eventually(t, "its mails have been looked through", func() bool {
				return query[int](t, s, `SELECT inspected FROM review_control.reviews WHERE draft_id = $1::bigint`, id)[0] == amount.targets
			})
			r := &reader{page: s.signedIn(t, ada, "/drafts/"+id)}
			r.screens++
			approved := func() int {
				return query[int](t, s, `SELECT count(*) FROM review_control.targets WHERE draft_id = $1::bigint AND choice = 'approved'`, id)[0]
			}
			r.press("v")
			r.Link("Variant 1").Click()
			r.keys++
			for n := 0; n < amount.targets && strings.Contains(r.Path(), "/variants/"); n = approved() {
				r.reads()
				r.press("a")
				r.eventually("they are approved", func() bool { return approved() > n })
			}
			r.stops = query[int](t, s, `SELECT count(*) FROM review_control.targets WHERE draft_id = $1::bigint AND choice = 'pending'`, id)[0]
			t.Logf("%s: %s, %d screens, %d keys, %d mails to be decided alone", amount.name, r.took(), r.screens, r.keys, r.stops)
			if r.stops > 0 || r.took() > amount.most {
				t.Errorf("%d mails have to be decided alone, and it takes %s", r.stops, r.took())
			}
		})
	}
}
