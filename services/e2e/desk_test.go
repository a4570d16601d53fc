package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"

	"hub.internal/pkg/hubtest"
)

// TestDesk: how a reviewer looks at one mail.
func TestDesk(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c", "HUB_SEND_DELAY=2m"}})
	ada := s.person("Ada Lovelace", "reviewer")
	snapshot := []byte(`{"brand_id":77,"brandName":"한빛 글로우","last_campaign_at":"2026-11-20T01:30:00Z","president":null,` +
		`"refs":{"order_id":5,"paid":true}}`)
	open := func(t *testing.T, width int64) (*page, string) {
		t.Helper()
		id := s.queued(t, s.draft(t, draftOptions{name: t.Name(), targets: 4, madeUp: true, snapshot: snapshot, senderName: "Hub Marketing",
			subject: "An offer for {{toName}}",
			body: `<p>Dear {{toName}},</p><p>Glow costs <b>{{context.price}}</b>, and this is the same for all.</p>` +
				`<p><a href="https://company.example/{{context.slug}}">Look at it</a></p>`,
			each: func(i int, target map[string]any) {
				target["context"] = map[string]any{"price": fmt.Sprintf("%d & more EUR", i), "slug": fmt.Sprintf("s-%d", i),
					"why": "They have not run a campaign since spring.", "tone": "polite"}
			}}))
		hubtest.Eventually(t, "its mails have been looked through", func() bool {
			return query[int](t, s, `SELECT inspected FROM review_control.reviews WHERE draft_id = $1::bigint`, id)[0] == 4
		})
		p := s.window(t, ada)
		p.in(t)
		p.Look("light", width)
		p.Open("/drafts/" + id)
		return p, id
	}
	screen := func(name string) string { return filepath.Join(hubtest.Root(t), ".hub", "e2e", "screens", name+".png") }
	installAxe(t)
	t.Run("what is particular", func(t *testing.T) {
		p, id := open(t, 1280)
		p.read()
		p.Inspect("desk")
		p.Look("light", 1280)
		var beside string
		p.Evaluate(`document.querySelector(".grounds").innerText`, &beside)
		for before, part := range strings.Split("Only in this mail|Price|0 & more EUR|Why the agent wrote|They have not run a campaign|Evidence|"+
			"Brand name|한빛 글로우|Last campaign at|Refs|Paid|1 id|Without a value: President|Context|Tone|polite", "|") {
			_, rest, found := strings.Cut(beside, part)
			if !found {
				t.Errorf("%d: %q is not there, or not in its place: %s", before, part, beside)
				break
			}
			if beside = rest; part == "Last campaign at" && strings.Contains(rest, "2026-11-20T") {
				t.Errorf("a moment stands as it was written: %s", rest)
			}
		}
		// Marks lie over the preview: what is below is not read by that, and is the same as before.
		p.Press("j")
		p.comes("t-1")
		p.eventually("it was shown", func() bool { p.read(); return p.isShown() })
		p.Press("m")
		p.Settle()
		var marks []string
		p.Evaluate(`[...document.querySelector(".marked").contentDocument.querySelectorAll("mark")].map((el) => el.innerText)`, &marks)
		if got := strings.Join(marks, "|"); got != "Person 1|1 & more EUR" {
			t.Errorf("marked is %s", got)
		}
		p.Screenshot(screen("desk-marks"))
		p.Press("j")
		p.comes("t-2")
		p.eventually("the next is marked, too", func() bool {
			var is bool
			return p.evaluate(`document.querySelector(".marked").contentDocument.querySelectorAll("mark").length === 2`, &is) == nil && is
		})
		p.read()
		if p.isShown() {
			t.Error("a marked mail is taken for read")
		}
		p.Press("m")
		p.eventually("it was shown", func() bool { p.read(); return p.isShown() })
		// As on a phone and in the dark.
		p.Press("p")
		var width float64
		p.Evaluate(`document.querySelector("iframe.preview").contentWindow.innerWidth`, &width)
		p.Screenshot(screen("desk-phone"))
		p.Press("d")
		p.Screenshot(screen("desk-dark"))
		if width != 375 {
			t.Errorf("a phone is %.0f pixels wide", width)
		}
		p.Press("w")
		// The mail goes to its reader, and to nobody else.
		p.Button("Send me this one").Click()
		p.Sees("Sent to " + ada.Email + ", as a test.")
		mails := s.smtp.Mails()
		last := mails[len(mails)-1]
		if len(mails) != 1 || last.DeliveredTo != ada.Email || last.Subject != "[Test] An offer for Person 2" ||
			last.Header.Get("List-Unsubscribe") != "" {
			t.Errorf("%+v", mails)
		}
		if n := query[int](t, s, `SELECT count(*) FROM audit.calls WHERE tool = 'review.test' AND detail ->> 'draft_id' = $1`, id)[0]; n != 1 {
			t.Errorf("%d rows in the audit log", n)
		}
		if n := query[int](t, s, `SELECT count(*) FROM review_control.targets
			WHERE draft_id = $1::bigint AND (progress <> '' OR attempts > 0)`, id)[0]; n != 0 {
			t.Errorf("%d mails count as sent", n)
		}
	})
	for _, window := range []struct {
		width, height int64
		least         float64
	}{{1280, 800, 0.55}, {390, 844, 0.55}, {640, 400, 0.15}} {
		t.Run(fmt.Sprintf("%dx%d", window.width, window.height), func(t *testing.T) {
			p, id := open(t, window.width)
			do(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: window.width, Height: window.height, DeviceScaleFactor: 1})
			p.Open("/drafts/" + id)
			var now struct{ Mail, Text, Window float64 }
			p.Evaluate(`(() => {
				const box = (s) => document.querySelector(s).getBoundingClientRect();
				const foot = Math.min(innerHeight, box(".verdict").top);
				return { Mail: foot - box(".target > .mail").top, Text: foot - box("iframe.preview").top, Window: innerHeight };
			})()`, &now)
			t.Logf("the mail has %.0f of %.0f pixels, its preview %.0f: %.0f %%", now.Mail, now.Window, now.Text, 100*now.Mail/now.Window)
			if now.Mail < window.least*now.Window || now.Text < 60 {
				t.Errorf("the mail has %.0f %% of the window", 100*now.Mail/now.Window)
			}
			p.Screenshot(screen(fmt.Sprintf("desk-%dx%d", window.width, window.height)))
			// Without single keys: from the begin of the page to Approve, and again from the next mail.
			p.Open("/drafts/" + id)
			for i, from := range []string{"the begin of the page", "the next mail"} {
				tabs, at := 0, ""
				for ; tabs < 6 && at != "Approve"; tabs++ {
					p.Press(kb.Tab)
					p.Evaluate("document.activeElement.innerText", &at)
					if at == "To the decision" {
						p.Press(kb.Enter)
					}
				}
				t.Logf("from %s to Approve: %d Tabs", from, tabs)
				if at != "Approve" || tabs > 5 {
					t.Errorf("from %s: after %d Tabs at %q", from, tabs, at)
				}
				p.Press(kb.Enter)
				p.comes(fmt.Sprintf("t-%d", i+1))
			}
		})
	}
	t.Run("without JavaScript", func(t *testing.T) {
		_, id := open(t, 1280)
		p := newPage(t, s.url)
		p.Look("light", 1280)
		p.WithoutJavaScript()
		p.Open("/drafts/" + id)
		p.signIn(ada.Email, ada.Password)
		p.Unfold("Evidence")
		p.Link("Marks").Click()
		p.Sees("Glow costs 0 & more EUR")
		p.Back()
		p.Unfold("Evidence")
		p.Button("Send me this one").Click()
		p.Sees("Sent to " + ada.Email)
	})
}
