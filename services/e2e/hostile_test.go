package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"hub.internal/pkg/hubtest"
)

// vector is a text that does something where it is taken for a page's own.
type vector struct{ name, text string }

var unescape = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\f`, "\f", `\0`, "\x00", `\\`, `\`)

// vectors is the corpus that the service's own tests use too.
func vectors(t testing.TB) (list []vector) {
	t.Helper()
	f, err := os.Open(filepath.Join(hubtest.Root(t), "services/review-control/body/testdata/xss.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") || lines.Text() == "" {
			continue
		}
		name, text, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			t.Fatalf("not a vector: %q", lines.Text())
		}
		list = append(list, vector{name, unescape.Replace(text)})
	}
	if err := lines.Err(); err != nil || len(list) < 60 {
		t.Fatalf("%d vectors: %v", len(list), err)
	}
	return list
}

// harm lists what a hostile text has brought about in the window since the last time: scripts
// that ran, requests that left, windows, and pages that are not where they were.
func (p *page) harm(at string) (list []string) {
	p.t.Helper()
	p.mu.Lock()
	for what, these := range map[string][]string{"dialog": p.dialogs, "request": p.foreign} {
		for _, x := range these {
			list = append(list, what+" "+x)
		}
	}
	p.dialogs, p.foreign = nil, nil
	p.mu.Unlock()
	for _, host := range chromium.Left()[p.left:] {
		list = append(list, "a connection to "+host)
		p.left++
	}
	all, err := chromedp.CallBrowser(p.ctx, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	own := chromedp.FromContext(p.ctx)
	for _, x := range all.TargetInfos {
		if x.Type == "page" && x.BrowserContextID == own.BrowserContextID && x.TargetID != own.Target.TargetID {
			list = append(list, "a window at "+x.URL)
		}
	}
	tree := do(p, pageFrames, cdp.Empty{}).FrameTree
	if at != "" && tree.Frame.URL != at {
		list = append(list, "the window is at "+tree.Frame.URL)
	}
	var frames func([]*cdppage.FrameTree)
	frames = func(children []*cdppage.FrameTree) {
		for _, c := range children {
			if !strings.HasPrefix(c.Frame.URL, p.origin+"/") && c.Frame.URL != "about:blank" && c.Frame.URL != "" ||
				strings.HasPrefix(c.Frame.URL, "chrome-error:") {
				list = append(list, "a frame is at "+c.Frame.URL)
			}
			frames(c.ChildFrames)
		}
	}
	frames(tree.ChildFrames)
	var ran bool
	if p.Evaluate("Boolean(window.__xss || document.documentElement.dataset.xss || /xss|pwned/i.test(document.title))", &ran); ran {
		list = append(list, "a script ran")
	}
	return list
}

// hostileDraft is a draft of vectors, one a target, and what its pages are.
type hostileDraft struct {
	id      string
	vectors []vector
}

// hostileDrafts puts each vector wherever an agent, or somebody in the source's rows, can put
// text: the body, the subject, the recipient's name, the context, the evidence, and what a draft
// has once.
func (s *suite) hostileDrafts(t *testing.T, list []vector) (drafts []hostileDraft) {
	t.Helper()
	next := 0
	// line is another vector each time, as a field of one line takes it.
	line := func(most int) string {
		for {
			v := oneLine(list[next%len(list)].text)
			if next++; v != "" && utf8.RuneCountInString(v) <= most {
				return v
			}
		}
	}
	for chunk := range slices.Chunk(list, 20) {
		var evidence, targets []map[string]any
		for i, v := range chunk {
			value, err := json.Marshal(map[string]any{"text": v.text, v.text: 1, "list": []any{v.text, map[string]any{v.text: v.text}}})
			if err != nil {
				t.Fatal(err)
			}
			name := oneLine(v.text)
			if utf8.RuneCountInString(name) > 200 {
				name = "somebody"
			}
			evidence = append(evidence, map[string]any{"externalId": i, "snapshot": json.RawMessage(value)})
			targets = append(targets, map[string]any{"externalId": i, "toEmail": fmt.Sprintf("reader%d@company.example", i), "toName": name,
				"subject": oneLine(v.text), "body": "<p>Dear reader,</p>" + printable(v.text), "context": json.RawMessage(value)})
		}
		var segment struct {
			ID string `json:"segment_id"`
		}
		s.must(
			t,
			"create_segment",
			map[string]any{"name": line(200), "kind": "partner", "createdBy": line(100), "targets": evidence},
			&segment,
		)
		var draft struct {
			ID string `json:"draft_id"`
		}
		s.must(
			t,
			"save_message_draft",
			map[string]any{
				"segmentId":       segment.ID,
				"name":            line(200),
				"createdBy":       line(100),
				"senderName":      line(200),
				"senderEmail":     "sender@hub.example",
				"subjectTemplate": line(200),
				"bodyTemplate":    "<p>Template</p>" + line(2000),
				"targets":         targets,
			},
			&draft,
		)
		s.must(t, "queue_for_review", map[string]any{"draftId": draft.ID, "actor": line(200), "note": line(2000)}, nil)
		drafts = append(drafts, hostileDraft{draft.ID, chunk})
	}
	return drafts
}

var elsewhere = regexp.MustCompile(`^(meta|base|form|href|link|css-overlay|ping|event|input|button)`)

// TestHostileContent looks at each vector in a browser, as a reviewer does.
func TestHostileContent(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c"}})
	ada := s.person("Ada Lovelace", "reviewer", "admin")
	list := some(vectors(t))
	drafts := s.hostileDrafts(t, list)

	p := s.signedIn(t, ada, "/drafts")
	p.hostile = true
	p.left = len(chromium.Left())
	look := func(t *testing.T, path string) {
		t.Helper()
		if status := p.Open(path); status != http.StatusOK {
			t.Errorf("%s answers %d", path, status)
		}
		for _, h := range p.harm(s.url + path) {
			t.Errorf("%s: %s", path, h)
		}
	}
	t.Run("targets", func(t *testing.T) {
		p.in(t)
		// As high as it takes for the browser to draw all of a preview.
		do(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 3000, DeviceScaleFactor: 1})
		for _, d := range drafts {
			for i := range d.vectors {
				look(t, fmt.Sprintf("/drafts/%s/targets/%d", d.id, i))
				var frames int // others wait out of sight
				p.Evaluate(`document.querySelectorAll("article.target iframe").length`, &frames)
				if n := p.role("", false, "article").Count(); n != 1 || frames != n {
					t.Errorf("target %d of draft %s: %d targets and %d previews, not one", i, d.id, n, frames)
				}
			}
		}
	})
	t.Run("previews alone", func(t *testing.T) {
		p.in(t)
		for _, d := range drafts {
			for i, v := range d.vectors {
				// In frames all of them were seen; what goes elsewhere is different alone.
				if !elsewhere.MatchString(v.name) && i%5 != 0 {
					continue
				}
				path := fmt.Sprintf("/drafts/%s/targets/%d/preview", d.id, i)
				look(t, path)
				var links int
				if p.Evaluate(
					"document.querySelectorAll('a[href], area[href], form, button, input, select, textarea, [tabindex], [contenteditable]').length",
					&links,
				); links == 0 {
					continue
				}
				p.Press("\t", "\r") // the keyboard follows what a mouse does not
				for _, h := range p.harm(s.url + path) {
					t.Errorf("%s, opened alone, with the keyboard: %s", v.name, h)
				}
			}
		}
	})
	t.Run("targets alone", func(t *testing.T) {
		p.in(t)
		for i, d := range drafts {
			v := d.vectors[i%len(d.vectors)]
			path := fmt.Sprintf("/drafts/%s/targets/%d", d.id, i%len(d.vectors))
			look(t, path)
			p.Note(p.role("", false, "article")).Fill(v.text)
			p.Button("Reject").Click()
			for _, h := range p.harm("") {
				t.Errorf("%s, as a note: %s", v.name, h)
			}
			look(t, path)
		}
	})
	t.Run("lists", func(t *testing.T) {
		p.in(t)
		look(t, "/drafts")
		look(t, "/drafts?status=in_review")
	})
	t.Run("imports", func(t *testing.T) {
		p.in(t)
		file := filepath.Join(t.TempDir(), `"><svg onload=alert(1)>.csv`)
		var b strings.Builder
		b.WriteString("email,reason\n")
		for i, v := range list {
			quoted := `"` + strings.ReplaceAll(oneLine(v.text), `"`, `""`) + `"`
			fmt.Fprintf(&b, "%s,%s\nreason%d@company.example,%s\n", quoted, quoted, i, quoted)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		p.Open("/admin/suppressions")
		p.role("CSV file", false, "button", "textbox").Upload(file)
		p.Field("Reason for lines without one").Fill(`"><img src=x onerror=alert(1)>`)
		p.Button("Import").Click()
		p.Sees("Back to the list")
		for _, h := range p.harm("") {
			t.Errorf("%s: %s", p.URL(), h)
		}
		look(t, "/admin/suppressions?q=reason")
	})
	time.Sleep(1200 * time.Millisecond) // a connection that says nothing is noticed a second later
	for _, h := range p.harm("") {
		t.Error(h)
	}
}

