package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"

	"hub.internal/pkg/hubtest"
)

const axeVersion = "4.14.1"

var axe struct {
	once   sync.Once
	source string
	err    error
}

// installAxe makes the npm package axe-core available, once a machine, and returns its script.
func installAxe(t testing.TB) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here; the accessibility of pages is judged by the npm package axe-core", program)
		}
	}
	axe.once.Do(func() {
		cache, err := os.UserCacheDir()
		if err != nil {
			axe.err = err
			return
		}
		dir := filepath.Join(cache, "hub", "axe-core-"+axeVersion)
		script := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
		if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err != nil {
			if axe.err = os.MkdirAll(dir, 0o755); axe.err != nil {
				return
			}
			for _, name := range []string{"package.json", "package-lock.json"} {
				b, err := os.ReadFile(filepath.Join("testdata", "axe-core", name))
				if axe.err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o644)); axe.err != nil {
					return
				}
			}
			cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				axe.err = fmt.Errorf("npm ci: %w: %s", err, out)
				return
			}
		}
		b, err := os.ReadFile(script)
		axe.source, axe.err = string(b), err
	})
	if axe.err != nil {
		t.Skipf("axe-core cannot be installed: %v", axe.err)
	}
	return axe.source
}

// violation is a rule that a page breaks, and where.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// ofColours are the rules that judge colours, ofPages those about a page as a whole, which a frame in another is not.
var (
	ofColours = []string{"color-contrast", "link-in-text-block"}
	ofPages   = []string{"document-title", "landmark-one-main", "page-has-heading-one", "region", "bypass"}
)

// violations is what axe says of the page, by all rules but some, or by some alone.
func (p *page) violations(but, alone []string) (list []violation) {
	p.t.Helper()
	source := installAxe(p.t)
	// A page's policy is for what the page brings; this script is the reader's.
	p.Evaluate("void (window.axe ?? (() => {"+source+"\n})())", nil)
	// Previews run no script, so axe cannot look into them from here: InspectFrame does.
	options := map[string]any{"resultTypes": []string{"violations"}, "iframes": false}
	if alone != nil {
		options["runOnly"] = alone
	}
	rules := map[string]any{}
	for _, rule := range but {
		rules[rule] = map[string]bool{"enabled": false}
	}
	options["rules"] = rules
	given, err := json.Marshal(options)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Evaluate(
		"axe.run(document, "+string(
			given,
		)+").then((r) => { if (!r.passes.length) throw new Error('axe has judged nothing'); return r.violations; })",
		&list,
	)
	return list
}

// report fails for each violation.
func (p *page) report(at string, list []violation) {
	p.t.Helper()
	for _, v := range list {
		for _, n := range v.Nodes {
			p.t.Errorf("%s: %s (%s): %.300s: %s", at, v.ID, v.Help, n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", " "))
		}
	}
}

// InspectFrame judges the document in the preview that the page shows, as a page of its own. It looks alike in
// all windows, whatever colours they have, but for its width.
func (p *page) InspectFrame(name string) {
	p.t.Helper()
	var address string
	p.Evaluate(`document.querySelector("iframe.preview").getAttribute("src")`, &address)
	do(p, cdppage.SetBypassCSP, cdppage.SetBypassCSPParams{Enabled: true}) // the sandbox runs no script, axe's neither
	defer do(p, cdppage.SetBypassCSP, cdppage.SetBypassCSPParams{})
	p.Open(address)
	p.Look("light", 390)
	p.report(name+"-frame", p.violations(ofPages, nil))
}

// TestAxeSeesBadPages shows that a page that is bad is found to be.
func TestAxeSeesBadPages(t *testing.T) {
	installAxe(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(
			w,
			`<!doctype html><html lang="en"><title>Bad</title><main><h1>Bad</h1><img src="data:,"><input><p `+
				`style="color:#aaa;background:#fff">pale</p></main>`,
		)
	}))
	defer server.Close()
	p := newPage(t, server.URL)
	p.Open("/")
	var found []string
	for _, v := range p.violations(nil, nil) {
		found = append(found, v.ID)
	}
	for _, id := range []string{"image-alt", "label", "color-contrast"} {
		if !slices.Contains(found, id) {
			t.Errorf("axe does not see %s, only %v", id, found)
		}
	}
}

// Inspect judges the page as it is, on a wide and on a narrow window, and in the narrow one in the dark too: axe
// finds nothing, and nothing has to be scrolled sideways. With HUB_SCREENS=1 it keeps what it sees.
func (p *page) Inspect(name string) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			if scheme == "dark" && width == 1280 && os.Getenv("HUB_SCREENS") == "" {
				continue // the colours are those of the narrow window
			}
			at := fmt.Sprintf("%s-%s-%d", name, scheme, width)
			p.Look(scheme, width)
			var alone []string
			if scheme == "dark" { // which is the same page in other colours
				alone = ofColours
			}
			p.report(at, p.violations(nil, alone))
			p.fits(at)
			if width < 600 && scheme == "light" {
				p.canBeTouched(at)
			}
			if os.Getenv("HUB_SCREENS") != "" {
				p.Screenshot(filepath.Join(hubtest.Root(p.t), ".hub", "e2e", "screens", at+".png"))
			}
		}
	}
	// Half of the wide window is what stays of it at 200 %.
	p.Look("light", 640)
	p.fits(name + "-zoomed")
	p.Look("light", 1280)
}

// slim are what is touched and lower than a thumb is wide, 44 px. Links in the lines of a text are as high as their line.
const slim = `(() => {
	const all = document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary");
	const targets = new Set([...all].map((el) => el.matches("[type=checkbox], [type=radio]") ? el.closest("label") ?? el : el));
	return [...targets].filter((el) => {
		const box = el.getBoundingClientRect(), style = getComputedStyle(el);
		el.scrollIntoView({ block: "center" });
		return el.checkVisibility({ visibilityProperty: true }) && box.width > 1 && box.height < 43.5 && style.display !== "inline" &&
			style.clipPath === "none" && box.right > 0 && box.bottom > 0 && !el.closest("dialog:not([open])");
	}).map((el) => el.tagName + "." + el.className + " " + el.textContent.trim().slice(0, 25) + " " + el.getBoundingClientRect().height);
})()`

// canBeTouched wants each target to be as high as a thumb is wide.
func (p *page) canBeTouched(at string) {
	p.t.Helper()
	var found []string
	p.Evaluate(slim, &found)
	for _, what := range found {
		p.t.Errorf("%s: too low for a thumb: %s", at, what)
	}
}

// fits wants nothing to be scrolled sideways.
func (p *page) fits(at string) {
	p.t.Helper()
	var over int
	p.Evaluate("Math.max(0, document.documentElement.scrollWidth - innerWidth)", &over)
	if over > 0 {
		p.t.Errorf("%s: the page is %d px wider than the window", at, over)
	}
}
