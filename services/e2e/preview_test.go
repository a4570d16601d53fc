package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	cdppage "github.com/chromedp/cdproto/page"

	"hub.internal/pkg/hubtest"
)

// answer lets the preview of a target come as a document of the test's, under a policy; "" is none.
func (h *held) answer(index int, policy, document string) {
	h.p.t.Helper()
	var id fetch.RequestID
	h.p.eventually("the preview is asked for", func() (is bool) { id, is = h.of(index); return is })
	headers := []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html; charset=utf-8"}}
	if policy != "" {
		headers = append(headers, &fetch.HeaderEntry{Name: "Content-Security-Policy", Value: policy})
	}
	do(
		h.p,
		fetch.FulfillRequest,
		fetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, ResponseHeaders: headers, Body: []byte(document)},
	)
}

// TestPreviews: what a mail is shown in.
func TestPreviews(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c"}})
	ada := s.person("Ada Lovelace", "reviewer")
	t.Run("nothing runs", func(t *testing.T) { nothingRuns(t, s, ada) })
	t.Run("as high as its mail", func(t *testing.T) { isAsHighAsItsMail(t, s, ada) })
	t.Run("wide mails are made smaller", func(t *testing.T) { wideMailsAreMadeSmaller(t, s, ada) })
}

// nothingRuns puts into the frame of a mail what the allow-list of markup takes out, as if it had failed.
// The frame has the console's origin, so that the page can measure it: nothing of a mail may run in it, or lead the
// window away. Both of its bounds hold alone: the sandbox of the frame, and the policy of the answer.
func nothingRuns(t *testing.T, s *suite, ada person) {
	id := s.queued(t, s.draft(t, draftOptions{targets: 1, madeUp: true}))
	path := "/drafts/" + id + "/targets/0"
	p := s.signedIn(t, ada, path)
	p.hostile, p.restless = true, true
	var policy string
	p.Evaluate(`fetch(document.querySelector("iframe.preview").src).then((r) => r.headers.get("Content-Security-Policy"))`, &policy)
	for _, part := range []string{"sandbox allow-same-origin;", "default-src 'none'", "script-src 'none'", "form-action 'none'",
		"base-uri 'none'", "frame-ancestors 'self'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy of a preview lacks %q: %s", part, policy)
		}
	}
	p.left = len(chromium.Left())
	h := p.hold("*/preview*")
	const run = `top.__xss=1;top.document.title='pwned'`
	// What is clicked fills the frame.
	const over = ` style="position:fixed;inset:0;width:100%;height:100%"`
	byItself := []string{
		`<script>` + run + `</script>`,
		`<script src="/account/assets/hub.js"></script>`,
		`<img src="x" onerror="` + run + `"><video><source onerror="` + run + `"></video>`,
		`<style onload="` + run + `"></style><input autofocus onfocus="` + run + `"><details open ontoggle="` + run + `">x</details>`,
		`<svg onload="` + run + `"><script>` + run + `</script><animate onbegin="` + run + `" attributeName="x" dur="1s"/></svg>`,
		`<iframe srcdoc="<script>` + run + `</script>"></iframe><iframe src="javascript:` + run + `"></iframe>`,
		`<object data="javascript:` + run + `"></object>`,
	}
	for name, document := range map[string]string{
		"what runs by itself":   `<body onload="` + run + `" onpageshow="` + run + `" onresize="` + run + `">` + strings.Join(byItself, ""),
		"refresh to a script":   `<meta http-equiv="refresh" content="0;url=javascript:` + run + `">`,
		"refresh":               `<meta http-equiv="refresh" content="0;url=/drafts?taken">`,
		"link to a script":      `<a href="javascript:` + run + `" target="_self"` + over + `>x</a>`,
		"link to a script, top": `<a href="javascript:` + run + `" target="_top"` + over + `>x</a>`,
		"onclick":               `<a href="#" onclick="` + run + `"` + over + `>x</a>`,
		"link, top":             `<a href="/drafts?taken" target="_top"` + over + `>x</a>`,
		"link, parent":          `<a href="/drafts?taken" target="_parent"` + over + `>x</a>`,
		"link, blank":           `<a href="/drafts?taken" target="_blank"` + over + `>x</a>`,
		"link, as mails have":   `<base target="_blank"><a href="https://evil.example/"` + over + `>x</a>`,
		"link, base":            `<base target="_top"><a href="/drafts?taken"` + over + `>x</a>`,
		"form, top": `<form action="/drafts/` + id +
			`/decide" method="post" target="_top"><input name="choice" value="approved"><button` + over + `>x</button></form>`,
		"link, download": `<a href="data:text/html,x" download="x.html"` + over + `>x</a>`,
	} {
		for bounds, of := range map[string]string{"policy and sandbox": policy, "sandbox alone": ""} {
			h.forget()
			do(p, cdppage.Navigate, cdppage.NavigateParams{URL: s.url + path})
			h.answer(0, of, "<!doctype html><title>Mail</title>"+document)
			p.eventually("the preview has come", func() (come bool) {
				p.Evaluate(`document.querySelector("iframe.preview").hasAttribute("data-measured")`, &come)
				return come
			})
			var frame box
			p.Evaluate(
				`(() => { const b = document.querySelector("iframe.preview").getBoundingClientRect(); return { X: b.x, Y: b.y, Width: b.width, `+
					`Height: Math.min(b.height, 20) }; })()`,
				&frame,
			)
			p.mouse(frame.middle())
			time.Sleep(150 * time.Millisecond)
			harm := slices.DeleteFunc(p.harm(s.url+path), func(what string) bool { return strings.HasSuffix(what, "about:srcdoc") })
			if of == "" { // then a mail can ask for a picture, or lead its own frame elsewhere
				harm = slices.DeleteFunc(harm, func(what string) bool {
					return strings.HasPrefix(what, "request") || strings.HasPrefix(what, "a frame")
				})
			}
			for _, what := range harm {
				t.Errorf("%s, %s: %s", name, bounds, what)
			}
		}
		if strings.HasPrefix(name, "link") {
			continue
		}
		// Opened alone there is no frame around it: its policy has to hold by itself.
		h.forget()
		p.Evaluate(`setTimeout(() => location.assign("`+path+`/preview"))`, nil)
		h.answer(0, policy, "<!doctype html><title>Mail</title>"+document)
		time.Sleep(150 * time.Millisecond)
		for _, what := range p.harm(s.url + path + "/preview") {
			if strings.HasSuffix(what, "about:srcdoc") { // a frame that is empty
				continue
			}
			t.Errorf("%s, alone: %s", name, what)
		}
	}
	if n := query[int](t, s, `SELECT count(*) FROM review_control.targets WHERE draft_id = $1::bigint AND choice <> 'pending'`,
		id)[0]; n != 0 {
		t.Error("a mail was decided on by what is in it")
	}
}

