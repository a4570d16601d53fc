package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/localserver"
	"hub.internal/pkg/web"
)

// consoleName is the part that measures the console's pages.
const consoleName = "console"

// reviewing are the services that a page for reviewers passes beside the measured ones.
var reviewing = []string{"authoring", "review-control"}

const (
	// consoleSize is how many targets the large draft has, and how many drafts the list.
	consoleSize = 10_000
	pageLimit   = 100              // milliseconds, p50 and p99 of a page, through the gateway
	paintLimit  = 500              // milliseconds from opening a page to its first content, nothing of it in the cache
	shiftLimit  = 0.02             // of the window, while a page comes
	paints      = 5                // how often a page is opened in a browser, of which the median counts
	reviewLimit = 30 * time.Second // in which the large draft has been looked through
)

// consolePage is a page and what came of it.
type consolePage struct {
	// The page's path with its query, and its name in the report.
	path, title string
	measurement
	size int // compressed, in bytes
	// painted and shift are there when a browser was.
	painted time.Duration
	shift   float64
}

// measureConsole measures the console: a draft with many targets, and the list of as many drafts.
func (b *bench) measureConsole(ctx context.Context) error {
	// A sample of less than scale 1, such as a test's, has a smaller draft.
	n := max(50, int(consoleSize*min(1, b.scale)))
	b.say("making a draft of %d targets, and %d drafts", n, n)
	// The list holds copies of the draft that the tools have made, so that each row is one that the program itself
	// could have written.
	draft, err := b.largeDraft(ctx, n)
	if err != nil {
		return err
	}
	if err := b.manyDrafts(ctx, draft, n); err != nil {
		return err
	}
	cookie, err := b.signIn(ctx)
	if err != nil {
		return err
	}
	b.console = []consolePage{
		{path: "/drafts/" + draft, title: fmt.Sprintf("a draft of %d targets", n)},
		{path: "/drafts/" + draft + "?order=flagged", title: "the same, flagged first"},
		{path: "/drafts", title: fmt.Sprintf("the list of %d drafts", n)},
	}
	for i := range b.console {
		p := &b.console[i]
		var rounds []measurement
		for range b.rounds {
			rounds = append(rounds, b.measurePage(ctx, p, cookie))
		}
		p.measurement = middle(rounds)
		b.say("%-9s %-30s p50 %7.2f ms  p99 %7.2f ms  errors %d", consoleName, p.title, ms(p.p50), ms(p.p99), p.errors)
	}
	program, err := localserver.ChromiumPath()
	if err != nil {
		b.say("no browser here: %v", err)
		b.noBrowser = true
		return nil
	}
	for i := range b.console {
		if err := b.paint(ctx, program, &b.console[i], cookie); err != nil {
			return fmt.Errorf("%s in a browser: %w", b.console[i].path, err)
		}
		b.say("%-9s %-30s first content %7.2f ms  shift %.3f", consoleName, b.console[i].title, ms(b.console[i].painted), b.console[i].shift)
	}
	return nil
}

// largeDraft makes a draft by the tools, as an agent does, and waits until its mails have been looked through.
func (b *bench) largeDraft(ctx context.Context, targets int) (string, error) {
	type object = map[string]any
	var evidence, list []object
	for i := range targets {
		evidence = append(evidence, object{"externalId": i + 1, "snapshot": object{"partner_id": i + 1, "name": fmt.Sprint("Partner ", i)}})
		target := object{"externalId": i + 1, "toEmail": fmt.Sprintf("person%05d@company.example", i), "toName": fmt.Sprint("Person ", i),
			"context": object{"why": "It sells what we like."}}
		// Some mails have something to flag: a link that shows another address than it leads to.
		if i%20 == 0 {
			target["body"] = `<p><a href="https://evil.example/">https://company.example/</a></p>`
		}
		list = append(list, target)
	}
	var segment struct {
		ID string `json:"segment_id"`
	}
	if err := b.tool(ctx, "create_segment", object{"name": "Everybody", "kind": "partner", "targets": evidence}, &segment); err != nil {
		return "", err
	}
	var draft struct {
		ID string `json:"draft_id"`
	}
	err := b.tool(ctx, "save_message_draft", object{
		"segmentId": segment.ID, "name": "A large draft", "createdBy": "bench", "targets": list,
		"subjectTemplate": "An offer for {{toName}}", "bodyTemplate": "<p>Dear {{toName}},</p><p>we have read your page.</p>",
	}, &draft)
	if err != nil {
		return "", err
	}
	if err := b.tool(ctx, "queue_for_review", object{"draftId": draft.ID, "actor": "bench"}, nil); err != nil {
		return "", err
	}
	db, err := pgx.Connect(ctx, b.postgres.SuperuserURL("hub"))
	if err != nil {
		return "", err
	}
	defer db.Close(ctx)
	for deadline := time.Now().Add(reviewLimit); ; time.Sleep(100 * time.Millisecond) {
		var inspected int
		// Triage runs as a job: the page is what a reviewer sees after it.
		row := db.QueryRow(ctx, `SELECT inspected FROM review_control.reviews WHERE draft_id = $1::bigint`, draft.ID)
		if err := row.Scan(&inspected); err != nil {
			return "", err
		}
		if inspected == targets {
			return draft.ID, nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("%d of %d mails have been looked through in %s", inspected, targets, reviewLimit)
		}
	}
}

