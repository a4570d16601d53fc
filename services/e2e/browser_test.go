package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"hub.internal/pkg/hubtest"
)

// patience bounds what a page may take to become what a test waits for.
const patience = hubtest.Patience

// some is every sixth of a corpus that a browser lays out, each of which takes it a moment; make test-all looks at all of it,
// and so do the tests of what reads a mail, which need no browser.
func some[T any](list []T) (sixth []T) {
	if os.Getenv("HUB_TEST_ALL") != "" {
		return list
	}
	for i := 0; i < len(list); i += 6 {
		sixth = append(sixth, list[i])
	}
	return sixth
}

// chromium is the browser of the test binary. It starts with the first page, and each page
// is a window with cookies of its own.
var chromium theBrowser

type theBrowser struct {
	once sync.Once
	err  error
	ctx  context.Context
	end  context.CancelFunc
	// outside is where every host but this machine leads: what connects there has left.
	outside net.Listener
	mu      sync.Mutex
	left    []string
	kept    int
}

func (b *theBrowser) start(t testing.TB) context.Context {
	t.Helper()
	program := hubtest.Chromium(t)
	b.once.Do(func() {
		if b.outside, b.err = net.Listen("tcp", "127.0.0.1:0"); b.err != nil {
			return
		}
		go b.count()
		var vendor []string // the browser's own services are not meant
		for _, host := range []string{"google.com", "googleapis.com", "gvt1.com", "gvt2.com", "googleusercontent.com", "gstatic.com",
			"chromium.org"} {
			vendor = append(vendor, "MAP "+host+" ~NOTFOUND", "MAP *."+host+" ~NOTFOUND")
		}
		options := append(
			chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(program),
			chromedp.WSURLReadTimeout(patience),
			chromedp.Flag(
				"host-resolver-rules",
				strings.Join(append(vendor, "MAP * "+b.outside.Addr().String(), "EXCLUDE 127.0.0.1"), ", "),
			),
			// A sandboxed frame in a process of its own would be another target, with events of its own.
			chromedp.Flag(
				"disable-features",
				"Translate,IsolateSandboxedIframes,SpareRendererForSitePerProcess,OptimizationHints,MediaRouter,AutofillServerCommunication",
			),
			chromedp.Flag("disable-component-update", true),
			chromedp.Flag("disable-domain-reliability", true),
			chromedp.Flag("no-pings", true),
			chromedp.Flag("disable-gpu", true),
			// Nothing is drawn in three dimensions: no process for it.
			chromedp.Flag("disable-software-rasterizer", true),
			chromedp.Flag("in-process-gpu", true),
		)
		ctx, endAll := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, _ = chromedp.NewContext(ctx)
		b.ctx, b.end = ctx, endAll
		b.err = chromedp.Do(b.ctx)
	})
	if b.err != nil {
		t.Fatalf("chromium: %v", b.err)
	}
	return b.ctx
}

func (b *theBrowser) count() {
	for {
		conn, err := b.outside.Accept()
		if err != nil {
			return
		}
		go func() {
			host := hostOf(conn)
			conn.Close()
			b.mu.Lock()
			defer b.mu.Unlock()
			b.left = append(b.left, host)
		}()
	}
}

// hostOf is whom a connection was meant for, as far as it tells.
func hostOf(conn net.Conn) (host string) {
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	first := bufio.NewReader(conn)
	if b, err := first.Peek(1); err == nil && b[0] != 0x16 { // which begins a handshake of TLS
		if r, err := http.ReadRequest(first); err == nil {
			host = r.Host
		}
		return host
	}
	_ = tls.Server(peeked{conn, first}, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		host = hello.ServerName
		return nil, errors.New("nobody is here")
	}}).Handshake()
	return host
}

// peeked is a connection whose first byte was read already.
type peeked struct {
	net.Conn
	r io.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// Left are the hosts that connections were for which tried to leave this machine.
func (b *theBrowser) Left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.left)
}

