package reviewcontrol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.authoring.draft(3, func(d *draftRow) { d.SenderName, d.SenderEmail = new("Kim"), new("kim@shop.example") })
	key := newKey()
	input := fmt.Sprintf(`{"draftId":"%s","actor":"agent 7","note":"look\nclosely"}`, id)
	first, err := h.send(agent(t.Context()), key, input)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`{"draft_id":"%[1]s","id":"%[1]s","status":"in_review","queuedAt":"2026-01-15T09:00:00.000Z","targetCount":3,`+
		`"review_url":"https://hub.example/drafts/%[1]s","from":{"name":"Kim","email":"kim@shop.example"}}`, id); first.data != want ||
		first.count != 3 || first.replayed {
		t.Errorf("%+v, want %s", first, want)
	}
	row := h.authoring.row(id)
	if row.Status != "in_review" || !row.QueuedAt.Equal(h.clock.Now()) {
		t.Errorf("authoring has %s, queued at %v", row.Status, row.QueuedAt)
	}
	r := h.review(id)
	if r.Status != reviewcontrol.InReview || r.Counts != (reviewcontrol.Counts{Pending: 3}) || r.Actor != "agent 7" ||
		r.Note != "look\nclosely" ||
		r.Maker != (reviewcontrol.Maker{CreatedBy: "campaign-agent", ExternalUser: "u1"}) ||
		r.Sender != (mailer.Address{Name: "Kim", Email: "kim@shop.example"}) {
		t.Errorf("%+v", r)
	}
	if n := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'queue_for_review' AND outcome = 'ok' AND credential_id = 'ak_1' `+
		`AND detail ->> 'draft_id' = $1`, id.String()); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	// The same call again is answered without authoring.
	h.authoring.say(errors.New("away"))
	h.clock.Advance(time.Hour)
	again, err := h.send(agent(t.Context()), key, fmt.Sprintf(` { "note":"look\nclosely", "actor":"agent 7","draftId":"%s"}`, id))
	if err != nil || !again.replayed || again.data != first.data || again.count != 3 {
		t.Errorf("%+v, %v", again, err)
	}
	h.authoring.say(nil)
	_, err = h.send(agent(t.Context()), key, queueing(id))
	wants(t, err, fault.Idempotency)
	// Another call finds it queued.
	_, err = h.send(agent(t.Context()), newKey(), input)
	wants(t, err, fault.Conflict)
	if d := details(t, err); d["from"] != "in_review" || d["to"] != "in_review" {
		t.Errorf("%v", d)
	}
	for _, unknown := range []string{"999", "x", "01", ""} {
		_, err = h.send(agent(t.Context()), newKey(), fmt.Sprintf(`{"draftId":"%s"}`, unknown))
		wants(t, err, fault.NotFound)
	}
	for _, bad := range []string{`{"draftId":"1","actor":"a\nb"}`, `{"draftId":"1","actor":"a\u2028b"}`,
		`{"draftId":"1","actor":"a\u202eb"}`, `{"draftId":"1","note":"a\u0000b"}`, `{"draftId":"1","note":"a\u0085b"}`} {
		_, err = h.send(agent(t.Context()), newKey(), bad)
		wants(t, err, fault.Validation)
	}
	hubtest.Eventually(t, "refusals are recorded", func() bool {
		return one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'queue_for_review' AND outcome <> 'ok'`) == 11
	})
}

func TestQueueFromEveryStatus(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	says := map[reviewcontrol.Status]string{ // what is saved again where mails leave is sent twice
		reviewcontrol.InReview:  "The draft is in_review already: reviewers have it, and list_drafts tells how far they are.",
		reviewcontrol.Approved:  "The draft is approved already: its mails are about to leave. Nothing is to do; list_drafts tells how they go.",
		reviewcontrol.Sent:      "The draft is sent already: its mails have left. Nothing is to do; list_drafts tells how they went.",
		reviewcontrol.Rejected:  "save it again with save_message_draft, and queue that.",
		reviewcontrol.Cancelled: "save it again with save_message_draft, and queue that.",
	}
	for _, status := range reviewcontrol.Statuses()[1:] {
		id := h.authoring.draft(1, func(d *draftRow) { d.Status = string(status) })
		_, err := h.send(agent(t.Context()), newKey(), queueing(id))
		wants(t, err, fault.Conflict)
		if d := details(t, err); d["from"] != string(status) || d["to"] != "in_review" {
			t.Errorf("%s: %v", status, d)
		}
		if message := fault.From(err).Message; !strings.HasSuffix(message, says[status]) || says[status] == "" {
			t.Errorf("%s: %s", status, message)
		}
	}
	if n := one[int](h, `SELECT count(*) FROM review_control.reviews`); n != 0 {
		t.Errorf("%d reviews", n)
	}
}

