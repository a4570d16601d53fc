package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// TestList is the list of drafts as reviewers use it: what waits, in which order, found by name and by chip, by
// mouse, keys and without scripts; and who else is at a draft.
func TestList(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c"}})
	ada, grace := s.person("Ada Lovelace", "reviewer"), s.person("Grace Hopper", "reviewer")
	first := s.queued(t, s.draft(t, draftOptions{name: "Autumn launch", targets: 2, madeUp: true}))
	second := s.queued(t, s.draft(t, draftOptions{name: "봄 신상품 안내", targets: 1, madeUp: true}))
	s.queued(t, s.draft(t, draftOptions{name: "Of Ada herself", createdBy: ada.Email, targets: 1, madeUp: true}))
	s.draft(t, draftOptions{name: "Autumn, not queued", targets: 1, madeUp: true})

	rows := func(p *page) (list string) {
		t.Helper()
		p.Evaluate(`[...document.querySelectorAll("[data-item] h2")].map((h) => h.innerText).join(", ")`, &list)
		return list
	}
	shows := func(p *page, want string) {
		t.Helper()
		p.eventually("the list shows "+want, func() bool { return rows(p) == want })
	}
	look := func(t *testing.T, p *page) {
		p.Link("Waiting for me 2")
		shows(p, "Autumn launch, 봄 신상품 안내")
		p.role("Search by name, segment or draft id", false, "searchbox").Fill("autumn")
		p.Button("Search").Click()
		shows(p, "Autumn launch")
		p.Link("All 2").Click()
		shows(p, "Autumn, not queued, Autumn launch")
		p.Link("Sent 0").Click()
		p.Sees("2 drafts match elsewhere")
		p.Link("Clear").Click()
		p.Link("Draft 1").Click()
		shows(p, "Autumn, not queued")
		p.Link("In review 3").Click()
		shows(p, "Autumn launch, 봄 신상품 안내, Of Ada herself")
	}
	t.Run("found by chips and a search", func(t *testing.T) {
		p := s.signedIn(t, ada, "/drafts")
		look(t, p)
	})
	t.Run("without JavaScript", func(t *testing.T) {
		p := newPage(t, s.url)
		p.WithoutJavaScript()
		p.Open("/drafts")
		p.signIn(ada.Email, ada.Password)
		look(t, p)
		p.Open("/drafts/" + first)
		var text string
		if p.Evaluate("document.body.textContent", &text); !strings.Contains(text, " UTC") { // some of it is folded away
			t.Errorf("times are not said to be in UTC: %.300s", text)
		}
	})
	t.Run("by keys", func(t *testing.T) {
		p := s.signedIn(t, ada, "/drafts")
		p.Press("j", "j", "k", "j", "o")
		p.eventually("the second draft is open", func() bool { return p.Path() == "/drafts/"+second })
		p.Open("/drafts")
		p.Press("/")
		var field string
		if p.Evaluate(`document.activeElement.id`, &field); field != "seek" {
			t.Errorf("/ leads to %q", field)
		}
	})
	t.Run("who is at a draft", func(t *testing.T) {
		p, other := s.signedIn(t, ada, "/drafts"), s.signedIn(t, grace, "/drafts/"+first)
		at := func(p *page, who string) {
			t.Helper()
			p.Evaluate(fmt.Sprintf(`{
				const here = document.createElement("div");
				here.id = "at";
				here.innerHTML = '<div class="here" role="status" hx-post="/drafts/%s/here" hx-trigger="load, every 1s" ' +
					'hx-include="find input" data-while-used>' +
					'<input type="hidden" name="shown" value=""></div>';
				document.querySelector("main").append(here);
				htmx.process(here);
			}`, first), nil)
			if who != "" {
				p.Sees(who)
			}
		}
		p.SeesNot("Grace Hopper")
		at(other, "")
		p.eventually("the list shows Grace", func() bool { p.Reload(); return strings.Contains(p.Text(), "Open: Grace Hopper") })
		if text := other.Text(); strings.Contains(text, "this draft open") {
			t.Error("Grace sees herself")
		}
		p.Open("/drafts/" + first)
		at(p, "Grace Hopper has this draft open")
		other.Sees("Ada Lovelace has this draft open")
		other.Open("/account/sessions")
		forget(t, s)
		p.eventually("Grace is gone", func() bool { return !strings.Contains(p.Text(), "has this draft open") })
		p.Open("/drafts")
		p.SeesNot("Open: Grace Hopper")
	})
	t.Run("times of the reader", func(t *testing.T) {
		p := s.signedIn(t, ada, "/drafts")
		inZone(p, "Asia/Seoul")
		p.Open("/drafts/" + first)
		var times []struct{ Text, Title, UTC, Local string }
		p.Evaluate(
			`[...document.querySelectorAll("time:has(.zone)")].map((t) => ({ text: t.textContent, title: t.title,
				utc: new Date(t.dateTime).toISOString().slice(0, 16).replace("T", " ") + " UTC",
			local: new Date(Date.parse(t.dateTime) + 9 * 3600e3).toISOString().slice(0, 16).replace("T", " ") + " +09" }))`,
			&times,
		)
		if len(times) == 0 {
			t.Fatal("the page has no times")
		}
		for _, x := range times {
			if x.Text != x.Local || x.Title != x.UTC {
				t.Errorf("%+v", x)
			}
		}
		for zone, want := range map[string]string{"America/St_Johns": "−03:30 −02:30", "UTC": "UTC"} {
			inZone(p, zone)
			p.Reload()
			var text string
			p.Evaluate(`document.querySelector("time .zone").textContent`, &text)
			if !strings.Contains(want, text) || text == "" {
				t.Errorf("in %s a time ends with %q", zone, text)
			}
		}
	})
	t.Run("looks", func(t *testing.T) {
		p := s.signedIn(t, ada, "/drafts")
		p.Inspect("list")
		p.Open("/drafts?status=all")
		p.Inspect("list-all")
		p.Open("/drafts?status=sent&q=nothing")
		p.Inspect("list-empty")
	})
}

// forget lets two minutes pass for Grace.
func forget(t *testing.T, s *suite) {
	t.Helper()
	if n := len(
		query[string](
			t,
			s,
			`UPDATE review_control.presence SET seen_at = seen_at - interval '2 minutes' WHERE name = 'Grace Hopper' RETURNING name`,
		),
	); n == 0 {
		t.Fatal("Grace was nowhere")
	}
}

// inZone is a page in a time zone, from the next one that is opened.
func inZone(p *page, zone string) {
	p.t.Helper()
	do(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
}