// number tells the kept pages of one test apart.
func (b *theBrowser) number() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept++
	return b.kept
}

func (b *theBrowser) close() error {
	if b.ctx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	err := chromedp.Cancel(ctx)
	b.end()
	b.outside.Close()
	return err
}

// page is a window of the browser, with cookies of its own, and what happened in it.
type page struct {
	t      testing.TB
	ctx    context.Context
	origin string
	frame  cdp.FrameID
	scheme string
	width  int64

	mu       sync.Mutex
	requests map[network.RequestID]request
	loading  map[cdp.FrameID]bool
	changed  time.Time
	// what happened
	statuses map[string]int64
	dialogs  []string
	problems []string
	foreign  []string
	popups   []string
	// hostile pages try what a page of the console must not.
	hostile bool
	// restless pages may load for ever.
	restless bool
	// scriptless pages run no scripts.
	scriptless bool
	// left is how many connections had left this machine when the window was last judged.
	left  int
	close func()
}

// request is one that is under way.
type request struct {
	url    string
	frame  cdp.FrameID
	loader cdp.LoaderID
}

var pageFrames = cdppage.GetFrameTree

// newPage opens a window on the console at origin. When the test fails, what the window
// shows then is kept in .hub/e2e.
func newPage(t testing.TB, origin string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium.start(t), chromedp.WithNewBrowserContext())
	p := &page{
		t:        t,
		ctx:      ctx,
		close:    cancel,
		origin:   origin,
		left:     len(chromium.Left()),
		requests: map[network.RequestID]request{},
		loading:  map[cdp.FrameID]bool{},
		statuses: map[string]int64{},
	}
	t.Cleanup(func() {
		p.behaved()
		if t.Failed() && ctx.Err() == nil {
			p.keep()
		}
		cancel()
	})
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	tree := do(p, cdppage.GetFrameTree, cdp.Empty{})
	p.mu.Lock()
	p.frame = tree.FrameTree.Frame.ID
	p.mu.Unlock()
	do(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	do(p, accessibility.Enable, cdp.Empty{})
	p.Look("light", 1280)
	return p
}

// in makes a subtest the one that fails when the window does not do what it should.
func (p *page) in(t *testing.T) {
	t.Helper()
	outer := p.t
	p.t = t
	t.Cleanup(func() {
		if t.Failed() {
			p.keep()
		}
		p.t = outer
	})
}

// do runs a command of the protocol and fails the test when it fails.
func do[P, R any](p *page, c cdp.Command[P, R], params P) R {
	p.t.Helper()
	r, err := try(p, c, params)
	if err != nil {
		p.t.Fatalf("%s: %v", c.Method, err)
	}
	return r
}

func try[P, R any](p *page, c cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Call(ctx, c, params)
}

