package reviewcontrol_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
)

// sloppy are calls of queue_for_review as agents make them that know the catalog only. ID stands for that
// of a draft of the case; draft 1 was queued, draft 2 cancelled, and a recipient of draft 3 is suppressed. What mends a call is the
// one that the message asks for.
var sloppy = []struct{ name, input, mend string }{
	{"snake-case", `{"draft_id": "ID"}`, `{"draftId": "ID"}`},
	{"by-id", `{"id": "ID"}`, `{"draftId": "ID"}`},
	{"wrapped", `{"arguments": {"draftId": "ID"}}`, `{"draftId": "ID"}`},
	{"named-and-wrapped", `{"name": "queue_for_review", "input": {"draftId": "ID"}}`, `{"draftId": "ID"}`},
	{"several", `{"draftIds": ["ID"]}`, `{"draftId": "ID"}`},
	{"in-a-list", `{"draftId": ["ID"]}`, `{"draftId": "ID"}`},
	{"none", `{}`, `{"draftId": "ID"}`},
	{"null-for-nothing", `{"draftId": "ID", "note": null}`, ``},
	{"as-a-number", `{"draftId": ID}`, ``},
	{"as-a-whole-number", `{"draftId": ID.0}`, ``},
	{"as-a-fraction", `{"draftId": ID.5}`, `{"draftId": "ID"}`},
	{"by-name", `{"draftId": "Win back"}`, `{"draftId": "ID"}`},
	{"unknown", `{"draftId": "99999"}`, `{"draftId": "ID"}`},
	{"with-zeros", `{"draftId": "00ID"}`, `{"draftId": "ID"}`},
	{"with-the-decision", `{"draftId": "ID", "decision": "approve"}`, `{"draftId": "ID"}`},
	{"actor-of-two-lines", `{"draftId": "ID", "actor": "agent\n7"}`, `{"draftId": "ID", "actor": "agent 7"}`},
	{"queued-already", `{"draftId": "1"}`, ``},
	{"cancelled", `{"draftId": "2"}`, `{"draftId": "ID"}`},
	{"suppressed", `{"draftId": "3"}`, `{"draftId": "ID"}`},
}

// golden is what a sloppy call comes to.
type golden struct {
	Tool    string          `json:"tool"`
	Request json.RawMessage `json:"request"`
	Refused any             `json:"refused,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Mended  json.RawMessage `json:"mended,omitempty"`
}

// TestSloppyCalls: each golden file has an answer, or the refusal and the call that mends it as the message says, which passes.
func TestSloppyCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.queued(1)
	h.authoring.draft(1, func(d *draftRow) { d.Status = "cancelled" })
	if _, err := h.suppressed.Add(signedIn(t.Context(), ada), ada.Email, h.authoring.row(h.authoring.draft(2)).targets[1].ToEmail,
		"asked for it"); err != nil {
		t.Fatal(err)
	}
	for i, c := range sloppy {
		t.Run(c.name, func(t *testing.T) {
			h.authoring.count(int64(100 + i))
			id := h.authoring.draft(2).String()
			c.input, c.mend = strings.ReplaceAll(c.input, "ID", id), strings.ReplaceAll(c.mend, "ID", id)
			g := golden{Tool: "queue_for_review", Request: json.RawMessage(c.input), Mended: json.RawMessage(c.mend)}
			a, err := h.send(agent(t.Context()), newKey(), c.input)
			if err == nil {
				if g.Answer = json.RawMessage(a.data); c.mend != "" {
					t.Errorf("%s: %s", c.input, a.data)
				}
			} else {
				f := fault.From(err)
				g.Refused = map[string]any{"code": f.Code, "message": f.Message, "details": f.Details}
			}
			if c.mend != "" {
				if mended, err := h.send(agent(t.Context()), newKey(), c.mend); err != nil {
					t.Errorf("what mends it: %s, %v", mended.data, err)
				}
			}
			holdGolden(t, filepath.Join("testdata", "sloppy", c.name+".json"), g)
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "sloppy", "*.json"))
	if err != nil || len(files) != len(sloppy) {
		t.Errorf("%d files for %d calls (%v)", len(files), len(sloppy), err)
	}
}

func holdGolden(t *testing.T, path string, g golden) {
	t.Helper()
	var plain, b bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(g); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&b, plain.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got %s\nwant %s\n(%v; go test -run TestSloppyCalls -update writes it)", b.Bytes(), want, err)
	}
}
