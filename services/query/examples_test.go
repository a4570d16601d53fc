package query_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
)

var update = flag.Bool("update", false, "write the answers of the examples instead of comparing them")

// TestExamples executes each example of each tool on testdata/example.sql.
func TestExamples(t *testing.T) {
	rows, err := os.ReadFile(filepath.Join("testdata", "example.sql"))
	if err != nil {
		t.Fatal(err)
	}
	x := serve(
		t,
		string(rows),
		`ANALYZE TABLE category, category_name, partner, partner_admin, brand, campaign, deposit_transaction, member, `+
			`campaign_application, review`,
	)
	for name, declared := range x.byID {
		t.Run(name, func(t *testing.T) {
			examples := declared.Spec.Examples
			if len(examples) == 0 {
				t.Fatal("the tool has no example")
			}
			var output jsonschema.Schema
			if err := json.Unmarshal(declared.Spec.Output, &output); err != nil {
				t.Fatal(err)
			}
			resolved, err := output.Resolve(nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range examples {
				r, err := x.raw(t.Context(), name, string(e.Request))
				if hubtest.SourceIsMySQL() && strings.HasPrefix(e.Title, "A comparison that warns") && fault.Is(err, fault.Validation) {
					continue // MySQL compares no date with what is none
				}
				if err != nil {
					t.Errorf("%s: %v", e.Title, err)
					continue
				}
				var data any
				if err := json.Unmarshal(r.Data, &data); err != nil {
					t.Fatal(err)
				}
				if err := resolved.Validate(data); err != nil {
					t.Errorf("%s: the answer breaks the output schema: %v\n%s", e.Title, err, r.Data)
				}
				if *update {
					examples[i].Data, examples[i].Count = masked(t, r.Data), r.Count
				} else if hubtest.SourceIsMySQL() && name == "get_ddl" {
					continue // in MySQL's own words
				} else if got, want := masked(t, r.Data), masked(t, e.Data); !bytes.Equal(got, want) || r.Count != e.Count {
					t.Errorf(
						"%s: got %d %s\nwant %d %s\n(go test -run TestExamples -update writes the answers)",
						e.Title,
						r.Count,
						got,
						e.Count,
						want,
					)
				}
			}
			if *update {
				write(t, filepath.Join("examples", name+".json"), examples)
			}
		})
	}
}

var approx = regexp.MustCompile(`"approx_rows":\d+`)

// masked is data on one line with each approx_rows, which is an estimate, set to 10.
func masked(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return approx.ReplaceAll(b.Bytes(), []byte(`"approx_rows":10`))
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
