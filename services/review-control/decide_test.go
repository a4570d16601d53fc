package reviewcontrol_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	reviewcontrol "hub.internal/services/review-control"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(3)
	decide := func(by reviewcontrol.Reviewer, shown reviewcontrol.Shown, choice reviewcontrol.Choice, note string) (reviewcontrol.Review,
		error) {
		return h.service.Decide(signedIn(t.Context(), by), by, id, shown, reviewcontrol.Judgement{Choice: choice, Note: note})
	}
	fresh := h.shown(id, 0)
	r, err := decide(ada, fresh, reviewcontrol.Approve, " looks\r\ngood ")
	if err != nil || r.Status != reviewcontrol.InReview || r.Counts != (reviewcontrol.Counts{Pending: 2, Approved: 1}) {
		t.Fatalf("%+v, %v", r, err)
	}
	d := h.target(id, 0).Decision
	if d.Choice != reviewcontrol.Approve || d.By != ada.Email || !d.At.Equal(h.clock.Now()) || d.Note != "looks\ngood" ||
		d.Hash != fresh.Hash || d.Revision != 1 {
		t.Errorf("%+v", d)
	}
	// The same again, by whoever and from however old a page, is the same.
	for _, by := range []reviewcontrol.Reviewer{ada, ben} {
		again, err := decide(by, fresh, reviewcontrol.Approve, "")
		if err != nil || again.Counts != r.Counts || again.Version != r.Version {
			t.Errorf("%+v, %v", again, err)
		}
	}
	if got := h.target(id, 0).Decision; got.Revision != 1 || got.By != ada.Email {
		t.Errorf("%+v", got)
	}
	// Another choice needs to have seen the one that is there.
	_, err = decide(ben, fresh, reviewcontrol.Reject, "")
	wants(t, err, fault.Conflict)
	if message := err.Error(); !strings.Contains(message, ada.Email) || !strings.Contains(message, "approved") {
		t.Error(message)
	}
	h.clock.Advance(time.Minute)
	if r, err = decide(ben, h.shown(id, 0), reviewcontrol.Reject, "no"); err != nil ||
		r.Counts != (reviewcontrol.Counts{Pending: 2, Rejected: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	// Another note on the same choice is kept, from however old a page.
	if _, err = decide(ben, fresh, reviewcontrol.Reject, "no, and why"); err != nil {
		t.Error(err)
	}
	history, err := h.service.History(t.Context(), id, 0)
	if err != nil || len(history) != 3 || history[0].Note != "no, and why" || history[0].Revision != 3 || history[2].By != ada.Email ||
		history[2].Choice != reviewcontrol.Approve {
		t.Errorf("%+v, %v", history, err)
	}
	// What cannot be decided.
	shown := h.shown(id, 1)
	for name, c := range map[string]struct {
		shown  reviewcontrol.Shown
		choice reviewcontrol.Choice
		note   string
		want   fault.Code
	}{
		"another mail":  {reviewcontrol.Shown{Index: 1, Hash: strings.Repeat("0", 64)}, reviewcontrol.Approve, "", fault.Conflict},
		"no hash":       {reviewcontrol.Shown{Index: 1}, reviewcontrol.Approve, "", fault.Conflict},
		"no choice":     {shown, reviewcontrol.Pending, "", fault.Validation},
		"a long note":   {shown, reviewcontrol.Approve, strings.Repeat("ä", 2001), fault.Validation},
		"a null note":   {shown, reviewcontrol.Approve, "a\x00", fault.Validation},
		"a broken note": {shown, reviewcontrol.Approve, "\xff", fault.Validation},
		"no target":     {reviewcontrol.Shown{Index: 3, Hash: shown.Hash}, reviewcontrol.Approve, "", fault.NotFound},
		"below all":     {reviewcontrol.Shown{Index: -1, Hash: shown.Hash}, reviewcontrol.Approve, "", fault.NotFound},
	} {
		if _, err := decide(ada, c.shown, c.choice, c.note); code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decide(ada, shown, reviewcontrol.Approve, strings.Repeat("ä", 2000)); err != nil {
		t.Error(err)
	}
	// A draft that authoring has and nobody queued, and one that nobody has.
	_, err = h.service.Decide(signedIn(t.Context(), ada), ada, h.authoring.draft(1), shown,
		reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
	wants(t, err, fault.Conflict)
	_, err = h.service.Decide(signedIn(t.Context(), ada), ada, 999, shown, reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
	wants(t, err, fault.NotFound)
	if n := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'review.decide' AND request_id = 'req_2' `+
		`AND external_user_id IN ('usr_ada', 'usr_ben') AND detail ->> 'draft_id' = $1`, id.String()); n != 6 {
		t.Errorf("%d audit rows", n)
	}
}

func TestFourEyes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, change := range map[string]func(*draftRow){
		"the label":      func(d *draftRow) { d.CreatedBy = new(" ADA@hub.example") },
		"the name":       func(d *draftRow) { d.CreatedBy = new("ada") },
		"the user":       func(d *draftRow) { d.Origin["hub_user"] = ada.ID },
		"the agent's":    func(d *draftRow) { d.Origin["external_user_id"] = ada.Email },
		"the agent's id": func(d *draftRow) { d.Origin["external_user_id"] = ada.ID },
	} {
		id := h.authoring.draft(1, change)
		if _, err := h.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
			t.Fatal(err)
		}
		shown := h.shown(id, 0)
		for _, choice := range []reviewcontrol.Choice{reviewcontrol.Approve, reviewcontrol.Reject} {
			if _, err := h.service.Decide(signedIn(t.Context(), ada), ada, id, shown,
				reviewcontrol.Judgement{Choice: choice}); code(err) != fault.Scope {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, _, err := h.service.ApproveShown(signedIn(t.Context(), ada), ada, id, []reviewcontrol.Shown{shown}); code(err) != fault.Scope {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := h.service.Decide(signedIn(t.Context(), ben), ben, id, shown,
			reviewcontrol.Judgement{Choice: reviewcontrol.Approve}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestApproveShown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(102)
	h.decide(id, 1, reviewcontrol.Reject)
	approve := func(indexes ...int) (int, reviewcontrol.Review, error) {
		shown := make([]reviewcontrol.Shown, len(indexes))
		for i, index := range indexes {
			shown[i] = h.shown(id, index)
		}
		return h.service.ApproveShown(signedIn(t.Context(), ben), ben, id, shown)
	}
	if n, r, err := approve(2, 0, 1, 3); err != nil || n != 3 || r.Counts != (reviewcontrol.Counts{Pending: 98, Approved: 3, Rejected: 1}) {
		t.Errorf("%d, %+v, %v", n, r, err)
	}
	if n, _, err := approve(0, 2); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if d := h.target(id, 1).Decision; d.Choice != reviewcontrol.Reject || d.By != ada.Email {
		t.Errorf("%+v", d)
	}
	_, _, err := approve(5, 5)
	wants(t, err, fault.Validation)
	_, _, err = h.service.ApproveShown(signedIn(t.Context(), ben), ben, id, nil)
	wants(t, err, fault.Validation)
	all := make([]reviewcontrol.Shown, 101)
	for i := range all {
		all[i] = h.shown(id, i)
	}
	_, _, err = h.service.ApproveShown(signedIn(t.Context(), ben), ben, id, all)
	wants(t, err, fault.Validation)
	_, _, err = h.service.ApproveShown(signedIn(t.Context(), ben), ben, id, []reviewcontrol.Shown{h.shown(id, 6), {Index: 7, Hash: "x"}})
	wants(t, err, fault.Conflict)
	if r := h.review(id); r.Counts.Approved != 3 { // all or none
		t.Errorf("%+v", r)
	}
	var rest []int
	for i := 4; i < 102; i++ {
		rest = append(rest, i)
	}
	n, r, err := approve(rest...)
	if err != nil || n != 98 || r.Status != reviewcontrol.Approved || r.ClosedBy != ben.Email || r.ClosedAt == nil {
		t.Errorf("%d, %+v, %v", n, r, err)
	}
	if n, _, err := approve(rest...); err != nil || n != 0 { // a second click
		t.Errorf("%d, %v", n, err)
	}
}

// TestApproveShownBesideAnUndo: a mail with a flag that somebody had approved by itself, and takes back while the others are looked at,
// is not approved among them.
func TestApproveShownBesideAnUndo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.inspected(3, func(d *draftRow) { d.targets[0].Snapshot = nil })
	h.decide(id, 0, reviewcontrol.Approve)
	shown := []reviewcontrol.Shown{h.shown(id, 0), h.shown(id, 1)}
	h.authoring.asked = func(what string) {
		h.authoring.asked = nil
		if _, _, err := h.undo(ada, id, 1); err != nil || what != "mails" {
			t.Errorf("%s: %v", what, err)
		}
	}
	n, r, err := h.service.ApproveShown(signedIn(t.Context(), ben), ben, id, shown)
	if err != nil || n != 1 || r.Counts != (reviewcontrol.Counts{Pending: 2, Approved: 1}) {
		t.Errorf("%d, %+v, %v", n, r.Counts, err)
	}
	if d := h.target(id, 0).Decision; d.Choice != reviewcontrol.Pending {
		t.Errorf("%+v", d)
	}
}

// TestReviewersRace has two reviewers decide on everything at once, each from what they saw
// at the start: what is counted is what is there, whoever won.
func TestReviewersRace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const targets = 12
	id := h.queued(targets)
	shown := make([]reviewcontrol.Shown, targets)
	for i := range shown {
		shown[i] = h.shown(id, i)
	}
	var wg sync.WaitGroup
	for i, by := range []reviewcontrol.Reviewer{ada, ben} {
		choice := []reviewcontrol.Choice{reviewcontrol.Approve, reviewcontrol.Reject}[i]
		for _, x := range shown {
			wg.Go(func() {
				_, err := h.service.Decide(signedIn(context.Background(), by), by, id, x, reviewcontrol.Judgement{Choice: choice})
				if err != nil && code(err) != fault.Conflict {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	r := h.review(id)
	approved := one[int](h, `SELECT count(*) FROM review_control.targets WHERE draft_id = $1 AND choice = 'approved'`, int64(id))
	want := reviewcontrol.Counts{Approved: approved, Rejected: targets - approved}
	if r.Counts != want || r.Status != reviewcontrol.Approved && approved > 0 || r.Status != reviewcontrol.Rejected && approved == 0 {
		t.Errorf("%+v, want %+v", r, want)
	}
	if n := one[int](h, `SELECT count(*) FROM review_control.decisions WHERE draft_id = $1`, int64(id)); n != targets {
		t.Errorf("%d decisions", n)
	}
	if n := h.jobs("finish_review"); n != min(approved, 1) {
		t.Errorf("%d jobs to finish it", n)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cancel := func(id reviewcontrol.ID) error {
		return h.service.Cancel(signedIn(t.Context(), ben), ben, id, "not now")
	}
	drafted, inReview, approved, attempted := h.authoring.draft(1), h.queued(2), h.approved(2), h.approved(2)
	for _, id := range []reviewcontrol.ID{drafted, inReview, approved} {
		if err := cancel(id); err != nil {
			t.Errorf("draft %s: %v", id, err)
		}
		if id != drafted {
			if err := h.service.Sync(t.Context(), id); err != nil {
				t.Error(err)
			}
			if r := h.review(id); r.Status != reviewcontrol.Cancelled || r.ClosedBy != ben.Email || r.ClosedAt == nil {
				t.Errorf("%+v", r)
			}
		}
		if s := h.authoring.row(id).Status; s != "cancelled" {
			t.Errorf("draft %s is %s", id, s)
		}
	}
	if again := h.deliver(approved, 0); again != 0 || len(h.sender.mails()) != 0 ||
		h.target(approved, 0).Delivery.State != reviewcontrol.NotDue {
		t.Errorf("%+v", h.target(approved, 0))
	}
	h.deliver(attempted, 0)
	wants(t, cancel(attempted), fault.Conflict)
	for _, cancelled := range []reviewcontrol.ID{drafted, inReview, approved} {
		if d := details(t, cancel(cancelled)); d["from"] != "cancelled" || d["to"] != "cancelled" {
			t.Errorf("draft %s: %v", cancelled, d)
		}
	}
	wants(t, cancel(999), fault.NotFound)
	if d := details(t, cancel(attempted)); d["from"] != "approved" || d["to"] != "cancelled" {
		t.Errorf("%v", d)
	}
	if from := one[string](h, `SELECT string_agg(detail ->> 'from', ' ' ORDER BY detail ->> 'from') FROM audit.calls `+
		`WHERE tool = 'review.cancel' AND detail ->> 'note' = 'not now'`); from != "approved draft in_review" {
		t.Errorf("cancelled from %s", from)
	}
}

// TestCancelThatBreaksOff: a draft that nobody has queued is cancelled at authoring, and the store is gone before the audit row is there.
// The same wish again, whoever has it, puts the row of the first into the log, once.
func TestCancelThatBreaksOff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.authoring.draft(1)
	h.authoring.hook(func(transition) {
		h.exec(`REVOKE DELETE ON review_control.cancellations FROM hub_review_control`)
	})
	err := h.service.Cancel(signedIn(t.Context(), ben), ben, id, "not now")
	if err == nil || h.authoring.row(id).Status != "cancelled" {
		t.Fatalf("%v, authoring %s", err, h.authoring.row(id).Status)
	}
	h.authoring.hook(nil)
	h.exec(`GRANT DELETE ON review_control.cancellations TO hub_review_control`)
	if err := h.service.Cancel(signedIn(t.Context(), ada), ada, id, "me too"); err != nil {
		t.Error(err)
	}
	if d := details(t, h.service.Cancel(signedIn(t.Context(), ada), ada, id, "me too")); d["from"] != "cancelled" {
		t.Errorf("%v", d)
	}
	rows := one[string](h, `SELECT string_agg(external_user_id || detail::text, ' ') FROM audit.calls WHERE tool = 'review.cancel'`)
	if rows != `usr_ben{"from": "draft", "note": "not now", "draft_id": "1"}` {
		t.Error(rows)
	}
}

// TestCancelRacesWithTheFirstMail settles it one way: cancelled with nothing sent, or sent.
func TestCancelRacesWithTheFirstMail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 15 {
		id := h.approved(1)
		before := len(h.sender.mails())
		var cancelled error
		var wg sync.WaitGroup
		wg.Go(func() { cancelled = h.service.Cancel(signedIn(context.Background(), ben), ben, id, "") })
		wg.Go(func() { h.deliver(id, 0) })
		wg.Wait()
		sent := len(h.sender.mails()) - before
		r := h.review(id)
		if (cancelled == nil) != (sent == 0) || (cancelled == nil) != (r.Status == reviewcontrol.Cancelled) || cancelled != nil &&
			r.Status != reviewcontrol.Sent {
			t.Errorf("%v, %d sent, %+v", cancelled, sent, r)
		}
	}
}

func TestDraftsAndTargets(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 3 {
		h.queued(4)
	}
	plain := h.authoring.draft(5)
	h.decide(2, 0, reviewcontrol.Approve)
	h.decide(2, 2, reviewcontrol.Reject)
	var seen []string
	for f := (reviewcontrol.DraftFilter{Limit: 3}); ; {
		page, err := h.service.Drafts(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Drafts {
			seen = append(seen, fmt.Sprintf("%s:%s:%d/%d:%v", d.ID, d.Status, d.Counts.Pending, d.TargetCount, d.Review != nil))
		}
		if f.After = page.Next; page.Next == 0 {
			break
		}
	}
	if got, want := strings.Join(seen, " "), "4:draft:5/5:false 3:in_review:4/4:true 2:in_review:2/4:true 1:in_review:4/4:true"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if page, err := h.service.Drafts(t.Context(), reviewcontrol.DraftFilter{Status: reviewcontrol.Drafted}); err != nil ||
		len(page.Drafts) != 1 || page.Drafts[0].ID != plain {
		t.Errorf("%+v, %v", page, err)
	}
	targets := func(id reviewcontrol.ID, f reviewcontrol.TargetFilter) (indexes []int) {
		d, err := h.service.Draft(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for f.After = -1; ; {
			list, next, err := h.service.List(t.Context(), d, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				if x.ToName != fmt.Sprintf("Contact %d", x.Index) {
					t.Errorf("%+v", x)
				}
				indexes = append(indexes, x.Index)
			}
			if f.After = next; next < 0 {
				return indexes
			}
		}
	}
	for _, c := range []struct {
		id   reviewcontrol.ID
		f    reviewcontrol.TargetFilter
		want string
	}{
		{2, reviewcontrol.TargetFilter{}, "[0 1 2 3]"},
		{2, reviewcontrol.TargetFilter{Limit: 2}, "[0 1 2 3]"},
		{2, reviewcontrol.TargetFilter{Choice: reviewcontrol.Pending, Limit: 1}, "[1 3]"},
		{2, reviewcontrol.TargetFilter{Choice: reviewcontrol.Approve}, "[0]"},
		{2, reviewcontrol.TargetFilter{State: reviewcontrol.Queued}, "[]"},
		{2, reviewcontrol.TargetFilter{Search: "c2-3@PARTNER"}, "[3]"},
		{2, reviewcontrol.TargetFilter{Search: "contact 1"}, "[1]"},
		{2, reviewcontrol.TargetFilter{Search: "502"}, "[2]"},
		{2, reviewcontrol.TargetFilter{Search: "%"}, "[]"},
		{2, reviewcontrol.TargetFilter{Search: "_"}, "[]"},
		{2, reviewcontrol.TargetFilter{Search: `\`}, "[]"},
		{2, reviewcontrol.TargetFilter{Search: "\x00\xff"}, "[]"},
		{plain, reviewcontrol.TargetFilter{Limit: 2}, "[0 1 2 3 4]"},
	} {
		if got := fmt.Sprint(targets(c.id, c.f)); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.id, c.f, got, c.want)
		}
	}
	for _, id := range []reviewcontrol.ID{2, plain} {
		for _, index := range []int{-1, 5, 1 << 40} {
			if _, err := h.service.Target(t.Context(), id, index); code(err) != fault.NotFound {
				t.Errorf("%s/%d: %v", id, index, err)
			}
		}
	}
	if v, err := h.service.Target(t.Context(), plain, 4); err != nil || v.Index != 4 || v.Decision.Choice != reviewcontrol.Pending {
		t.Errorf("%+v, %v", v, err)
	}
	_, err := h.service.Draft(t.Context(), 999)
	wants(t, err, fault.NotFound)
}