// manyDrafts copies a draft, without its targets: nine of ten have been sent, and the others are in review.
func (b *bench) manyDrafts(ctx context.Context, draft string, n int) error {
	db, err := pgx.Connect(ctx, b.postgres.SuperuserURL("hub"))
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	_, err = db.Exec(ctx, `INSERT INTO authoring.drafts (name, status, segment_id, subject_template, body_template, created_by, created_at,
			queued_at, target_count, progress_version, approved, sent, pending, service, external_user_id, credential_id, hub_user)
		SELECT 'Draft ' || n, CASE n % 10 WHEN 0 THEN 'in_review' ELSE 'sent' END, segment_id, subject_template, body_template, created_by,
			created_at, now() - n * interval '1 minute', 1, 1, (n % 10 <> 0)::int, (n % 10 <> 0)::int, (n % 10 = 0)::int, service,
			external_user_id, credential_id, hub_user FROM authoring.drafts, generate_series(1, $2::int) n WHERE id = $1::bigint`, draft, n)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, `INSERT INTO review_control.reviews (draft_id, status, target_count, pending, approved, sent, synced, queued_at,
			actor, note, created_by, hub_user, external_user, sender_name, sender_email, credential_id, tool, key, fingerprint, caller, input_hash)
		SELECT id, status, 1, pending, approved, sent, 1, queued_at, 'bench', '', 'bench', '', '', '', '', '', '', id::text, '', '{}', ''
			FROM authoring.drafts WHERE id <> $1::bigint`, draft)
	if err != nil {
		return err
	}
	// Without statistics the planner would measure its own guess.
	_, err = db.Exec(ctx, `ANALYZE`)
	return err
}

// tool calls a tool that has to succeed, as the agent of the load does.
// The Idempotency-Key is the tool's name, since each is called once.
func (b *bench) tool(ctx context.Context, name string, input, into any) error {
	body, err := json.Marshal(input)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.addr["gateway"]+"/api/tools/"+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + b.key}, "Content-Type": {"application/json"}, "Idempotency-Key": {"bench " + name}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %.300s %w", name, res.StatusCode, answer, err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, &struct{ Data any }{into})
}

// signIn makes a reviewer, and a session of theirs.
// The password is the one that auth makes and prints once.
func (b *bench) signIn(ctx context.Context) (*http.Cookie, error) {
	auth, err := b.programs.Find("auth")
	if err != nil {
		return nil, err
	}
	out, err := b.hub().Command(ctx, auth, "", "user", "add", "bench@example.com", "--name", "Bench", "--json", "--roles", "reviewer")
	if err != nil {
		return nil, err
	}
	var user struct{ Password string }
	if err := json.Unmarshal(out, &user); err != nil {
		return nil, fmt.Errorf("auth user add: %w", err)
	}
	form := url.Values{"email": {"bench@example.com"}, "password": {user.Password}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.addr["gateway"]+"/login", strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	// A log-in that fails renders the form again, with 200.
	for _, c := range res.Cookies() {
		if c.Name == web.CookieName(web.SessionCookie, false) && res.StatusCode == http.StatusSeeOther {
			return c, nil
		}
	}
	return nil, fmt.Errorf("the log-in answers %d", res.StatusCode)
}

// measurePage asks for a page again and again, for a window after a tenth of it to warm up.
func (b *bench) measurePage(ctx context.Context, p *consolePage, cookie *http.Cookie) measurement {
	k := &worker{}
	// What ends before begin is the warm-up and is not counted, as under load.
	begin := time.Now().Add(b.window / 10)
	end := begin.Add(b.window)
	for time.Now().Before(end) {
		start := time.Now()
		size, err := b.page(ctx, p.path, cookie)
		if err != nil {
			k.errors, k.problem = k.errors+1, err
		} else {
			p.size = size
		}
		k.calls = append(k.calls, timedCall{start, time.Since(start)})
	}
	return sum([]*worker{k}, begin, end)
}

// page reads a page as a browser does, and returns how many bytes came.
func (b *bench) page(ctx context.Context, path string, cookie *http.Cookie) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr["gateway"]+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header = http.Header{"Accept": {"text/html"}, "Accept-Encoding": {"gzip"}, "Cookie": {cookie.Name + "=" + cookie.Value}}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d", path, res.StatusCode)
	}
	return len(body), err
}

