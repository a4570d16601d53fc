package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// TestAccessibility judges every page of the console, in the states that it can be in.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	installAxe(t)
	outcome := func(address string) error {
		switch {
		case strings.HasPrefix(address, "refused"):
			return localserver.Reply(550, "no such mailbox")
		case strings.HasPrefix(address, "later"):
			return localserver.Reply(451, "greylisted, try again later")
		}
		return nil
	}
	var broken string
	s := start(t, options{
		env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c", "HUB_SEND_RETRY=10m", "HUB_SEND_WORKERS=1"},
		smtp: localserver.SMTPHooks{
			Rcpt: func(address string) error { broken = address; return outcome(address) },
			// One mail at a time: the address is this mail's.
			Kept: func() error {
				if strings.HasPrefix(broken, "broken") {
					return localserver.ErrCut
				}
				return nil
			},
		},
	})
	ada := s.person("Ada Lovelace", "reviewer", "admin")
	nobody := s.person("Nobody At All")

	t.Run("signing in", func(t *testing.T) {
		p := newPage(t, s.url)
		p.Open("/login")
		p.Inspect("login")
		p.signIn(nobody.Email, "a wrong one, surely")
		p.Inspect("login-wrong")
		p.signIn(nobody.Email, nobody.Password)
		p.Open("/account/sessions")
		p.Inspect("account")
		p.Open("/drafts")
		p.Inspect("error-403")
		p.Open("/account/nothing")
		p.Inspect("error-404")
		p.Open("/logout")
		p.Inspect("logout")
	})

	t.Run("the reference", func(t *testing.T) {
		p := newPage(t, s.url)
		p.Open("/docs")
		p.Inspect("docs")
		p.Field("Filter tools and routes").Fill("refund money")
		p.Sees("pay.orders.refund")
		p.SeesNot("search_brands")
		p.Look("dark", 390)
		p.report("docs-dark-390", p.violations(nil, ofColours))
		p.fits("docs-dark-390")
		p.Look("light", 1280)
		p.Link("pay.orders.refund").Click()
		p.Sees("Previous: Routes:")
		p.Inspect("docs-orders")
		for _, at := range []string{"/docs#get_brand", "/docs/tools/query#get_brand"} { // a name alone leads to its page
			p.Open(at)
			p.eventually("the sidebar marks get_brand", func() bool {
				var marked string
				p.Evaluate(`[...document.querySelectorAll(".side [aria-current=location]")].map((a) => a.hash).join()`, &marked)
				return marked == "#get_brand"
			})
		}
		p.Open("/docs/apps")
		p.Inspect("docs-apps")
	})

	p := s.signedIn(t, ada, "/drafts")
	p.Inspect("drafts-empty")
	p.Open("/admin/suppressions")
	p.Inspect("suppressions-empty")

	names := []string{"refused", "later", "broken", "suppressed", "fine", "also.fine"}
	sending := s.queued(
		t,
		s.draft(t, draftOptions{name: "Being sent", targets: len(names), madeUp: true, each: func(i int, target map[string]any) {
			target["toEmail"] = names[i] + "@company.example"
		}}),
	)
	sent := s.queued(t, s.draft(t, draftOptions{name: "Sent to everybody", targets: 2, madeUp: true}))
	s.draft(t, draftOptions{name: "Not queued yet", targets: 3, madeUp: true})
	mine := s.queued(t, s.draft(t, draftOptions{name: "My own", targets: 1, madeUp: true, createdBy: ada.Email}))
	rejected := s.queued(t, s.draft(t, draftOptions{name: "Not for us", targets: 1, madeUp: true}))
	cancelled := s.queued(t, s.draft(t, draftOptions{name: "Never mind", targets: 1, madeUp: true}))
	review := s.queued(
		t,
		s.draft(t, draftOptions{
			name:       "Frühling 봄 春 — an offer with a rather long name, to see what becomes of those when there is little room",
			targets:    9,
			madeUp:     true,
			createdBy:  "campaign-agent-with-a-name-that-nobody-can-break-anywhere",
			senderName: "Kim",
			snapshot:   evidenceOfEverything,
			each: func(i int, target map[string]any) {
				switch i {
				case 3: // hidden text, a link that lies, a picture from elsewhere
					target["body"] = `<p>Hello</p><div style="display:none">secret words</div><p style="color:#fff;background:#fff">white on white</p>` +
						`<p><a href="https://evil.example/login">https://company.example/login</a></p><img src="https://tracker.example/p.gif" ` +
						`width="1" height="1">`
				case 4:
					target["body"] = "Plain text.\n\nNo tags & no links; just lines.\n"
				case 5:
					target["body"] = "<p>" + strings.Repeat("A long mail goes on and on. ", 4000) + "</p>"
				case 6:
					delete(target, "toName")
					target["subject"], target["body"] = "No name", "<p>Hello!</p>"
					target["toEmail"] = "an.address.that.is.as.long.as.they.come.and.cannot.be.broken@a-company-with-a-long-name.example"
				case 7:
					target["toName"] = "نورة العتيبي"
					target["body"] = `<p dir="rtl">مرحبا</p>`
				case 8:
					target["body"] = `<p>Hello</p><p><img src="https://cdn.example/b.png" alt="Our shop" width="300" height="100"></p>`
					target["context"] = map[string]any{
						"score": 0.93,
						"empty": "",
						"none":  nil,
						"list":  []any{1, "two", map[string]any{"three": 3}},
						"long":  strings.Repeat("because ", 200),
					}
				}
			},
		}),
	)

	p.Open("/admin/suppressions")
	for i := range 30 {
		p.post(attempt{path: "/admin/suppressions", body: fmt.Sprintf("email=leaver%d%%40company.example&reason=Asked+by+post", i)})
	}
	p.post(attempt{path: "/admin/suppressions", body: "email=suppressed%40company.example&reason="})

	t.Run("reviewing", func(t *testing.T) {
		p.in(t)
		for place, button := range map[int]string{1: "Approve", 2: "Reject"} {
			p.Open("/drafts/" + review)
			p.Note(p.Target(place)).Fill("A note, such as people write: fits well & more.")
			p.Button(button).In(p.Target(place)).Click()
		}
		p.Inspect("draft-review-decided")
		p.Open("/drafts/" + review)
		p.Inspect("draft-review")
		p.Press("?")
		p.Inspect("draft-help")
		p.Open("/drafts/" + review + "?q=nothing+like+this")
		p.Inspect("draft-no-match")
		for _, target := range []int{1, 3, 5, 8} {
			p.Open(fmt.Sprintf("/drafts/%s/targets/%d", review, target))
			p.Inspect(fmt.Sprintf("target-%d", target))
		}
		for _, target := range []int{4, 7, 8} { // text, from right to left, with a picture that is not loaded
			p.Open(fmt.Sprintf("/drafts/%s/targets/%d", review, target))
			p.InspectFrame(fmt.Sprintf("target-%d", target))
		}
		p.Open("/drafts/" + mine)
		p.Inspect("draft-mine")
	})

	t.Run("ended", func(t *testing.T) {
		p.in(t)
		for _, id := range []string{sending, sent} {
			p.Open("/drafts/" + id)
			p.LookThrough()
			p.role("you have read", false, "button").Click()
			if id == sending { // one of them has a flag: the address is on the suppression list since
				p.Sees("5 mails are approved.")
				p.Button("Approve").Click()
			}
			p.SeesEnd("")
		}
		p.Open("/drafts/" + rejected)
		p.Button("Reject").Click()
		p.Sees("That ends the review.")
		p.Open("/drafts/" + cancelled)
		p.Button("Cancel draft").Click()
		p.Inspect("draft-cancel")
		p.Button("Cancel draft").Click()
		p.Sees("The draft is cancelled. Nothing of it is sent.")
		hubtest.Eventually(t, "mails are in all states", func() bool {
			return strings.Join(s.progress(t, sending), " ") == "failed queued unknown suppressed sent sent" &&
				s.listed(t, sent).Status == "sent"
		})
		for name, id := range map[string]string{"sending": sending, "sent": sent, "rejected": rejected, "cancelled": cancelled} {
			p.Open("/drafts/" + id)
			p.Inspect("draft-" + name)
		}
		p.Open("/drafts")
		p.Inspect("drafts")
		p.Open("/drafts?status=rejected")
		p.Inspect("drafts-filtered")
		p.Open("/drafts/" + sending + "/targets/2")
		p.Inspect("target-unknown")
	})

	t.Run("suppression list", func(t *testing.T) {
		p.in(t)
		p.Open("/admin/suppressions")
		p.Inspect("suppressions")
		p.Open("/admin/suppressions/remove?email=leaver1@company.example")
		p.Inspect("suppression-remove")
		file := filepath.Join(t.TempDir(), "leavers.csv")
		if err := os.WriteFile(
			file,
			[]byte("email,reason\na@company.example,x\nno address,y\n\"open\nb@company.example,\n"),
			0o644,
		); err != nil {
			t.Fatal(err)
		}
		p.Open("/admin/suppressions")
		p.role("CSV file", false, "button", "textbox").Upload(file)
		p.Field("Reason for lines without one").Fill("From the old system")
		p.Button("Import").Click()
		p.Sees("Back to the list")
		p.Inspect("suppression-import")
		p.Open("/admin/suppressions")
		p.post(attempt{path: "/admin/suppressions", body: "email=&reason="})
		p.Field("E-mail").Fill("two@at@signs.example")
		p.Evaluate("document.querySelector('form[action=\"/admin/suppressions\"][method=post]').noValidate = true", nil)
		p.Button("Add").Click()
		p.Inspect("suppressions-wrong")
	})

	t.Run("unsubscribing", func(t *testing.T) {
		link := strings.TrimPrefix(unsubscribeLink(s.mailsTo("fine@company.example")[0]), s.url)
		v := newPage(t, s.url)
		v.Open(link)
		v.Inspect("unsubscribe")
		v.Button("Unsubscribe").Click()
		v.Inspect("unsubscribed")
		v.Open("/unsubscribe/" + strings.Repeat("A", 22))
		v.Inspect("unsubscribe-unknown")
	})

	t.Run("a service that is away", func(t *testing.T) {
		p.in(t)
		s.process["authoring"].Kill()
		p.Open("/drafts/" + review)
		p.Inspect("error-503")
		s.process["review-control"].Kill()
		p.Open("/drafts")
		p.Inspect("error-503-all")
	})
}

// evidenceOfEverything is a row with each kind of value that a source has.
var evidenceOfEverything = []byte(
	`{"brand_id":9007199254740993,"brand_name":"삼성 Frühstück","active":true,"closed":false,"president":null,"ratio":0.10,
	"empty":"","list":[],"object":{},
	"url":"https://a-very-long-host-name-that-cannot-be-broken.example/with/a/path/that/goes/on/and/on?and=a&query=too",
	"contact":{"name":"金 雅","phones":["+82 2 000 0000","+82 10 0000 0000"]},"description":"` + strings.Repeat(
		"A brand with a long description. ",
		30,
	) + `"}`,
)
