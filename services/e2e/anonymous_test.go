package e2e_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"hub.internal/pkg/hubtest"
)

// unfollowed stays where a redirect leads away from.
func unfollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// anonymous makes a request without any credential.
func (s *suite) anonymous(method, path, form string, headers ...string) (int, error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(form))
	if err != nil {
		return 0, err
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: unfollowed}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// series counts the lines of the gateway's metrics.
func (s *suite) series(t *testing.T) int {
	t.Helper()
	for line := range strings.SplitSeq(s.logs.String(), "\n") {
		var l struct{ Msg, Service, Listener, Addr string }
		if json.Unmarshal([]byte(line), &l) != nil || l.Msg != "serving" || l.Service != "gateway" || l.Listener != "operations" {
			continue
		}
		resp, err := http.Get("http://" + l.Addr + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("\n"))
	}
	t.Fatal("the gateway does not say where its metrics are")
	return 0
}

// answersToItsNamesAlone asks the gateway under names that are not its own, as a page does whose site points at it (DNS rebinding),
// and as who only asks whether it lives.
func (s *suite) answersToItsNamesAlone(t *testing.T) {
	t.Helper()
	_, port, _ := strings.Cut(s.addr["gateway"], ":")
	for _, host := range []string{"evil.example", "evil.example:" + port, "localhost:" + port, s.addr["gateway"]} {
		for _, path := range []string{"/login", "/api/tools", "/v1/pay/orders", "/mcp", "/.well-known/oauth-protected-resource", "/docs",
			"/assets/gateway/x",
			"/unsubscribe/x", "/nothing", "/healthz", "/readyz"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want := strings.HasPrefix(host, "evil") && !strings.HasSuffix(path, "z")
			if refused := resp.StatusCode == http.StatusMisdirectedRequest; refused != want ||
				strings.HasSuffix(path, "z") && resp.StatusCode != 200 {
				t.Errorf("%s at %s: %d", path, host, resp.StatusCode)
			}
		}
	}
}

