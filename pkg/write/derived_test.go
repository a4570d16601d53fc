package write_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
)

type noteIn struct {
	Text string `json:"text"`
}

// unkeyed returns what calls a tool that writes, for callers who have sent no key: each call has a new one and asks for another.
func (s things) unkeyed(name string, replaces bool) func(ctx context.Context, externalUser, input string) (tool.Result, error) {
	keys := write.New(s.Pool, write.Options{Service: "authoring"})
	var n atomic.Int64
	t := tool.New(tool.Declaration{Name: name, Category: tool.Author, Description: "Adds a note.", Scope: "author", Write: true,
		Replaces: replaces, Position: 1, Input: schema.Object(schema.Required("text", schema.String(""))), Output: schema.Object()},
		func(ctx context.Context, in noteIn) (tool.Result, error) {
			w, err := write.NewCall(ctx, name, time.Now())
			if err != nil {
				return tool.Result{}, err
			}
			if earlier, found, err := keys.Stored(ctx, w.Key); err != nil || found {
				return earlier, err
			}
			return keys.Once(ctx, w.Key, insert(in.Text))
		})
	return func(ctx context.Context, externalUser, input string) (tool.Result, error) {
		ctx = caller.With(ctx, caller.Caller{Kind: caller.Key, CredentialID: "ak_1", ExternalUserID: externalUser})
		r, err := t.Endpoint(ctx, &tool.Call{Tool: name, Input: []byte(input), IdempotencyKey: fmt.Sprint("new-", n.Add(1)), DeriveKey: true})
		if err != nil {
			return tool.Result{}, err
		}
		return *r.(*tool.Result), nil
	}
}

// TestTheSameCallAgainIsTheFirstOnesForTenMinutes: a caller without a key who did not hear the answer sends the call again; whoever
// sends it later, or for another user, or with another input, means another write.
func TestTheSameCallAgainIsTheFirstOnesForTenMinutes(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	call := s.unkeyed("add_note", false)
	effects := 0
	expect := func(what, user, input string, replayed bool) tool.Result {
		t.Helper()
		if !replayed {
			effects++
		}
		r, err := call(t.Context(), user, input)
		if n := s.effects(t); err != nil || r.Replayed != replayed || n != effects {
			t.Errorf("%s: replayed %t, %v; %d effects, want %d", what, r.Replayed, err, n, effects)
		}
		return r
	}
	age := func(by string) {
		t.Helper()
		if _, err := s.Exec(t.Context(), `UPDATE authoring.idempotency_keys SET created_at = created_at - $1::interval`, by); err != nil {
			t.Fatal(err)
		}
	}
	expect("the first", "u1", `{"text":"a"}`, false)
	expect("the same in other words", "u1", ` { "text" : "\u0061" } `, true)
	expect("another input", "u1", `{"text":"b"}`, false)
	expect("the first again", "u1", `{"text":"a"}`, true)
	expect("another user", "u2", `{"text":"a"}`, false)
	age("9 minutes 30 seconds")
	if r := expect("soon", "u1", `{"text":"a"}`, true); r.Age < 9*time.Minute || r.Age > 15*time.Minute {
		t.Errorf("it was written %s ago", r.Age)
	}
	age("90 seconds")
	if r := expect("eleven minutes after", "u1", `{"text":"a"}`, false); r.Age != 0 {
		t.Errorf("a new write was made %s ago", r.Age)
	}
	expect("and that one again", "u1", `{"text":"a"}`, true)
	if _, err := s.Exec(t.Context(), `DELETE FROM authoring.effects`); err != nil { // as a person would
		t.Fatal(err)
	}
	effects = 0
	age("11 minutes")
	expect("what somebody has deleted since", "u1", `{"text":"a"}`, false)
}

// TestTwentyOfTheSameCallAtOnceWriteOnce, the first time and when what is there holds no longer.
func TestTwentyOfTheSameCallAtOnceWriteOnce(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	call := s.unkeyed("add_note", false)
	for round := 1; round <= 3; round++ {
		var fresh atomic.Int64
		err := together(20, func(int) error {
			r, err := call(t.Context(), "u1", `{"text":"a"}`)
			if err == nil && !r.Replayed {
				fresh.Add(1)
			}
			return err
		})
		if n := s.effects(t); err != nil || n != round || fresh.Load() != 1 || s.keys(t) != 1 {
			t.Fatalf("round %d: %v, %d effects, %d answers that were not replayed, %d keys", round, err, n, fresh.Load(), s.keys(t))
		}
		if _, err := s.Exec(t.Context(), `UPDATE authoring.idempotency_keys SET created_at = created_at - interval '11 minutes'`); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoKeyIsDerivedForWhatReplaces: what is replaced and replaced back is replaced twice.
func TestNoKeyIsDerivedForWhatReplaces(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	call := s.unkeyed("upsert_note", true)
	for _, text := range []string{"a", "b", "a", "a"} {
		if r, err := call(t.Context(), "u1", `{"text":"`+text+`"}`); err != nil || r.Replayed {
			t.Errorf("%s: replayed %t, %v", text, r.Replayed, err)
		}
	}
	if n := s.effects(t); n != 4 {
		t.Errorf("%d effects", n)
	}
}

// TestADerivedKeyIsNobodysOwn: no caller can send one, so none meets another's.
func TestADerivedKeyIsNobodysOwn(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	if _, err := s.unkeyed("add_note", false)(t.Context(), "u1", `{"text":"a"}`); err != nil {
		t.Fatal(err)
	}
	var name string
	if err := s.QueryRow(t.Context(), `SELECT key FROM authoring.idempotency_keys`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("the key %q is one that a caller can send", name)
	}
}