func TestQueueSuppressed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.authoring.draft(5003) // more than a page of recipients
	for _, email := range []string{"c1-1@PARTNER.example", "C1-5002@partner.example"} {
		if _, err := h.suppressed.Add(signedIn(t.Context(), ada), ada.Email, email, ""); err != nil {
			t.Fatal(err)
		}
	}
	key := newKey()
	_, err := h.send(agent(t.Context()), key, queueing(id))
	wants(t, err, fault.Suppressed)
	b, _ := json.Marshal(details(t, err)["targets"])
	if want := `[{"externalId":501,"index":1,"toEmail":"C1-1@partner.example"},{"externalId":5502,"index":5002,` +
		`"toEmail":"C1-5002@partner.example"}]`; string(b) != want {
		t.Errorf("%s\nwant %s", b, want)
	}
	if row := h.authoring.row(id); row.Status != "draft" || one[int](h, `SELECT count(*) FROM review_control.reviews`) != 0 {
		t.Errorf("the draft is %s", row.Status)
	}
	// A refusal frees the key.
	for _, email := range []string{"c1-1@partner.example", "c1-5002@partner.example"} {
		if err := h.suppressed.Remove(signedIn(t.Context(), ada), ada.Email, email, "asked for it"); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := h.send(agent(t.Context()), key, queueing(id)); err != nil || a.count != 5003 {
		t.Errorf("%+v, %v", a, err)
	}
	if n := one[int](h, `SELECT count(*) FROM review_control.targets WHERE draft_id = 1 AND choice = 'pending'`); n != 5003 {
		t.Errorf("%d targets", n)
	}
}

// TestQueueBreaksOff lets the call end at each point where a crash can end it: the same call
// again, or the job of its intent, brings it to its end.
func TestQueueBreaksOff(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *house, id reviewcontrol.ID, key string){
		"the call again": func(h *house, id reviewcontrol.ID, key string) {
			if a, err := h.send(agent(h.t.Context()), key, queueing(id)); err != nil || a.count != 2 {
				h.t.Errorf("%+v, %v", a, err)
			}
		},
		"the job": func(h *house, id reviewcontrol.ID, _ string) {
			if err := h.queue.Complete(h.t.Context(), id); err != nil {
				h.t.Error(err)
			}
		},
		"the job, by itself": func(h *house, id reviewcontrol.ID, _ string) {
			h.exec(`UPDATE review_control.river_job SET scheduled_at = now() - interval '1 s'`)
			h.run(h.service, "the draft is queued", func() bool { _, err := h.store.Review(context.Background(), id); return err == nil })
		},
	} {
		for _, reached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, authoring reached %v", name, reached), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				id, key := h.authoring.draft(2, func(d *draftRow) { d.targets[1].Repeats = "a mail left with draft 7 a day ago" }), newKey()
				// Authoring changes the status, or does not, and the answer is lost.
				h.authoring.before = func(x transition) {
					if reached {
						h.authoring.change(id, func(d *draftRow) { d.Status, d.QueuedAt = "in_review", x.QueuedAt })
						x.From = []string{"draft"}
						h.authoring.mu.Lock()
						h.authoring.operations[x.OperationID] = x
						h.authoring.mu.Unlock()
					}
					h.authoring.say(fault.New(fault.DB, "away").After(time.Second))
				}
				_, err := h.send(agent(t.Context()), key, queueing(id))
				wants(t, err, fault.DB)
				h.authoring.mu.Lock()
				h.authoring.before, h.authoring.down = nil, nil
				h.authoring.mu.Unlock()
				if _, err := h.store.Review(t.Context(), id); code(err) != fault.NotFound {
					t.Errorf("an intent is not a review: %v", err)
				}
				if n := h.jobs("complete_queue"); n != 1 {
					t.Errorf("%d jobs", n)
				}
				// Meanwhile nobody else gets the draft, and the key has no other use.
				_, err = h.send(agent(t.Context()), newKey(), queueing(id))
				wants(t, err, fault.Conflict)
				_, err = h.send(agent(t.Context()), key, fmt.Sprintf(`{"draftId":"%s","note":"x"}`, id))
				wants(t, err, fault.Idempotency)
				_, err = h.send(agent(t.Context()), key, queueing(h.authoring.draft(2)))
				wants(t, err, fault.Idempotency)
				h.clock.Advance(time.Minute)
				end(h, id, key)
				row := h.authoring.row(id)
				if r := h.review(id); r.Status != reviewcontrol.InReview || row.Status != "in_review" || !row.QueuedAt.Equal(r.QueuedAt) {
					t.Errorf("%+v, authoring %s at %v", r, row.Status, row.QueuedAt)
				}
				a, err := h.send(agent(t.Context()), key, queueing(id))
				if err != nil || !a.replayed || a.count != 2 || !strings.Contains(a.data, `"warnings":[{"rule":"draft.repeated",`) {
					t.Errorf("%+v, %v", a, err)
				}
				if n := one[int](h,
					`SELECT count(*) FROM audit.calls WHERE tool = 'queue_for_review' AND outcome = 'ok' AND credential_id = 'ak_1'`); n != 1 {
					t.Errorf("%d audit rows", n)
				}
			})
		}
	}
}

