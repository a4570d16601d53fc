package gateway_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/catalog"
)

// TestWhatIsNamedUpsertReplaces: a tool that replaces says so, or the same call again would be taken for a try of the first.
func TestWhatIsNamedUpsertReplaces(t *testing.T) {
	t.Parallel()
	catalog, err := catalog.Load(filepath.Join(hubtest.Root(t), "deploy", "catalog.json"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range catalog.Entries() {
		if upsert := strings.HasPrefix(e.Spec.Name, "upsert_"); upsert != e.Spec.Replaces || upsert && !e.Spec.Write {
			t.Errorf("%s: replaces %t", e.Spec.Name, e.Spec.Replaces)
		} else if upsert {
			n++
		}
	}
	if n == 0 {
		t.Error("the catalog has none")
	}
}

func TestCatalogAndDetail(t *testing.T) {
	e := newFixture(t)
	r := e.do(t, "GET", "/api/tools", "", bearer(readOnly)...)
	var data struct {
		Version string
		Tools   []struct {
			Name, Category, Description, Scope string
			Write, Allowed                     bool
			InputSchema                        map[string]any `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(r.env.Data, &data); err != nil || r.env.Tool != "catalog" || *r.env.Count != 2 || data.Version != "0.2.0" {
		t.Fatalf("%v: %s", err, r.body)
	}
	if read, write := data.Tools[0], data.Tools[1]; read.Name != "search_echo" || !read.Allowed || write.Allowed || !write.Write ||
		read.InputSchema["additionalProperties"] != false {
		t.Errorf("got %s", r.body)
	}
	d := e.do(t, "GET", "/api/tools/store_echo/detail", "", bearer(readOnly)...)
	var detail struct {
		Name         string
		OutputSchema map[string]any `json:"output_schema"`
		Errors       []struct{ Code, Reason string }
		Limits       map[string]int64
		Examples     []any
	}
	if err := json.Unmarshal(
		d.env.Data,
		&detail,
	); err != nil || detail.Name != "store_echo" || detail.OutputSchema["type"] != "object" || detail.Limits["max_body_bytes"] != 4096 ||
		detail.Examples == nil {
		t.Errorf("%v: %s", err, d.body)
	}
	codes := ""
	for _, c := range detail.Errors {
		if c.Reason == "" {
			t.Errorf("%s without a reason", c.Code)
		}
		codes += c.Code + " "
	}
	if !strings.Contains(codes, "E_IDEMPOTENCY") || !strings.Contains(codes, "E_RATE_LIMIT") {
		t.Errorf("codes %s", codes)
	}
	if r := e.do(t, "GET", "/api/tools/nope/detail", "", bearer(readOnly)...); r.code() != "E_NOT_FOUND" {
		t.Errorf("unknown tool: %s", r.body)
	}
	if r := e.do(t, "GET", "/api/tools", ""); r.code() != "E_AUTH_MISSING" {
		t.Errorf("no credential: %s", r.body)
	}
}

// TestTheCatalogSaysHowToCall: what is in the catalog, and a key, are enough for a call.
func TestTheCatalogSaysHowToCall(t *testing.T) {
	e := newFixture(t)
	r := e.do(t, "GET", "/api/tools", "", bearer(allScopes)...)
	var data struct {
		OpenAPI, Docs, Note string
		Headers             map[string]string
		Tools               []struct {
			Name        string
			Write       bool
			Idempotency *string
			Call        struct {
				Method, Path string
				Headers      []string
			}
		}
	}
	if err := json.Unmarshal(
		r.env.Data,
		&data,
	); err != nil || data.OpenAPI != "/openapi.json" || data.Docs != "/docs" ||
		!strings.Contains(data.Note, "never an instruction") {
		t.Fatalf("%v %s", err, r.body)
	}
	for _, tool := range data.Tools {
		if required := tool.Idempotency != nil; required != tool.Write || required && *tool.Idempotency != "required" {
			t.Errorf("%s: %s", tool.Name, r.body)
		}
		request, err := http.NewRequestWithContext(
			t.Context(),
			tool.Call.Method,
			e.url+tool.Call.Path,
			strings.NewReader(`{"text":"hello"}`),
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range tool.Call.Headers {
			request.Header.Set(name, strings.ReplaceAll(data.Headers[name], "<API_KEY>", allScopes))
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"tool":"`+tool.Name+`"`) {
			t.Errorf("%s: %d %s %v", tool.Name, answer.StatusCode, body, err)
		}
	}
	if d := e.do(
		t,
		"GET",
		"/api/tools/store_echo/detail",
		"",
		bearer(allScopes)...); !strings.Contains(
		d.body,
		`"path":"/api/tools/store_echo","headers":["Authorization","Content-Type","Idempotency-Key"]},"idempotency":"required"`,
	) {
		t.Errorf("%s", d.body)
	}
}

func TestCatalogETag(t *testing.T) {
	e := newFixture(t)
	first := e.do(t, "GET", "/api/tools", "", bearer(readOnly)...)
	tag := first.header.Get("ETag")
	for _, sent := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if r := e.do(t, "GET", "/api/tools", "", append(bearer(readOnly), "If-None-Match", sent)...); r.status != 304 || r.body != "" {
			t.Errorf("If-None-Match %s: %d", sent, r.status)
		}
	}
	if r := e.do(t, "GET", "/api/tools", "", append(bearer(allScopes), "If-None-Match", tag)...); r.status != 200 {
		t.Errorf("another credential sees another catalog: %d", r.status)
	}
}

func TestCatalogKeepsTheLastGoodManifest(t *testing.T) {
	c := catalog.New(slog.New(slog.DiscardHandler))
	input := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)
	good := tool.Manifest{
		Service: "one",
		Tools:   []tool.Spec{{Name: "a", Input: input, Position: 2}, {Name: "b", Input: input, Position: 1}},
	}
	if err := c.Update(good); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]tool.Manifest{
		"another's tool": {Service: "two", Tools: []tool.Spec{{Name: "c", Input: input}, {Name: "a", Input: input}}},
		"its own twice":  {Service: "one", Tools: []tool.Spec{{Name: "a", Input: input}, {Name: "a", Input: input}}},
		"no schema": {Service: "one", Tools: []tool.Spec{{Name: "a",
			Input: json.RawMessage(`{"type":"object","oneOf":[{"type":"object"}]}`)}}},
	} {
		if err := c.Update(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	entry := c.Entry("a")
	if err := c.Update(good); err != nil || c.Entry("a") != entry {
		t.Errorf("the same manifest again is compiled again (%v)", err)
	}
	if c.Entry("a") == nil || c.Entry("c") != nil || c.Entries()[0].Spec.Name != "b" {
		t.Error("the catalog changed")
	}
	if err := c.Update(tool.Manifest{Service: "one", Tools: good.Tools[:1]}); err != nil || c.Entry("b") != nil {
		t.Error("a tool that its service gave up stays")
	}
}

func TestOpenAPIDescribesTheCatalog(t *testing.T) {
	e := newFixture(t)
	r := e.do(t, "GET", "/openapi.json", "")
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema map[string]any }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.body), &document); err != nil || document.OpenAPI != "3.1.0" {
		t.Fatalf("%v: %s", err, r.body)
	}
	schema := document.Paths["/api/tools/search_echo"]["post"].RequestBody.Content["application/json"].Schema
	if schema["additionalProperties"] != false || len(document.Paths) != 4 {
		t.Errorf("got %s", r.body)
	}
}

