package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/edge"
)

// TestOrderOfChecks breaks a call in every way at once and mends one way after the
// other: the refusals have to come in the order of CONTRACT.md 1.2.
func TestOrderOfChecks(t *testing.T) {
	e := newFixture(t)
	big := `{"text":"` + strings.Repeat("x", 2<<20) + `"}`
	tightSpent := bearer(tight)
	for range 2 {
		e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, tightSpent...)
	}
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
		code             string
	}{
		{"body cap before credential", "/api/tools/nope", big, nil, 400, "E_VALIDATION"},
		{"credential before tool", "/api/tools/nope", `{`, nil, 401, "E_AUTH_MISSING"},
		{"malformed credential before tool", "/api/tools/nope", `{`, bearer("x"), 401, "E_AUTH_INVALID"},
		{"unknown credential before tool", "/api/tools/nope", `{`, bearer(unknown), 401, "E_AUTH_INVALID"},
		{"revoked credential before tool", "/api/tools/nope", `{`, bearer(revoked), 403, "E_AUTH_REVOKED"},
		{"lapsed credential before tool", "/api/tools/nope", `{`, bearer(lapsed), 403, "E_AUTH_REVOKED"},
		{"tool before scope", "/api/tools/nope", `{`, bearer(readOnly), 404, "E_NOT_FOUND"},
		{"scope before limit, key and schema", "/api/tools/store_echo", `{`, bearer(readOnly), 403, "E_SCOPE"},
		{"limit before key and schema", "/api/tools/store_echo", `{`, tightSpent, 429, "E_RATE_LIMIT"},
		{"key before schema", "/api/tools/store_echo", `{`, bearer(allScopes), 400, "E_VALIDATION"},
		{"schema", "/api/tools/store_echo", `{`, append(bearer(allScopes), "Idempotency-Key", "k"), 400, "E_VALIDATION"},
		{"nothing wrong", "/api/tools/store_echo", `{"text":"x"}`, append(bearer(allScopes), "Idempotency-Key", "k"), 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := e.do(t, "POST", c.path, c.body, c.headers...)
			if r.status != c.status || r.code() != c.code {
				t.Errorf("status %d code %s, want %d %s: %s", r.status, r.code(), c.status, c.code, r.body)
			}
			if r.env.TookMS == nil || r.env.RequestID == "" || r.header.Get("X-Request-Id") != r.env.RequestID {
				t.Errorf("the envelope is incomplete: %s", r.body)
			}
			if c.code != "" && (r.env.Error.Retryable == nil || r.env.OK) {
				t.Errorf("a failure says whether it is retryable: %s", r.body)
			}
		})
	}
	key := e.do(t, "POST", "/api/tools/store_echo", `{`, bearer(allScopes)...)
	if !strings.Contains(key.body, "Idempotency-Key") {
		t.Errorf("the refusal does not name the header: %s", key.body)
	}
}

func TestEnvelopeOfSuccess(t *testing.T) {
	e := newFixture(t)
	r := e.do(
		t,
		"POST",
		"/api/tools/search_echo",
		`{"text":"김 <b>&\u2028"}`,
		append(bearer(allScopes), "X-Request-Id", "req_mine:1.2-3", "X-External-User-Id", "agent 7")...)
	if r.status != 200 || !r.env.OK || r.env.Tool != "search_echo" || r.env.Count == nil || *r.env.Count != 1 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	if r.env.RequestID != "req_mine:1.2-3" {
		t.Errorf("the request id is not echoed: %s", r.env.RequestID)
	}
	var out echoOut
	if err := json.Unmarshal(r.env.Data, &out); err != nil {
		t.Fatal(err)
	}
	if out.Text != "김 <b>&\u2028" || out.Limit != 50 || !out.Deadline {
		t.Errorf("data %s", r.env.Data)
	}
	if got := out.Caller; got.Kind != "key" || got.Service != "svc" || got.ExternalUserID != "agent 7" || got.CredentialID != "ak_a" ||
		got.RequestID != "req_mine:1.2-3" {
		t.Errorf("the service saw the caller %+v", got)
	}
	if r.header.Get("Content-Length") != strconv.Itoa(len(r.body)) {
		t.Errorf("Content-Length %s for %d bytes", r.header.Get("Content-Length"), len(r.body))
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 129), "é"} {
		if r := e.do(
			t,
			"POST",
			"/api/tools/search_echo",
			`{"text":"x"}`,
			append(bearer(allScopes), "X-Request-Id", bad)...); !strings.HasPrefix(r.env.RequestID, "req_") ||
			len(r.env.RequestID) != 30 {
			t.Errorf("request id for %q: %q", bad, r.env.RequestID)
		}
	}
}