// TestQueuedAtOnce has another draft for the same recipient be queued between the look and the leap: the answer tells of it, and where
// authoring does not say so any more, of what was known before.
func TestQueuedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const known, news = "a mail left with draft 7 a day ago", "a mail is in draft 9, which is about to leave (in_review)"
	for _, c := range []struct {
		down   error
		target int
		says   string
	}{{nil, 1, news}, {fault.New(fault.DB, "away"), 0, known}} {
		id, key := h.authoring.draft(2, func(d *draftRow) { d.targets[0].Repeats = known }), newKey()
		h.authoring.hook(func(transition) {
			h.authoring.change(id, func(d *draftRow) { d.targets[0].Repeats, d.targets[1].Repeats = "", news })
			h.authoring.mu.Lock()
			defer h.authoring.mu.Unlock()
			h.authoring.asked = func(string) { h.authoring.say(c.down) }
		})
		first, err := h.send(agent(t.Context()), key, queueing(id))
		h.authoring.mu.Lock()
		h.authoring.before, h.authoring.asked, h.authoring.down = nil, nil, nil
		h.authoring.mu.Unlock()
		email := h.authoring.row(id).targets[c.target].ToEmail
		if want := fmt.Sprintf(`1 of 2 targets repeat an earlier mail: target %d (%s: %s)`, c.target, email, c.says); err != nil ||
			!strings.Contains(first.data, want) {
			t.Errorf("%s, %v; want %s", first.data, err, want)
		}
		h.authoring.change(id, func(d *draftRow) { d.targets[1].Repeats = "" })
		if again, err := h.send(agent(t.Context()), key, queueing(id)); err != nil || again.data != first.data {
			t.Errorf("%s, %v; want %s", again.data, err, first.data)
		}
	}
}

