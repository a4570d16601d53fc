package e2e_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestSearch: the field in the header finds mails over all drafts, drafts, keys, users, requests and pages, each for whoever may see it;
// one hit is gone to at once; a service that is away is told of.
func TestSearch(t *testing.T) {
	t.Parallel()
	installAxe(t)
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c"}})
	ada, rae := s.person("Ada Lovelace", "admin", "reviewer"), s.person("Rae Reviewer", "reviewer")
	first := s.queued(t, s.draft(t, draftOptions{name: "Autumn launch", targets: 3, madeUp: true}))
	second := s.queued(t, s.draft(t, draftOptions{name: "봄 신상품 안내", targets: 2, madeUp: true}))
	s.draft(t, draftOptions{name: "Autumn, not queued", targets: 1, madeUp: true})
	p := s.signedIn(t, ada, "/admin")
	seek := func(t *testing.T, p *page, key, text string) {
		t.Helper()
		p.Press(key)
		p.Field("Search everything").Fill(text)
		p.Press(kb.Enter)
		p.Settle()
	}
	hits := func(t *testing.T, p *page) (list string) {
		t.Helper()
		p.Evaluate(`[...document.querySelectorAll("main [data-item]")].map((li) => li.closest("section").ariaLabel + ": " +
			li.querySelector("a").innerText + " " + (li.querySelector("span")?.innerText ?? "")).join("\n")`, &list)
		return list
	}
	t.Run("an address, over all drafts", func(t *testing.T) {
		p.in(t)
		seek(t, p, "/", "PERSON001@company")
		want := "Mails: person001@company.example Person 1 · draft " + second + ", mail 2 · To decide\n" +
			"Mails: person001@company.example Person 1 · draft " + first + ", mail 2 · To decide"
		if got := hits(t, p); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		p.Inspect("search")
		p.Press("j", "j", "o")
		if p.Sees("Autumn launch"); p.Path() != "/drafts/"+first+"/targets/1" {
			t.Errorf("the second hit is %s", p.Path())
		}
		p.Open("/drafts/" + second)
		seek(t, p, "/", "person002@company.example")
		if p.Sees("Autumn launch"); p.Path() != "/drafts/"+first+"/targets/2" {
			t.Errorf("the one mail to an address is %s", p.Path())
		}
	})
	t.Run("names, ids and pages", func(t *testing.T) {
		p.in(t)
		p.Open("/search")
		p.Inspect("search-empty")
		for text, want := range map[string][]string{
			"신상품":    {"Drafts: 봄 신상품 안내 Draft " + second},
			"autumn": {"Drafts: Autumn launch ", "Drafts: Autumn, not queued "},
			"rae":    {"Users: rae.reviewer@example.com Rae Reviewer"},
			"audit":  {"Pages: Audit log Admin"},
		} {
			if p.Open("/search?q=" + text); p.Path() != "/search" { // one hit is gone to
				continue
			}
			for _, line := range want {
				if got := hits(t, p); !strings.Contains(got, line) {
					t.Errorf("%s finds\n%s\nand not %s", text, got, line)
				}
			}
		}
		r := s.call("search_brands", `{"limit":1}`)
		p.eventually("a request id leads to its row", func() bool { // which is written a moment after the answer
			p.Open("/search?q=" + r.RequestID)
			return strings.HasPrefix(p.Path(), "/admin/audit/")
		})
		p.Sees("search_brands")
		p.Open("/search?q=nobody@nowhere.example")
		p.Sees("Nothing was found")
		p.Inspect("search-nothing")
		p.Open("/search?q=%25_%5C%27%3Cb%3E")
		p.Sees("Nothing was found")
	})
	t.Run("what a role may not see is not found", func(t *testing.T) {
		q := s.signedIn(t, rae, "/drafts")
		q.WithoutJavaScript()
		q.Open("/search?q=a")
		got := hits(t, q)
		for _, kind := range []string{"Users:", "API keys:", "Audit log:", "Orders:", "Pages: Audit log"} {
			if strings.Contains(got, kind) {
				t.Errorf("a reviewer finds %s\n%s", kind, got)
			}
		}
		if !strings.Contains(got, "Drafts: ") {
			t.Errorf("a reviewer finds no drafts:\n%s", got)
		}
		nobody := s.signedIn(t, s.person("Nemo Nobody"), "/account/sessions")
		nobody.Open("/search?q=autumn")
		nobody.Sees("Nothing was found")
	})
	t.Run("keys, and a phone", func(t *testing.T) {
		p.in(t)
		p.Open("/drafts")
		p.Evaluate(`document.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true}))`, nil)
		var at string
		if p.Evaluate("document.activeElement.id", &at); at != "seek" {
			t.Errorf("Ctrl K goes to %q", at)
		}
		p.Look("dark", 390)
		p.Open("/drafts")
		p.Link("Search").Click()
		p.Sees("What are you looking for?")
		p.Look("light", 1280)
	})
	t.Run("without a service", func(t *testing.T) {
		p.in(t)
		s.process["admin"].Kill()
		p.Open("/search?q=autumn")
		p.Sees("admin did not answer")
		p.Sees("Autumn launch")
	})
}
