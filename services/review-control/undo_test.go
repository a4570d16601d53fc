package reviewcontrol_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/fault"
	reviewcontrol "hub.internal/services/review-control"
)

func (h *house) undo(by reviewcontrol.Reviewer, id reviewcontrol.ID, action int) (int, reviewcontrol.Review, error) {
	return h.service.Undo(signedIn(h.t.Context(), by), by, id, action)
}

// TestUndoBringsBackWhatHeldBefore: choice, note, reason, content and who had decided.
func TestUndoBringsBackWhatHeldBefore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(3)
	ctx := signedIn(t.Context(), ben)
	first := h.shown(id, 0)
	if _, err := h.service.Decide(ctx, ben, id, first,
		reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Reason: reviewcontrol.WrongTone, Note: "rude"}); err != nil {
		t.Fatal(err)
	}
	before := h.target(id, 0).Decision
	h.decide(id, 0, reviewcontrol.Approve) // Ada, on what Ben has rejected
	if a, found, err := h.store.LastAction(t.Context(), id, ada.Email); err != nil || !found ||
		a != (reviewcontrol.Action{Number: 2, Targets: 1, Choice: reviewcontrol.Approve}) {
		t.Fatalf("%+v, %t, %v", a, found, err)
	}
	if _, _, err := h.undo(ben, id, 2); code(err) != fault.Scope {
		t.Errorf("another reviewer undoes it: %v", err)
	}
	if _, _, err := h.undo(ben, id, 1); code(err) != fault.Conflict {
		t.Errorf("an action that was decided over is undone: %v", err)
	}
	n, r, err := h.undo(ada, id, 2)
	after := h.target(id, 0).Decision
	if err != nil || n != 1 || r.Counts != (reviewcontrol.Counts{Pending: 2, Rejected: 1}) || after.Revision != before.Revision+2 {
		t.Fatalf("%d, %+v, %v, %+v", n, r, err, after)
	}
	after.Revision = before.Revision
	if !after.At.Equal(*before.At) {
		t.Errorf("it was decided at %s, and is at %s", before.At, after.At)
	}
	after.At = before.At
	if after != before {
		t.Errorf("got %+v\nwant %+v", after, before)
	}
	if _, found, err := h.store.LastAction(t.Context(), id, ada.Email); err != nil || found {
		t.Errorf("something is left to undo for Ada: %v", err)
	}
	if n, _, err = h.undo(ben, id, 1); err != nil || n != 1 || h.target(id, 0).Decision.Choice != reviewcontrol.Pending {
		t.Errorf("%d, %v, %+v", n, err, h.target(id, 0).Decision)
	}
	_, err = h.service.Decide(ctx, ben, id, first, reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
	if code(err) != fault.Conflict || !strings.HasPrefix(fault.From(err).Message, "What was decided on this mail has been undone") {
		t.Errorf("from a page before all that: %v", err)
	}
	history, err := h.service.History(t.Context(), id, 0)
	if err != nil || len(history) != 4 || history[0].UndoneBy != ben.Email || history[1].UndoneBy != ada.Email ||
		history[1].Reason != reviewcontrol.WrongTone {
		t.Errorf("%+v, %v", history, err)
	}
	if n := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'review.undo' AND outcome = 'ok' AND detail ->> 'draft_id' = $1`,
		id.String()); n != 2 {
		t.Errorf("%d audit rows", n)
	}
}

// TestUndoOfTheLastDecision brings the draft back, also at authoring, as often as it is wanted; by whoever may
// decide on it, since somebody has to be able to stop what is about to leave.
func TestUndoOfTheLastDecision(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) { c.SendDelay = 30 * time.Second })
	id := h.authoring.draft(3, func(d *draftRow) { d.CreatedBy = new("Cleo") })
	if _, err := h.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	queuedAt := h.authoring.row(id).QueuedAt
	h.decide(id, 0, reviewcontrol.Reject)
	for round := range 3 {
		if _, _, err := h.service.ApproveShown(signedIn(t.Context(), ada), ada, id,
			[]reviewcontrol.Shown{h.shown(id, 1), h.shown(id, 2)}); err != nil {
			t.Fatal(err)
		}
		r := h.review(id)
		if r.Status != reviewcontrol.Approved || !r.LeavesAt.Equal(h.clock.Now().Add(30*time.Second).Truncate(time.Millisecond)) {
			t.Fatalf("%+v", r)
		}
		if wait, err := h.service.Finish(t.Context(), id); err != nil || wait <= 29*time.Second || h.jobs("deliver") != [3]int{0, 0, 2}[round] {
			t.Fatalf("mails are lined up %s before they may leave: %v", wait, err)
		}
		if round == 1 { // also when they wait for their hand-over already
			h.clock.Advance(30 * time.Second)
			if wait, err := h.service.Finish(t.Context(), id); err != nil || wait != 0 || h.jobs("deliver") != 2 {
				t.Fatalf("%s, %v", wait, err)
			}
		}
		if err := h.service.Sync(t.Context(), id); err != nil || h.authoring.row(id).Status != "approved" {
			t.Fatalf("%v, %s", err, h.authoring.row(id).Status)
		}
		if _, _, err := h.undo(ben, id, r.Actions-1); code(err) != fault.Conflict && code(err) != fault.NotFound {
			t.Errorf("an earlier action brings the draft back: %v", err)
		}
		n, r, err := h.undo(ben, id, r.Actions)
		if err != nil || n != 2 || r.Status != reviewcontrol.InReview || r.Counts != (reviewcontrol.Counts{Pending: 2, Rejected: 1}) ||
			r.LeavesAt != nil || r.ClosedAt != nil {
			t.Fatalf("%d, %+v, %v", n, r, err)
		}
		if err := h.service.Sync(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if row := h.authoring.row(id); row.Status != "in_review" || !row.QueuedAt.Equal(*queuedAt) || row.Decisions["approved"] != 0 {
			t.Fatalf("authoring has %+v", row)
		}
		for i := 1; i < 3; i++ {
			h.deliver(id, i) // of jobs that were on their way
		}
		if x := h.target(id, 1); len(h.sender.mails()) != 0 || x.Delivery.State != reviewcontrol.NotDue {
			t.Fatalf("%d mails left, %+v", len(h.sender.mails()), x)
		}
	}
	h.decide(id, 1, reviewcontrol.Approve)
	h.decide(id, 2, reviewcontrol.Approve)
	h.clock.Advance(31 * time.Second)
	if wait, err := h.service.Finish(t.Context(), id); err != nil || wait != 0 {
		t.Fatalf("%s, %v", wait, err)
	}
	h.deliver(id, 1)
	if _, _, err := h.undo(ada, id, h.review(id).Actions); code(err) != fault.Conflict ||
		!strings.Contains(err.Error(), "being sent already") {
		t.Errorf("undone after a mail has left: %v", err)
	}
	h.deliver(id, 2)
	if mails := h.sender.mails(); len(mails) != 2 {
		t.Errorf("%d mails left", len(mails))
	}
}

// TestTheLinkOutlivesAnUndo: a mail that is approved anew while it is handed over leaves with the link that it was made with, and that
// unsubscribes.
func TestTheLinkOutlivesAnUndo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(1)
	before := h.target(id, 0).Token
	if _, _, err := h.undo(ada, id, h.review(id).Actions); err != nil {
		t.Fatal(err)
	}
	h.decide(id, 0, reviewcontrol.Approve)
	if _, err := h.service.Finish(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if after := h.target(id, 0).Token; len(before) != 16 || !bytes.Equal(before, after) {
		t.Errorf("%x became %x", before, after)
	}
}

// TestHowLongItCanBeUndone: the page says in how many milliseconds the first mail leaves, and so does each part that it asks for: the
// clock of the reader's computer tells nothing of it.
func TestHowLongItCanBeUndone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(c *reviewcontrol.Config) { c.SendDelay = 30 * time.Second })
	id := o.queued(1)
	o.decide(id, 0, reviewcontrol.Approve)
	path := "/drafts/" + id.String()
	part := func() string {
		return o.send(asAda, "GET", path+"/progress", "", "", "HX-Request", "true").Body.String()
	}
	has(t, o.get(path), `data-countdown="30000"`)
	o.clock.Advance(12*time.Second + 500*time.Millisecond)
	has(t, part(), `data-countdown="17500"`)
	o.clock.Advance(time.Minute)
	has(t, part(), `data-countdown="0"`)
}

// TestAuthoringComesToTheStatusOfTheReview whatever was decided, undone and delivered between two times that it was told, and
// however often it is told the same.
func TestAuthoringComesToTheStatusOfTheReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := signedIn(t.Context(), ada)
	acts := map[rune]func(reviewcontrol.ID) error{
		'a': func(id reviewcontrol.ID) error { // approve
			_, _, err := h.service.ApproveShown(ctx, ada, id, []reviewcontrol.Shown{h.shown(id, 0)})
			return err
		},
		'r': func(id reviewcontrol.ID) error { // reject
			_, err := h.service.RejectFound(ctx, ada, id, reviewcontrol.TargetFilter{}, 1, reviewcontrol.Judgement{})
			return err
		},
		'u': func(id reviewcontrol.ID) error { // undo
			_, _, err := h.undo(ada, id, h.review(id).Actions)
			return err
		},
		'd': func(id reviewcontrol.ID) error { // deliver
			if _, err := h.service.Finish(ctx, id); err != nil {
				return err
			}
			_, err := h.service.Deliver(ctx, id, 0)
			return err
		},
		'c': func(id reviewcontrol.ID) error { return h.service.Cancel(ctx, ada, id, "") },
		's': func(id reviewcontrol.ID) error { return h.service.Sync(ctx, id) },
	}
	play := func(t interface{ Fatalf(string, ...any) }, order string) {
		id := h.queued(1)
		for at, act := range order + "sss" {
			err := acts[act](id)
			if refused := code(err) == fault.Conflict || code(err) == fault.NotFound; err != nil && (act == 's' || !refused) {
				t.Fatalf("%s, act %d: %v; the review is %s, authoring has %s", order, at, err, h.review(id).Status, h.authoring.row(id).Status)
			}
			if at >= len(order) && h.authoring.row(id).Status != string(h.review(id).Status) {
				t.Fatalf("%s: the review is %s, authoring has %s", order, h.review(id).Status, h.authoring.row(id).Status)
			}
		}
	}
	for _, order := range []string{"asur", "asuad", "asuasd", "asua", "asuc", "asuaur", "asusasur", "ad", "r"} {
		play(t, order)
	}
	rapid.Check(t, func(rt *rapid.T) {
		play(rt, rapid.StringOfN(rapid.RuneFrom([]rune("aasuurdc")), 1, 12, -1).Draw(rt, "order"))
	})
}

// TestUndoIsNotForEverybody: neither for agents nor for who made the draft.
func TestUndoIsNotForEverybody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(1)
	h.decide(id, 0, reviewcontrol.Approve)
	if _, _, err := h.service.Undo(agent(t.Context()), ada, id, 1); code(err) != fault.Scope {
		t.Errorf("an agent: %v", err)
	}
	own := h.authoring.draft(1, func(d *draftRow) { d.CreatedBy = new(ben.Email) })
	if _, err := h.send(agent(t.Context()), newKey(), queueing(own)); err != nil {
		t.Fatal(err)
	}
	h.decide(own, 0, reviewcontrol.Approve)
	if _, _, err := h.undo(ben, own, 1); code(err) != fault.Scope {
		t.Errorf("who made it: %v", err)
	}
	for _, action := range []int{-1, 0, 2, 1 << 40} {
		if _, _, err := h.undo(ada, id, action); code(err) != fault.NotFound {
			t.Errorf("action %d: %v", action, err)
		}
	}
	if _, _, err := h.undo(ada, h.authoring.draft(1), 1); code(err) != fault.Conflict {
		t.Errorf("not queued: %v", err)
	}
}

// TestUndoBesideAnEarlierRelease: which decides without an action, and leaves that of the row as it was.
func TestUndoBesideAnEarlierRelease(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(2)
	h.decide(id, 0, reviewcontrol.Approve)
	h.exec(`UPDATE review_control.targets SET choice = 'rejected', revision = 2, decided_by = 'old@hub.example' WHERE draft_id = $1 `+
		`AND position = 0`, int64(id))
	h.exec(`INSERT INTO review_control.decisions (draft_id, position, revision, choice, by, at, note, content_hash) VALUES ($1, 0, 2, `+
		`'rejected', 'old@hub.example', now(), '', '')`, int64(id))
	if _, _, err := h.undo(ada, id, 1); code(err) != fault.Conflict {
		t.Errorf("what the earlier release decided is undone: %v", err)
	}
}

// TestReasons: a rejection may have one of the reasons, and nothing else has any.
func TestReasons(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(2)
	ctx := signedIn(t.Context(), ada)
	decide := func(j reviewcontrol.Judgement) error {
		_, err := h.service.Decide(ctx, ada, id, h.shown(id, 0), j)
		return err
	}
	wants(t, decide(reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Reason: "no"}), fault.Validation)
	for _, reason := range reviewcontrol.Reasons() {
		if err := decide(reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Reason: reason}); err != nil ||
			h.target(id, 0).Decision.Reason != reason {
			t.Errorf("%s: %v, %+v", reason, err, h.target(id, 0).Decision)
		}
	}
	if err := decide(reviewcontrol.Judgement{Choice: reviewcontrol.Approve, Reason: reviewcontrol.WrongTone}); err != nil ||
		h.target(id, 0).Decision.Reason != "" {
		t.Errorf("%v, %+v", err, h.target(id, 0).Decision)
	}
	if n := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'review.decide' AND detail ->> 'reason' = 'tone'`); n != 1 {
		t.Errorf("%d audit rows with the reason", n)
	}
}