// paintScript is what a page in a browser says of its own coming.
const paintScript = `(async () => {
	const moved = [];
	const watch = new PerformanceObserver((list) => moved.push(...list.getEntries()));
	watch.observe({ type: "layout-shift", buffered: true });
	await new Promise((done) => setTimeout(done, 300));
	moved.push(...watch.takeRecords());
	return {
		Painted: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
		Shift: moved.reduce((all, e) => all + e.value, 0),
	};
})()`

// paint opens a page in a browser that knows nothing of it, in a window of a desk.
// A shift is the greatest of all times, and the time until the first content the median.
func (b *bench) paint(ctx context.Context, program string, p *consolePage, cookie *http.Cookie) error {
	ctx, end := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program))...)
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	address := "http://" + b.addr["gateway"]
	secure := true
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}); err != nil {
		return err
	}
	known := network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: address, Path: "/", Secure: &secure}
	if _, err := chromedp.Call(ctx, network.SetCookie, known); err != nil {
		return err
	}
	var painted []time.Duration
	for range paints {
		if err := chromedp.Do(ctx, chromedp.Navigate(address+p.path)); err != nil {
			return err
		}
		// The script answers by a promise, whose value is plain data.
		yes := true
		answer, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{
			Expression: paintScript, AwaitPromise: &yes, ReturnByValue: &yes})
		if err != nil {
			return err
		}
		var seen struct{ Painted, Shift float64 }
		if err := json.Unmarshal([]byte(answer.Result.Value), &seen); err != nil {
			return err
		}
		painted, p.shift = append(painted, time.Duration(seen.Painted*float64(time.Millisecond))), max(p.shift, seen.Shift)
	}
	p.painted = median(painted)
	return nil
}

// consoleVerdicts judges what was measured of the console.
func (b *bench) consoleVerdicts() (list []verdict) {
	for _, p := range b.console {
		for _, of := range []struct {
			name string
			took time.Duration
		}{{", p50", p.p50}, {", p99", p.p99}} {
			v := atMost(p.title+of.name, ms(of.took), pageLimit, " ms", 1)
			// A page that fails is fast, and no page.
			v.reached = v.reached && p.errors == 0
			list = append(list, v)
		}
		if p.painted > 0 {
			list = append(list, atMost(p.title+", first content in a browser", ms(p.painted), paintLimit, " ms", 0),
				atMost(p.title+", what moves while it comes", p.shift, shiftLimit, "", 3))
		}
	}
	return list
}

// consoleReport is what was measured of the console, as a part of the report; empty without it.
func (b *bench) consoleReport() string {
	if len(b.console) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("\n## console: pages through the gateway, one after another\n\n")
	if b.noBrowser {
		out.WriteString("Skipped what only a browser tells: there is none here.\n\n")
	}
	out.WriteString("| Page | pages/s | p50 ms | p90 ms | p99 ms | errors | KiB, compressed | first content ms | shift |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range b.console {
		fmt.Fprintf(&out, "| %s | %.0f | %.1f | %.1f | %.1f | %d | %.1f | %.0f | %.3f |\n", p.title, p.rate, ms(p.p50), ms(p.p90), ms(p.p99),
			p.errors, float64(p.size)/1024, ms(p.painted), p.shift)
		if p.problem != nil {
			fmt.Fprintf(&out, "\nAn error of %s: %v\n", p.path, p.problem)
		}
	}
	return out.String()
}