// heard keeps what the browser tells of the page.
func (p *page) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests[e.RequestID] = request{e.Request.URL, e.FrameID, e.LoaderID}
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme+"://"+u.Host != p.origin {
			p.foreign = append(p.foreign, e.Request.URL)
		}
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument && e.FrameID == p.frame {
			p.statuses[e.Response.URL] = e.Response.Status
		}
		return
	case *network.EventLoadingFinished:
		delete(p.requests, e.RequestID)
	case *network.EventLoadingFailed:
		if e.BlockedReason != "" { // it never left the page
			if i := slices.Index(p.foreign, p.requests[e.RequestID].url); i >= 0 {
				p.foreign = slices.Delete(p.foreign, i, i+1)
			}
		}
		delete(p.requests, e.RequestID)
	case *cdppage.EventFrameRequestedNavigation:
		p.loading[e.FrameID] = true
	case *cdppage.EventFrameStartedNavigating:
		p.loading[e.FrameID] = true
	case *cdppage.EventFrameStartedLoading:
		p.loading[e.FrameID] = true
	case *cdppage.EventFrameStoppedLoading:
		delete(p.loading, e.FrameID)
	case *cdppage.EventFrameDetached:
		delete(p.loading, e.FrameID)
		maps.DeleteFunc(p.requests, func(_ network.RequestID, r request) bool { return r.frame == e.FrameID })
	case *cdppage.EventFrameNavigated:
		// What the page before was waiting for, nobody is told the end of.
		if e.Frame.ID == p.frame {
			maps.DeleteFunc(p.requests, func(_ network.RequestID, r request) bool { return r.loader != e.Frame.LoaderID })
			maps.DeleteFunc(p.loading, func(id cdp.FrameID, _ bool) bool { return id != p.frame })
		}
	case *cdppage.EventWindowOpen:
		p.popups = append(p.popups, e.URL)
	case *cdppage.EventJavascriptDialogOpening:
		p.dialogs = append(p.dialogs, string(e.Type)+" "+e.Message)
		go func() {
			_, _ = try(p, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *runtime.EventExceptionThrown:
		problem := "exception: " + e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			problem += " " + thrown.Description
		}
		p.problems = append(p.problems, problem)
	case *log.EventEntryAdded:
		// An answer of 4xx is an entry too, and none of the page's. A mail's pictures from elsewhere are
		// held back by its preview's policy, which is what they are there for.
		held := strings.HasPrefix(e.Entry.Text, "Loading the image") && strings.Contains(e.Entry.Text, `"img-src data:"`)
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork && !held {
			p.problems = append(p.problems, "log: "+e.Entry.Text)
		}
	default:
		return
	}
	p.changed = time.Now()
}

// behaved fails the test when a page of the console did what none of them does.
func (p *page) behaved() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hostile && len(p.problems)+len(p.dialogs)+len(p.foreign)+len(p.popups) > 0 {
		p.t.Errorf(
			"the browser tells of problems %q, dialogs %q, requests elsewhere %q, windows %q",
			p.problems,
			p.dialogs,
			p.foreign,
			p.popups,
		)
	}
}

// Look sets the reader's colours and the width of the window.
func (p *page) Look(scheme string, width int64) {
	p.t.Helper()
	p.scheme, p.width = scheme, width
	height := int64(800)
	if width < 600 {
		height = 844
	}
	do(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
	do(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// WithoutJavaScript turns scripts off for all that the window loads from now on.
func (p *page) WithoutJavaScript() {
	p.t.Helper()
	do(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.scriptless = true
}

// network lets each answer come so many milliseconds later.
func (p *page) network(latency float64) {
	p.t.Helper()
	do(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Latency: latency, DownloadThroughput: -1, UploadThroughput: -1}}})
}

// Open goes to a path of the console, waits until the page is there, and returns its status.
func (p *page) Open(path string) int {
	p.t.Helper()
	p.openForeign(p.origin + path)
	return p.Status()
}

// openForeign goes to any address.
func (p *page) openForeign(address string) {
	p.t.Helper()
	r, err := try(p, cdppage.Navigate, cdppage.NavigateParams{URL: address})
	if err != nil || r.ErrorText != "" && r.ErrorText != "net::ERR_HTTP_RESPONSE_CODE_FAILURE" {
		p.t.Fatalf("open %s: %v %s", address, err, r.ErrorText)
	}
	p.Settle()
}

// Back is the browser's back button.
func (p *page) Back() {
	p.t.Helper()
	h := do(p, cdppage.GetNavigationHistory, cdp.Empty{})
	if h.CurrentIndex == 0 {
		p.t.Fatal("there is no page to go back to")
	}
	do(p, cdppage.NavigateToHistoryEntry, cdppage.NavigateToHistoryEntryParams{EntryID: h.Entries[h.CurrentIndex-1].ID})
	p.Settle()
}

// Reload is the browser's reload button.
func (p *page) Reload() {
	p.t.Helper()
	do(p, cdppage.Reload, cdppage.ReloadParams{})
	p.Settle()
}

// URL is the address of the page.
func (p *page) URL() string {
	p.t.Helper()
	return do(p, cdppage.GetFrameTree, cdp.Empty{}).FrameTree.Frame.URL
}

// Path is that address without the origin and the query.
func (p *page) Path() string {
	p.t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	return u.Path
}

// Status is that of the page's document.
func (p *page) Status() int {
	p.t.Helper()
	at := p.URL()
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.statuses[at])
}