// TestAuthoringHearsWhyMailsAreRejected with each change, and as it is after an undo.
func TestAuthoringHearsWhyMailsAreRejected(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(5)
	ctx := signedIn(t.Context(), ada)
	judge := func(index int, j reviewcontrol.Judgement) {
		t.Helper()
		if _, err := h.service.Decide(ctx, ada, id, h.shown(id, index), j); err != nil {
			t.Fatal(err)
		}
	}
	heard := func(want string) {
		t.Helper()
		if err := h.service.Sync(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(h.authoring.row(id).rejections); got != "map["+want+"]" {
			t.Errorf("authoring has heard of %s, want %s", got, want)
		}
	}
	heard("")
	judge(0, reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Reason: reviewcontrol.WrongTone})
	judge(1, reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Reason: reviewcontrol.WrongTone})
	judge(2, reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Reason: reviewcontrol.WrongTime})
	judge(3, reviewcontrol.Judgement{Choice: reviewcontrol.Reject})
	heard("timing:1 tone:2")
	judge(1, reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Reason: reviewcontrol.WrongContent}) // another reason
	heard("content:1 timing:1 tone:1")
	judge(0, reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
	heard("content:1 timing:1")
	for _, want := range []string{"content:1 timing:1 tone:1", "timing:1 tone:2"} {
		if _, _, err := h.undo(ada, id, h.lastAction(id)); err != nil {
			t.Fatal(err)
		}
		heard(want)
	}
}

