package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// early presses a key, and tells how many milliseconds it takes until another mail is on the page with its preview's text. It answers
// the id of that mail, and whether it is the server's already.
const early = `(async () => {
	const article = () => document.querySelector("article.target:not([hidden])");
	const old = article().id, began = performance.now();
	document.dispatchEvent(new KeyboardEvent("keydown", { key: %q, bubbles: true }));
	const preview = () => article().querySelector("iframe.preview").contentDocument?.body?.innerText ?? "";
	const here = () => article().id !== old && preview().includes("Glow costs");
	while (!here()) await new Promise((done) => setTimeout(done));
	return { At: article().id, Took: performance.now() - began, Early: article().hasAttribute("data-early") };
})()`

type came struct {
	At    string
	Took  float64
	Early bool
}

// TestAhead: the next mail is there at once, with the preview of its own content; whatever stands in the way, a decision is the
// server's.
func TestAhead(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c", "HUB_SEND_DELAY=2m"}})
	ada := s.person("Ada Lovelace", "reviewer")
	open := func(t *testing.T, width int64, targets int) (*page, string) {
		t.Helper()
		id := s.queued(t, s.draft(t, draftOptions{name: t.Name(), targets: targets, madeUp: true,
			subject: "An offer for {{toName}}", body: "<p>Dear {{toName}},</p><p>Glow costs {{context.price}}.</p>",
			each: func(i int, target map[string]any) {
				target["context"] = map[string]any{"price": fmt.Sprintf("%d EUR", i)}
			}}))
		hubtest.Eventually(t, "its mails have been looked through", func() bool {
			return query[int](t, s, `SELECT inspected FROM review_control.reviews WHERE draft_id = $1::bigint`, id)[0] == targets
		})
		p := s.window(t, ada)
		p.in(t)
		p.Look("light", width)
		p.Open("/drafts/" + id)
		return p, id
	}
	decided := func(t *testing.T, id string) int {
		t.Helper()
		return query[int](t, s, `SELECT count(*) FROM review_control.targets WHERE draft_id = $1::bigint AND choice <> 'pending'`, id)[0]
	}
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			p, id := open(t, width, 26)
			for _, key := range []string{"a", "j"} {
				var took []float64
				for range 12 {
					p.Settle()
					var now came
					p.Evaluate(fmt.Sprintf(early, key), &now)
					if took = append(took, now.Took); !now.Early {
						t.Errorf("%s was not there before the server's answer", now.At)
					}
					p.comes(now.At)
				}
				slices.Sort(took)
				t.Logf("%s to the next mail: median %.0f ms, of %.0f", key, took[len(took)/2], took)
			}
			if n := decided(t, id); n != 12 {
				t.Errorf("%d are decided", n)
			}
			var took []float64 // of mails that were not fetched ahead, to compare
			for place := range 6 {
				p.Settle()
				var now came
				p.Evaluate(strings.Replace(fmt.Sprintf(early, ""), `document.dispatchEvent(new KeyboardEvent("keydown", { key: "", bubbles: true }))`,
					fmt.Sprintf(`document.querySelector("[data-row='%d']").click()`, 2*place), 1), &now)
				took = append(took, now.Took)
				p.comes(now.At)
			}
			slices.Sort(took)
			t.Logf("a row of the list: median %.0f ms, of %.0f", took[len(took)/2], took)
			var left bool
			p.Evaluate(`document.querySelector("[data-early], .target[hidden]") !== null`, &left)
			if left {
				t.Error("something that was shown early is left")
			}
		})
	}
	t.Run("what is shown early is not decided on", func(t *testing.T) {
		p, id := open(t, 1280, 5)
		p.restless = true
		h := p.hold("*/decide")
		var now came
		p.Evaluate(fmt.Sprintf(early, "a"), &now)
		p.Press("a", "r") // on what has not come
		p.Evaluate(`document.querySelector("[data-early] button[value=rejected]").click()`, nil)
		if got := p.shown(); now.At != "t-1" || !now.Early || slices.Contains(got, 1) {
			t.Errorf("%+v, and %v are taken for shown", now, got)
		}
		p.Press("j") // is followed once it has come
		h.pass()
		p.comes("t-2")
		if n := decided(t, id); n != 1 {
			t.Errorf("%d are decided, not one", n)
		}
		// A decision that is not kept leads back to its mail.
		p.Settle()
		p.Evaluate(fmt.Sprintf(early, "r"), &now)
		h.fail(http.StatusServiceUnavailable)
		p.Sees("away for a moment")
		if p.at() != "t-2" || now.At != "t-3" || decided(t, id) != 1 {
			t.Errorf("%s is on the page after %+v", p.at(), now)
		}
		p.Evaluate(`document.querySelector("button[value=rejected]").click()`, nil)
		h.pass()
		p.eventually("it is decided", func() bool { return decided(t, id) == 2 })
		p.comes("t-3")
	})
	t.Run("somebody else was faster", func(t *testing.T) {
		p, id := open(t, 1280, 4)
		q := s.signedIn(t, s.person("Rae Reviewer", "reviewer"), "/drafts/"+id)
		q.Button("Reject").In(q.Target(1)).Click()
		q.comes("t-2")
		p.Press("j") // to what was undecided when it was fetched
		p.comes("t-1")
		p.Sees("Rejected")
		p.Press("k")
		p.comes("t-0")
		p.Settle()
		q.Button("Reject").In(q.Target(0)).Click()
		p.Press("a")
		p.Sees("This mail was rejected by")
		if p.at() != "t-0" {
			t.Errorf("%s is on the page, and what was decided on is not", p.at())
		}
	})
}
