package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/mcp"
)

func TestMain(m *testing.M) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	hubtest.Main(m)
}

const brand = `{"brandId":1}`

// TestEveryRevisionIsServed: on one address, without a session, by gateways that take turns.
func TestEveryRevisionIsServed(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	for _, version := range sdk.SupportedProtocolVersions() {
		header := func(method, name string) []string {
			return []string{"Mcp-Protocol-Version", version, "Mcp-Method", method, "Mcp-Name", name}
		}
		meta := `{}`
		if version >= "2026-07-28" {
			meta = `{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}`
			a := e.post(
				t,
				e.urls[0],
				allScopes,
				`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":`+meta+`}}`,
				header("server/discover", "")...)
			if len(a.Result.SupportedVersions) != len(sdk.SupportedProtocolVersions()) ||
				!strings.HasPrefix(a.Result.Instructions, mcp.Instructions+" Today is ") ||
				a.Result.CacheScope != "private" {
				t.Errorf("%s: %s", version, a.body)
			}
		} else {
			a := e.post(
				t,
				e.urls[0],
				allScopes,
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+
					`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
			)
			if a.Result.ProtocolVersion != version || !strings.HasPrefix(a.Result.Instructions, mcp.Instructions+" Today is ") ||
				len(a.Result.Capabilities) != 1 ||
				a.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s: %s", version, a.body)
			}
			if a := e.post(
				t,
				e.urls[1],
				allScopes,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				header("", "")...); a.status != http.StatusAccepted ||
				a.body != "" {
				t.Errorf("%s: %d %s", version, a.status, a.body)
			}
		}
		list := e.post(
			t,
			e.urls[1],
			allScopes,
			`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":`+meta+`}}`,
			header("tools/list", "")...)
		for i := range 4 {
			a := e.post(t, e.urls[i%2], allScopes, call(3+i, "get_brand", brand, meta), header("tools/call", "get_brand")...)
			if len(list.Result.Tools) != len(e.catalog.Entries()) || a.status != 200 || a.Result.IsError || a.Result.StructuredContent == nil ||
				string(a.ID) != fmt.Sprint(3+i) ||
				a.Result.Meta["hub/count"] != 3.0 ||
				a.Result.Meta["hub/requestId"] != a.header.Get("X-Request-Id") ||
				a.header.Get("RateLimit") == "" {
				t.Errorf("%s: %s %v", version, a.body, a.header)
			}
		}
	}
}

func TestAMessageThatIsNone(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	for body, want := range map[string]float64{
		``: -32700, `{`: -32700, `"x"`: -32700, `{"jsonrpc":"2.0"`: -32700, `{"jsonrpc":"2.0","id":1,"method":"ping"} x`: -32700, `[1]`: -32700,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:                                                   -32700,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                                               -32600,
		`{"jsonrpc":"2.0","id":1,"method":"no/such"}`:                                                       -32601,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`:                              -32601,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"get_brand"}}`:                             -32600,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                                                    -32600,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`:                                        -32602,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}`:                                       -32602,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}`:                                         -32602,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`:                                        -32602,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`:                                -32602,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`:                   -32700,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such_tool"}}`:                   -32602,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20+1) + `"}}`:    -32600,
		`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 20) + `{"jsonrpc":"2.0","id":1}]`: -32600,
	} {
		a := e.post(t, e.urls[0], allScopes, body)
		if a.Error == nil || a.Error.Code != want || a.header.Get("Content-Type") != "application/json" ||
			strings.Contains(a.Error.Message, "Go ") {
			t.Errorf("%.80s: %d %.300s, want %v", body, a.status, a.body, want)
		}
	}
	if a := e.post(
		t,
		e.urls[0],
		allScopes,
		call(1, "search_brand", "{}", ""),
	); a.code(t) != "E_NOT_FOUND" ||
		!strings.Contains(a.Error.Message, "search_brands") {
		t.Errorf("%s", a.body)
	}
	batch := e.post(t, e.urls[0], allScopes,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":[]}]`)
	if !strings.Contains(batch.body, `"id":1,"result"`) {
		t.Errorf("beside a message that is none in a batch: %s", batch.body)
	}
	// What the tool's schema judges is the tool's to say.
	for _, arguments := range []string{`[]`, `7`, `{"brandId":1,"brandId":2}`, `{"slot":0}`, "{\"brandId\":\"\xff\"}"} {
		if a := e.post(t, e.urls[0], allScopes, call(1, "get_brand", arguments, "")); a.code(t) != "E_VALIDATION" || !a.Result.IsError {
			t.Errorf("%s: %s", arguments, a.body)
		}
	}
	for _, arguments := range []string{`null`, `{}`} {
		if a := e.post(t, e.urls[0], allScopes, call(1, "list_segments", arguments, "")); a.code(t) != "" {
			t.Errorf("%s: %s", arguments, a.body)
		}
	}
}