// TestAuthoringHearsWhichMailsAreRejected as whoever writes them again needs it: whose they are, and the reviewer's words.
func TestAuthoringHearsWhichMailsAreRejected(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(4)
	ctx := signedIn(t.Context(), ada)
	judge := func(index int, note string, reason reviewcontrol.Reason) {
		t.Helper()
		j := reviewcontrol.Judgement{Choice: reviewcontrol.Reject, Note: note, Reason: reason}
		if _, err := h.service.Decide(ctx, ada, id, h.shown(id, index), j); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(time.Second)
	}
	heard := func() (list string) {
		t.Helper()
		if err := h.service.Sync(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for _, r := range h.authoring.row(id).rejected {
			target := h.target(id, r.Index)
			if r.ExternalID != target.ExternalID || r.ToEmail != target.ToEmail || !r.DecidedAt.Equal(*target.Decision.At) ||
				r.Subject != target.Inspection.Subject {
				t.Errorf("authoring has heard %+v of %+v", r, target)
			}
			list += fmt.Sprintf("%d %s %q; ", r.Index, r.Reason, r.Note)
		}
		return list
	}
	if got := heard(); got != "" {
		t.Error(got)
	}
	if err := h.service.Inspect(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	judge(2, "Mention the new line,\nnot the old one.", reviewcontrol.WrongContent)
	judge(0, "", "")
	if got := heard(); got != `0  ""; 2 content "Mention the new line,\nnot the old one."; ` {
		t.Error(got)
	}
	if h.authoring.row(id).rejected[1].Subject == "" {
		t.Error("the subject of what was looked through is not told")
	}
	if _, _, err := h.undo(ada, id, h.lastAction(id)); err != nil {
		t.Fatal(err)
	}
	if got := heard(); got != `2 content "Mention the new line,\nnot the old one."; ` {
		t.Errorf("after an undo %s", got)
	}
}

func (h *house) lastAction(id reviewcontrol.ID) int {
	h.t.Helper()
	a, found, err := h.store.LastAction(h.t.Context(), id, ada.Email)
	if err != nil || !found {
		h.t.Fatalf("%t, %v", found, err)
	}
	return a.Number
}