// TestAnonymousCallersFillNothing makes thousands of requests of every kind that needs no credential, and looks at what is left
// of them: rows, series and lines of the logs.
func TestAnonymousCallersFillNothing(t *testing.T) {
	t.Parallel()
	// The limit that they fill is empty again within half a minute.
	s := start(t, options{env: []string{"HUB_FAILED_AUTH_PER_MINUTE=600"}})
	ada := s.person("Ada Lovelace", "reviewer")
	s.answersToItsNamesAlone(t)
	random := func(n int) string {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	digits := func(n int) string { return hex.EncodeToString([]byte(random(n))[:n]) }
	login := func(email string) string { return url.Values{"email": {email}, "password": {random(12)}}.Encode() }
	flow := base64.RawURLEncoding.EncodeToString([]byte(`{"s":"x","n":"x","v":"x","x":"/"}`))
	kinds := map[string]func() (method, path, form string, headers []string){
		"bad keys": func() (string, string, string, []string) {
			return "POST", "/api/tools/search_brands", "", []string{"Authorization", "Bearer crm_" + digits(21), "X-Request-Id", random(90)}
		},
		"no keys": func() (string, string, string, []string) {
			return "POST", "/api/tools/" + random(200), "", []string{"X-External-User-Id", random(100)}
		},
		"the catalog": func() (string, string, string, []string) { return "GET", "/api/tools", "", nil },
		"details": func() (string, string, string, []string) {
			return "GET", "/api/tools/" + random(20) + "/detail", "", nil
		},
		"one account": func() (string, string, string, []string) { return "POST", "/login", login(ada.Email), nil },
		"many accounts": func() (string, string, string, []string) {
			return "POST", "/login", login(random(9) + "@example.com"), nil
		},
		"known browsers": func() (string, string, string, []string) {
			return "POST", "/login", login(ada.Email), []string{"Cookie", "__Host-hub-browser=" + random(32)}
		},
		"sessions": func() (string, string, string, []string) {
			return "GET", "/login?next=/" + random(
					300,
				), "", []string{
					"Cookie",
					"__Host-hub=" + random(32) + "; __Host-hub-flash=" + random(60),
				}
		},
		"pages": func() (string, string, string, []string) {
			return "GET", "/drafts/" + random(100), "", []string{"Accept", "text/html"}
		},
		"sign out": func() (string, string, string, []string) { return "POST", "/logout", "x=" + random(50), nil },
		"languages": func() (string, string, string, []string) {
			return "POST", "/language", "to=ko&next=/" + random(50), nil
		},
		"links":          func() (string, string, string, []string) { return "POST", "/unsubscribe/" + random(16), "", nil },
		"broken links":   func() (string, string, string, []string) { return "GET", "/unsubscribe/" + random(300), "", nil },
		"single sign-on": func() (string, string, string, []string) { return "GET", "/login/oidc?next=/" + random(30), "", nil },
		"answers to it": func() (string, string, string, []string) {
			return "GET", "/login/oidc/callback?state=x&code=" + random(30), "", []string{"Cookie", "__Host-hub-signin=" + flow}
		},
		"invitations": func() (string, string, string, []string) {
			return "GET", "/login/invitation?t=" + random(32), "", nil
		},
		"passwords for them": func() (string, string, string, []string) {
			return "POST", "/login/invitation", url.Values{
					"password": {random(12)},
				}.Encode(), []string{
					"Cookie",
					"__Host-hub-invitation=" + random(32),
				}
		},
		"the reference": func() (string, string, string, []string) {
			return "GET", "/docs?" + random(50), "", []string{"Accept", "text/html", "If-None-Match", random(20)}
		},
		"its document":  func() (string, string, string, []string) { return "GET", "/openapi.json?" + random(50), "", nil },
		"unknown paths": func() (string, string, string, []string) { return "GET", "/" + random(500), "", nil },
		"consent":       func() (string, string, string, []string) { return "GET", "/connect?state=" + random(40), "", nil },
		"unknown methods": func() (string, string, string, []string) {
			return "X" + strings.ToUpper(random(6)[:5]), "/api/tools", "", nil
		},
		"traces of others": func() (string, string, string, []string) {
			return "GET", "/api/tools", "", []string{"Traceparent", "00-" + digits(16) + "-" + digits(8) + "-01"}
		},
	}
	const each = 200
	round := func(times int) map[string]map[int]int {
		answers := map[string]map[int]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for name, request := range kinds {
			all.Go(func() {
				for range times {
					method, path, form, headers := request()
					status, err := s.anonymous(method, path, form, headers...)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					mu.Lock()
					if answers[name] == nil {
						answers[name] = map[int]int{}
					}
					answers[name][status]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		return answers
	}
	round(3) // what is made once for all
	series, lines := s.series(t), strings.Count(s.logs.String(), "\n")
	answers := round(each)
	for name, statuses := range answers {
		for status := range statuses {
			if status >= 500 {
				t.Errorf("%s: %v", name, statuses)
			}
		}
	}
	if grown := s.series(t) - series; grown > 200 { // a twentieth: one of each kind of answer and each bucket may be new
		t.Errorf("%d requests have made %d lines of metrics", each*len(kinds), grown)
	}
	if grown := strings.Count(s.logs.String(), "\n") - lines; grown > 60 {
		t.Errorf("%d requests have made %d lines of logs", each*len(kinds), grown)
	}
	for _, name := range []string{"gateway", "auth", "review-control"} { // they tell what they have counted
		if err := s.process[name].Stop(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	count := func(sql string) int64 { t.Helper(); return query[int64](t, s, sql)[0] }
	// Two processes, 21 rows each a minute; the minutes of a busy machine are not known.
	minutes := count(`SELECT 1 + count(DISTINCT date_trunc('minute', at)) FROM audit.calls WHERE outcome <> 'ok'`)
	if n := count(`SELECT count(*) FROM audit.calls WHERE outcome <> 'ok'`); n > 42*minutes {
		t.Errorf("%d requests have made %d rows of the audit log in %d minutes", each*len(kinds), n, minutes)
	}
	if n := count(`SELECT sum(count) FROM audit.calls WHERE tool IN ('calls.refused', 'session.refused')`); n < 4*each {
		t.Errorf("%d were counted", n)
	}
	if n := count(`SELECT count(*) FROM auth.throttles`); n > 100*minutes {
		t.Errorf("%d throttles are kept", n)
	}
	for _, table := range []string{"auth.sessions", "auth.browsers", "review_control.suppressions", "review_control.suppression_events"} {
		if n := count(`SELECT count(*) FROM ` + table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	hubtest.Eventually(t, "nothing of it is left in Redis", func() bool {
		return s.redis.Do(
			t.Context(),
			"EVAL "+`"if redis.call('DBSIZE')>0 then return redis.error_reply('not empty') end return 0"`+" 0",
		) == nil
	})
}
