package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"hub.internal/pkg/hubtest"
)

// TestReview is what people do, and do wrong, at the page of a draft.
func TestReview(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	ada, bob := s.person("Ada Lovelace", "reviewer", "admin"), s.person("Bob Babbage", "reviewer")
	open := func(t *testing.T, u person, o draftOptions) (*page, string) {
		t.Helper()
		if o.targets == 0 {
			o.targets = 3
		}
		o.name = t.Name()
		id := s.queued(t, s.draft(t, o))
		return s.signedIn(t, u, "/drafts/"+id), id
	}
	counts := func(t *testing.T, id string, status string, pending, approved, rejected int) {
		t.Helper()
		var d listed
		hubtest.Eventually(t, fmt.Sprintf("%s: %d pending, %d approved, %d rejected", status, pending, approved, rejected), func() bool {
			d = s.listed(t, id)
			return d.Status == status && d.Decisions.Pending == pending && d.Decisions.Approved == approved &&
				d.Decisions.Rejected == rejected
		})
	}

	t.Run("double click", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{})
		p.Button("Approve").In(p.Target(0)).DoubleClick()
		p.Target(0).Shows("Approved")
		counts(t, id, "in_review", 2, 1, 0)
		if n := s.decisions(t, id, 0); n != 1 {
			t.Errorf("two clicks made %d decisions", n)
		}
		p.SeesNot("somebody else")
		p.LookThrough()
		p.role("you have read", false, "button").DoubleClick()
		p.SeesEnd("3 mails are on their way.")
		counts(t, id, "sent", 0, 3, 0)
	})

	t.Run("slow double click", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{targets: 5})
		// The next mail comes to where the decided one was, and so does its button.
		p.Press("j")
		p.Button("Approve").In(p.Target(1)).DoubleClickAround(func() {
			p.eventually("the next mail is there", func() bool { return p.at() == "t-2" })
			p.Settle()
		})
		counts(t, id, "in_review", 4, 1, 0)
	})

	t.Run("two reviewers at once", func(t *testing.T) {
		first, id := open(t, ada, draftOptions{})
		second := s.signedIn(t, bob, "/drafts/"+id)
		// Both look at the same page; the slower one has to hear of the other.
		first.Button("Approve").In(first.Target(0)).Click()
		first.Target(0).Shows("Approved")
		note := second.Note(second.Target(0))
		note.Fill("I thought about this for long")
		second.Button("Reject").In(second.Target(0)).Click()
		second.Sees(ada.Email)
		if notice := second.Notice(); notice == "" || note.Value() != "I thought about this for long" {
			t.Errorf("the loser is told %q, and has the note %q", notice, note.Value())
		}
		counts(t, id, "in_review", 2, 1, 0)
		second.Button("Reject").In(second.Target(0)).Click() // having seen it
		second.Target(0).Shows("Rejected")
		counts(t, id, "in_review", 2, 0, 1)
		// And really at once.
		first.Target(1)
		second.Target(1)
		var both sync.WaitGroup
		for p, button := range map[*page]string{first: "Approve", second: "Reject"} {
			if f := p.Button(button).In(p.Target(1)); f.Count() != 1 {
				t.Fatalf("%s is not there", f)
			}
			both.Go(func() { p.Button(button).In(p.Target(1)).clicks(1) })
		}
		both.Wait()
		first.Settle()
		second.Settle()
		d := s.listed(t, id)
		hubtest.Eventually(t, "the race is counted", func() bool { d = s.listed(t, id); return d.Decisions.Pending == 1 })
		won := map[bool]string{true: "Approved", false: "Rejected"}[d.Decisions.Approved == 1]
		first.Reload()
		second.Reload()
		for _, p := range []*page{first, second} {
			if !strings.Contains(p.Target(1).Text(), won) {
				t.Errorf("%s won, and a page shows %s", won, p.Target(1).Text())
			}
		}
		if n := s.decisions(t, id, 1); n != 1 {
			t.Errorf("the race made %d decisions", n)
		}
	})

	t.Run("back button", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{})
		p.Open("/drafts")
		p.Link(t.Name()).Click()
		p.Button("Approve").In(p.Target(0)).Click()
		p.Target(0).Shows("Approved")
		p.Open("/drafts")
		p.Back()
		if text := p.Target(0).Text(); !strings.Contains(text, "Approved") {
			t.Errorf("after going back the target shows %s", text)
		}
		p.Button("Reject").In(p.Target(1)).Click()
		p.Target(1).Shows("Rejected")
		counts(t, id, "in_review", 1, 1, 1)
	})

	t.Run("stale page", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{})
		q := s.signedIn(t, bob, "/drafts/"+id)
		q.Button("Cancel draft").Click()
		q.Sees("None of its 3 mails is sent, and the draft cannot be taken up again")
		q.Field("Why").Fill("Changed our minds")
		q.Button("Cancel draft").Click()
		q.Sees("The draft is cancelled. Nothing of it is sent.")
		p.Button("Approve").In(p.Target(0)).Click()
		p.Sees("The review has ended: the draft is cancelled")
		p.Reload()
		p.Sees("This draft was cancelled.")
		if n := p.Button("Approve").Count() + p.Button("Cancel draft").Count(); n != 0 {
			t.Errorf("%d buttons are left on a cancelled draft", n)
		}
		counts(t, id, "cancelled", 3, 0, 0)
	})

	t.Run("session ends meanwhile", func(t *testing.T) {
		carol := s.person("Carol", "reviewer")
		p, id := open(t, carol, draftOptions{})
		p.hostile = true // a preview that comes after the end is led to the log-in, which no frame shows
		s.run("auth", s.env["auth"], "user", "disable", carol.Email)
		p.eventually("the session has ended", func() bool {
			if p.at() != "t-0" {
				p.Open("/drafts/" + id + "/targets/0")
			}
			if p.Path() != "/login" {
				p.Button("Approve").Click()
			}
			return p.Path() == "/login"
		})
		if d := s.listed(t, id); d.Decisions.Approved > 1 {
			t.Errorf("after the session: %+v", d)
		}
	})

	t.Run("four eyes", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{createdBy: strings.ToUpper(ada.Email)})
		p.Sees("You made this draft")
		if n := p.Button("Approve").Count() + p.Button("Reject").Count() + p.role("you have read", false, "button").Count(); n != 0 {
			t.Errorf("the maker of a draft has %d buttons to decide on it", n)
		}
		q := s.signedIn(t, bob, "/drafts/"+id)
		var forms []attempt
		for place := range 3 {
			q.Target(place)
			forms = append(forms, q.forms()...)
		}
		// The same forms, sent by the one who made the draft.
		tried := 0
		for _, f := range forms {
			if strings.Contains(f.path, "/decide") || strings.Contains(f.path, "/approve-shown") {
				tried++
				if status := p.post(f); status < 400 && f.path != "/drafts/"+id+"/approve-shown" {
					t.Errorf("%s answers %d", f, status)
				}
			}
		}
		if tried < 7 {
			t.Errorf("only %d forms were tried", tried)
		}
		counts(t, id, "in_review", 3, 0, 0)
		q.LookThrough()
		q.role("you have read", false, "button").Click()
		q.SeesEnd("")
	})

	t.Run("rejected", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{targets: 2, subject: "Nobody gets this"})
		p.Button("Reject").In(p.Target(0)).Click()
		p.Target(0).Shows("Rejected")
		p.Button("Reject").In(p.Target(1)).Click()
		p.Sees("Nothing was approved, so nothing is sent.")
		counts(t, id, "rejected", 0, 0, 2)
		for _, mail := range s.smtp.Mails() {
			if mail.Subject == "Nobody gets this" {
				t.Error("a mail of a rejected draft has left")
			}
		}
	})

	t.Run("keyboard", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{targets: 4})
		p.Press("?")
		p.Sees("Approve the mail")
		p.Press(kb.Escape)
		for _, step := range []struct{ key, at string }{{"j", "t-1"}, {"k", "t-0"}, {"k", "t-0"}, {"a", "t-1"}, {"r", "t-2"}, {"j", "t-3"},
			{"j", "t-3"}} {
			p.Press(step.key)
			p.eventually(step.key+" leads to "+step.at, func() bool { return p.at() == step.at })
		}
		p.Target(0).Shows("Approved")
		p.Target(1).Shows("Rejected")
		// A key in a field is a letter.
		p.Note(p.Target(3)).Focus()
		p.Press("a", "r", "j")
		if v := p.Note(p.Target(3)).Value(); v != "arj" {
			t.Errorf("the note is %q", v)
		}
		counts(t, id, "in_review", 2, 1, 1)
		// Everything can be reached by Tab alone.
		p.Reload()
		reached := map[string]bool{}
		for range 80 {
			p.Press(kb.Tab)
			var at string
			p.Evaluate(
				"document.activeElement.ariaLabel || document.activeElement.innerText?.trim() "+
					"|| document.activeElement.name || document.activeElement.tagName",
				&at,
			)
			if strings.HasSuffix(at, "you have read") { // with their number
				at = "Approve what you have read"
			}
			reached[at] = true
		}
		for _, name := range []string{"Approve", "Reject", "Approve what you have read", "Note and reason", "Filter and search", "IFRAME", "Undo",
			"Cancel draft", "Sign out", "Shortcuts"} {
			if !reached[name] {
				t.Errorf("Tab does not reach %q", name)
			}
		}
		// What is hard to take back asks first, and a key answers.
		p.Open("/drafts/" + id)
		p.Press("c")
		p.Sees("Cancel this draft?")
		p.Sees("1 mail was approved and is not sent.")
		p.Field("Why").Focus()
		p.Press("y", kb.Escape, kb.Escape) // a letter, out of the field, and back
		p.Target(0).Shows("Approved")
		counts(t, id, "in_review", 2, 1, 1)
		p.Press("c")
		p.Sees("Cancel this draft?")
		p.Press("y")
		p.Sees("The draft is cancelled. Nothing of it is sent.")
		counts(t, id, "cancelled", 2, 1, 1)
	})

	t.Run("without JavaScript", func(t *testing.T) {
		id := s.queued(t, s.draft(t, draftOptions{name: t.Name(), targets: 4}))
		p := newPage(t, s.url)
		p.WithoutJavaScript()
		p.Open("/drafts")
		p.signIn(ada.Email, ada.Password)
		p.Link(t.Name()).Click()
		if p.Path() != "/drafts/"+id {
			t.Fatalf("the list leads to %s", p.URL())
		}
		p.Note(p.Target(0)).Fill("Without scripts")
		p.Button("Approve").In(p.Target(0)).DoubleClick() // nothing in the page keeps it from being sent twice
		p.Target(0).Shows("Approved")
		if n := s.decisions(t, id, 0); n != 1 {
			t.Errorf("two clicks made %d decisions", n)
		}
		p.Target(0).Shows("Without scripts")
		p.Button("Reject").In(p.Target(1)).Click()
		p.Target(1).Shows("Rejected")
		p.Unfold("Filter and search")
		p.Link("To decide 2").Click()
		if n := p.rows(); n != 2 {
			t.Errorf("%d targets are left to decide, not 2", n)
		}
		p.Open("/drafts/" + id + "/targets/2")
		p.Button("Reject").Click()
		if p.Path() != "/drafts/"+id+"/targets/3" {
			t.Errorf("the decision leads to %s", p.URL())
		}
		p.role("you have read", false, "button").Click() // nothing was opened before that is left to decide
		p.Sees("Nothing was left to approve that has been shown in full.")
		counts(t, id, "in_review", 1, 1, 2)
		p.Open("/drafts/" + id)
		p.role("you have read", false, "button").Click()
		p.SeesEnd("2 mails are on their way.")
		hubtest.Eventually(t, "it is sent", func() bool { return s.listed(t, id).Status == "sent" })
		p.Reload()
		p.Sees("2 of 2 sent")
		dropped := s.queued(t, s.draft(t, draftOptions{name: t.Name() + " dropped", targets: 2}))
		p.Open("/drafts/" + dropped)
		p.Button("Cancel draft").Click()
		p.Sees("Cancel this draft?")
		p.Link("Keep the draft").Click()
		p.Button("Cancel draft").Click()
		p.Sees("Left undecided")
		p.Button("Cancel draft").Click()
		p.Sees("The draft is cancelled. Nothing of it is sent.")
		counts(t, dropped, "cancelled", 2, 0, 0)
		p.Open("/admin/suppressions")
		p.Field("E-mail").Fill("not an address")
		p.Field("Reason").Fill("Try")
		p.Field("E-mail").Fill("without.scripts@example.com")
		p.Button("Add").Click()
		p.Sees("without.scripts@example.com is on the list now.")
		p.Button("Sign out").Click()
		p.Sees("You are signed out.")
	})

	t.Run("search and filters", func(t *testing.T) {
		p, id := open(t, ada, draftOptions{targets: 6})
		contacts := s.contacts(t, 6)
		p.Button("Reject").In(p.Target(2)).Click()
		p.Target(2).Shows("Rejected")
		p.Open("/drafts/" + id + "?decision=rejected")
		if n := p.rows(); n != 1 || !strings.Contains(p.Target(0).Text(), contacts[2].Email) {
			t.Errorf("%d targets are rejected: %s", n, p.Text())
		}
		p.Open("/drafts/" + id)
		p.Unfold("Filter and search")
		p.role("Search by name", false, "searchbox").Fill(contacts[4].Email)
		p.Button("Search").Click()
		if n := p.rows(); n != 1 || !strings.Contains(p.Target(0).Text(), contacts[4].Email) {
			t.Errorf("the search finds %d", n)
		}
		p.Button("Approve").In(p.Target(0)).Click()
		p.Target(0).Shows("Approved")
		for _, path := range []string{"/drafts/999999", "/drafts/x", "/drafts/" + id + "/targets/99", "/drafts/" + id + "/targets/-1",
			"/drafts/" + id + "/targets/0/preview/x"} {
			if status := p.Open(path); status != http.StatusNotFound {
				t.Errorf("%s answers %d", path, status)
			}
		}
		// A decision is never taken by looking.
		for _, path := range []string{"/drafts/" + id + "/decide", "/drafts/" + id + "/approve-shown"} {
			if status := p.Open(path + "?choice=approved&target=0:x:0"); status < 400 {
				t.Errorf("GET %s answers %d", path, status)
			}
		}
		p.Open("/drafts/" + id + "/cancel?note=x")
		p.Sees("Cancel this draft?")
		counts(t, id, "in_review", 4, 1, 1)
	})

	t.Run("suppression list", func(t *testing.T) {
		p := s.signedIn(t, ada, "/admin/suppressions")
		file := filepath.Join(t.TempDir(), "leavers.csv")
		if err := os.WriteFile(
			file,
			[]byte(
				"\ufeffemail;reason\nkim@leavers.example;\"asked; by post\"\nKIM@leavers.example;again\nno "+
					"address;x\n;empty\n\"open\nlee@leavers.example;\n<script>alert(1)</script>@x;y\n",
			),
			0o644,
		); err != nil {
			t.Fatal(err)
		}
		p.role("CSV file", false, "button", "textbox").Upload(file)
		p.Field("Reason for lines without one").Fill("From the old system")
		p.Button("Import").Click()
		p.Sees("leavers.csv")
		p.Sees("Back to the list")
		for _, text := range []string{"Done", "no address", "<script>alert(1)</script>@x"} {
			p.Sees(text)
		}
		p.Open("/admin/suppressions?q=%40leavers.example")
		p.Sees("kim@leavers.example")
		p.Sees("lee@leavers.example")
		p.Sees("From the old system")
		p.Sees("asked; by post")
		p.Field("E-mail").Fill("kim@leavers.example")
		p.Field("Reason").Fill("Once more")
		p.Button("Add").Click()
		p.Sees("was on the list already")
		p.Open("/admin/suppressions?q=lee@leavers")
		p.Link("Remove lee@leavers.example").Click()
		p.Field("Reason").Fill("Came back")
		p.Button("Remove").Click()
		p.Sees("lee@leavers.example is no longer on the list.")
		p.Open("/admin/suppressions?q=lee@leavers")
		p.Sees("No address matches")
		empty := filepath.Join(t.TempDir(), "empty.csv")
		if err := os.WriteFile(empty, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		p.role("CSV file", false, "button", "textbox").Upload(empty)
		p.Field("Reason for lines without one").Fill("x")
		p.Button("Import").Click()
		p.Sees("Choose a file that is not empty.")
	})
}

// post sends a form from within the page, with the session that the page has.
func (p *page) post(a attempt) (status int) {
	p.t.Helper()
	p.Evaluate(
		fmt.Sprintf(
			"fetch(%q, {method: 'POST', body: %q, headers: {'Content-Type': 'application/x-www-form-urlencoded'}, redirect: "+
				"'manual'}).then(async (r) => { await r.text().catch(() => {}); return r.status || 303; })",
			a.path,
			a.body,
		),
		&status,
	)
	return status
}