// quiet is how long nothing may happen before a page counts as settled.
const quiet = 40 * time.Millisecond

// Settle waits until nothing loads any more: what an input has set off has come to its end.
func (p *page) Settle() {
	p.t.Helper()
	// A few times round the renderer: tasks that an input has queued are then done, and what they
	// have begun is heard of.
	for range 3 {
		_, _ = try(p, dom.GetDocument, dom.GetDocumentParams{})
	}
	began := time.Now()
	for {
		p.mu.Lock()
		busy := len(p.requests)+len(p.loading) > 0
		since := time.Since(p.changed)
		pending := fmt.Sprint(p.requests, p.loading)
		p.mu.Unlock()
		if !busy && since > quiet && time.Since(began) > quiet && p.idle() {
			return
		}
		if p.restless && time.Since(began) > 2*time.Second {
			return
		}
		if time.Since(began) > patience {
			p.t.Fatalf("the page does not come to rest: %s", pending)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// idle waits until the page has nothing to do, and tells whether nothing has begun to load meanwhile: a busy machine takes its
// time to work through what has come, and takes the next key first. It asks with a task that comes after all others and not with
// requestIdleCallback, which a window that draws nothing is not called back by for as long as one lets it. Where no scripts run nobody
// can tell.
func (p *page) idle() bool {
	p.mu.Lock()
	before, scripts := p.changed, !p.scriptless && !p.restless && !p.hostile
	p.mu.Unlock()
	if !scripts {
		return true
	}
	if p.evaluate(`scheduler.postTask(() => {}, { priority: "background" })`, nil) != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed.Equal(before)
}

// Evaluate runs an expression in the page and decodes its value.
func (p *page) Evaluate(expression string, into any) {
	p.t.Helper()
	if err := p.evaluate(expression, into); err != nil {
		p.t.Fatalf("%.80s: %v", expression, err)
	}
}

// evaluate fails, beside other things, when the page goes away meanwhile.
func (p *page) evaluate(expression string, into any) error {
	yes := true
	r, err := try(p, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: &yes, AwaitPromise: &yes})
	if err != nil {
		return err
	}
	return valueOf(r.Result, r.ExceptionDetails, into)
}

func valueOf(o *runtime.RemoteObject, thrown *runtime.ExceptionDetails, into any) error {
	switch {
	case thrown != nil && thrown.Exception != nil:
		return errors.New(thrown.Exception.Description)
	case thrown != nil:
		return errors.New(thrown.Text)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal([]byte(o.Value), into); err != nil {
		return fmt.Errorf("answers %s: %w", o.Value, err)
	}
	return nil
}

// Text is what can be read on the page; nothing while one page makes room for the next.
func (p *page) Text() string {
	p.t.Helper()
	var text string
	_ = p.evaluate("document.body ? document.body.innerText : ''", &text)
	return text
}

// Sees waits until a text can be read on the page.
func (p *page) Sees(text string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%q can be read", text), func() bool { return strings.Contains(p.Text(), text) })
}

// SeesNot fails when a text can be read on the page, which has settled.
func (p *page) SeesNot(text string) {
	p.t.Helper()
	if strings.Contains(p.Text(), text) {
		p.t.Errorf("%s shows %q", p.Path(), text)
	}
}

func (p *page) eventually(what string, ready func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("it never came to pass at %s: %s", p.Path(), what)
		}
	}
}

// Press types keys at where the focus is: single characters, or the names of kb.
func (p *page) Press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		if err := chromedp.Do(p.ctx, chromedp.KeyEvent(key)); err != nil {
			p.t.Fatalf("press %q: %v", key, err)
		}
		p.Settle()
	}
}

