package payments_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"hub.internal/pkg/tool"
)

// TestExamples executes the examples of the routes, one after the other, as the life of two orders. What is another one each
// time (ids, how long an attempt took, and where this test's provider and app are) is written as the examples have it.
func TestExamples(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	p := &story{
		shop:  s,
		next:  map[string]int{},
		here:  []string{s.app.url, "req_test"},
		shown: []string{"https://hooks.svc.example", "req_b7a04c1d9e"},
	}
	p.example(t, "pay.orders.create")
	p.example(t, "pay.orders.create")
	p.drain()
	p.message(t)
	clock.Advance(time.Hour)
	p.deposit(p.real("po_", 1), 11000, 1)
	p.drain()
	p.example(t, "pay.orders.list")
	clock.Advance(time.Hour)
	p.example(t, "pay.orders.refund")
	p.drain()
	for _, route := range []string{"pay.orders.show", "pay.orders.events", "pay.notifications.redeliver", "pay.orders.cancel",
		"pay.orders.reconcile"} {
		p.example(t, route)
	}
	if got := p.show(p.real("po_", 2)).Status; got != "CANCELED" {
		t.Errorf("the second order is %s", got)
	}
	for name, r := range s.routes {
		if done := p.next[name]; done != len(r.Spec.Examples) {
			t.Errorf("%s: %d of %d examples are executed", name, done, len(r.Spec.Examples))
		}
		if *update && len(r.Spec.Examples) > 0 {
			b, err := json.MarshalIndent(r.Spec.Examples, "", "  ")
			if err == nil {
				err = os.WriteFile(filepath.Join("api", "examples", name+".json"), append(b, '\n'), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// message holds the example of a notification to the first that the app has got.
func (p *story) message(t *testing.T) {
	t.Helper()
	file := filepath.Join("api", "examples", "notification.json")
	got := []byte(p.asShown(string(p.app.all()[0].Body)))
	if *update {
		var b bytes.Buffer
		if err := json.Indent(&b, got, "", "  "); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(b.Bytes(), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var want bytes.Buffer
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Compact(&want, b)
	}
	if err != nil || want.String() != string(got) {
		t.Errorf("%v; the app got\n%s\nand the example is\n%s", err, got, want.Bytes())
	}
}

// story executes examples.
type story struct {
	*shop
	next map[string]int // by route
	// here are names of this test, and shown what they are in the examples.
	here, shown []string
}

var (
	madeUp   = regexp.MustCompile(`\b(po_|rf_|msg_)[0-9A-Z]{26}\b`)
	lasted   = regexp.MustCompile(`"ms":\d+`)
	checkout = regexp.MustCompile(`http://127\.0\.0\.1:\d+/v1/checkout/pay/[0-9a-f]+/`)
)

// exampleID is the nth id of a kind.
func exampleID(kind string, n int) string { return fmt.Sprintf("%s01KF0E44M0%016d", kind, n) }

// real is what the nth id of a kind is here.
func (p *story) real(kind string, n int) string { return renamed(exampleID(kind, n), p.shown, p.here) }

// asShown is an answer as the examples have it.
func (p *story) asShown(raw string) string {
	for _, id := range madeUp.FindAllString(raw, -1) {
		if slices.Contains(p.here, id) {
			continue
		}
		kind, n := id[:strings.Index(id, "_")+1], 1
		for slices.Contains(p.shown, exampleID(kind, n)) {
			n++
		}
		p.here, p.shown = append(p.here, id), append(p.shown, exampleID(kind, n))
	}
	raw = lasted.ReplaceAllString(checkout.ReplaceAllString(raw, "https://pay.example/v1/checkout/pay/5d0f7a91c2/"), `"ms":84`)
	return renamed(raw, p.here, p.shown)
}

func renamed(text string, from, to []string) string {
	var pairs []string
	for i := range from {
		pairs = append(pairs, from[i], to[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// example executes the next example of a route.
func (p *story) example(t *testing.T, route string) {
	t.Helper()
	r := p.routes[route]
	e := &r.Spec.Examples[p.next[route]]
	p.next[route]++
	var output jsonschema.Schema
	if err := json.Unmarshal(r.Spec.Output, &output); err != nil {
		t.Fatal(err)
	}
	resolved, err := output.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	call := &tool.Call{Tool: route, Input: []byte(renamed(string(e.Request), p.shown, p.here))}
	if r.Spec.Idempotency != tool.KeyIgnored {
		call.IdempotencyKey = "k-" + e.Title
	}
	answered, err := r.Tool.Endpoint(as(t.Context(), "svc", "u-77"), call)
	if err != nil {
		t.Fatalf("%s: %s: %v\n%s", route, e.Title, err, p.logs)
	}
	result := answered.(*tool.Result)
	status := result.Status
	if status == 0 {
		status = 200
	}
	if status != r.Spec.Success[0] {
		t.Errorf("%s: %s: status %d, and the example is of %d", route, e.Title, status, r.Spec.Success[0])
	}
	data := p.asShown(string(result.Data))
	var value any
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(value); err != nil {
		t.Errorf("%s: %v in %s", route, err, data)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, e.Data); err != nil && len(e.Data) > 0 { // a new example has no answer yet
		t.Fatal(err)
	}
	if !*update && (want.String() != data || result.Count != e.Count) {
		t.Errorf(
			"%s: %s: got %d %s\nwant %d %s\n(go test -run TestExamples -update writes the answers)",
			route,
			e.Title,
			result.Count,
			data,
			e.Count,
			&want,
		)
	}
	e.Data, e.Count = json.RawMessage(data), result.Count
}
