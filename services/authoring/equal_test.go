package authoring_test

import (
	"strings"
	"testing"
)

// TestEqual: the same input under another key makes the same thing again, and is told of the first.
func TestEqual(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	members := segment(member(1, `{}`))
	if w := h.warned("create_segment", members); w["segment.equal"] != "" {
		t.Errorf("the first: %v", w)
	}
	if w := h.warned("create_segment", members); !strings.HasPrefix(w["segment.equal"], "segment 1 was made by the same call ") {
		t.Errorf("the second: %v", w)
	}
	if w := h.warned("create_segment", with(members, "name", "another")); w["segment.equal"] != "" {
		t.Errorf("another: %v", w)
	}
	input := draft("1", target(1))
	if w := h.warned("save_message_draft", input); w["draft.equal"] != "" {
		t.Errorf("the first draft: %v", w)
	}
	key := newKey()
	for range 2 { // a replay says what the first answer said
		a, err := h.send(agent(t.Context()), "save_message_draft", key, text(input))
		if err != nil || !strings.Contains(a.data, `"rule":"draft.equal","message":"draft 1 was made by the same call `) {
			t.Errorf("the second draft: %s, %v", a.data, err)
		}
	}
	if _, err := h.super.Exec(t.Context(), `UPDATE authoring.idempotency_keys SET created_at = now() - interval '25 hours'`); err != nil {
		t.Fatal(err)
	}
	if w := h.warned("create_segment", members); w["segment.equal"] != "" {
		t.Errorf("a day later: %v", w)
	}
}