// element finds one thing of a page by its role and its accessible name, as somebody finds it
// who listens to the page.
type element struct {
	p     *page
	roles []string
	name  string
	// exact names are the whole name, but for a remark that a field may be left empty.
	exact  bool
	within *element
	nth    int
}

func (p *page) role(name string, exact bool, roles ...string) element {
	return element{p: p, roles: roles, name: name, exact: exact}
}

// Button, Link, Heading and Field are found by their whole name.
func (p *page) Button(name string) element  { return p.role(name, true, "button") }
func (p *page) Link(name string) element    { return p.role(name, true, "link") }
func (p *page) Heading(name string) element { return p.role(name, true, "heading") }
func (p *page) Field(label string) element {
	return p.role(label, true, "textbox", "searchbox", "combobox", "checkbox", "spinbutton")
}

// Notice is what the page tells of what was just done.
func (p *page) Notice() string {
	p.t.Helper()
	var text string
	p.Evaluate(
		"[...document.querySelectorAll('[role=alert], [role=status]')].map((e) => e.innerText.trim()).filter(Boolean).join('\\n')",
		&text,
	)
	return text
}

// In looks below another element only; Nth takes one of several, from 0.
func (e element) In(outer element) element { e.within = &outer; return e }
func (e element) Nth(i int) element        { e.nth = i + 1; return e }

func (e element) String() string {
	s := fmt.Sprintf("%s %q", strings.Join(e.roles, "|"), e.name)
	if e.nth > 0 {
		s += fmt.Sprintf(" no. %d", e.nth)
	}
	if e.within != nil {
		s += " in " + e.within.String()
	}
	return s
}

// found is an element as it is in the document now.
type found struct {
	node     cdp.BackendNodeID
	name     string
	value    string
	disabled bool
}

// all finds the elements that match, in the order of the document.
func (e element) all() ([]found, error) {
	params := accessibility.QueryAXTreeParams{}
	if e.within != nil {
		outer, err := e.within.one()
		if err != nil {
			return nil, err
		}
		params.BackendNodeID = outer.node
	} else {
		document, err := try(e.p, dom.GetDocument, dom.GetDocumentParams{})
		if err != nil {
			return nil, err
		}
		params.BackendNodeID = document.Root.BackendNodeID
	}
	if len(e.roles) == 1 {
		params.Role = e.roles[0]
	}
	r, err := try(e.p, accessibility.QueryAXTree, params)
	if err != nil {
		return nil, err
	}
	var list []found
	for _, n := range r.Nodes {
		name := textOf(n.Name)
		if n.Ignored || !slices.Contains(e.roles, textOf(n.Role)) || e.exact && strings.TrimSuffix(name, " (optional)") != e.name ||
			!strings.Contains(name, e.name) {
			continue
		}
		f := found{node: n.BackendDOMNodeID, name: name, value: textOf(n.Value)}
		for _, property := range n.Properties {
			if property.Name == accessibility.PropertyNameDisabled && string(property.Value.Value) == "true" {
				f.disabled = true
			}
		}
		list = append(list, f)
	}
	return list, nil
}

func textOf(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	if json.Unmarshal([]byte(v.Value), &text) != nil {
		return string(v.Value)
	}
	return text
}

// one is the element that matches: there has to be one.
func (e element) one() (found, error) {
	list, err := e.all()
	switch {
	case err != nil:
		return found{}, err
	case e.nth > 0 && len(list) >= e.nth:
		return list[e.nth-1], nil
	case e.nth > 0 || len(list) == 0:
		return found{}, fmt.Errorf("%d found", len(list))
	case len(list) > 1:
		return found{}, fmt.Errorf("%d found", len(list))
	}
	return list[0], nil
}

// Count is how many there are now.
func (e element) Count() int { e.p.t.Helper(); return len(e.mustAll()) }

func (e element) mustAll() []found {
	e.p.t.Helper()
	list, err := e.all()
	if err != nil {
		e.p.t.Fatalf("%s: %v", e, err)
	}
	return list
}