// TestQueueRefusedByAuthoring has a person cancel the draft between the look and the leap.
func TestQueueRefusedByAuthoring(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.authoring.draft(2)
	h.authoring.before = func(x transition) {
		h.authoring.mu.Lock()
		h.authoring.before = nil
		h.authoring.mu.Unlock()
		if err := h.service.Cancel(signedIn(context.Background(), ada), ada, id, "no"); err != nil {
			t.Error(err)
		}
	}
	_, err := h.send(agent(t.Context()), newKey(), queueing(id))
	wants(t, err, fault.Conflict)
	if d := details(t, err); d["from"] != "cancelled" || d["to"] != "in_review" {
		t.Errorf("%v", d)
	}
	if n := one[int](h, `SELECT (SELECT count(*) FROM review_control.reviews) + (SELECT count(*) FROM review_control.targets)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if err := h.queue.Complete(t.Context(), id); err != nil { // the job finds nothing to do
		t.Error(err)
	}
}

// TestCancelWhileQueueing has a person come between authoring's word and ours.
func TestCancelWhileQueueing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id, key := h.authoring.draft(2), newKey()
	h.exec(`ALTER TABLE review_control.idempotency_keys ADD CONSTRAINT never CHECK (false) NOT VALID`)
	if _, err := h.send(agent(t.Context()), key, queueing(id)); err == nil {
		t.Fatal("the store let it through")
	}
	err := h.service.Cancel(signedIn(t.Context(), ada), ada, id, "")
	wants(t, err, fault.Conflict)
	if !fault.From(err).Retryable() {
		t.Errorf("%v", err)
	}
	_, err = h.service.Decide(signedIn(t.Context(), ada), ada, id, reviewcontrol.Shown{},
		reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
	wants(t, err, fault.Conflict)
	h.exec(`ALTER TABLE review_control.idempotency_keys DROP CONSTRAINT never`)
	if err := h.queue.Complete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := h.service.Cancel(signedIn(t.Context(), ada), ada, id, ""); err != nil {
		t.Error(err)
	}
}

// TestQueueRaces sends many calls at once: one draft is queued once, whoever wins.
func TestQueueRaces(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, sameKey := range []bool{false, true} {
		id, key := h.authoring.draft(20), newKey()
		var mu sync.Mutex
		outcomes, answers := map[fault.Code]int{}, map[string]int{}
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				k := key
				if !sameKey {
					k = fmt.Sprint(key, "-", i)
				}
				if i == 11 {
					_ = h.queue.Complete(context.Background(), id)
					return
				}
				a, err := h.send(agent(t.Context()), k, queueing(id))
				mu.Lock()
				defer mu.Unlock()
				outcomes[code(err)]++
				if err == nil {
					answers[a.data]++
				}
			})
		}
		wg.Wait()
		if wins := outcomes[""]; wins+outcomes[fault.Conflict] != 11 || len(answers) != 1 || sameKey && wins != 11 || !sameKey && wins != 1 {
			t.Errorf("same key %v: %v, %v", sameKey, outcomes, answers)
		}
		if r := h.review(id); r.Counts.Pending != 20 || r.Status != reviewcontrol.InReview || h.authoring.row(id).Status != "in_review" {
			t.Errorf("%+v", r)
		}
	}
}

// TestQueueSentTwiceAtOnce has the same call come in between: both have its answer, though
// the later one finds the draft taken.
func TestQueueSentTwiceAtOnce(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"get", "recipients"} {
		for _, brokenOff := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, broken off %v", moment, brokenOff), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				id, key := h.authoring.draft(2), newKey()
				var other reply
				var otherErr error
				h.authoring.asked = func(what string) {
					if what != moment {
						return
					}
					h.authoring.mu.Lock()
					h.authoring.asked = nil
					h.authoring.mu.Unlock()
					if brokenOff {
						h.exec(`ALTER TABLE review_control.idempotency_keys ADD CONSTRAINT never CHECK (false) NOT VALID`)
						defer h.exec(`ALTER TABLE review_control.idempotency_keys DROP CONSTRAINT never`)
					}
					other, otherErr = h.send(agent(context.Background()), key, queueing(id))
				}
				a, err := h.send(agent(t.Context()), key, queueing(id))
				if err != nil || a.count != 2 || a.replayed == brokenOff || (otherErr != nil) != brokenOff || !brokenOff && a.data != other.data {
					t.Errorf("%+v, %v; the other %+v, %v", a, err, other, otherErr)
				}
				// The key used for something else is told so at the same place.
				id, key = h.authoring.draft(2), newKey()
				h.authoring.asked = func(string) {
					h.authoring.mu.Lock()
					h.authoring.asked = nil
					h.authoring.mu.Unlock()
					if _, err := h.send(agent(context.Background()), key, queueing(id)); err != nil {
						t.Error(err)
					}
				}
				_, err = h.send(agent(t.Context()), key, fmt.Sprintf(`{"draftId":"%s","note":"x"}`, id))
				wants(t, err, fault.Idempotency)
			})
		}
	}
}

// TestOneKeyTwoDrafts has one key used for two drafts at once: one of them is queued, the
// other is as it was.
func TestOneKeyTwoDrafts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 10 {
		ids, key := [2]reviewcontrol.ID{h.authoring.draft(1), h.authoring.draft(1)}, newKey()
		var errs [2]error
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() { _, errs[i] = h.send(agent(t.Context()), key, queueing(id)) })
		}
		wg.Wait()
		won := 0
		for i, id := range ids {
			row := h.authoring.row(id)
			if errs[i] == nil {
				won++
			} else if code(errs[i]) != fault.Idempotency || row.Status != "draft" {
				t.Errorf("%v, and the draft is %s", errs[i], row.Status)
			}
			if (errs[i] == nil) != (row.Status == "in_review") {
				t.Errorf("%v, and the draft is %s", errs[i], row.Status)
			}
		}
		if won != 1 {
			t.Errorf("%v", errs)
		}
	}
}

func TestAgentsDecideNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(1)
	shown := []reviewcontrol.Shown{h.shown(id, 0)}
	for _, kind := range []string{caller.Key, caller.App, caller.Service, caller.Visitor, ""} {
		ctx := caller.With(t.Context(), caller.Caller{Kind: kind, HubUser: ada.ID, Roles: []string{"reviewer", "admin"},
			Scopes: []string{"control", "admin:write"}})
		_, decided := h.service.Decide(ctx, ada, id, shown[0], reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
		_, _, approved := h.service.ApproveShown(ctx, ada, id, shown)
		_, added := h.suppressed.Add(ctx, ada.Email, "x@y.example", "")
		_, imported := h.suppressed.StartImport(ctx, ada.Email, "x", "", []byte("x@y.example"))
		for what, err := range map[string]error{"decide": decided, "approve": approved, "cancel": h.service.Cancel(ctx, ada, id, ""),
			"cancel a draft": h.service.Cancel(ctx, ada, h.authoring.draft(1), ""),
			"suppress":       added, "unsuppress": h.suppressed.Remove(ctx, ada.Email, "x@y.example", "why"), "import": imported} {
			if code(err) != fault.Scope {
				t.Errorf("%q may %s: %v", kind, what, err)
			}
		}
	}
	if r := h.review(id); r.Counts.Pending != 1 || r.Status != reviewcontrol.InReview {
		t.Errorf("%+v", r)
	}
}
