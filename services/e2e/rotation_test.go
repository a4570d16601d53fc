package e2e_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
)

// load is agents, apps and a reviewer at work, before gateways of which one may be away.
type load struct {
	x        *shop
	mu       sync.Mutex
	good     map[string]int
	refused  []string
	approved []string // the subjects of mails that a person let go
	turn     int
}

// ask sends a request to one gateway after the other until one answers, and returns the answer's body where its status is the wanted one.
func (l *load) ask(ctx context.Context, what string, want int, method, path, body string, headers func() map[string]string) string {
	for ctx.Err() == nil {
		l.mu.Lock()
		l.turn++
		addr := l.x.addr[[]string{"gateway", "gateway-2"}[l.turn%2]]
		l.mu.Unlock()
		req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		for name, value := range headers() {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			continue // nobody is there
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			continue // it left in the middle of its answer
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if resp.StatusCode != want {
			l.refused = append(l.refused, fmt.Sprintf("%s: %s %s: %d %.300s", what, method, path, resp.StatusCode, b))
			return ""
		}
		l.good[what]++
		return string(b)
	}
	return ""
}

// counts are what has succeeded so far.
func (l *load) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.good)
}

// refusals are the calls that did not get the answer that they should.
func (l *load) refusals() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.refused)
}

// part is the text between two others.
func part(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, found := strings.Cut(text, after)
	if !found {
		return ""
	}
	return text
}

var shownTarget = regexp.MustCompile(`type="hidden" name="target" value="([^"]+)"`)

// breath is how long each waits before what it does next: the load is there all the time, and leaves the machine to the others.
const breath = 100 * time.Millisecond

// run works until ctx ends, and finishes what it has begun.
func (l *load) run(ctx context.Context, session credential, segment string, to contact) {
	fixed := func(list ...string) func() map[string]string {
		h := map[string]string{}
		for i := 0; i+1 < len(list); i += 2 {
			h[list[i]] = list[i+1]
		}
		return func() map[string]string { return h }
	}
	agent := fixed("Authorization", "Bearer "+l.x.key, "Content-Type", "application/json")
	keyed := func(id string) func() map[string]string {
		return fixed("Authorization", "Bearer "+l.x.key, "Content-Type", "application/json", "Idempotency-Key", id)
	}
	person := fixed("Cookie", session["Cookie"], "Accept", "text/html", "Content-Type", "application/x-www-form-urlencoded")
	// A token is good once, so that each attempt has its own.
	app := func(id string) func() map[string]string {
		return func() map[string]string {
			return map[string]string{
				"Authorization":   "Bearer " + l.x.token(shopUser),
				"Content-Type":    "application/json",
				"Idempotency-Key": id,
			}
		}
	}
	var wg sync.WaitGroup
	// A tool of each service.
	reads := []struct{ tool, input string }{{"get_brand", `{"brandId":1}`}, {"list_drafts", `{"limit":1}`}, {"list_menu_groups", "{}"},
		{"list_connected_apps", "{}"}, {"list_pg_credentials", "{}"}, {"execute_read_sql", `{"sql":"SELECT 1"}`}}
	for i := range 2 {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				r := reads[n%len(reads)]
				l.ask(ctx, "read", http.StatusOK, "POST", "/api/tools/"+r.tool, r.input, agent)
				time.Sleep(breath)
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			l.ask(ctx, "page", http.StatusOK, "GET", "/drafts", "", person)
			time.Sleep(breath)
		}
	})
	wg.Go(func() { // from an agent's draft to a mail
		whole := context.WithoutCancel(ctx)
		for i := 0; ctx.Err() == nil; i++ {
			subject := fmt.Sprint("offer ", i)
			saved := l.ask(
				whole,
				"write",
				http.StatusOK,
				"POST",
				"/api/tools/save_message_draft",
				fmt.Sprintf(
					`{"segmentId":%q,"name":"n","subjectTemplate":%q,"bodyTemplate":"b","targets":[{"externalId":%d,"toEmail":%q,"toName":"x"}]}`,
					segment,
					subject,
					to.Partner,
					to.Email,
				),
				keyed(fmt.Sprint("save ", i)),
			)
			id := part(saved, `"draft_id":"`, `"`)
			if id == "" ||
				l.ask(
					whole,
					"queue",
					http.StatusOK,
					"POST",
					"/api/tools/queue_for_review",
					fmt.Sprintf(`{"draftId":%q}`, id),
					keyed(fmt.Sprint("queue ", i)),
				) == "" {
				continue
			}
			shown := shownTarget.FindStringSubmatch(l.ask(whole, "review", http.StatusOK, "GET", "/drafts/"+id+"/targets/0", "", person))
			if shown == nil {
				l.mu.Lock()
				l.refused = append(l.refused, "the page of draft "+id+" has nothing to decide on")
				l.mu.Unlock()
				continue
			}
			form := url.Values{"target": {shown[1]}, "choice": {"approved"}}.Encode()
			if before := l.counts()["decide"]; l.ask(
				whole,
				"decide",
				http.StatusSeeOther,
				"POST",
				"/drafts/"+id+"/decide",
				form,
				person,
			) != "" ||
				l.counts()["decide"] > before {
				l.approved = append(l.approved, subject)
			}
			time.Sleep(breath)
		}
	})
	wg.Go(func() { // an app's orders
		whole := context.WithoutCancel(ctx)
		for i := 0; ctx.Err() == nil; i++ {
			made := l.ask(whole, "order", http.StatusCreated, "POST", "/v1/pay/orders", `{"amount":1000}`, app(fmt.Sprint("order ", i)))
			if code := part(made, `"code":"`, `"`); code != "" {
				l.ask(whole, "order read", http.StatusOK, "GET", "/v1/pay/orders/"+code, "", app(""))
			}
			time.Sleep(breath)
		}
	})
	wg.Wait()
}