// isAsHighAsItsMail: the page measures it, so that all of a mail is in it without a bar to scroll by.
func isAsHighAsItsMail(t *testing.T, s *suite, ada person) {
	bodies := []string{
		"<p>Short.</p>",
		strings.Repeat("<p>"+strings.Repeat("many words ", 30)+"</p>", 10),
		usualMails[1],
		"<p>a</p>" + strings.Repeat("<br>", 300) + "<p>b</p>",
	}
	id := s.queued(
		t,
		s.draft(
			t,
			draftOptions{targets: len(bodies), madeUp: true, each: func(i int, target map[string]any) { target["body"] = bodies[i] }},
		),
	)
	p := s.signedIn(t, ada, "/drafts/"+id)
	for _, width := range []int64{1280, 390} {
		p.Look("light", width)
		for i := range bodies {
			p.Target(i)
			var is struct{ Frame, Mail, Beside float64 }
			p.Evaluate(`(() => {
				const frame = document.querySelector("iframe.preview"), root = frame.contentDocument.documentElement;
				return { Frame: frame.clientHeight, Mail: root.getBoundingClientRect().height, Beside: root.scrollWidth - frame.clientWidth };
			})()`, &is)
			if is.Frame < is.Mail || is.Frame > is.Mail+2 || is.Beside > 0 {
				t.Errorf(
					"at %d px the mail of target %d has %.0f px and its frame %.0f; %.0f lie beside it",
					width,
					i,
					is.Mail,
					is.Frame,
					is.Beside,
				)
			}
		}
	}
}

// wideMailsAreMadeSmaller: a table whose words are wider than a phone keeps its words whole, and is shown whole, in a smaller size;
// what would be too small to be read scrolls, and is not approved among others.
func wideMailsAreMadeSmaller(t *testing.T, s *suite, ada person) {
	table := func(columns int) string {
		row := strings.Repeat(`<td style="padding:6px">Availability</td><td style="padding:6px">1,200,000</td>`, columns/2)
		return "<p>Dear partner,</p><table border=1><tr>" + row + "</tr></table><p>Yours</p>"
	}
	bodies := []string{table(2), table(6), table(24)}
	id := s.queued(t, s.draft(t, draftOptions{targets: len(bodies), madeUp: true,
		each: func(i int, target map[string]any) { target["body"] = bodies[i] }}))
	p := s.signedIn(t, ada, "/drafts/"+id)
	for width, wants := range map[int64][3]string{1280: {"whole", "smaller", "scrolls"}, 390: {"whole", "smaller", "scrolls"}} {
		p.Look("light", width)
		for i, want := range wants {
			p.Target(i)
			var is struct {
				Scale, Lines, View, Frame, Text, Bottom float64
				Whole                                   bool
			}
			p.Evaluate(`(() => {
				const frame = document.querySelector("iframe.preview"), cell = frame.contentDocument.querySelector("td"), text = cell.firstChild;
				const range = frame.contentDocument.createRange();
				range.selectNodeContents(text);
				const view = frame.parentElement.getBoundingClientRect(), box = frame.getBoundingClientRect();
				return { Scale: Number(frame.style.getPropertyValue("--scale")), Lines: range.getClientRects().length, Whole: hubSeen.whole(frame),
					View: view.width, Frame: box.width, Text: view.height, Bottom: box.height };
			})()`, &is)
			got := "scrolls"
			if is.Whole {
				got = map[bool]string{true: "whole", false: "smaller"}[is.Scale == 1]
			}
			if got != want || is.Lines != 1 || is.Frame > is.View+1 || is.Bottom > is.Text+1 || is.Bottom < is.Text-8 {
				t.Errorf("at %d px the table of mail %d is %s, want %s: %+v", width, i, got, want, is)
			}
			p.Screenshot(filepath.Join(hubtest.Root(t), ".hub", "e2e", "screens", fmt.Sprintf("wide-%d-%d.png", width, i)))
		}
	}
	flags := query[int](t, s, `SELECT flags FROM review_control.targets WHERE draft_id = $1::bigint ORDER BY position`, id)
	if flags[0] != 0 || flags[1] != 0 || flags[2] == 0 {
		t.Errorf("the flags are %v", flags)
	}
}
