package e2e_test

import (
	"fmt"
	"testing"
	"strings"
)

func TestZZLayout(t *testing.T) {
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c", "HUB_SEND_DELAY=30s"}})
	ada := s.person("Ada Lovelace", "reviewer")
	id := s.queued(t, s.draft(t, draftOptions{name: "Spring offer 봄", targets: 60, madeUp: true, snapshot: evidenceOfEverything, each: func(i int, target map[string]any) {
		switch i % 9 {
		case 3:
			target["body"] = `<p>Hello</p><p style="color:#fff;background:#fff">white on white</p><p><a href="https://evil.example/login">https://company.example/login</a></p><img src="https://tracker.example/p.gif" width="1" height="1">`
		case 5:
			target["body"] = "<p>" + strings.Repeat("A long mail goes on and on. ", 400) + "</p>"
		}
	}}))
	p := s.signedIn(t, ada, "/drafts/"+id)
	p.restless = true
	for _, scheme := range []string{"light", "dark"} {
		for _, w := range []int64{1280, 390} {
			p.Look(scheme, w)
			p.Open("/drafts/" + id)
			p.Settle()
			p.Screenshot(fmt.Sprintf("/tmp/shots/l-%s-%d.png", scheme, w))
		}
	}
	p.Look("light", 1280)
	p.Open("/drafts/" + id)
	for range 3 {
		p.Press("j")
		p.Settle()
	}
	p.Screenshot("/tmp/shots/l-3.png")
	p.Press("a")
	p.Settle()
	p.Press("r")
	p.Settle()
	p.Screenshot("/tmp/shots/l-4.png")
	t.Log(p.URL(), p.Text())
}
