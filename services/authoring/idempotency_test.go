package authoring_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

// TestFiftyAtOnce sends one call fifty times at the same moment, to three replicas.
func TestFiftyAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	replicas := []*house{h, newHouseOn(t, h.db), newHouseOn(t, h.db)}
	s := h.segmentOf()
	for name, input := range map[string]string{"create_segment": text(segment(member(1, `{"a":1}`), member(2, `{}`))),
		"save_message_draft": text(draft(s, target(1), target(2)))} {
		var wg sync.WaitGroup
		answers := make([]answer, 50)
		for i := range answers {
			wg.Go(func() {
				var err error
				if answers[i], err = replicas[i%3].send(agent(t.Context()), name, "k", input); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		firsts := 0
		for _, a := range answers {
			if a.data != answers[0].data || a.count != 2 {
				t.Errorf("%s: %+v beside %+v", name, a, answers[0])
			}
			if !a.replayed {
				firsts++
			}
		}
		if firsts != 1 {
			t.Errorf("%s: %d first answers", name, firsts)
		}
	}
	if got := fmt.Sprint(
		h.count(`SELECT count(*) FROM authoring.segments`),
		h.count(`SELECT count(*) FROM authoring.segment_targets`),
		h.count(`SELECT count(*) FROM authoring.drafts`),
		h.count(
			`SELECT count(*) FROM authoring.draft_targets`,
		),
		h.count(`SELECT count(*) FROM audit.calls WHERE outcome = 'ok' AND tool IN ('create_segment', 'save_message_draft')`),
	); got != "2 2 1 2 3" {
		t.Errorf("segments, targets, drafts, targets, audit rows: %s", got)
	}
}

func TestSameKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	body := `{"name":"n","kind":"partner","targets":[{"externalId":1,"snapshot":{"a":1,"b":2}}]}`
	first, err := h.send(agent(t.Context()), "create_segment", "k", body)
	if err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(time.Hour)
	for _, same := range []string{body, ` {"targets": [{"snapshot": {"b":2.0, "a":1}, "externalId":1.0}], "kind":"partner", ` +
		`"name":"\u006e"} `} {
		if a, err := h.send(
			agent(t.Context()),
			"create_segment",
			"k",
			same,
		); err != nil || !a.replayed || a.data != first.data ||
			a.count != first.count {
			t.Errorf("%s: %+v, %v", same, a, err)
		}
	}
	for _, other := range []string{strings.Replace(body, `"n"`, `"m"`, 1), strings.Replace(body, `"b":2`, `"b":3`, 1),
		strings.Replace(body, `"name"`, `"description":"","name"`, 1)} {
		if _, err := h.send(agent(t.Context()), "create_segment", "k", other); !fault.Is(err, fault.Idempotency) {
			t.Errorf("%s: %v", other, err)
		}
	}
	// Another credential, and another tool, have keys of their own.
	other := caller.With(t.Context(), caller.Caller{Kind: caller.Key, CredentialID: "ak_2"})
	if a, err := h.send(other, "create_segment", "k", body); err != nil || a.replayed || a.data == first.data {
		t.Errorf("another credential: %+v, %v", a, err)
	}
	if a, err := h.send(agent(t.Context()), "save_message_draft", "k", text(draft("1", target(1)))); err != nil || a.replayed {
		t.Errorf("another tool: %+v, %v", a, err)
	}
	if n := h.count(`SELECT count(*) FROM authoring.segments`); n != 2 {
		t.Errorf("%d segments", n)
	}
}

// TestRefusalFreesTheKey judges a retry again, on what is so by then.
func TestRefusalFreesTheKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	input := text(draft("1", target(1)))
	if _, err := h.send(agent(t.Context()), "save_message_draft", "k", input); !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	h.segmentOf()
	if a, err := h.send(agent(t.Context()), "save_message_draft", "k", input); err != nil || a.replayed {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestSessionsAreKilled ends the store's sessions at random moments while the same call is
// sent again and again: it happens once, whole.
func TestSessionsAreKilled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	targets := make([]any, 2000)
	for i := range targets {
		targets[i] = member(i, `{"name":"`+strings.Repeat("x", 200)+`"}`)
	}
	input := text(segment(targets...))
	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() {
		for ctx.Err() == nil {
			_, _ = h.super.Exec(
				ctx,
				`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'hub_authoring' AND datname = current_database() `+
					`AND state <> 'idle' AND query NOT LIKE 'INSERT INTO audit%'`,
			)
			time.Sleep(3 * time.Millisecond)
		}
	})
	failures := 0
	for key := range 12 {
		for tries := 0; ; tries++ {
			if tries == 8 { // a moment of rest, so that the test ends
				stop()
				killer.Wait()
			}
			a, err := h.send(agent(t.Context()), "create_segment", fmt.Sprint(key), input)
			if err == nil {
				if a.count != len(targets) {
					t.Errorf("%+v", a)
				}
				break
			}
			failures++
			if tries > 30 {
				t.Fatal(err)
			}
		}
	}
	stop()
	killer.Wait()
	t.Logf("%d calls failed", failures)
	if got := fmt.Sprint(
		h.count(`SELECT count(*) FROM authoring.segments`),
		h.count(`SELECT count(*) FROM authoring.segment_targets`),
		h.count(`SELECT count(*) FROM authoring.idempotency_keys`),
		h.count(`SELECT count(*) FROM audit.calls WHERE outcome = 'ok' AND tool = 'create_segment'`),
	); got != "12 24000 12 12" {
		t.Errorf("segments, targets, keys, audit rows: %s", got)
	}
}
