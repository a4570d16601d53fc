package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// mailsTo are those that one address got.
func (s *suite) mailsTo(email string) (list []localserver.Mail) {
	for _, m := range s.smtp.Mails() {
		if strings.EqualFold(m.DeliveredTo, email) {
			list = append(list, m)
		}
	}
	return list
}

// unsubscribeLink is the one-click address of a mail.
func unsubscribeLink(m localserver.Mail) string {
	return strings.Trim(m.Header.Get("List-Unsubscribe"), "<>")
}

// TestWorkflow is the whole way of a mail: search_brands → create_segment →
// save_message_draft → queue_for_review by an agent, the decisions by a person in a browser,
// and each approved mail once. Its store is behind a pooler in transaction mode.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	s := start(t, options{raced: true, pooled: true})
	ada := s.person("Ada Lovelace", "reviewer", "admin")
	contacts := s.contacts(t, 7)
	id := s.draft(t, draftOptions{
		targets:    7,
		name:       "Workflow",
		senderName: "Kim of Hub",
		subject:    "Für {{toName}} – 봄 <offer> & more",
		body: `<p>Dear {{toName}}, <b>hello</b> at {{toEmail}}.</p><p><a href="https://hub.example/offer?a=1&amp;b=2">See the ` +
			`offer</a></p><p>{{context.why}}</p>`,
	})
	if d := s.listed(t, id); d.Status != "draft" || d.TargetCount != 7 {
		t.Errorf("saved: %+v", d)
	}
	var queued struct {
		ReviewURL   string `json:"review_url"`
		Status      string
		TargetCount int
	}
	s.must(
		t,
		"queue_for_review",
		map[string]any{"draftId": id, "actor": "campaign agent", "note": "Please look at the second one."},
		&queued,
	)
	if queued.ReviewURL != s.url+"/drafts/"+id || queued.Status != "in_review" || queued.TargetCount != 7 {
		t.Errorf("queued: %+v", queued)
	}

	p := s.signedIn(t, ada, strings.TrimPrefix(queued.ReviewURL, s.url))
	p.Unfold("About this draft")
	p.Sees("Please look at the second one.")
	if name := p.Target(1).Name(); !strings.Contains(name, contacts[1].Name) {
		t.Errorf("the second target is %q, not %s", name, contacts[1].Name)
	}
	decide := func(place int, button, note, done string) {
		t.Helper()
		if target := p.Target(place); note != "" {
			p.Note(target).Fill(note)
		}
		p.Button(button).In(p.Target(place)).Click()
		p.Target(place).Shows(done)
	}
	decide(0, "Approve", "Fits well <b>&</b>", "Approved")
	decide(1, "Reject", "Not ours", "Rejected")
	decide(2, "Reject", "", "Rejected")
	decide(2, "Approve", "On second thought", "Approved")
	hubtest.Eventually(t, "list_drafts counts the decisions", func() bool {
		d := s.listed(t, id)
		return d.Status == "in_review" && d.Decisions.Approved == 2 && d.Decisions.Rejected == 1 && d.Decisions.Pending == 4
	})
	if n := len(s.smtp.Mails()); n != 0 {
		t.Fatalf("%d mails have left before the review has ended", n)
	}
	// Somebody leaves the list of recipients while the review goes on.
	other := s.signedIn(t, ada, "/admin/suppressions")
	other.Field("E-mail").Fill(strings.ToUpper(contacts[3].Email))
	other.Field("Reason").Fill("Asked for it by telephone")
	other.Button("Add").Click()
	other.Sees("is on the list now")

	p.Reload()
	p.LookThrough()
	p.role("you have read", false, "button").Click()
	p.Sees("3 mails are approved.")
	p.Button("Approve").Click() // the one left, who is on the suppression list since: that is a flag
	p.SeesEnd("6 mails are on their way.")
	hubtest.Eventually(t, "the draft is sent", func() bool { return s.listed(t, id).Status == "sent" })
	if d := s.listed(
		t,
		id,
	); d.Decisions.Approved != 6 || d.Decisions.Rejected != 1 || d.Delivery.Sent != 5 || d.Delivery.Suppressed != 1 ||
		d.Delivery.Failed != 0 {
		t.Errorf("sent: %+v", d)
	}
	all := s.smtp.Mails()
	if len(all) != 5 {
		t.Errorf("%d mails have left, not 5", len(all))
	}
	ids := map[string]bool{}
	for i, c := range contacts {
		got := s.mailsTo(c.Email)
		if wanted := map[bool]int{true: 0, false: 1}[i == 1 || i == 3]; len(got) != wanted {
			t.Errorf("target %d got %d mails, not %d", i, len(got), wanted)
			continue
		}
		for _, l := range got {
			ids[l.Header.Get("Message-Id")] = true
			to, _ := l.Header.AddressList("To")
			from, _ := l.Header.AddressList("From")
			if l.Subject != "Für "+c.Name+" – 봄 <offer> & more" || len(to) != 1 ||
				*to[0] != (mail.Address{Name: c.Name, Address: c.Email}) ||
				len(from) != 1 ||
				*from[0] != (mail.Address{Name: "Kim of Hub", Address: mailFrom}) {
				t.Errorf("subject %q, to %v, from %v", l.Subject, to, from)
			}
			if _, err := l.Header.Date(); err != nil {
				t.Errorf("date: %v", err)
			}
			if !strings.Contains(l.HTML, `<a href="https://hub.example/offer?a=1&amp;b=2">See the offer</a>`) ||
				!strings.Contains(l.Text, "https://hub.example/offer?a=1&b=2") ||
				!strings.Contains(l.Text, "It sells what we like.") ||
				strings.Contains(l.Text+l.HTML, "{{") ||
				strings.Contains(l.Text, "<b>") {
				t.Errorf("html %s\ntext %s", l.HTML, l.Text)
			}
			if !strings.HasPrefix(unsubscribeLink(l), s.url+"/unsubscribe/") ||
				l.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" ||
				l.Header.Get("Message-Id") == "" {
				t.Errorf("headers %v", l.Header)
			}
		}
	}
	if len(ids) != 5 {
		t.Errorf("message ids %v", ids)
	}
	p.Open("/drafts/" + id)
	p.Sees("5 of 6 sent")
	if n := p.Button("Approve").Count() + p.Button("Reject").Count() + p.Button("Cancel draft").Count(); n != 0 {
		t.Errorf("%d buttons are left on a draft that was sent", n)
	}
	p.Open("/drafts/" + id + "/targets/2")
	p.Sees("On second thought")

	t.Run("unsubscribe", func(t *testing.T) {
		p.in(t)
		link := unsubscribeLink(s.mailsTo(contacts[0].Email)[0])
		resp, err := http.Get(link)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("the link: %v %v", resp, err)
		}
		page, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(page), contacts[0].Email) {
			t.Error("the page shows the whole address to whoever has the link")
		}
		again := s.draft(t, draftOptions{targets: 2, name: "Once more"})
		queue := func() reply {
			return s.call("queue_for_review", map[string]any{"draftId": again}, "Idempotency-Key", fmt.Sprint("again ", s.calls.Add(1)))
		}
		// What a mail program's server sends: no cookie, no Origin, no redirect followed.
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for range 2 {
			resp, err := client.PostForm(link, url.Values{"List-Unsubscribe": {"One-Click"}})
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("one click: %v %v", resp, err)
			}
			resp.Body.Close()
		}
		r := queue()
		var details struct {
			Targets []struct {
				Index      int
				ExternalID int64 `json:"externalId"`
				ToEmail    string
			}
		}
		_ = json.Unmarshal(r.Error.Details, &details)
		if r.status != 422 || r.Error.Code != "E_SUPPRESSED" || len(details.Targets) != 1 || details.Targets[0].Index != 0 ||
			details.Targets[0].ToEmail != contacts[0].Email ||
			details.Targets[0].ExternalID != contacts[0].Partner {
			t.Errorf("queued for somebody who has unsubscribed: %s", r.raw)
		}
		if d := s.listed(t, again); d.Status != "draft" {
			t.Errorf("the refused draft is %s", d.Status)
		}
		p.Open("/admin/suppressions")
		p.Sees(contacts[0].Email)
		p.Link("Remove " + contacts[0].Email).Click()
		p.Sees("This person unsubscribed.")
		p.Field("Reason").Fill("Wants them again")
		p.Button("Remove").Click()
		p.Sees("is no longer on the list")
		if r := queue(); r.status != 200 {
			t.Errorf("after it was removed: %s", r.raw)
		}

		visitor := newPage(t, s.url)
		visitor.Open(strings.TrimPrefix(unsubscribeLink(s.mailsTo(contacts[2].Email)[0]), s.url))
		visitor.Button("Unsubscribe").Click()
		visitor.Sees("You are unsubscribed")
		if status := visitor.Open("/unsubscribe/" + strings.Repeat("A", 22)); status != http.StatusNotFound {
			t.Errorf("a link that no mail has answers %d", status)
		}
		other.Open("/admin/suppressions")
		other.Sees(contacts[2].Email)
	})

	t.Run("audit", func(t *testing.T) {
		for _, tool := range []string{"create_segment", "save_message_draft", "queue_for_review", "review.decide", "review.unsubscribe",
			"suppression.add", "suppression.remove"} {
			if !slices.Contains(s.auditedTools(t), tool) {
				t.Errorf("the audit log has no %s", tool)
			}
		}
	})
}
