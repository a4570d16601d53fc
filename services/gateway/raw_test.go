package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/edge"
)

// plain is an answer that has no envelope.
type plain struct {
	status int
	header http.Header
	body   []byte
}

func (s *till) raw(t testing.TB, method, path, contentType string, body []byte) plain {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return plain{resp.StatusCode, resp.Header, b}
}

func (s *till) answers(answer any, err error) {
	s.set(func() { s.answer = func(tool.RawRequest) (any, error) { return answer, err } })
}

func ok() tool.RawAnswer {
	return tool.RawAnswer{Status: 200, ContentType: "text/html;charset=utf-8", Body: []byte("OK")}
}

// TestRawRequestsPassAsTheyAre: any bytes, of whatever they say that they are, up to 64 KiB.
func TestRawRequestsPassAsTheyAre(t *testing.T) {
	s := newTill(t)
	s.answers(ok(), nil)
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	types := []string{
		"",
		"application/json",
		"application/x-www-form-urlencoded",
		"text/plain; charset=euc-kr",
		"multipart/form-data; boundary=x",
		"*/*",
		`x"\`,
	}
	bodies := [][]byte{nil, []byte("{"), []byte(`{"a":1,"a":2}`), []byte("a=1&a=2"), {0}, []byte("\xff\xfe"), noise(tool.MaxRawBody)}
	for range 40 {
		bodies = append(bodies, noise(random.IntN(2000)))
	}
	for i, body := range bodies {
		contentType := types[i%len(types)]
		query := []string{"", "?a=1&a=2", "?%zz;x", "?a=%EA%B0%80", "?"}[i%5]
		r := s.raw(t, "POST", "/v1/till/hooks/nice.pay"+query, contentType, body)
		if r.status != 200 || string(r.body) != "OK" {
			t.Fatalf("%d %s for %d bytes of %q", r.status, r.body, len(body), contentType)
		}
		in := s.last(t).Input.(rawIn)
		got, err := in.Bytes()
		if err != nil || !bytes.Equal(got, body) || in.ContentType != contentType || in.Method != "POST" ||
			in.Query != strings.TrimPrefix(query, "?") ||
			in.Provider != "nice.pay" {
			t.Errorf("the owner got %d bytes of %q by %s with %q, %v", len(got), in.ContentType, in.Method, in.Query, err)
		}
	}
	if who := s.last(t).Caller; who.Kind != caller.Visitor || who.Scopes != nil || who.HubUser != "" || who.CredentialID != "" {
		t.Errorf("the owner saw %+v", who)
	}
	reached, _ := s.counts()
	for name, r := range map[string]plain{
		"a byte too many":  s.raw(t, "POST", "/v1/till/hooks/x", "", make([]byte, tool.MaxRawBody+1)),
		"a long query":     s.raw(t, "POST", "/v1/till/hooks/x?"+strings.Repeat("q", tool.MaxRawQuery+1), "", nil),
		"a long type":      s.raw(t, "POST", "/v1/till/hooks/x", strings.Repeat("t", 256), nil),
		"a long path":      s.raw(t, "POST", "/v1/till/hooks/"+strings.Repeat("p", 41), "", nil),
		"with a length of": s.chunked(t, tool.MaxRawBody+1),
	} {
		if r.status != 400 || string(r.body) != "Bad Request\n" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if now, _ := s.counts(); now != reached {
		t.Errorf("%d reached the owner", now-reached)
	}
}

// chunked sends a body without saying how long it is.
func (s *till) chunked(t *testing.T, n int) plain {
	t.Helper()
	resp, err := http.Post(s.url+"/v1/till/hooks/x", "", io.MultiReader(bytes.NewReader(make([]byte, n))))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return plain{resp.StatusCode, resp.Header, b}
}

// TestACredentialMeansNothingWhereNoneIsAsked: a route that is open is open to all, and tells its owner of nobody.
func TestACredentialMeansNothingWhereNoneIsAsked(t *testing.T) {
	s := newTill(t)
	s.answers(ok(), nil)
	for name, headers := range map[string][]string{"a key": bearer(allScopes), "a revoked key": bearer(revoked),
		"a token": s.fresh("shop", "u-all"), "noise": {"Authorization", "x"}} {
		resp, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/till/hooks/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Header.Set(headers[0], headers[1])
		r, err := http.DefaultClient.Do(resp)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if who := s.last(t).Caller; r.StatusCode != 200 || who.Kind != caller.Visitor || who.CredentialID != "" {
			t.Errorf("%s: %d %+v", name, r.StatusCode, who)
		}
	}
	if _, used := s.counts(); used != 0 {
		t.Error("a token is used up")
	}
}

func TestRawAnswersPassAsTheyAre(t *testing.T) {
	s := newTill(t)
	for _, c := range []struct {
		name, method string
		answer       tool.RawAnswer
		status       int
	}{
		{"as the provider wants it", "GET", ok(), 200},
		{"text", "GET", tool.RawAnswer{Status: 200, ContentType: "text/plain; charset=utf-8", Body: []byte("\xff\x00any")}, 200},
		{"JSON", "GET", tool.RawAnswer{Status: 200, ContentType: "application/json", Body: []byte("{}")}, 200},
		{"nothing", "GET", tool.RawAnswer{Status: 200}, 200},
		{"64 KiB", "GET", tool.RawAnswer{Status: 200, ContentType: "text/plain", Body: bytes.Repeat([]byte("x"), tool.MaxRawBody)}, 200},
		{"a refusal in its own form", "POST", tool.RawAnswer{Status: 500, ContentType: "text/plain", Body: []byte("FAIL")}, 500},
		{"the usual status", "POST", tool.RawAnswer{Location: "https://shop.example/back?code=po_1&status=PAID"}, 303},
		{"a path", "GET", tool.RawAnswer{Status: 303, Location: "/done?x=1"}, 303},
		{"another host", "POST", tool.RawAnswer{Status: 303, Location: "https://shop.example:8443/back#x"}, 303},
		{"this machine", "GET", tool.RawAnswer{Status: 303, Location: "http://localhost:3000/back"}, 303},
		{"this machine, by its address", "GET", tool.RawAnswer{Status: 303, Location: "http://127.0.0.1:3000/back"}, 303},
		{"this machine, by the other", "GET", tool.RawAnswer{Status: 303, Location: "http://[::1]:3000/back"}, 303},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.answers(c.answer, nil)
			r := s.raw(t, c.method, "/v1/till/back/x?q=1", "", nil)
			if r.status != c.status || !bytes.Equal(r.body, c.answer.Body) || r.header.Get("Content-Type") != c.answer.ContentType ||
				r.header.Get("Location") != c.answer.Location {
				t.Errorf("%d %v %.200s", r.status, r.header, r.body)
			}
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
				"Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox"} {
				if got := r.header.Get(name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
			if !strings.HasPrefix(r.header.Get("X-Request-Id"), "req_") {
				t.Errorf("no request id: %v", r.header)
			}
			if in := s.last(t).Input.(rawIn); in.Method != c.method || in.Query != "q=1" {
				t.Errorf("%+v", in)
			}
		})
	}
	if r := s.raw(t, "HEAD", "/v1/till/back/x", "", nil); r.status != 303 || len(r.body) != 0 {
		t.Errorf("HEAD: %d %s", r.status, r.body)
	}
	if r := s.raw(t, "PUT", "/v1/till/back/x", "", nil); r.status != 405 || r.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("PUT: %d %v", r.status, r.header)
	}
}

// TestRawOwnersThatLie: what an owner may not say reaches nobody.
func TestRawOwnersThatLie(t *testing.T) {
	s := newTill(t)
	page := func(change func(map[string]any)) map[string]any {
		a := map[string]any{"status": 200, "contentType": "text/plain", "location": "", "body": "T0s="}
		change(a)
		return a
	}
	set := func(name string, value any) map[string]any { return page(func(a map[string]any) { a[name] = value }) }
	to := func(location string) map[string]any {
		return page(func(a map[string]any) { a["status"], a["location"] = 303, location })
	}
	for name, answer := range map[string]any{
		"a status that was not declared": set("status", 201), "204": set("status", 204), "301": set("status", 301), "304": set("status", 304),
		"101": set("status", 101), "600": set("status", 600), "-1": set("status", -1),
		"a script": set("contentType", "text/javascript"), "a picture with scripts": set("contentType", "image/svg+xml"),
		"a header in it": set("contentType", "text/plain\r\nSet-Cookie: a=b"), "two types": set("contentType", "text/plain, text/html"),
		"another charset": set("contentType", "text/html; charset=utf-7"), "no type": set("contentType", ""),
		"too much": set("body", bytes.Repeat([]byte("x"), tool.MaxRawBody+1)), "far too much": set("body", strings.Repeat("QUFB", 100_000)),
		"no base64":               set("body", "?"),
		"a Location of a success": set("location", "https://shop.example/"), "303 without one": to(""),
		"a script to go to": to("javascript:alert(1)"), "data to go to": to("data:text/html,x"),
		"http elsewhere": to("http://shop.example/"), "half an address": to("//shop.example/"), "a user": to("https://hub@shop.example/"),
		"a break": to("https://shop.example/\r\nX: y"), "a backslash": to(`https://shop.example\@evil.example/`),
		"no host": to("https:///x"), "a long one": to("https://shop.example/" + strings.Repeat("x", 2048)),
		"a host like this machine": to("http://localhost.evil.example/"), "ftp": to("ftp://localhost/"), "opaque": to("https:shop.example"),
		"no object": []string{"x"}, "a text": "OK", "nothing": nil,
	} {
		s.answers(answer, nil)
		// null is an answer without a status, and so without a Location, which 303 has to have.
		r := s.raw(t, "GET", "/v1/till/back/x", "", nil)
		if r.status != 500 || string(r.body) != "Internal Server Error\n" || r.header.Get("Location") != "" ||
			r.header.Get("Set-Cookie") != "" ||
			r.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %v %.100s", name, r.status, r.header, r.body)
		}
	}
}