func TestCredentialForms(t *testing.T) {
	e := newFixture(t)
	for name, c := range map[string]struct {
		headers []string
		code    string
	}{
		"bearer":                   {bearer(allScopes), ""},
		"lower-case scheme":        {[]string{"Authorization", "bearer " + allScopes}, ""},
		"X-API-Key":                {[]string{"X-API-Key", allScopes}, ""},
		"both, equal":              {append(bearer(allScopes), "X-API-Key", allScopes), ""},
		"both, different":          {append(bearer(allScopes), "X-API-Key", readOnly), "E_AUTH_INVALID"},
		"two bearers":              {append(bearer(allScopes), "Authorization", "Bearer "+readOnly), "E_AUTH_INVALID"},
		"none":                     {nil, "E_AUTH_MISSING"},
		"empty":                    {[]string{"Authorization", "", "X-API-Key", " "}, "E_AUTH_MISSING"},
		"basic":                    {[]string{"Authorization", "Basic eDp5"}, "E_AUTH_INVALID"},
		"no token":                 {[]string{"Authorization", "Bearer"}, "E_AUTH_INVALID"},
		"short":                    {bearer(allScopes[:45]), "E_AUTH_INVALID"},
		"long":                     {bearer(allScopes + "a"), "E_AUTH_INVALID"},
		"other prefix":             {bearer("sk_" + allScopes), "E_AUTH_INVALID"},
		"a JWT":                    {bearer("eyJhbGciOiJub25lIn0.e30."), "E_AUTH_INVALID"},
		"sql in the key":           {bearer("crm_' OR 1=1 --" + strings.Repeat("a", 31)), "E_AUTH_INVALID"},
		"unknown":                  {bearer(unknown), "E_AUTH_INVALID"},
		"external user too long":   {append(bearer(allScopes), "X-External-User-Id", strings.Repeat("u", 201)), "E_VALIDATION"},
		"external user at its cap": {append(bearer(allScopes), "X-External-User-Id", strings.Repeat("u", 200)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if r := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, c.headers...); r.code() != c.code {
				t.Errorf("code %q, want %q: %s", r.code(), c.code, r.body)
			}
		})
	}
	malformed := e.do(t, "POST", "/api/tools/search_echo", `{}`, bearer("x")...)
	notKnown := e.do(t, "POST", "/api/tools/search_echo", `{}`, bearer(unknown)...)
	if malformed.env.Error.Message != notKnown.env.Error.Message {
		t.Error("a malformed and an unknown key can be told apart")
	}
}