func TestOpenAPIIsAskedForAgain(t *testing.T) {
	e := newFixture(t)
	first := e.do(t, "GET", "/openapi.json", "")
	tag := first.header.Get("ETag")
	if first.header.Get("Cache-Control") != "no-cache" || first.header.Get("Content-Type") != "application/json" || tag == "" {
		t.Errorf("headers %v", first.header)
	}
	if r := e.do(t, "GET", "/openapi.json", "", "If-None-Match", "W/"+tag); r.status != 304 || r.body != "" {
		t.Errorf("If-None-Match: %d", r.status)
	}
	// A client that asks for gzip itself has to unpack it itself.
	req, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	unpacked, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(unpacked); err != nil || string(b) != first.body || resp.ContentLength >= int64(len(first.body)) {
		t.Errorf("%d bytes packed, %v", resp.ContentLength, err)
	}
	more := tool.Manifest{
		Service: "more",
		Tools:   []tool.Spec{{Name: "more", Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)}},
	}
	if err := e.gateway.Catalog.Update(more); err != nil {
		t.Fatal(err)
	}
	if r := e.do(t, "GET", "/openapi.json", "", "If-None-Match", tag); r.status != 200 || !strings.Contains(r.body, "/api/tools/more") {
		t.Errorf("after a tool more: %d %s", r.status, r.body)
	}
	if r := e.do(t, "GET", "/api/tools", "", bearer(readOnly)...); *r.env.Count != 3 {
		t.Errorf("after a tool more: %s", r.body)
	}
}

// TestWhatIsTheSameForManyIsMadeOnce: readers of the catalog and of the API's description
// share their bytes, however many they are and however slowly they read.
func TestWhatIsTheSameForManyIsMadeOnce(t *testing.T) {
	e := newFixture(t)
	catalog, err := catalog.Load(filepath.Join(hubtest.Root(t), "deploy", "catalog.json"), e.gateway.Logger)
	if err != nil {
		t.Fatal(err)
	}
	e.gateway.Catalog = catalog
	mux := http.NewServeMux()
	e.gateway.Routes(mux)
	for _, path := range []string{"/openapi.json", "/api/tools"} {
		request := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		request.Header.Set("Authorization", "Bearer "+allScopes)
		w := &discarded{header: http.Header{}}
		mux.ServeHTTP(w, request)
		size := w.size
		const calls = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			mux.ServeHTTP(w, request)
		}
		runtime.ReadMemStats(&after)
		each := (after.TotalAlloc - before.TotalAlloc) / calls
		t.Logf("%s: %d bytes, %d allocated for each answer", path, size, each)
		if w.status != 0 || size < 10<<10 || each > uint64(size)/2 {
			t.Errorf("%s: status %d, %d bytes, %d allocated for each answer", path, w.status, size, each)
		}
	}
}

// discarded counts an answer.
type discarded struct {
	header       http.Header
	status, size int
}

func (d *discarded) Header() http.Header    { return d.header }
func (d *discarded) WriteHeader(status int) { d.status = status }
func (d *discarded) Write(b []byte) (int, error) {
	d.size += len(b)
	return len(b), nil
}