// TestRawFailuresArePlain: whoever calls there knows no envelope, and learns nothing.
func TestRawFailuresArePlain(t *testing.T) {
	s := newTill(t)
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{fault.New(fault.NotFound, "There is no provider secretname.").With(map[string]string{"a": "secretname"}), 404, "Not Found\n"},
		{fault.New(fault.AuthInvalid, "secretname"), 401, "Unauthorized\n"},
		{fault.New(fault.DB, "secretname is away").After(3 * time.Second), 503, "Service Unavailable\n"},
		{fault.New(fault.Conflict, "secretname"), 409, "Conflict\n"},
		{errors.New("dial secretname"), 500, "Internal Server Error\n"},
	} {
		s.answers(nil, c.err)
		r := s.raw(t, "POST", "/v1/till/hooks/x", "", []byte("x"))
		if r.status != c.status || string(r.body) != c.text || strings.Contains(fmt.Sprint(r.header), "secretname") ||
			r.header.Get("X-Request-Id") == "" ||
			(r.header.Get("Retry-After") == "3") != (c.status == 503) {
			t.Errorf("%v: %d %v %s", c.err, r.status, r.header, r.body)
		}
	}
}

// TestVisitorsFillNoAuditLog: what nobody in particular sends, and no owner has taken, is a few rows and a count.
func TestVisitorsFillNoAuditLog(t *testing.T) {
	t.Parallel()
	var tally *audit.Tally
	s := newTill(t, func(g *gateway.Gateway) {
		tally = audit.NewTally(g.Audit, "calls.refused")
		g.Refused = tally
	})
	const calls, each = 100, 20
	for range calls {
		if r := s.raw(t, "POST", "/v1/till/hooks/x", strings.Repeat("x", 300), []byte("x")); r.status != http.StatusBadRequest {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if rows, counted := s.told(t, tally); rows != each+1 || counted != calls-each {
		t.Errorf("%d rows, %d counted", rows, counted)
	}
}

// TestOpenRoutesHaveALimitOfTheirOwn: a provider's burst passes, and one address cannot take more.
func TestOpenRoutesHaveALimitOfTheirOwn(t *testing.T) {
	s := newTill(t)
	s.answers(ok(), nil)
	var all sync.WaitGroup
	var passed atomic.Int64
	work := make(chan struct{})
	for range 32 {
		all.Go(func() {
			for range work {
				if r := s.raw(t, "POST", "/v1/till/hooks/x", "", []byte("x")); r.status == 200 && string(r.body) == "OK" {
					passed.Add(1)
				}
			}
		})
	}
	began := time.Now()
	for range 1000 {
		work <- struct{}{}
	}
	close(work)
	all.Wait()
	t.Logf("1,000 took %v", time.Since(began))
	if passed.Load() != 1000 {
		t.Errorf("%d of 1,000 passed", passed.Load())
	}

	s = newTill(t, func(g *gateway.Gateway) {
		g.Authenticators[tool.NoCredential] = edge.Open{Rate: edge.Rate{PerMinute: 6, Burst: 2}}
		g.TrustedHops = 1
	})
	s.answers(ok(), nil)
	from := func(address string) int {
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/till/hooks/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", address)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	got := []int{
		from("192.0.2.1"),
		from("192.0.2.1"),
		from("192.0.2.1"),
		from("192.0.2.2"),
		from("2001:db8::1"),
		from("2001:db8::2"),
		from("2001:db8::3"),
	}
	if !slices.Equal(got, []int{200, 200, 429, 200, 200, 200, 429}) {
		t.Errorf("%v", got)
	}
	if r := s.do(t, "GET", "/v1/till", "", s.fresh("shop", "u-all")...); r.status != 200 {
		t.Errorf("an app at an address without a rest: %s", r.body)
	}
}

// TestDescriptionOfTheRoutes of each kind.
func TestDescriptionOfTheRoutes(t *testing.T) {
	s := newTill(t)
	var d struct {
		Paths      map[string]map[string]map[string]any
		Components struct {
			SecuritySchemes map[string]any `json:"securitySchemes"`
		}
	}
	if err := json.Unmarshal([]byte(s.do(t, "GET", "/openapi.json", "").body), &d); err != nil {
		t.Fatal(err)
	}
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	if d.Components.SecuritySchemes["serviceJWT"] == nil {
		t.Error("there is no scheme for apps")
	}
	for _, c := range []struct{ path, method, security, statuses string }{
		{"/v1/till", "get", `[{"serviceJWT":[]}]`, "200 400 401 403 429 500 503 default"},
		{"/v1/till", "post", `[{"serviceJWT":[]}]`, "201 400 401 403 429 500 503 default"},
		{"/v1/till/later", "post", `[{"serviceJWT":[]}]`, "202 400 401 403 429 500 503 default"},
		{"/v1/till/confirm", "post", `[{"serviceJWT":[]}]`, "200 400 401 403 429 500 503 default"},
		{"/v1/till/agents", "post", `null`, "200 400 401 403 429 500 503 default"},
		{"/v1/till/hooks/{provider}", "post", `[]`, "200 400 429 500 503 default"},
		{"/v1/till/back/{provider}", "get", `[]`, "200 303 400 429 500 503 default"},
		{"/v1/till/back/{provider}", "post", `[]`, "200 303 400 429 500 503 default"},
	} {
		op := d.Paths[c.path][c.method]
		responses, _ := op["responses"].(map[string]any)
		var statuses []string
		for status := range responses {
			statuses = append(statuses, status)
		}
		slices.Sort(statuses)
		if text(op["security"]) != c.security || strings.Join(statuses, " ") != c.statuses {
			t.Errorf("%s %s: %s", c.method, c.path, text(op))
		}
	}
	hook, back := d.Paths["/v1/till/hooks/{provider}"]["post"], d.Paths["/v1/till/back/{provider}"]["get"]
	if text(hook["requestBody"]) != `{"content":{"*/*":{"schema":{"format":"binary","type":"string"}}},"required":false}` ||
		strings.Contains(text(hook), "contentType") ||
		strings.Contains(text(hook), "Failure") {
		t.Errorf("%s", text(hook))
	}
	if back["requestBody"] != nil || !strings.Contains(text(back["responses"].(map[string]any)["303"]), `"Location"`) ||
		strings.Contains(text(back["parameters"]), "X-External-User-Id") {
		t.Errorf("%s", text(back))
	}
	if created := text(
		d.Paths["/v1/till"]["post"]["responses"],
	); !strings.Contains(created, `"Location"`) ||
		!strings.Contains(created, `"ok"`) {
		t.Errorf("%s", created)
	}
}

// FuzzRaw sends any bytes as a body and as a query.
func FuzzRaw(f *testing.F) {
	f.Add([]byte(`{"a":1}`), "a=1")
	f.Add([]byte{0xff, 0}, "%zz")
	s := newTill(f, func(g *gateway.Gateway) {
		g.Authenticators[tool.NoCredential] = edge.Open{Rate: edge.Rate{PerMinute: 10_000_000, Burst: 10_000_000}}
	})
	s.answers(ok(), nil)
	f.Fuzz(func(t *testing.T, body []byte, query string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/till/hooks/x", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.URL.RawQuery = query
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return // what no client can send
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 && resp.StatusCode != 400 {
			t.Errorf("%d %s", resp.StatusCode, b)
		}
		if resp.StatusCode == 200 {
			if got, err := s.last(t).Input.(rawIn).Bytes(); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes became %d, %v", len(body), len(got), err)
			}
		}
	})
}
