package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"hub.internal/pkg/hubtest"
)

// shifted presses a key with Shift held.
func (p *page) shifted(key string, code int64) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		do(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Modifiers: 8, Key: key, Code: key, WindowsVirtualKeyCode: code})
	}
	p.Settle()
}

// TestTogether: mails are rejected together, chosen by mouse, keys or as a whole; and keys lead to what is left.
func TestTogether(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c", "HUB_SEND_DELAY=2m"}})
	ada := s.person("Ada Lovelace", "reviewer")
	installAxe(t)
	draft := func(t *testing.T, targets int) string {
		t.Helper()
		id := s.queued(t, s.draft(t, draftOptions{name: t.Name(), targets: targets, madeUp: true,
			subject: "An offer for {{toName}}", body: "<p>Dear {{toName}},</p><p>Glow costs {{context.price}}.</p>",
			each: func(i int, target map[string]any) {
				target["context"] = map[string]any{"price": fmt.Sprintf("%d EUR", i)}
				if i == 6 {
					target["body"] = `<p><a href="https://evil.example/">https://company.example/</a></p>`
				}
			}}))
		hubtest.Eventually(t, "its mails have been looked through", func() bool {
			return query[int](t, s, `SELECT inspected FROM review_control.reviews WHERE draft_id = $1::bigint`, id)[0] == targets
		})
		return id
	}
	rejected := func(t *testing.T, id, reason string, want ...int) {
		t.Helper()
		got := query[int](t, s, `SELECT position FROM review_control.targets WHERE draft_id = $1::bigint AND choice = 'rejected'
			AND reason = $2 ORDER BY position`, id, reason)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v are rejected for %q, not %v", got, reason, want)
		}
	}
	for _, window := range []struct {
		name  string
		width int64
	}{{"1280x800", 1280}, {"390x844", 390}} {
		open := func(t *testing.T, targets int) (*page, string) {
			t.Helper()
			id := draft(t, targets)
			p := s.window(t, ada)
			p.in(t)
			p.Look("light", window.width)
			p.Open("/drafts/" + id)
			return p, id
		}
		pick := func(p *page, i int, shift bool) {
			p.t.Helper()
			p.Evaluate(fmt.Sprintf(`document.querySelectorAll(".pick input")[%d].dispatchEvent(new MouseEvent("click",
				{bubbles: true, cancelable: true, shiftKey: %t}))`, i, shift), nil)
			p.Settle()
		}
		t.Run(window.name, func(t *testing.T) {
			t.Run("a selection", func(t *testing.T) {
				p, id := open(t, 9)
				pick(p, 1, false)
				pick(p, 4, true)
				p.Sees("4 selected")
				if window.width > 1000 {
					p.Press("r")
					p.Inspect("draft-reject-selected")
					p.Look("light", window.width)
				} else {
					p.Evaluate(`document.querySelector(".selection summary").click()`, nil)
				}
				p.Press("2")
				p.Sees("4 mails are rejected.")
				rejected(t, id, "content", 1, 2, 3, 4)
				p.Press("u")
				p.Sees("Undone: 4 mails are as they were before.")
				rejected(t, id, "content")
				// By keys alone; it is remembered while another mail is read.
				p.Evaluate(`document.querySelector(".rows a[tabindex='0']").focus()`, nil)
				p.shifted("ArrowDown", 40)
				p.shifted("ArrowDown", 40)
				p.Sees("3 selected")
				p.Press("j")
				p.Sees("3 selected")
				p.Press("r", kb.Escape)
				rejected(t, id, "")
				p.Press("x") // the mail that is read is taken out
				p.Sees("2 selected")
				p.Press("r", kb.Enter) // without a reason
				p.Sees("2 mails are rejected.")
				rejected(t, id, "", 0, 2)
			})
			t.Run("all that a filter finds", func(t *testing.T) {
				p, id := open(t, 7)
				p.Open("/drafts/" + id + "?flag=link")
				p.Evaluate(`document.querySelector("input[name=all]").click()`, nil)
				p.Press("r", "6")
				p.Sees("1 mail is rejected.")
				rejected(t, id, "other", 6)
				p.Open("/drafts/" + id)
				p.Evaluate(`document.querySelector("input[name=all]").click()`, nil)
				p.Press("r", "4")
				p.Sees("6 mails are rejected. That ends the review. Nothing was approved, so nothing is sent.")
				rejected(t, id, "timing", 0, 1, 2, 3, 4, 5)
			})
			t.Run("a variant and what was read", func(t *testing.T) {
				p, id := open(t, 8)
				p.LookThrough()
				p.Press("R", "1")
				p.Sees("7 mails are rejected.") // and not the flagged one
				rejected(t, id, "recipient", 0, 1, 2, 3, 4, 5, 7)
				p.Press("u")
				p.Sees("Undone: 7 mails are as they were before.")
				p.Open("/drafts/" + id + "/variants/1")
				p.Press("r")
				if window.width > 1000 {
					p.Inspect("variant-reject")
					p.Look("light", window.width)
				}
				p.Press("3")
				p.Sees("7 mails are rejected.")
				rejected(t, id, "tone", 0, 1, 2, 3, 4, 5, 7)
			})
			t.Run("what is left", func(t *testing.T) {
				p, id := open(t, 9)
				p.Press("a")
				p.comes("t-1")
				p.Press("k")
				p.comes("t-0")
				p.Press("n")
				p.comes("t-1")
				p.Press("s")
				p.comes("t-2")
				p.Sees("Later")
				if window.width > 1000 {
					p.Press("f")
				} else { // a phone has no room for its button
					p.Open("/drafts/" + id + "/targets/6")
				}
				p.comes("t-6")
				p.Press("n", "n", "n")
				p.comes("t-1") // from the begin again
				var bar []string
				p.Evaluate(`[...document.querySelectorAll(".verdict .ways a")].filter((a) => a.checkVisibility() &&
					a.getBoundingClientRect().bottom <= innerHeight).map((a) => a.innerText)`, &bar)
				want := "Previous Next Later Flagged"
				if window.width < 1000 {
					want = "Previous Next Later"
				}
				if got := strings.Join(bar, " "); got != want {
					t.Errorf("in the bar: %s", got)
				}
				p.Button("Approve").DoubleClick()
				p.Sees("Too quick")
				// Without single keys: from the begin of the page to the decision.
				p.Reload()
				tabs, at := 0, ""
				for ; tabs < 6 && at != "Approve"; tabs++ {
					p.Press(kb.Tab)
					p.Evaluate("document.activeElement.innerText", &at)
					if at == "To the decision" {
						p.Press(kb.Enter)
					}
				}
				if at != "Approve" || tabs > 5 {
					t.Errorf("after %d Tabs at %q", tabs, at)
				}
				p.Evaluate(`[...document.querySelectorAll(".rows a, .pick input")].filter((el) => el.tabIndex === 0).length`, &tabs)
				if tabs != 1 {
					t.Errorf("the list is %d stops of Tab", tabs)
				}
			})
			t.Run("without JavaScript", func(t *testing.T) {
				id := draft(t, 5)
				p := newPage(t, s.url)
				p.Look("light", window.width)
				p.WithoutJavaScript()
				p.Open("/drafts/" + id)
				p.signIn(ada.Email, ada.Password)
				p.Field("Select mail 2").Click()
				p.Field("Select mail 4").Click()
				p.Unfold("Reject selected")
				p.Button("Wrong or untrue content").Click()
				p.Sees("2 mails are rejected.")
				rejected(t, id, "content", 1, 3)
				p.Button("Undo").Click()
				p.Sees("Undone: 2 mails are as they were before.")
				p.Field("All 5 to decide").Click()
				p.Unfold("Reject selected")
				p.Button("No reason given").Click()
				p.Sees("5 mails are rejected.")
			})
		})
	}
	t.Run("a hundred rows", func(t *testing.T) {
		id := draft(t, 101)
		p := s.window(t, ada)
		p.in(t)
		p.Look("light", 1280)
		p.Open("/drafts/" + id + "/variants/1")
		var table struct {
			Rows   int
			Height float64
		}
		p.Evaluate(`(() => { const t = document.querySelector(".values tbody");
			return { Rows: t.rows.length, Height: t.getBoundingClientRect().height }; })()`, &table)
		if table.Rows != 100 || table.Height > 2500 {
			t.Errorf("%+v", table)
		}
		p.Inspect("variant-rows")
	})
	t.Run("on paper", func(t *testing.T) {
		id := draft(t, 3)
		p := s.window(t, ada)
		p.in(t)
		p.Look("light", 1280)
		p.Open("/drafts/" + id + "/targets/1")
		do(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		text := p.Text()
		var preview float64
		p.Evaluate(`document.querySelector("iframe.preview").getBoundingClientRect().height`, &preview)
		if preview < 50 || !strings.Contains(text, "An offer for Person 1") || strings.Contains(text, "Evidence") ||
			strings.Contains(text, "Plain text") || strings.Contains(text, "Approve") {
			t.Errorf("the mail has %.0f px of the paper, beside %s", preview, text)
		}
	})
}