// wait is one as soon as there is one that can be used.
func (e element) wait() found {
	e.p.t.Helper()
	var f found
	var err error
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if f, err = e.one(); err == nil && f.disabled {
			err = errors.New("it is disabled")
		}
		if err == nil {
			return f
		}
		if time.Now().After(deadline) {
			e.p.t.Fatalf("%s at %s: %v", e, e.p.Path(), err)
		}
	}
}

// Name is the whole accessible name.
func (e element) Name() string { e.p.t.Helper(); return e.wait().name }

// Value is that of a field.
func (e element) Value() string { e.p.t.Helper(); return e.wait().value }

// Text is what can be read in the element.
func (e element) Text() string {
	e.p.t.Helper()
	var text string
	e.call("function() { return this.innerText }", &text)
	return text
}

// Shows waits until a text can be read in the element.
func (e element) Shows(text string) {
	e.p.t.Helper()
	e.p.eventually(fmt.Sprintf("%s shows %q", e, text), func() bool { return strings.Contains(e.Text(), text) })
}

// call runs a function on the element, again if the element was replaced meanwhile.
func (e element) call(function string, into any) {
	e.p.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = e.try(e.wait(), function, into); err == nil {
			return
		}
	}
	e.p.t.Fatalf("%s: %v", e, err)
}

func (e element) try(f found, function string, into any) error {
	o, err := try(e.p, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: f.node})
	if err != nil {
		return err
	}
	yes := true
	r, err := try(
		e.p,
		runtime.CallFunctionOn,
		runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: o.Object.ObjectID, ReturnByValue: &yes},
	)
	if err != nil {
		return err
	}
	return valueOf(r.Result, r.ExceptionDetails, into)
}

// Click presses the left button at the middle of the element, and waits until what that sets
// off has come to its end.
func (e element) Click() {
	e.p.t.Helper()
	e.clicks(1)
	e.p.Settle()
}

// DoubleClick clicks twice as fast as the browser takes it.
func (e element) DoubleClick() {
	e.p.t.Helper()
	e.clicks(2)
	e.p.Settle()
}

// DoubleClickAround clicks twice at one place, as a hand does that is slower than the server:
// what the first click brings about happens in between.
func (e element) DoubleClickAround(between func()) {
	e.p.t.Helper()
	e.clicks(2, between)
	e.p.Settle()
}

func (e element) clicks(times int, between ...func()) {
	e.p.t.Helper()
	var x, y float64
	var err error
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if x, y, err = e.place(e.wait()); err == nil {
			break
		}
		if time.Now().After(deadline) {
			e.p.t.Fatalf("click %s at %s: %v", e, e.p.Path(), err)
		}
	}
	at := input.DispatchMouseEventParams{X: x, Y: y, Button: input.MouseButtonLeft}
	for i := range times {
		at.ClickCount = int64(i + 1)
		if i > 0 {
			for _, f := range between {
				f()
			}
		}
		for _, at.Type = range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed,
			input.DispatchMouseEventTypeMouseReleased} {
			do(e.p, input.DispatchMouseEvent, at)
		}
	}
}