func TestStrictJSON(t *testing.T) {
	e := newFixture(t)
	for name, c := range map[string]struct{ body, rule, path string }{
		"empty":             {``, "json", ""},
		"array":             {`[]`, "type", ""},
		"null":              {`null`, "type", ""},
		"cut":               {`{"text":"x"`, "json", ""},
		"two values":        {`{"text":"x"} {}`, "json", ""},
		"trailing text":     {`{"text":"x"}x`, "json", ""},
		"duplicate name":    {`{"text":"x","text":"y"}`, "json", "/text"},
		"invalid UTF-8":     {"{\"text\":\"\xff\"}", "json", "/text"},
		"lone surrogate":    {`{"text":"\ud800"}`, "json", "/text"},
		"comment":           {`{"text":"x"/**/}`, "json", ""},
		"single quotes":     {`{'text':'x'}`, "json", ""},
		"BOM":               {"\ufeff{\"text\":\"x\"}", "json", ""},
		"missing":           {`{}`, "required", "/text"},
		"unknown":           {`{"text":"x","extra":1}`, "additionalProperties", "/extra"},
		"other case":        {`{"text":"x","Limit":1}`, "additionalProperties", "/Limit"},
		"below":             {`{"text":"x","limit":0}`, "minimum", "/limit"},
		"above":             {`{"text":"x","limit":201}`, "maximum", "/limit"},
		"beyond 64 bits":    {`{"text":"x","limit":1e30}`, "maximum", "/limit"},
		"fraction":          {`{"text":"x","limit":1.5}`, "type", "/limit"},
		"no number":         {`{"text":"x","limit":"one"}`, "type", "/limit"},
		"null member":       {`{"text":null}`, "type", "/text"},
		"too short":         {`{"text":""}`, "minLength", "/text"},
		"too long":          {`{"text":"` + strings.Repeat("가", 21) + `"}`, "maxLength", "/text"},
		"escaped too long":  {`{"text":"` + strings.Repeat(`\u0041`, 21) + `"}`, "maxLength", "/text"},
		"name needs escape": {`{"text":"x","a/b~c":1}`, "additionalProperties", "/a~1b~0c"},
	} {
		t.Run(name, func(t *testing.T) {
			r := e.do(t, "POST", "/api/tools/search_echo", c.body, bearer(allScopes)...)
			var details struct {
				Violations []struct{ Path, Rule, Message string }
			}
			if r.env.Error == nil || json.Unmarshal(r.env.Error.Details, &details) != nil || len(details.Violations) != 1 {
				t.Fatalf("want one violation: %s", r.body)
			}
			if v := details.Violations[0]; r.status != 400 || r.code() != "E_VALIDATION" || v.Rule != c.rule || v.Path != c.path ||
				v.Message == "" {
				t.Errorf("got %+v (%d %s), want %s at %q", v, r.status, r.code(), c.rule, c.path)
			}
		})
	}
	for name, body := range map[string]string{"1.0 is an integer": `{"text":"x","limit":1.0}`, "2e1 too": `{"text":"x","limit":2e1}`,
		"a number in quotes": `{"text":"x","limit":"1"}`,
		"20 wide characters": `{"text":"` + strings.Repeat("🎉", 20) + `"}`, "spaces": " \n{ \"text\" : \"x\" } \t"} {
		if r := e.do(t, "POST", "/api/tools/search_echo", body, bearer(allScopes)...); r.status != 200 {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	all := e.do(t, "POST", "/api/tools/search_echo", `{"limit":0,"a":1,"b":2}`, bearer(allScopes)...)
	if n := strings.Count(all.body, `"rule"`); n != 4 {
		t.Errorf("%d violations listed, want all 4: %s", n, all.body)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", e.url+"/api/tools/search_echo", strings.NewReader(`{"text":"x"}`))
	req.Header.Set("Authorization", "Bearer "+allScopes)
	req.Header.Set("Content-Type", "text/plain")
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != 400 {
		t.Errorf("text/plain: %v %v", resp, err)
	}
}

func TestBodyCap(t *testing.T) {
	e := newFixture(t)
	at := func(n int) string { return `{"text":"x"` + strings.Repeat(" ", n-len(`{"text":"x"}`)) + `}` }
	write := append(bearer(allScopes), "Idempotency-Key", "k")
	if r := e.do(t, "POST", "/api/tools/store_echo", at(4096), write...); r.status != 200 {
		t.Errorf("a body at the cap: %s", r.body)
	}
	for name, body := range map[string]string{"store_echo": at(4097), "search_echo": at(1<<20 + 1)} {
		r := e.do(t, "POST", "/api/tools/"+name, body, write...)
		if r.code() != "E_VALIDATION" || !strings.Contains(string(r.env.Error.Details), `"limit_bytes":`) {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	// A length that is not declared is held to the cap while it is read.
	req, _ := http.NewRequestWithContext(t.Context(), "POST", e.url+"/api/tools/store_echo", strings.NewReader(at(1<<20)))
	req.ContentLength = -1
	req.Header.Set("Authorization", "Bearer "+allScopes)
	req.Header.Set("Idempotency-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("chunked body over the cap: %d", resp.StatusCode)
	}
}

func TestIdempotencyKeyForm(t *testing.T) {
	e := newFixture(t)
	for key, ok := range map[string]bool{
		"k": true, `"quoted"`: true, strings.Repeat("k", 255): true, `"` + strings.Repeat("k", 255) + `"`: true, "a b": true,
		"": false, `""`: false, strings.Repeat("k", 256): false, "é": false, "tab\tkey": false,
	} {
		r := e.do(t, "POST", "/api/tools/store_echo", `{"text":"x"}`, append(bearer(allScopes), "Idempotency-Key", key)...)
		if (r.status == 200) != ok {
			t.Errorf("key %q: %s", key, r.body)
		}
	}
	if r := e.do(
		t,
		"POST",
		"/api/tools/search_echo",
		`{"text":"x"}`,
		append(bearer(allScopes), "Idempotency-Key", strings.Repeat("k", 300))...); r.status != 200 {
		t.Errorf("a read ignores the key: %s", r.body)
	}
}

func TestRoutes(t *testing.T) {
	e := newFixture(t)
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "E_NOT_FOUND", ""},
		{"GET", "/api", 404, "E_NOT_FOUND", ""},
		{"POST", "/api/tools/", 404, "E_NOT_FOUND", ""},
		{"GET", "/api/tools/search_echo/more", 404, "E_NOT_FOUND", ""},
		{"GET", "/internal/manifest", 404, "E_NOT_FOUND", ""},
		{"POST", "/internal/tools/search_echo", 404, "E_NOT_FOUND", ""},
		{"GET", "/metrics", 404, "E_NOT_FOUND", ""},
		{"GET", "/debug/pprof/", 404, "E_NOT_FOUND", ""},
		{"GET", "/api/tools/search_echo", 405, "E_VALIDATION", "POST"},
		{"DELETE", "/api/tools/search_echo", 405, "E_VALIDATION", "POST"},
		{"POST", "/api/tools", 405, "E_VALIDATION", "GET, HEAD"},
		{"PUT", "/api/tools/search_echo/detail", 405, "E_VALIDATION", "GET, HEAD"},
	} {
		r := e.do(t, c.method, c.path, "", bearer(allScopes)...)
		if r.status != c.status || r.code() != c.code || r.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d %s Allow %q: %s", c.method, c.path, r.status, r.code(), r.header.Get("Allow"), r.body)
		}
	}
}

func TestFaultsOfAServiceArriveAsTheyAre(t *testing.T) {
	e := newFixture(t)
	for name, c := range map[string]struct {
		err       error
		status    int
		code      string
		retryable bool
	}{
		"business": {fault.New(fault.NotFound, "There is no brand 7.").With(map[string]int{"brandId": 7}), 404, "E_NOT_FOUND", false},
		"wait": {fault.New(fault.RateLimit, "later").With(map[string]any{"retryAfter": 1, "scope": "source"}).After(time.Second), 429,
			"E_RATE_LIMIT", true},
		"database": {fault.New(fault.DB, "gone"), 503, "E_DB", true},
		"defect":   {errors.New("secret-host:3306 SELECT"), 500, "E_INTERNAL", false},
	} {
		t.Run(name, func(t *testing.T) {
			e.mu.Lock()
			e.during, e.entries = func(context.Context) error { return c.err }, nil
			e.mu.Unlock()
			r := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(allScopes)...)
			if r.status != c.status || r.code() != c.code || *r.env.Error.Retryable != c.retryable {
				t.Errorf("got %s", r.body)
			}
			if strings.Contains(r.body, "secret-host") {
				t.Error("the cause leaks")
			}
			if name == "wait" && r.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(e.entries) != 0 {
				t.Errorf("the edge recorded what the service records: %+v", e.entries)
			}
		})
	}
	e.mu.Lock()
	e.during = func(context.Context) error { panic("defect") }
	e.mu.Unlock()
	if r := e.do(
		t,
		"POST",
		"/api/tools/search_echo",
		`{"text":"x"}`,
		bearer(allScopes)...); r.code() != "E_INTERNAL" ||
		r.env.RequestID == "" {
		t.Errorf("panic: %s", r.body)
	}
}

func TestRefusalsAreRecorded(t *testing.T) {
	e := newFixture(t)
	e.do(t, "POST", "/api/tools/search_echo", `{}`)
	e.do(t, "POST", "/api/tools/nope", `{}`, bearer(readOnly)...)
	e.do(t, "POST", "/api/tools/store_echo", `{}`, bearer(readOnly)...)
	e.do(t, "POST", "/api/tools/search_echo", `{}`, bearer(readOnly)...)
	e.do(t, "POST", "/api/tools/search_echo", `{}`, append(bearer(readOnly), "X-External-User-Id", strings.Repeat("u", 201))...)
	e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(readOnly)...)
	e.mu.Lock()
	defer e.mu.Unlock()
	var got []string
	for _, entry := range e.entries {
		got = append(got, entry.Tool+" "+entry.Outcome+" "+entry.Caller.CredentialID)
		if entry.Caller.RequestID == "" {
			t.Errorf("no request id: %+v", entry)
		}
	}
	want := "search_echo E_AUTH_MISSING |nope E_NOT_FOUND ak_r|store_echo E_SCOPE ak_r|search_echo E_VALIDATION " +
		"ak_r|search_echo E_VALIDATION ak_r"
	if strings.Join(got, "|") != want {
		t.Errorf("recorded %s\nwant     %s", strings.Join(got, "|"), want)
	}
}