// TestReleasesAndKeysRollUnderLoad upgrades a suite, takes it back and upgrades it again, and gives each process another key on the
// way, while agents, an app and a person work. The suite begins as it was released before, with the tables that it had. The new
// migrations come first, and then one replica after the other restarts: so the old gateway is beside each new service and the new
// one beside each old, and every service beside both of its neighbours. No call is refused, and each mail that was let go arrives once.
func TestReleasesAndKeysRollUnderLoad(t *testing.T) {
	t.Parallel()
	old, err := previous(t)
	t.Run("beside the release before", func(t *testing.T) {
		if err != nil {
			t.Skipf("restarted as they are, without an upgrade: %v", err)
		}
		for _, name := range everyProcess {
			t.Logf("%s was %s", name, old[name].of)
		}
	})
	x := newShopWith(t, options{gateways: 2, replicas: 2, runs: old})
	s := x.suite
	session := s.session(t, s.person("Ada Lovelace", "reviewer"))
	to := s.contacts(t, 1)[0]
	var segment struct {
		ID string `json:"segment_id"`
	}
	s.must(
		t,
		"create_segment",
		map[string]any{"name": "n", "kind": "partner", "targets": []map[string]any{{"externalId": to.Partner, "snapshot": to.Brand}}},
		&segment,
	)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	work := &load{x: x, good: map[string]int{}}
	var done sync.WaitGroup
	done.Go(func() { work.run(ctx, session, segment.ID, to) })
	goesOn := func(after string) {
		t.Helper()
		worked := work.counts()
		hubtest.Eventually(t, "all go on after: "+after, func() bool {
			if refused := work.refusals(); len(refused) > 0 {
				t.Fatalf("%s: %d calls were refused, the first of them %s", after, len(refused), refused[0])
			}
			now := work.counts()
			for what := range worked {
				if now[what] < worked[what]+3 {
					return false
				}
			}
			return len(now) == 8
		})
	}

	for _, name := range everyProcess {
		delete(s.runs, name)
		s.run(name, s.env[name], "migrate")
	}
	goesOn("the new migrations")

	fresh := map[string]caller.SigningKey{}
	var before, after []string
	for _, name := range everyProcess {
		fresh[name] = caller.NewSigningKey()
		before, after = append(before, callertest.Signing(name).Trusted(name)), append(after, fresh[name].Trusted(name))
	}
	both := "HUB_TRUSTED_KEYS=" + strings.Join(append(before, after...), " ")
	for _, step := range []struct {
		name    string
		runs    map[string]program
		setting func(process string) string
	}{
		{"upgraded, and the new keys are trusted", nil, func(string) string { return both }},
		{"taken back, and the new keys sign", old, func(process string) string { return "HUB_SIGNING_KEY=" + fresh[process].Reveal() }},
		{"upgraded again, and the old keys are dropped", nil, func(string) string { return "HUB_TRUSTED_KEYS=" + strings.Join(after, " ") }},
	} {
		for _, number := range []string{"", "-2"} {
			for _, service := range everyProcess {
				name := service + number
				if err := s.process[name].Stop(t.Context()); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if p, found := step.runs[service]; found {
					s.runs[name] = p
				} else {
					delete(s.runs, name)
				}
				s.env[name] = append(s.env[name], step.setting(service))
				s.start(name)
				s.ready(name)
			}
		}
		goesOn(step.name)
	}
	stop()
	done.Wait()
	if len(work.refused) > 0 {
		t.Errorf("at the end, %d calls were refused, the first of them %s", len(work.refused), work.refused[0])
	}
	t.Logf("answered %v", work.good)
	hubtest.Eventually(t, "all mails that were let go have arrived", func() bool { return len(s.smtp.Mails()) >= len(work.approved) })
	var arrived []string
	for _, m := range s.smtp.Mails() {
		arrived = append(arrived, m.Subject)
	}
	if slices.Sort(arrived); !slices.Equal(arrived, slices.Sorted(slices.Values(work.approved))) {
		t.Errorf("let go %q, arrived %q", work.approved, arrived)
	}

	// What would be seen if it went wrong: the old key signs again.
	for _, name := range []string{"gateway", "gateway-2"} {
		if err := s.process[name].Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.env[name] = append(s.env[name], "HUB_SIGNING_KEY="+callertest.Signing(caller.Gateway).Reveal(), both)
		s.start(name)
		s.ready(name)
	}
	if r := s.call(
		"get_brand",
		`{"brandId":1}`,
	); r.Error.Code != "E_DB" || r.status != http.StatusServiceUnavailable ||
		strings.Contains(r.raw, "token") {
		t.Errorf("with a key that nobody believes: %s", r.raw)
	}
}
