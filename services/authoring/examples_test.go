package authoring_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"hub.internal/pkg/tool"
	"hub.internal/services/authoring"
)

var update = flag.Bool("update", false, "write the answers of the examples instead of comparing them")

// TestExamples executes each example of each tool, one after the other, on a fresh store.
func TestExamples(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	declared := map[string]tool.Spec{}
	for _, d := range authoring.Tools(authoring.New(authoring.Config{})) {
		declared[d.Spec.Name] = d.Spec
	}
	order := []string{"create_segment", "save_message_draft", "list_segments", "list_drafts"}
	if len(declared) != len(order) {
		t.Fatalf("%d tools are declared, and %d executed, in their order: %q", len(declared), len(order), order)
	}
	for _, name := range order {
		spec := declared[name]
		examples := spec.Examples
		if len(examples) == 0 {
			t.Fatal("the tool has no example")
		}
		var output jsonschema.Schema
		if err := json.Unmarshal(spec.Output, &output); err != nil {
			t.Fatal(err)
		}
		resolved, err := output.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if name == "list_drafts" {
			rejectFirst(t, h)
		}
		for i, e := range examples {
			a, err := h.send(agent(t.Context()), name, newKey(), string(e.Request))
			if err != nil {
				t.Fatalf("%s: %s: %v\n%s", name, e.Title, err, h.logs)
			}
			var data any
			if err := json.Unmarshal([]byte(a.data), &data); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(data); err != nil {
				t.Errorf("%s: %s: the answer breaks the output schema: %v\n%s", name, e.Title, err, a.data)
			}
			if *update {
				examples[i].Data = compacted(t, []byte(a.data))
			} else if got, want := compacted(t, []byte(a.data)), compacted(t, e.Data); !bytes.Equal(got, want) {
				t.Errorf("%s: %s: got %s\nwant %s\n(go test -run TestExamples -update writes the answers)", name, e.Title, got, want)
			}
		}
		if *update {
			write(t, filepath.Join("examples", name+".json"), examples)
		}
		// What comes later sees what is later.
		h.clock.Advance(1500 * 1000 * 1000)
	}
}

// rejectFirst has the one target of the first draft rejected, as review-control tells it.
func rejectFirst(t *testing.T, h *house) {
	must[any](t)(operate[any](h, authoring.DraftTransitionPath,
		object{"draft_id": "1", "from": []string{"draft"}, "to": "in_review", "operation_id": "queue"}))
	must[any](t)(operate[any](h, authoring.DraftProgressPath, object{"draft_id": "1", "version": 2,
		"decisions": object{"pending": 0, "approved": 0, "rejected": 1}, "delivery": object{"sent": 0, "failed": 0, "suppressed": 0},
		"rejections": object{"content": 1},
		"rejected": []object{{"index": 0, "external_id": 501, "to_email": "minji.kim@hanbit.example", "subject": "김민지님, 한빛 글로우의 다음 캠페인",
			"reason": "content", "note": "Their last campaign was in May, not in October.", "decided_at": "2026-01-15T10:00:00Z"}}}))
	must[any](t)(operate[any](h, authoring.DraftTransitionPath,
		object{"draft_id": "1", "from": []string{"in_review"}, "to": "rejected", "operation_id": "end", "version": 2}))
}

func compacted(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return b.Bytes()
}

func write(t *testing.T, path string, examples []tool.Example) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(examples); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
