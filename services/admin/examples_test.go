package admin_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"hub.internal/pkg/tool"
	"hub.internal/services/admin"
)

var update = flag.Bool("update", false, "write the answers of the examples instead of comparing them")

// TestExamples executes each example of each tool, one after the other, on a fresh store.
func TestExamples(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	order := []string{"create_menu_group", "create_menu_item", "upsert_dynamic_page", "list_menu_groups"}
	declared := map[string]tool.Spec{}
	for _, d := range admin.Tools(admin.New(admin.Config{})) {
		declared[d.Spec.Name] = d.Spec
	}
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
		for i, e := range examples {
			a, err := h.send(name, newKey(), string(e.Request))
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
				examples[i].Data, examples[i].Count = compacted(t, []byte(a.data)), a.count
			} else if got, want := compacted(t, []byte(a.data)), compacted(t, e.Data); !bytes.Equal(got, want) || a.count != e.Count {
				t.Errorf(
					"%s: %s: got %d %s\nwant %d %s\n(go test -run TestExamples -update writes the answers)",
					name,
					e.Title,
					a.count,
					got,
					e.Count,
					want,
				)
			}
		}
		if *update {
			write(t, filepath.Join("examples", name+".json"), examples)
		}
		// What comes later sees what is later.
		h.clock.Advance(1500 * 1000 * 1000)
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
