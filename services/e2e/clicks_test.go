package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// walk counts what a person does until the answer to a question is on the screen: clicks, and Enter. What is typed is no click.
type walk struct {
	*page
	count int
}

func (w *walk) click(e element) {
	w.t.Helper()
	w.count++
	e.Click()
}

// seek types into the field of the header.
func (w *walk) seek(text string) {
	w.t.Helper()
	w.Press("/")
	w.Field("Search everything").Fill(text)
	w.count++
	w.Press(kb.Enter)
	w.Settle()
}

// threeClicks: who sent what to whom, what went wrong and why, who may do what, and what money goes back is at most three clicks away from
// the first page of a reviewer and from that of an administrator.
func threeClicks(t *testing.T, x *shop) {
	order := x.made(t, `{"amount":55000,"payMethod":"vbank","orderName":"Three clicks"}`)
	x.becomes(t, order.Code, "AWAITING_DEPOSIT")
	x.control(t, "deposit", `{"orderId":"`+order.Code+`","amount":55000}`)
	x.becomes(t, order.Code, "PAID")
	root := x.person("Rosa Root", "admin", "reviewer")
	recipient := x.contacts(t, 1)[0].Email
	draft := x.queued(t, x.draft(t, draftOptions{name: "Sent in three clicks", targets: 1}))
	reviewer := x.signedIn(t, root, "/drafts/"+draft)
	reviewer.LookThrough()
	reviewer.role("you have read", false, "button").Click()
	reviewer.eventually("the mail is sent", func() bool { return strings.Join(x.progress(t, draft), " ") == "sent" })
	refused := x.call("search_brands", `{"limit":100000}`)

	for _, start := range []string{"/drafts", "/admin"} {
		for question, find := range map[string]func(w *walk){
			"who may do what": func(w *walk) {
				if start == "/drafts" {
					w.click(w.Link("Admin"))
				}
				w.click(w.Link("Users"))
				w.Sees(root.Email)
			},
			"what went wrong in the last hour, and why": func(w *walk) {
				x.call("search_brands", `{"limit":100000}`) // others are refused beside it: this is the newest
				if start == "/drafts" {
					w.click(w.Link("Admin"))
				}
				w.click(w.Link("1 hour"))
				w.eventually("the refused call is counted", func() bool {
					w.Open("/admin?range=1h")
					return strings.Contains(w.Text(), "E_VALIDATION")
				})
				w.click(w.Link("E_VALIDATION"))
				w.Sees("must be at most")
			},
			"which key is used most": func(w *walk) {
				if start == "/drafts" {
					w.click(w.Link("Admin"))
				}
				w.Sees("Who called most")
			},
			"what became of a request": func(w *walk) { w.seek(refused.RequestID); w.Sees("must be at most") },
			"who sent what to whom": func(w *walk) {
				w.seek(recipient)
				w.Sees("by " + root.Email)
				w.Sees("Sent")
			},
			"a refund in part": func(w *walk) {
				w.seek(order.Code)
				w.Field("Amount in won").Fill("15000")
				w.count++
				w.Press(kb.Enter)
				w.Sees("₩15,000 of ₩55,000 go back to the payer")
			},
		} {
			t.Run(fmt.Sprintf("%s from %s", question, start), func(t *testing.T) {
				w := &walk{page: x.signedIn(t, root, start)}
				find(w)
				if w.count > 3 {
					t.Errorf("it takes %d clicks", w.count)
				}
			})
		}
	}
}