// place scrolls to the element and returns its middle; an error when something covers it.
func (e element) place(f found) (x, y float64, err error) {
	if _, err := try(e.p, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: f.node}); err != nil {
		return 0, 0, err
	}
	q, err := try(e.p, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: f.node})
	if err != nil || len(q.Quads) == 0 || len(q.Quads[0]) != 8 {
		return 0, 0, fmt.Errorf("it has no place on the page: %w", err)
	}
	for i, v := range q.Quads[0] {
		if i%2 == 0 {
			x += v / 4
		} else {
			y += v / 4
		}
	}
	yes := true
	scroll, err := try(e.p, cdppage.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return 0, 0, err
	}
	// Quads are in the window, this question is in the document.
	hit, err := try(e.p, dom.GetNodeForLocation, dom.GetNodeForLocationParams{
		X: int64(x) + scroll.CSSLayoutViewport.PageX, Y: int64(y) + scroll.CSSLayoutViewport.PageY, IgnorePointerEventsNone: &yes})
	if err != nil {
		return 0, 0, err
	}
	var objects []runtime.RemoteObjectID
	for _, node := range []cdp.BackendNodeID{f.node, hit.BackendNodeID} {
		o, err := try(e.p, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node})
		if err != nil {
			return 0, 0, err
		}
		objects = append(objects, o.Object.ObjectID)
	}
	r, err := try(e.p, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: "function(hit) { return this.contains(hit) || hit.contains(this) && hit.tagName === 'LABEL' }",
		ObjectID:            objects[0], Arguments: []*runtime.CallArgument{{ObjectID: objects[1]}}, ReturnByValue: &yes,
	})
	if err == nil && string(r.Result.Value) != "true" {
		err = errors.New("something covers it")
	}
	return x, y, err
}

// Focus puts the keyboard on the element.
func (e element) Focus() {
	e.p.t.Helper()
	e.call("function() { this.focus(); if (document.activeElement !== this) throw new Error('it takes no focus') }", nil)
}

// Fill replaces what a field holds.
func (e element) Fill(text string) {
	e.p.t.Helper()
	e.Focus()
	do(
		e.p,
		input.DispatchKeyEvent,
		input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Commands: []string{"selectAll"}},
	)
	do(e.p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp})
	if text == "" {
		e.p.Press("\b")
	}
	do(e.p, input.InsertText, input.InsertTextParams{Text: text})
}

// Choose picks an option of a select by its text.
func (e element) Choose(option string) {
	e.p.t.Helper()
	quoted, _ := json.Marshal(option)
	e.call(`function() {
		const o = [...this.options].find((o) => o.text === `+string(quoted)+`);
		if (!o) throw new Error("there is no such option: " + [...this.options].map((o) => o.text));
		this.value = o.value;
		this.dispatchEvent(new Event("input", { bubbles: true }));
		this.dispatchEvent(new Event("change", { bubbles: true }));
	}`, nil)
	e.p.Settle()
}

// Upload puts a file into a file field.
func (e element) Upload(path string) {
	e.p.t.Helper()
	do(e.p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, BackendNodeID: e.wait().node})
}

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// keep writes what the window shows to .hub/e2e, and says where.
func (p *page) keep() {
	name := fmt.Sprintf("%s-%d", unsafeName.ReplaceAllString(p.t.Name(), "_"), chromium.number())
	dir := filepath.Join(hubtest.Root(p.t), ".hub", "e2e")
	yes := true
	if html, err := try(
		p,
		runtime.Evaluate,
		runtime.EvaluateParams{Expression: "location.href + '\\n' + document.documentElement.outerHTML", ReturnByValue: &yes},
	); err == nil {
		var text string
		_ = json.Unmarshal([]byte(html.Result.Value), &text)
		p.write(filepath.Join(dir, name+".html"), []byte(text))
	}
	if shot, err := try(p, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{CaptureBeyondViewport: &yes}); err == nil {
		p.write(filepath.Join(dir, name+".png"), shot.Data)
	}
}

func (p *page) write(path string, b []byte) {
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644)); err != nil {
		p.t.Logf("not kept: %v", err)
		return
	}
	p.t.Logf("see %s", path)
}

// Screenshot writes the whole page to a file.
func (p *page) Screenshot(path string) {
	p.t.Helper()
	// The window as high as the page: frames out of sight are not drawn.
	height := int64(min(do(p, cdppage.GetLayoutMetrics, cdp.Empty{}).CSSContentSize.Height, 8000))
	do(
		p,
		emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: p.width, Height: height, DeviceScaleFactor: 1},
	)
	p.Settle()
	time.Sleep(100 * time.Millisecond) // for the frames to be drawn
	p.write(path, do(p, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{}).Data)
	p.Look(p.scheme, p.width)
}
