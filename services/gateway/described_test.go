package gateway_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/console"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/reference"
)

// document is the description of the API as it was read, with a validator that compiles its schemas.
type document struct {
	t        *testing.T
	root     map[string]any
	compiler *jsonschema.Compiler
}

func readDocument(t *testing.T, e *fixture) *document {
	t.Helper()
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(e.do(t, "GET", "/openapi.json", "").body))
	if err != nil {
		t.Fatal(err)
	}
	d := &document{t: t, root: root.(map[string]any), compiler: jsonschema.NewCompiler()}
	if err := d.compiler.AddResource("openapi.json", root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at is what stands at a JSON pointer.
func (d *document) at(pointer string) any {
	var at any = d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch here := at.(type) {
		case map[string]any:
			at = here[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(here) {
				return nil
			}
			at = here[i]
		default:
			return nil
		}
	}
	return at
}

// resolved follows a $ref.
func (d *document) resolved(pointer string) (string, map[string]any) {
	at, _ := d.at(pointer).(map[string]any)
	if ref, isRef := at["$ref"].(string); isRef {
		return d.resolved(strings.TrimPrefix(ref, "#"))
	}
	return pointer, at
}

// holds judges a value by the schema at a pointer.
func (d *document) holds(pointer string, value any) {
	d.t.Helper()
	s, err := d.compiler.Compile("openapi.json#" + pointer)
	if err != nil {
		d.t.Errorf("%s: %v", pointer, err)
		return
	}
	if err := s.Validate(value); err != nil {
		d.t.Errorf("%s: %v", pointer, err)
	}
}

func escaped(part string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(part) }

// TestOpenAPIIsValid judges the description of the committed catalog by the schema of OpenAPI 3.1, its schemas by that of JSON Schema
// 2020-12, and its examples by the schemas that they are of.
func TestOpenAPIIsValid(t *testing.T) {
	t.Parallel()
	d := readDocument(t, realCatalog(t))
	file, err := os.Open(filepath.Join("reference", "testdata", "openapi-3.1-2022-10-07.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	official, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.compiler.AddResource("official.json", official); err != nil {
		t.Fatal(err)
	}
	schema, err := d.compiler.Compile("official.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(d.root); err != nil {
		t.Errorf("%v", err)
	}
	broken := maps.Clone(d.root)
	broken["pathz"] = "x"
	if schema.Validate(broken) == nil {
		t.Error("a document with a member that OpenAPI does not have is taken")
	}
	examples, schemas := d.walk("", d.root)
	if schemas < 200 || examples < 300 {
		t.Errorf("%d schemas and %d examples were judged", schemas, examples)
	}
	d.operations()
}

// walk compiles each schema, judges each example by the schema beside it, and resolves each reference.
func (d *document) walk(pointer string, at any) (examples, schemas int) {
	d.t.Helper()
	members, ok := at.(map[string]any)
	if !ok {
		if list, isList := at.([]any); isList {
			for i, one := range list {
				e, s := d.walk(pointer+"/"+strconv.Itoa(i), one)
				examples, schemas = examples+e, schemas+s
			}
		}
		return examples, schemas
	}
	if ref, isRef := members["$ref"].(string); isRef && d.at(strings.TrimPrefix(ref, "#")) == nil {
		d.t.Errorf("%s: there is no %s", pointer, ref)
	}
	if members["schema"] != nil {
		if _, err := d.compiler.Compile("openapi.json#" + pointer + "/schema"); err != nil {
			d.t.Errorf("%s: %v", pointer, err)
		}
		schemas++
		if example, given := members["example"]; given {
			d.holds(pointer+"/schema", example)
			examples++
		}
		named, _ := members["examples"].(map[string]any)
		for name := range named {
			_, example := d.resolved(pointer + "/examples/" + escaped(name))
			d.holds(pointer+"/schema", example["value"])
			examples++
		}
		return examples, schemas
	}
	for name, member := range members {
		e, s := d.walk(pointer+"/"+escaped(name), member)
		examples, schemas = examples+e, schemas+s
	}
	return examples, schemas
}

var inPath = regexp.MustCompile(`\{([^}]+)\}`)

// operations holds each operation to what the schema of OpenAPI cannot say.
func (d *document) operations() {
	d.t.Helper()
	seen := map[string]bool{}
	for path, methods := range d.root["paths"].(map[string]any) {
		for method, of := range methods.(map[string]any) {
			op := of.(map[string]any)
			if id := op["operationId"].(string); seen[id] {
				d.t.Errorf("%s is there twice", id)
			} else {
				seen[id] = true
			}
			var named []string
			for i, parameter := range op["parameters"].([]any) {
				p := parameter.(map[string]any)
				if ref, isRef := p["$ref"].(string); isRef {
					_, p = d.resolved(strings.TrimPrefix(ref, "#"))
				}
				if s, ok := p["schema"].(map[string]any); !ok || len(s) == 0 {
					d.t.Errorf("%s %s: parameter %d has no schema", method, path, i)
				}
				if p["in"] == "path" {
					named = append(named, p["name"].(string))
				}
			}
			var wanted []string
			for _, m := range inPath.FindAllStringSubmatch(path, -1) {
				wanted = append(wanted, m[1])
			}
			slices.Sort(named)
			slices.Sort(wanted)
			if !slices.Equal(named, wanted) {
				d.t.Errorf("%s %s has %v in its path, and describes %v", method, path, wanted, named)
			}
			d.exemplified("/paths/"+escaped(path)+"/"+method, op)
			responses := op["responses"].(map[string]any)
			if responses["429"] == nil || responses["503"] == nil || responses["default"] == nil || op["summary"] == "" {
				d.t.Errorf("%s %s: responses %v", method, path, slices.Sorted(maps.Keys(responses)))
			}
		}
	}
}

// exemplified fails an operation of JSON that has no example of what is sent, or of what is answered.
func (d *document) exemplified(at string, op map[string]any) {
	d.t.Helper()
	const content = "/content/application~1json"
	if op["requestBody"] != nil && d.at(at+"/requestBody"+content) != nil && d.at(at+"/requestBody"+content+"/examples") == nil {
		d.t.Errorf("%s: no example of a request", at)
	}
	for _, parameter := range op["parameters"].([]any) {
		if p := parameter.(map[string]any); p["in"] == "path" && p["example"] == nil && op["requestBody"] == nil &&
			d.at(at+"/responses/200"+content) != nil {
			d.t.Errorf("%s: no example of %s", at, p["name"])
		}
	}
	examples := 0
	for status := range op["responses"].(map[string]any) {
		if status < "300" && (d.at(at+"/responses/"+status+content+"/examples") != nil || d.at(at+"/responses/"+status+content) == nil) {
			examples++
		}
	}
	if examples == 0 && !strings.HasPrefix(at, "/paths/~1api~1tools/") && !strings.Contains(at, "{name}") {
		d.t.Errorf("%s: no example of an answer", at)
	}
}

// describes holds an answer to what the document says of it.
func (d *document) describes(method, path string, r reply) {
	d.t.Helper()
	at := "/paths/" + escaped(path) + "/" + strings.ToLower(method) + "/responses/" + strconv.Itoa(r.status)
	at, response := d.resolved(at)
	if response == nil {
		d.t.Errorf("%s %s: %d is not described: %s", method, path, r.status, r.body)
		return
	}
	for name := range response["headers"].(map[string]any) {
		pointer, header := d.resolved(at + "/headers/" + name)
		value := r.header.Get(name)
		if value == "" {
			if header["required"] == true {
				d.t.Errorf("%s %s: %d without %s", method, path, r.status, name)
			}
			continue
		}
		var typed any = value
		if n, err := strconv.Atoi(value); err == nil && header["schema"].(map[string]any)["type"] == "integer" {
			typed = json.Number(strconv.Itoa(n))
		}
		d.holds(pointer+"/schema", typed)
	}
	if r.status == http.StatusNotModified {
		return
	}
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
	if err != nil {
		d.t.Fatal(err)
	}
	d.holds(at+"/content/application~1json/schema", body)
}

// references counts the references to each place, fails one that leads nowhere, and lists objects with a title that stand where they
// should be referred to.
func (d *document) references(pointer string, at any, count map[string]int) {
	d.t.Helper()
	switch here := at.(type) {
	case []any:
		for i, one := range here {
			d.references(pointer+"/"+strconv.Itoa(i), one, count)
		}
	case map[string]any:
		if to, is := here["$ref"].(string); is {
			if count[to]++; !strings.HasPrefix(to, "#/") || d.at(to[1:]) == nil {
				d.t.Errorf("%s: there is no %s", pointer, to)
			}
		}
		if title, is := here["title"].(string); is && here["properties"] != nil && pointer != "/components/schemas/"+title {
			d.t.Errorf("%s: %s is said once more", pointer, title)
		}
		for name, member := range here {
			d.references(pointer+"/"+escaped(name), member, count)
		}
	}
}

// TestSchemasAreSaidOnce: what has a name is a component, which operations refer to.
func TestSchemasAreSaidOnce(t *testing.T) {
	t.Parallel()
	d := readDocument(t, realCatalog(t))
	count := map[string]int{}
	d.references("", d.root, count)
	for name, least := range map[string]int{"Brand": 1, "BrandMatch": 1, "Campaign": 2, "CampaignMatch": 1, "Order": 7, "Refund": 3,
		"Notification": 10, "Warning": 5, "Partner": 2, "Contact": 2, "Column": 2, "DetailCode": 2} {
		if got := count["#/components/schemas/"+name]; got < least {
			t.Errorf("%d operations refer to %s, want %d", got, name, least)
		}
	}
	nullable, _ := d.at("/components/schemas/Order/properties/vbank").(map[string]any)
	if got := line(nullable); got != `{"anyOf":[{"$ref":"#/components/schemas/VirtualAccount"},{"type":"null"}]}` {
		t.Errorf("vbank is %s", got)
	}
	for at, want := range map[string]string{
		"/paths/~1v1~1pay~1orders~1{code}~1refund/post/responses/409": `["ORDER_NOT_REFUNDABLE","TOO_MANY_REFUNDS","AMOUNT_MISMATCH",` +
			`"REFUND_NOT_KNOWN","REFUND_EXCEEDS_BALANCE","PROVIDER_DECLINED","IDEMPOTENCY_KEY_CONFLICT","REQUEST_IN_PROGRESS"]`,
		"/paths/~1v1~1pay~1orders/post/responses/400":              `["BAD_AMOUNT"]`,
		"/paths/~1v1~1connect~1confirm/post/responses/409":         `["LINK_MISMATCH"]`,
		"/paths/~1api~1tools~1queue_for_review/post/responses/409": `["REQUEST_IN_PROGRESS"]`,
		"/paths/~1v1~1pay~1orders~1{code}/get/responses/401":       `["ACCOUNT_LINK_REQUIRED"]`,
		"/paths/~1api~1tools~1search_brands/post/responses/400":    `null`,
		"/paths/~1v1~1pay~1orders~1{code}~1cancel/post/responses/409": `["ORDER_NOT_CANCELABLE",` +
			`"IDEMPOTENCY_KEY_CONFLICT","REQUEST_IN_PROGRESS"]`,
	} {
		const code = "/content/application~1json/schema/allOf/1/properties/error/properties/details/properties/code/enum"
		if d.at(at) == nil || line(d.at(at+code)) != want {
			t.Errorf("%s: %s, want %s", at, line(d.at(at+code)), want)
		}
	}
	all, _ := d.at("/components/schemas/DetailCode/enum").([]any)
	if !slices.Contains(all, any("REFUND_EXCEEDS_BALANCE")) || len(all) < 10 {
		t.Errorf("details.code is one of %v", all)
	}
}

// line is v as JSON.
func line(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// TestNotificationsAreDescribed: each type of message is a webhook with the signature's headers, and its schema takes no other type.
func TestNotificationsAreDescribed(t *testing.T) {
	t.Parallel()
	d := readDocument(t, realCatalog(t))
	webhooks := maps.Clone(d.root["webhooks"].(map[string]any))
	for _, kind := range []string{"payment.vbank.issued", "payment.order.paid", "payment.order.canceled", "payment.order.expired",
		"payment.order.failed", "payment.order.refunded", "payment.refund.succeeded", "payment.refund.failed", "payment.deposit.reversed",
		"payment.order.attention"} {
		op, _ := d.at("/webhooks/" + kind + "/post").(map[string]any)
		delete(webhooks, kind)
		if op == nil || !strings.HasPrefix(op["description"].(string), "Sent when: ") || len(op["parameters"].([]any)) != 3 ||
			line(op["security"]) != "[]" {
			t.Errorf("%s: %v", kind, op)
		}
	}
	if len(webhooks) > 0 {
		t.Errorf("there are %v too", slices.Sorted(maps.Keys(webhooks)))
	}
	const schema = "/post/requestBody/content/application~1json/schema"
	_, example := d.resolved("/webhooks/payment.vbank.issued/post/requestBody/content/application~1json/examples/message")
	d.holds("/webhooks/payment.vbank.issued"+schema, example["value"])
	other, err := d.compiler.Compile("openapi.json#/webhooks/payment.order.paid" + schema)
	if err != nil || other.Validate(example["value"]) == nil {
		t.Errorf("%v: a message of another type is taken", err)
	}
	for name, value := range map[string]string{"WebhookID": "msg_01KF0E44M00000000000000001", "WebhookTimestamp": "1768467600",
		"WebhookSignature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="} {
		d.holds("/components/parameters/"+name+"/schema", value)
	}
}

// TestAnswersAreAsDescribed holds answers of the edge, of a tool and of a route, good and bad, to the description.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	e := newShop(t)
	d := readDocument(t, e.fixture)
	key := func(name string) []string { return append(bearer(allScopes), tool.KeyHeader, name) }
	statuses := map[int]int{}
	for _, c := range []struct {
		method, path, described, body string
		headers                       []string
	}{
		{"GET", "/api/tools", "", "", bearer(readOnly)},
		{"GET", "/api/tools", "", "", nil},
		{"GET", "/api/tools", "", "", bearer(unknown)},
		{"GET", "/api/tools", "", "", append(bearer(allScopes), "X-External-User-Id", strings.Repeat("x", 201))},
		{"GET", "/api/tools", "", "", append(bearer(allScopes), "If-None-Match", "*")},
		{"GET", "/api/tools/store_echo/detail", "/api/tools/{name}/detail", "", bearer(readOnly)},
		{"GET", "/api/tools/nope/detail", "/api/tools/{name}/detail", "", bearer(readOnly)},
		{"POST", "/api/tools/search_echo", "", `{"text":"a"}`, bearer(readOnly)},
		{"POST", "/api/tools/search_echo", "", `{"text":"","more":1}`, bearer(readOnly)},
		{"POST", "/api/tools/search_echo", "", `{"text":"a"}`, bearer(revoked)},
		{"POST", "/api/tools/search_echo", "", `{"text":"a"}`, bearer(tight)},
		{"POST", "/api/tools/search_echo", "", `{"text":"a"}`, bearer(tight)},
		{"POST", "/api/tools/search_echo", "", `{"text":"a"}`, bearer(tight)},
		{"POST", "/api/tools/store_echo", "", `{"text":"a"}`, key("k1")},
		{"POST", "/api/tools/store_echo", "", `{"text":"a"}`, bearer(allScopes)},
		{"POST", "/api/tools/store_echo", "", `{"text":"a"}`, bearer(readOnly)},
		{"GET", "/v1/orders/7", "/v1/orders/{orderId}", "", bearer(allScopes)},
		{"POST", "/v1/orders", "", `{"amount":5}`, key("o1")},
		{"POST", "/v1/orders", "", `{"amount":-5}`, key("o2")},
	} {
		r := e.do(t, c.method, c.path, c.body, c.headers...)
		if c.described == "" {
			c.described = c.path
		}
		statuses[r.status]++
		d.describes(c.method, c.described, r)
	}
	for _, status := range []int{200, 201, 304, 400, 401, 403, 404, 429} {
		if statuses[status] == 0 {
			t.Errorf("no answer had the status %d: %v", status, statuses)
		}
	}
}

// withPages gives a gateway the pages of its own.
func withPages(t *testing.T) func(*gateway.Gateway) {
	t.Helper()
	return func(g *gateway.Gateway) {
		pages, err := web.New(
			web.Options{Service: "gateway", Files: reference.Files, Keys: callertest.Keys(t, caller.Gateway), Logger: g.Logger},
		)
		if err != nil {
			t.Fatal(err)
		}
		g.Console = &console.Console{Edge: g.Gateway, Pages: pages, Visitors: console.NewVisitors(nil, time.Now)}
	}
}

// TestTheDescriptionIsForEverybodyAndCounted: it needs no credential, and has the limit of routes that take none.
func TestTheDescriptionIsForEverybodyAndCounted(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/openapi.json", "/docs"} {
		e := newFixture(t, withPages(t), func(g *gateway.Gateway) {
			g.Authenticators[tool.NoCredential] = edge.Open{Rate: edge.Rate{PerMinute: 60, Burst: 3}}
		})
		for n := range 4 {
			request, err := http.NewRequestWithContext(t.Context(), "GET", e.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", "text/html")
			r, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			switch {
			case n < 3 && (r.StatusCode != 200 || r.Header.Get("ETag") == "" || r.Header.Get("RateLimit") == "" ||
				r.Header.Get("Cache-Control") != "no-cache"):
				t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
			case n == 3 && (r.StatusCode != 429 || r.Header.Get("Retry-After") == ""):
				t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
			}
		}
	}
}

// TestTheErrorsSayWhatTryingAgainDependsOn: of a code with failures of both kinds the table leads to what the failure says.
func TestTheErrorsSayWhatTryingAgainDependsOn(t *testing.T) {
	t.Parallel()
	e := newFixture(t, withPages(t))
	request, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/docs", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html")
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[fault.Code]string{fault.Conflict: "as retryable says", fault.DBTimeout: "as retryable says", fault.DB: "yes",
		fault.RateLimit: "yes", fault.Idempotency: "no"} {
		_, row, _ := strings.Cut(string(page), "<tr><td><code>"+string(code)+"</code></td>")
		if row, _, _ = strings.Cut(row, "</tr>"); !strings.Contains(row, `data-label="Try again">`+want+"</td>") {
			t.Errorf("%s: %s", code, row)
		}
	}
}
