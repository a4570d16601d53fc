package e2e_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
)

// load is agents and a reviewer at work, before gateways of which one may be away.
type load struct {
	s       *suite
	mu      sync.Mutex
	good    map[string]int
	refused []string
	turn    int
}

// ask sends a request to one gateway after the other until one answers.
func (l *load) ask(ctx context.Context, what, method, path, body string, headers map[string]string) string {
	for ctx.Err() == nil {
		l.mu.Lock()
		l.turn++
		addr := l.s.addr[[]string{"gateway", "gateway-2"}[l.turn%2]]
		l.mu.Unlock()
		req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		for name, value := range headers {
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
		if resp.StatusCode != http.StatusOK {
			l.refused = append(l.refused, fmt.Sprintf("%s: %d %.300s", what, resp.StatusCode, b))
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

// run works until ctx ends.
func (l *load) run(ctx context.Context, session credential, segment string, to contact) {
	key := map[string]string{"Authorization": "Bearer " + l.s.key, "Content-Type": "application/json"}
	keyed := func(id string) map[string]string {
		h := maps.Clone(key)
		h["Idempotency-Key"] = id
		return h
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				l.ask(ctx, "read", "POST", "/api/tools/get_brand", `{"brandId":1}`, key)
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			l.ask(ctx, "page", "GET", "/drafts", "", map[string]string{"Cookie": session["Cookie"], "Accept": "text/html"})
		}
	})
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			saved := l.ask(ctx, "write", "POST", "/api/tools/save_message_draft", fmt.Sprintf(`{"segmentId":%q,"name":"n","subjectTemplate":"s","bodyTemplate":"b","targets":[{"externalId":%d,"toEmail":%q,"toName":"x"}]}`,
				segment, to.Partner, to.Email), keyed(fmt.Sprint("save ", i)))
			_, id, _ := strings.Cut(saved, `"draft_id":"`)
			if id, _, found := strings.Cut(id, `"`); found {
				l.ask(ctx, "queue", "POST", "/api/tools/queue_for_review", fmt.Sprintf(`{"draftId":%q}`, id), keyed(fmt.Sprint("queue ", i)))
			}
		}
	})
	wg.Wait()
}

// TestEveryKeyRotatesUnderLoad gives each process another key, while agents and a person work:
// the new keys are trusted, then used, then the old ones are dropped, with a restart of one
// replica after the other each time. No call is refused.
func TestEveryKeyRotatesUnderLoad(t *testing.T) {
	t.Parallel()
	s := start(t, options{gateways: 2, replicas: 2})
	session := s.session(t, s.person("Ada Lovelace", "reviewer"))
	to := s.contacts(t, 1)[0]
	var segment struct {
		ID string `json:"segment_id"`
	}
	s.must(t, "create_segment", map[string]any{"name": "n", "kind": "partner", "targets": []map[string]any{{"externalId": to.Partner, "snapshot": to.Brand}}}, &segment)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	work := &load{s: s, good: map[string]int{}}
	var done sync.WaitGroup
	done.Go(func() { work.run(ctx, session, segment.ID, to) })

	fresh := map[string]caller.SigningKey{}
	var before, after []string
	for _, name := range everyProcess {
		fresh[name] = caller.NewSigningKey()
		before, after = append(before, callertest.Signing(name).Trusted(name)), append(after, fresh[name].Trusted(name))
	}
	both := "HUB_TRUSTED_KEYS=" + strings.Join(append(before, after...), " ")
	for _, step := range []struct {
		name    string
		setting func(process string) string
	}{
		{"the new keys are trusted", func(string) string { return both }},
		{"the new keys sign", func(process string) string { return "HUB_SIGNING_KEY=" + fresh[process].Reveal() }},
		{"the old keys are dropped", func(string) string { return "HUB_TRUSTED_KEYS=" + strings.Join(after, " ") }},
	} {
		for _, number := range []string{"", "-2"} {
			for _, program := range everyProcess {
				name := program + number
				if err := s.process[name].Stop(t.Context()); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				s.env[name] = append(s.env[name], step.setting(program))
				s.start(name)
				s.ready(name)
			}
		}
		worked := work.counts()
		hubtest.Eventually(t, "all go on after: "+step.name, func() bool {
			now := work.counts()
			for what := range worked {
				if now[what] < worked[what]+3 {
					return false
				}
			}
			return len(now) == 4
		})
	}
	stop()
	done.Wait()
	if len(work.refused) > 0 {
		t.Errorf("%d calls were refused, the first of them %s", len(work.refused), work.refused[0])
	}
	t.Logf("answered %v", work.good)

	// What would be seen if it went wrong: the old key signs again.
	for _, name := range []string{"gateway", "gateway-2"} {
		if err := s.process[name].Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.env[name] = append(s.env[name], "HUB_SIGNING_KEY="+callertest.Signing(caller.Gateway).Reveal(), both)
		s.start(name)
		s.ready(name)
	}
	if r := s.call("get_brand", `{"brandId":1}`); r.Error.Code != "E_DB" || r.status != http.StatusServiceUnavailable || strings.Contains(r.raw, "token") {
		t.Errorf("with a key that nobody believes: %s", r.raw)
	}
}