// printable is a text as a body takes it.
func printable(text string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return ' '
		}
		return r
	}, text), "{{", "{ {")
}

// oneLine is a text as fields of one line take it.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, printable(text)))
}

// TestTheBrowserNoticesHarm shows that the corpus is one, and that what it does is seen: on a
// page that does nothing against them, many vectors do what they are meant to.
func TestTheBrowserNoticesHarm(t *testing.T) {
	var list []vector
	for i, v := range vectors(t) {
		if i%10 == 0 {
			list = append(list, v)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &i); err == nil {
			fmt.Fprint(w, "<!doctype html><title>Page</title><body>"+list[i].text)
		}
	}))
	defer server.Close()
	works := map[string]int{}
	for i, v := range list {
		p := newPage(t, server.URL)
		p.hostile, p.restless = true, true
		p.left = len(chromium.Left())
		p.openForeign(fmt.Sprint(server.URL, "/", i))
		if seen := p.harm(fmt.Sprint(server.URL, "/", i)); len(seen) > 0 {
			what, _, _ := strings.Cut(seen[0], " ")
			works[what]++
		} else {
			t.Logf("nothing comes of %s", v.name)
		}
		p.close()
	}
	t.Logf("of %d vectors: %v", len(list), works)
	if works["dialog"] < 3 || works["request"] < 3 {
		t.Errorf("of %d vectors that nothing is done against the browser tells only of %v", len(list), works)
	}
}