func TestCallsEndWithTheirDeadline(t *testing.T) {
	e := newFixture(t)
	ended := make(chan struct{})
	e.mu.Lock()
	e.during = func(ctx context.Context) error { <-ctx.Done(); close(ended); return ctx.Err() }
	e.mu.Unlock()
	r := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(allScopes)...)
	if r.code() != "E_DB" || !*r.env.Error.Retryable {
		t.Errorf("got %s", r.body)
	}
	<-ended
}

func TestACallerThatLeavesEndsItsCall(t *testing.T) {
	e := newFixture(t)
	started, ended := make(chan struct{}), make(chan struct{})
	e.mu.Lock()
	e.during = func(ctx context.Context) error { close(started); <-ctx.Done(); close(ended); return ctx.Err() }
	e.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", e.url+"/api/tools/search_echo", strings.NewReader(`{"text":"x"}`))
	req.Header.Set("Authorization", "Bearer "+allScopes)
	go func() { <-started; cancel() }()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Error("the call was answered")
	}
	<-ended
}

func TestFailedCredentialsAreLimited(t *testing.T) {
	e := newFixture(t, func(g *gateway.Gateway) { g.Failures = edge.Rate{PerMinute: 60, Burst: 5} })
	codes := map[string]int{}
	for range 8 {
		codes[e.do(t, "POST", "/api/tools/search_echo", `{}`, bearer(unknown)...).code()]++
	}
	if codes["E_AUTH_INVALID"] != 5 || codes["E_RATE_LIMIT"] != 3 {
		t.Errorf("answers %v", codes)
	}
	if r := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(allScopes)...); r.status != 200 {
		t.Errorf("a good key from the same address: %s", r.body)
	}
}

