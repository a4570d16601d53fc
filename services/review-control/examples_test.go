package reviewcontrol_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"hub.internal/pkg/tool"
	"hub.internal/pkg/tool/tooltest"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/queue"
)

var update = flag.Bool("update", false, "write the answers of the examples instead of comparing them")

func spec() tool.Spec {
	return queue.Tools(queue.New(reviewcontrol.New(reviewcontrol.Config{}), nil))[0].Spec
}

// TestExamples executes the example of the tool on a fresh store.
func TestExamples(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	spec := spec()
	var output jsonschema.Schema
	if err := json.Unmarshal(spec.Output, &output); err != nil {
		t.Fatal(err)
	}
	resolved, err := output.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range spec.Examples {
		h.authoring.draft(2)
		a, err := h.send(agent(t.Context()), newKey(), string(e.Request))
		if err != nil {
			t.Fatalf("%s: %v", e.Title, err)
		}
		if a.count != 2 {
			t.Errorf("%s: count %d", e.Title, a.count)
		}
		var data any
		if err := json.Unmarshal([]byte(a.data), &data); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(data); err != nil {
			t.Errorf("%s: the answer breaks the output schema: %v\n%s", e.Title, err, a.data)
		}
		if *update {
			spec.Examples[i].Data = compacted(t, []byte(a.data))
		} else if got, want := compacted(t, []byte(a.data)), compacted(t, e.Data); !bytes.Equal(got, want) {
			t.Errorf("%s: got %s\nwant %s\n(go test -run TestExamples -update writes the answers)", e.Title, got, want)
		}
	}
	if *update {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(spec.Examples); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("queue/examples/queue_for_review.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func compacted(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return b.Bytes()
}

// TestBounds sends an input at and beyond each bound of the schema.
func TestBounds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.authoring.draft(1)
	for _, c := range tooltest.Bounds(t, spec()) {
		_, err := h.send(agent(t.Context()), newKey(), string(c.Input))
		if c.Valid() == (code(err) == "E_VALIDATION") {
			t.Errorf("%s: %.200s: %v", c.Name, c.Input, err)
		}
		if c.Valid() {
			continue
		}
		found := false
		violations, _ := details(t, err)["violations"].([]any)
		for _, v := range violations {
			v := v.(map[string]any)
			found = found || v["path"] == c.Path && v["rule"] == c.Rule
		}
		if !found {
			t.Errorf("%s: want %s %s, got %v", c.Name, c.Path, c.Rule, err)
		}
	}
}