// TestANameIsNotRepeated that only the client knows the gateway by: it may be anybody's.
func TestANameIsNotRepeated(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	own := strings.TrimPrefix(e.urls[0], "http://")
	_, port, _ := strings.Cut(own, ":")
	for host, known := range map[string]bool{own: true, "localhost:" + port: true, "evil.example": false, "evil.example:" + port: false,
		"10.0.0.1": false} {
		for _, path := range []string{"/mcp", "/.well-known/oauth-protected-resource"} {
			method := map[bool]string{true: http.MethodPost, false: http.MethodGet}[path == "/mcp"]
			req, err := http.NewRequestWithContext(t.Context(), method, e.urls[0]+path, strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				t.Fatal(err)
			}
			said := resp.Header.Get("WWW-Authenticate") + string(body)
			if strings.Contains(said, "http://"+host+"/") != known || !known && strings.Contains(said, host) {
				t.Errorf("%s%s: %d %s", host, path, resp.StatusCode, said)
			}
			if path == "/mcp" && !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s: %v", host, resp.Header)
			}
		}
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	e := newFixture(t, func(o *mcp.Options) { o.PublicURL = "https://hub.example/" })
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, method := range []string{"GET", "DELETE", "PUT", "OPTIONS"} {
		if a := e.send(
			t,
			method,
			e.urls[0]+"/mcp",
			allScopes,
			"",
		); a.status != 405 || a.header.Get("Allow") != "POST" ||
			a.code(t) != "E_VALIDATION" {
			t.Errorf("%s: %d %v %s", method, a.status, a.header, a.body)
		}
	}
	for origin, status := range map[string]int{"https://hub.example": 200, "https://inspector.example": 200, "https://evil.example": 403,
		"null":               403,
		"http://hub.example": 403, "https://hub.example:8443": 403, e.urls[0]: 403, "": 200} {
		headers := []string{"Origin", origin}
		if origin == "" {
			headers = nil
		}
		a := e.post(t, e.urls[0], allScopes, ping, headers...)
		if a.status != status || status == 200 && a.header.Get("Access-Control-Allow-Origin") != origin ||
			status == 403 && a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("Origin %q: %d %v", origin, a.status, a.header)
		}
	}
	if a := e.send(
		t,
		"OPTIONS",
		e.urls[0]+"/mcp",
		"",
		"",
		"Origin",
		"https://inspector.example",
	); a.status != 204 ||
		!strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Authorization") ||
		!strings.Contains(a.header.Get("Access-Control-Allow-Headers"), tool.KeyHeader) {
		t.Errorf("%d %v", a.status, a.header)
	}
	const challenge = `Bearer resource_metadata="https://hub.example/.well-known/oauth-protected-resource/mcp"`
	for key, want := range map[string]string{"": challenge, unknown: challenge + `, error="invalid_token"`, revoked: "", allScopes: ""} {
		if a := e.post(t, e.urls[0], key, ping); a.header.Get("WWW-Authenticate") != want {
			t.Errorf("%q: %d %v", key, a.status, a.header)
		}
	}
	if a := e.post(t, e.urls[0], "", ping, "X-API-Key", allScopes); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		a := e.send(t, "GET", e.urls[0]+path, "", "")
		var said struct {
			Resource string   `json:"resource"`
			Methods  []string `json:"bearer_methods_supported"`
			Scopes   []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal(
			[]byte(a.body),
			&said,
		); err != nil || said.Resource != "https://hub.example/mcp" || len(said.Methods) != 1 ||
			len(said.Scopes) != len(scopes) {
			t.Errorf("%s %v", a.body, err)
		}
		if a := e.send(t, "POST", e.urls[0]+path, "", ""); a.status != 405 || a.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%d %v", a.status, a.header)
		}
	}
	if a := e.post(t, e.urls[0], allScopes, ping, "Content-Type", "text/plain"); a.status != 415 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := e.post(t, e.urls[0], allScopes, ping, "Accept", "text/html"); a.status != 400 || a.Error == nil {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := e.post(
		t,
		e.urls[0],
		readOnly,
		call(1, "list_segments", `{"x":"`+strings.Repeat("x", 3<<20)+`"}`, ""),
	); a.status != 400 ||
		a.code(t) != "E_VALIDATION" {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	if a := e.post(
		t,
		e.urls[0],
		allScopes,
		call(1, "list_segments", `{"x":"`+strings.Repeat("x", 3<<20)+`"}`, ""),
	); a.code(t) != "E_VALIDATION" ||
		!strings.Contains(a.body, "limit_bytes") {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	if _, err := mcp.New(nil, mcp.Options{Origins: []string{"https://x.example/path"}}); err == nil {
		t.Error("a path is taken for an origin")
	}
}

func TestAWriteHasAKey(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	input := string(e.catalog.Entry("create_segment").Spec.Examples[0].Request)
	other := strings.Replace(input, `"name":"`, `"name":"Other `, 1)
	write := func(url string, id int, input, meta string, headers ...string) (answer, string) {
		a := e.post(t, url, allScopes, call(id, "create_segment", input, meta), headers...)
		return a, e.last().Get(tool.KeyHeader)
	}
	a, first := write(e.urls[0], 1, input, "")
	b, again := write(e.urls[1], 1, input, "")
	if first == "" || first == again || a.Result.Meta["hub/replayed"] != nil || b.Result.Meta["hub/replayed"] != true ||
		string(a.Result.StructuredContent) != string(b.Result.StructuredContent) {
		t.Errorf("%q %q %s %s", first, again, a.body, b.body)
	}
	derive := func() string { return e.last().Get(tool.DeriveHeader) }
	if derive() == "" {
		t.Error("the owner is not asked to make a key")
	}
	const says = "made 4 minutes ago; nothing was written again. Send hub/idempotencyKey in _meta"
	if n := len(b.Result.Content); len(a.Result.Content) != 1 || n != 2 || !strings.Contains(b.Result.Content[n-1].Text, says) {
		t.Errorf("a model is not told that its call was not made again: %s", b.body)
	}
	if a, _ := write(e.urls[0], 2, input, ""); a.Result.Meta["hub/replayed"] != true {
		t.Errorf("the id of a message is taken for a part of the call: %s", a.body)
	}
	if a, _ := write(e.urls[0], 1, other, ""); a.Result.IsError || a.Result.Meta["hub/replayed"] != nil {
		t.Errorf("another session's message with the id of one before is taken for it: %s", a.body)
	}
	if _, key := write(e.urls[0], 3, input, `{"hub/idempotencyKey":"own"}`, "Idempotency-Key", "header"); key != "own" || derive() != "" {
		t.Errorf("%q", key)
	}
	if a, _ := write(e.urls[1], 4, other, `{"hub/idempotencyKey":"own"}`); a.code(t) != "E_IDEMPOTENCY" {
		t.Errorf("%s", a.body)
	}
	if _, key := write(e.urls[0], 3, input, "", "Idempotency-Key", "header"); key != "header" || derive() != "" {
		t.Errorf("%q", key)
	}
	for _, meta := range []string{`{"hub/idempotencyKey":""}`, `{"hub/idempotencyKey":7}`, `{"hub/idempotencyKey":null}`} {
		if a, _ := write(e.urls[0], 5, input, meta); a.code(t) != "E_VALIDATION" {
			t.Errorf("%s: %s", meta, a.body)
		}
	}
	e.post(t, e.urls[0], allScopes, call(6, "list_segments", "{}", `{"hub/idempotencyKey":"x"}`))
	if key := e.last().Get(tool.KeyHeader); key != "" {
		t.Errorf("a read has the key %q", key)
	}
}

func TestWhatAMessageSaysOfItself(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	a := e.post(
		t,
		e.urls[0],
		allScopes,
		call(1, "list_segments", "{}", `{"hub/requestId":"mine-1","traceparent":"00-`+trace+`-b7ad6b7169203331-01"}`),
		"X-Request-Id",
		"header-1",
		"X-External-User-Id",
		"someone",
	)
	if a.Result.Meta["hub/requestId"] != "mine-1" || a.header.Get("X-Request-Id") != "mine-1" ||
		!strings.Contains(e.last().Get("Traceparent"), trace) {
		t.Errorf("%s %v", a.body, e.last())
	}
	if a := e.post(
		t,
		e.urls[0],
		allScopes,
		call(1, "list_segments", "{}", `{"hub/requestId":"not fit"}`),
		"X-Request-Id",
		"header-1",
	); a.Result.Meta["hub/requestId"] != "header-1" {
		t.Errorf("%s", a.body)
	}
}

func TestABatch(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	body := "[" + call(
		1,
		"list_segments",
		"{}",
		"",
	) + "," + call(
		2,
		"get_brand",
		`{"x":1}`,
		"",
	) + `,{"jsonrpc":"2.0","id":3,"method":"ping"},` + call(
		4,
		"list_drafts",
		"{}",
		"",
	) + "]"
	a := e.post(t, e.urls[0], allScopes, body, "Mcp-Protocol-Version", "2025-03-26")
	var all []answer
	if err := json.Unmarshal([]byte(a.body), &all); err != nil || len(all) != 4 {
		t.Fatalf("%v %s", err, a.body)
	}
	ids := map[any]bool{}
	for _, one := range all {
		switch string(one.ID) {
		case "1", "4":
			want := e.catalog.Entry(map[string]string{"1": "list_segments", "4": "list_drafts"}[string(one.ID)]).Spec.Examples[0].Data
			if string(one.Result.StructuredContent) != string(want) {
				t.Errorf("%s: %s", one.ID, one.Result.StructuredContent)
			}
			ids[one.Result.Meta["hub/requestId"]] = true
		case "2":
			if !one.Result.IsError {
				t.Errorf("%+v", one)
			}
		}
	}
	if len(ids) != 2 {
		t.Errorf("%v", ids)
	}
	if a := e.post(t, e.urls[0], allScopes, body, "Mcp-Protocol-Version", "2025-11-25"); a.status != 400 || a.Error == nil {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestEveryRequestCounts: against the limits of the key, whatever it asks.
func TestEveryRequestCounts(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{"tools/call": call(1, "list_segments", "{}", ""),
		"tools/list": `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"ping":       `{"jsonrpc":"2.0","id":1,"method":"ping"}`} {
		e := newFixture(t)
		for i := range 3 {
			if a := e.post(t, e.urls[0], tight, message); (a.code(t) == "E_RATE_LIMIT") != (i == 2) {
				t.Errorf("%s %d: %s", name, i, a.body)
			}
		}
	}
}

// TestWhatIsNoCallCounts: a request that holds nothing to ask anybody for is charged as any other, says so in its headers, and has a
// row where it is refused. Beyond the limit it is answered 429 E_RATE_LIMIT.
func TestWhatIsNoCallCounts(t *testing.T) {
	t.Parallel()
	const head = `{"jsonrpc":"2.0","id":1`
	for name, c := range map[string]struct {
		body, row string
		status    int
	}{
		"broken JSON":             {head, "E_VALIDATION", 400},
		"no method":               {head + `}`, "", 202},
		"a method of nobody's":    {head + `,"method":"no/such","params":{}}`, "E_NOT_FOUND", 400},
		"subscriptions/listen":    {head + `,"method":"subscriptions/listen","params":{}}`, "E_NOT_FOUND", 404},
		"params that are a list":  {head + `,"method":"tools/call","params":[]}`, "E_VALIDATION", 400},
		"a call without params":   {head + `,"method":"tools/call"}`, "E_VALIDATION", 400},
		"a call without its name": {head + `,"method":"tools/call","params":{}}`, "E_VALIDATION", 200},
		"too many values":         {head + `,"method":"ping","params":{"x":[1` + strings.Repeat(",1", 20_000) + `]}}`, "E_VALIDATION", 400},
		"a notification":          {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", 202},
		"a batch of notifications": {`[{"jsonrpc":"2.0","method":"notifications/initialized"},` +
			`{"jsonrpc":"2.0","method":"notifications/initialized"}]`, "", 202},
		"a batch of nothing": {`[]`, "E_VALIDATION", 400},
	} {
		e := newFixture(t)
		send := func() answer { return e.post(t, e.urls[0], tight, c.body, "Mcp-Protocol-Version", "2025-03-26") }
		for _, left := range []string{"1", "0"} {
			if a := send(); a.status != c.status || !strings.HasPrefix(a.header.Get("RateLimit"), `"user";r=`+left) {
				t.Errorf("%s: %d %q %.200s", name, a.status, a.header.Get("RateLimit"), a.body)
			}
		}
		a := send()
		if a.status != 429 || a.code(t) != "E_RATE_LIMIT" || a.header.Get("Retry-After") != "10" {
			t.Errorf("%s beyond the limit: %d %.200s", name, a.status, a.body)
		}
		want := []string{c.row, c.row, "E_RATE_LIMIT"}
		if c.row == "" {
			want = want[2:]
		}
		if got := e.outcomes(); !slices.Equal(got, want) {
			t.Errorf("%s: the rows %q, want %q", name, got, want)
		}
	}
}

// TestARequestIsChargedOnce, before it is read, and each further message of a batch beside it, but for notifications and what the
// protocol itself refuses. Beyond the limit a request is answered in the form of the protocol where its body has at most 1 MiB, and a
// larger one is not read.
func TestARequestIsChargedOnce(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	const said = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	for name, c := range map[string]struct{ body, left string }{
		"a call":                {call(1, "list_segments", "{}", ""), "1"},
		"a call of nothing":     {call(1, "no_such", "{}", ""), "1"},
		"a list":                {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "1"},
		"a ping":                {ping, "1"},
		"a batch of one":        {`[` + ping + `]`, "1"},
		"another content type":  {ping, "1"},
		"a body that is larger": {call(1, "list_segments", `{"x":"`+strings.Repeat("x", 2<<20)+`"}`, ""), "1"},
		"a batch of two":        {`[` + ping + `,` + ping + `]`, "0"},
		"notifications beside":  {`[` + said + `,` + ping + `,` + said + `]`, "1"},
		"nobody's beside":       {`[` + ping + `,{"jsonrpc":"2.0","id":2,"method":"no/such"}]`, "1"},
	} {
		e := newFixture(t)
		headers := []string{"Mcp-Protocol-Version", "2025-03-26"}
		if name == "another content type" {
			headers = append(headers, "Content-Type", "text/plain")
		}
		e.post(t, e.urls[0], tight, c.body, headers...)
		a := e.post(t, e.urls[0], tight, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if limited := a.code(t) == "E_RATE_LIMIT"; limited != (c.left == "0") || !strings.HasPrefix(a.header.Get("RateLimit"), `"user";r=0`) {
			t.Errorf("%s: then %q %s", name, a.header.Get("RateLimit"), a.body)
		}
	}
	e := newFixture(t)
	for range 2 {
		e.post(t, e.urls[0], tight, ping)
	}
	small := e.post(t, e.urls[0], tight, call(3, "list_segments", "{}", ""))
	if small.status != 200 || !small.Result.IsError || string(small.ID) != "3" || small.code(t) != "E_RATE_LIMIT" {
		t.Errorf("a small call beyond the limit: %d %s", small.status, small.body)
	}
	large := e.post(t, e.urls[0], tight, call(3, "list_segments", `{"x":"`+strings.Repeat("x", 2<<20)+`"}`, ""))
	if large.status != 429 || large.code(t) != "E_RATE_LIMIT" || large.header.Get("Retry-After") == "" {
		t.Errorf("a large one: %d %.300s", large.status, large.body)
	}
	if got := e.outcomes(); !slices.Equal(got, []string{"E_RATE_LIMIT", "E_RATE_LIMIT"}) {
		t.Errorf("the rows %q", got)
	}
}

// TestALargeAnswerPassesUntouched: byte for byte, as a value and as text.
func TestALargeAnswerPassesUntouched(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	var b bytes.Buffer
	b.WriteString("{\n\t\"rows\":[")
	for i := range 100_000 {
		fmt.Fprintf(&b, `["\"%d\\ 한글 \u0000 </script>",%d, 1e400 ],`, i, i)
	}
	b.WriteString("null]\r\n}")
	e.data = b.Bytes()
	a := e.post(t, e.urls[0], allScopes, call(1, "list_segments", "{}", ""))
	if !bytes.Equal(a.Result.StructuredContent, e.data) || a.Result.Content[0].Text != string(e.data) {
		t.Errorf("%.200s", a.body)
	}
	got := newProgram(t, e.urls[0], allScopes).post(t, call(1, "list_segments", "{}", ""))
	var want, there bytes.Buffer // a line of stdio has no line breaks in it
	if err := errors.Join(json.Compact(&want, e.data), json.Compact(&there, got.Result.StructuredContent)); err != nil ||
		!bytes.Equal(want.Bytes(), there.Bytes()) {
		t.Errorf("%v: %.200s", err, got.body)
	}
}

// TestTheTextOfAStructuredAnswerIsShort: a client that knows structuredContent is not given the data twice, and one that does not
// has them as text. A failure is told in both.
func TestTheTextOfAStructuredAnswerIsShort(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	ask := func(version, data, input string) (string, answer) {
		e.data = []byte(data)
		var headers []string
		if version != "" {
			headers = []string{"Mcp-Protocol-Version", version}
		}
		a := e.post(t, e.urls[0], allScopes, call(1, "list_segments", input, ""), headers...)
		return a.Result.Content[0].Text, a
	}
	const small = `{"segments":[]}`
	large := `{"segments":["` + strings.Repeat("x", 70_000) + `"]}` // which comes while it is answered
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		if text, a := ask(version, small, "{}"); text != "list_segments: the answer is structuredContent (count 3)." ||
			string(a.Result.StructuredContent) != small {
			t.Errorf("%s: %s", version, a.body)
		}
		if text, a := ask(version, large, "{}"); !strings.Contains(text, "structuredContent (count 3). It has 70 kB") ||
			!strings.Contains(text, "smaller limit and an offset") || string(a.Result.StructuredContent) != large {
			t.Errorf("%s: %s", version, text)
		}
		if text, a := ask(version, small, `{"limit":0}`); text != string(a.Result.StructuredContent) || !a.Result.IsError {
			t.Errorf("%s: %s", version, text)
		}
	}
	for _, version := range []string{"", "2024-11-05", "2025-03-26"} {
		if text, a := ask(version, large, "{}"); text != large {
			t.Errorf("%q: %.300s", version, a.body)
		}
	}
	if got := e.last().Get(tool.BytesHeader); got != "40000" {
		t.Errorf("the owner is told of %q bytes", got)
	}
}

// TestALargeAnswerComesAsItIsRead: it begins before its owner has ended, and what its owner cuts off does not look whole.
func TestALargeAnswerComesAsItIsRead(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	for name, c := range map[string]struct {
		size    int
		cut     bool
		headers []string
		early   bool
	}{
		"whole": {size: 1 << 20, early: true}, "cut": {size: 1 << 20, cut: true, early: true},
		"cut, in the newest revision": {size: 1 << 20, cut: true, early: true,
			headers: []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "list_segments"}},
		"cut, small":           {size: 32 << 10, cut: true},
		"cut, by the protocol": {size: 1 << 20, cut: true, headers: []string{"Accept", "application/*, text/*"}},
	} {
		data := []byte(`{"text":"` + strings.Repeat(`\"<&>\u0000 é `, c.size/16) + `"}`)
		resume := make(chan struct{})
		e.owner = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			_, _ = w.Write(data[:len(data)/2])
			_ = http.NewResponseController(w).Flush()
			<-resume
			if c.cut {
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write(data[len(data)/2:])
		}
		meta := "{}"
		if len(c.headers) > 2 {
			meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
				`"io.modelcontextprotocol/clientCapabilities":{}}`
		}
		req, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			e.urls[0]+mcp.Path,
			strings.NewReader(call(1, "list_segments", "{}", meta)),
		)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{
			"Content-Type":  {"application/json"},
			"Accept":        {"application/json, text/event-stream"},
			"Authorization": {"Bearer " + allScopes},
		}
		for i := 0; i+1 < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		if !c.early {
			close(resume)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(name, err)
		}
		first := make([]byte, 4096)
		if c.early {
			if _, err := io.ReadFull(resp.Body, first); err != nil || resp.ContentLength >= 0 {
				t.Fatalf("%s: %v, %d bytes", name, err, resp.ContentLength)
			}
			close(resume)
		} else {
			first = nil
		}
		rest, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		body := slices.Concat(first, rest)
		var a answer
		switch {
		case c.cut && c.early:
			if !errors.Is(err, io.ErrUnexpectedEOF) || json.Valid(body) {
				t.Errorf("%s: %v after %d bytes", name, err, len(body))
			}
		case err != nil, json.Unmarshal(body, &a) != nil:
			t.Errorf("%s: %v after %d bytes", name, err, len(body))
		case c.cut:
			if !a.Result.IsError || a.code(t) != string(fault.DB) {
				t.Errorf("%s: %.300s", name, body)
			}
		case !bytes.Equal(a.Result.StructuredContent, data), a.Result.Content[0].Text != string(data):
			t.Errorf("%s: %d bytes of %d, %d of text", name, len(a.Result.StructuredContent), len(data), len(a.Result.Content[0].Text))
		}
	}
}

func TestACallEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	running, ended := make(chan struct{}), make(chan struct{})
	e.during = func(r *http.Request) {
		close(running)
		<-r.Context().Done()
		close(ended)
	}
	p := newProgram(t, e.urls[0], allScopes)
	if _, err := io.WriteString(p.in, call(7, "list_segments", "{}", "")+"\n"); err != nil {
		t.Fatal(err)
	}
	<-running
	e.mu.Lock()
	e.during = nil
	e.mu.Unlock()
	if a := p.post(
		t,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`+"\n"+`{"jsonrpc":"2.0","id":8,"method":"ping"}`,
	); string(
		a.ID,
	) != "8" {
		t.Errorf("%s", a.body)
	}
	<-ended
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestDirectAnswersAreTheProtocols: a call alone is answered without the SDK; in the company of a header that it is not
// sure of, through it. Both say the same, but for what differs from call to call.
func TestDirectAnswersAreTheProtocols(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	const since = "2026-07-28"
	meta := `{"io.modelcontextprotocol/protocolVersion":"` + since + `","io.modelcontextprotocol/clientCapabilities":{},"hub/requestId":"r"}`
	ways := map[string]struct {
		meta    string
		headers []string
	}{
		"no revision": {meta: `{"hub/requestId":"r"}`},
		"2024-11-05":  {`{"hub/requestId":"r"}`, []string{"Mcp-Protocol-Version", "2024-11-05"}},
		"2025-11-25":  {`{"hub/requestId":"r"}`, []string{"Mcp-Protocol-Version", "2025-11-25"}},
		since:         {meta, []string{"Mcp-Protocol-Version", since, "Mcp-Method", "tools/call"}},
	}
	took := regexp.MustCompile(`(hub/tookMs":|took_ms":|took_ms\\":)\d+`)
	for revision, way := range ways {
		for _, c := range [][2]string{{"list_segments", `{}`}, {"get_brand", `{"x":"\u0000"}`}, {"no_such", `{}`}, {"list_drafts", `[]`}} {
			headers := append([]string{"Mcp-Name", c[0]}, way.headers...)
			for _, id := range []string{`7`, `"a"`, `-1`} {
				body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + c[0] + `","arguments":` + c[1] + `,"_meta":` +
					way.meta + `}}`
				direct := e.post(t, e.urls[0], allScopes, body, headers...)
				// The parameter is one that a client may send, and that direct does not look for.
				through := e.post(t, e.urls[0], allScopes, body, append(headers, "Accept", "application/*, text/*")...)
				var a, b any
				if err := errors.Join(
					json.Unmarshal(took.ReplaceAll([]byte(direct.body), []byte("${1}0")), &a),
					json.Unmarshal(took.ReplaceAll([]byte(through.body), []byte("${1}0")), &b),
				); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(a, b) || direct.status != through.status ||
					direct.header.Get("Content-Type") != through.header.Get("Content-Type") {
					t.Errorf("%s %s: %d %s\n%d %s", revision, c[0], direct.status, direct.body, through.status, through.body)
				}
			}
		}
	}
}