// TestAHeaderThatDecidesIsSentOnce: of two, readers choose differently.
func TestAHeaderThatDecidesIsSentOnce(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	for name, c := range map[string]struct {
		path    string
		headers []string
		status  int
	}{
		"two keys":                 {"/api/tools/store_echo", []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 400},
		"the same key twice":       {"/api/tools/store_echo", []string{"Idempotency-Key", "a", "Idempotency-Key", "a"}, 400},
		"two keys that nobody has": {"/api/tools/search_echo", []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 200},
		"two users":                {"/api/tools/search_echo", []string{"X-External-User-Id", "ada", "X-External-User-Id", "bob"}, 400},
		"an empty user and one":    {"/api/tools/search_echo", []string{"X-External-User-Id", "", "X-External-User-Id", "bob"}, 400},
		"two types":                {"/api/tools/search_echo", []string{"Content-Type", "text/plain"}, 400},
		"two request ids":          {"/api/tools/search_echo", []string{"X-Request-Id", "req_1", "X-Request-Id", "req_2"}, 200},
	} {
		r := e.do(t, "POST", c.path, `{"text":"x"}`, append(bearer(allScopes), c.headers...)...)
		if r.status != c.status || c.status == 400 && (r.env.Error.Code != "E_VALIDATION" || !strings.Contains(r.body, "sent once")) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
		if id := r.header.Get("X-Request-Id"); id == "req_1" || id == "req_2" {
			t.Errorf("%s: called %s", name, id)
		}
	}
}

func TestLimitAnswer(t *testing.T) {
	e := newFixture(t)
	first := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(tight)...)
	if got := first.header.Get("RateLimit-Policy"); got != `"user";q=6;w=60, "service";q=600000;w=60` {
		t.Errorf("RateLimit-Policy %s", got)
	}
	if got := first.header.Get("RateLimit"); got != `"user";r=1;t=10, "service";r=9999;t=1` {
		t.Errorf("RateLimit %s", got)
	}
	e.do(t, "GET", "/api/tools", "", bearer(tight)...)
	r := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(tight)...)
	var details struct {
		RetryAfter int
		Scope      string
	}
	if err := json.Unmarshal(
		r.env.Error.Details,
		&details,
	); err != nil || r.status != http.StatusTooManyRequests || details.Scope != "user" || details.RetryAfter < 9 ||
		r.header.Get("Retry-After") == "" {
		t.Errorf("the catalog counts too, and a refusal says when to come back: %d %s", r.status, r.body)
	}
	if r := e.do(
		t,
		"POST",
		"/api/tools/search_echo",
		`{"text":"x"}`,
		append(bearer(tight), "X-External-User-Id", "other")...); r.status != 200 {
		t.Errorf("another user of the same service has a bucket of its own: %s", r.body)
	}
}
