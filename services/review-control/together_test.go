package reviewcontrol_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	reviewcontrol "hub.internal/services/review-control"
)

// TestRejectTogether: one reason for many mails, what somebody decided on in the meantime is left, and one undo takes all back.
func TestRejectTogether(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(8)
	as := signedIn(t.Context(), ben)
	var shown []reviewcontrol.Shown
	for _, i := range []int{5, 0, 2, 1, 3} {
		shown = append(shown, h.shown(id, i))
	}
	h.decide(id, 1, reviewcontrol.Approve)
	h.decide(id, 3, reviewcontrol.Approve)
	if _, _, err := h.undo(ada, id, 2); err != nil { // it is undecided again, and not as it was shown
		t.Fatal(err)
	}
	why := reviewcontrol.Judgement{Reason: reviewcontrol.WrongContent, Note: " the price\r\nis last year's "}
	out, err := h.service.RejectShown(as, ben, id, shown, why)
	then := reviewcontrol.Counts{Pending: 4, Approved: 1, Rejected: 3}
	if err != nil || out.Rejected != 3 || out.Left != 2 || out.Review.Counts != then {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, i := range []int{0, 2, 5} {
		d := h.target(id, i).Decision
		if d.Choice != reviewcontrol.Reject || d.By != ben.Email || d.Reason != why.Reason || d.Revision != 1 ||
			d.Note != "the price\nis last year's" {
			t.Errorf("%d: %+v", i, d)
		}
		if history, err := h.service.History(as, id, i); err != nil || len(history) != 1 || history[0].By != ben.Email {
			t.Errorf("%d: %+v, %v", i, history, err)
		}
	}
	if d := h.target(id, 1).Decision; d.Choice != reviewcontrol.Approve || d.By != ada.Email {
		t.Errorf("%+v", d)
	}
	if got := one[string](h, `SELECT detail ->> 'indexes' || ' ' || (detail ->> 'choice') || ' ' || (detail ->> 'reason') || ' ' || count
		FROM audit.calls WHERE tool = 'review.decide' AND external_user_id = 'usr_ben' AND detail ->> 'draft_id' = $1`,
		id.String()); got != "[0, 2, 5] rejected content 3" {
		t.Errorf("the audit log has %s", got)
	}
	// All that a filter finds, as many as the page said; one more by then is nobody's to reject unseen.
	f := reviewcontrol.TargetFilter{Search: "partner.example"}
	_, err = h.service.RejectFound(as, ben, id, f, 3, why)
	wants(t, err, fault.Conflict)
	out, err = h.service.RejectFound(as, ben, id, f, 6, reviewcontrol.Judgement{})
	if err != nil || out.Rejected != 4 || out.Left != 2 || out.Review.Status != reviewcontrol.Approved {
		t.Fatalf("%+v, %v", out, err)
	}
	n, r, err := h.undo(ben, id, 4)
	if err != nil || n != 4 || r.Status != reviewcontrol.InReview || r.Counts != then {
		t.Errorf("%d, %+v, %v", n, r, err)
	}
	if n, r, err = h.undo(ben, id, 3); err != nil || n != 3 || r.Counts.Rejected != 0 {
		t.Errorf("%d, %+v, %v", n, r, err)
	}
}

func TestWhoMayRejectTogether(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(2)
	shown := []reviewcontrol.Shown{h.shown(id, 0)}
	own := h.authoring.draft(1, func(d *draftRow) { d.CreatedBy = new(ada.Email) })
	if _, err := h.send(agent(t.Context()), newKey(), queueing(own)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id    reviewcontrol.ID
		shown []reviewcontrol.Shown
		j     reviewcontrol.Judgement
		want  fault.Code
	}{
		"one's own draft": {own, shown, reviewcontrol.Judgement{}, fault.Scope},
		"none":            {id, nil, reviewcontrol.Judgement{}, fault.Validation},
		"twice":           {id, append(shown, shown...), reviewcontrol.Judgement{}, fault.Validation},
		"a made-up why":   {id, shown, reviewcontrol.Judgement{Reason: "mood"}, fault.Validation},
		"a long note":     {id, shown, reviewcontrol.Judgement{Note: strings.Repeat("x", 2001)}, fault.Validation},
		"no such target":  {id, []reviewcontrol.Shown{{Index: 2}}, reviewcontrol.Judgement{}, fault.NotFound},
		"below all":       {id, []reviewcontrol.Shown{{Index: -1}}, reviewcontrol.Judgement{}, fault.NotFound},
		"no such draft":   {999, shown, reviewcontrol.Judgement{}, fault.NotFound},
	} {
		if _, err := h.service.RejectShown(signedIn(t.Context(), ada), ada, c.id, c.shown, c.j); code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, found := range []int{0, reviewcontrol.MaxRejected + 1} {
		_, err := h.service.RejectFound(signedIn(t.Context(), ada), ada, id, reviewcontrol.TargetFilter{}, found, reviewcontrol.Judgement{})
		wants(t, err, fault.Validation)
	}
	if _, err := h.service.RejectShown(agent(t.Context()), ada, id, shown, reviewcontrol.Judgement{}); code(err) != fault.Scope {
		t.Errorf("an agent: %v", err)
	}
	if r := h.review(id); r.Counts.Pending != 2 {
		t.Errorf("%+v", r)
	}
	if err := h.service.Cancel(signedIn(t.Context(), ada), ada, id, ""); err != nil {
		t.Fatal(err)
	}
	_, err := h.service.RejectShown(signedIn(t.Context(), ada), ada, id, shown, reviewcontrol.Judgement{})
	wants(t, err, fault.Conflict)
}

// TestRejectOnAPage does what a browser without scripts does: it chooses mails, or all of a filter, and says why.
func TestRejectOnAPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(5)
	page := fmt.Sprintf("/drafts/%s", id)
	body := o.get(page)
	has(t, body, "Reject selected", "All 5 to decide", `name="reason" value="content" data-key="2"`, "Select mail 1")
	// No reason to reject is a button of a form that approves.
	_, approves, _ := strings.Cut(body, `id="approve-shown"`)
	approves, _, _ = strings.Cut(approves, "</form>")
	if !strings.Contains(approves, "you have read") || strings.Contains(approves, "reason") {
		t.Errorf("the form that approves: %s", approves)
	}
	pick := func(i int) string {
		v := o.shown(id, i)
		return fmt.Sprintf("%d:%s:%d", i, o.target(id, i).Inspection.Hash, v.Revision)
	}
	w := o.post(page+"/reject", map[string][]string{"target": {pick(1), pick(3)}, "reason": {"content"}, "back": {""}})
	if got := o.flash(w); got != "2 mails are rejected." || w.Header().Get("Location") != page {
		t.Errorf("%d %q %s", w.Code, got, w.Header().Get("Location"))
	}
	has(t, o.get(page), "Last: 2 mails rejected.", "All 3 to decide")
	o.decide(id, 0, reviewcontrol.Approve)
	w = o.post(page+"/reject", map[string][]string{"back": {"decision=pending"}, "all": {"3"}})
	if got := o.flash(w); got != "2 mails are rejected. "+
		"That ends the review. 1 mail is on its way. 1 was decided on in the meantime, and left as it is." {
		t.Errorf("%q", got)
	}
	if got := o.flash(o.post(page+"/reject", nil)); got != "Nothing was rejected: no mail was chosen." {
		t.Errorf("%q", got)
	}
	if r := o.review(id); r.Counts != (reviewcontrol.Counts{Approved: 1, Rejected: 4}) {
		t.Errorf("%+v", r)
	}
}

// TestRejectAsManyAsThereAre: a form has fields for the mails of a page, and one for all others that were chosen.
func TestRejectAsManyAsThereAre(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(3)
	page := "/drafts/" + id.String()
	all := make([]string, 10_000)
	for i := range all {
		all[i] = fmt.Sprintf("%d:%064d:0", i, i)
	}
	for name, c := range map[string]struct {
		form url.Values
		says string
	}{
		"as many as a draft has": {url.Values{"target": all[:50], "targets": {strings.Join(all[50:], ",")}},
			"Draft " + id.String() + " has no target"},
		"one more": {url.Values{"target": {"10000::0"}, "targets": {strings.Join(all, ",")}},
			"Between 1 and 10000 mails can be rejected at once, not 10001."},
		"none": {url.Values{"targets": {""}}, "Nothing was rejected: no mail was chosen."},
	} {
		w := o.post(page+"/reject", c.form)
		if says := o.flash(w) + w.Body.String(); !strings.Contains(says, c.says) {
			t.Errorf("%s: %d %.300q", name, w.Code, says)
		}
	}
	w := o.post(page+"/reject", url.Values{"target": {"1::0"}, "targets": {"0::0,2::0"}, "reason": {"timing"}})
	if c := o.review(id).Counts; c.Rejected != 3 {
		t.Errorf("%q, %+v", o.flash(w), c)
	}
}

// TestApprovedTooLate: who approves together what a colleague has decided on is told that nothing changed, and not that they ended the
// review.
func TestApprovedTooLate(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(2)
	page := "/drafts/" + id.String()
	targets := []string{}
	for i := range 2 {
		x := o.shown(id, i)
		targets = append(targets, fmt.Sprintf("%d:%s:%d", x.Index, x.Hash, x.Revision))
	}
	for i, choice := range []reviewcontrol.Choice{reviewcontrol.Reject, reviewcontrol.Approve} {
		_, err := o.service.Decide(signedIn(t.Context(), ben), ben, id, o.shown(id, i), reviewcontrol.Judgement{Choice: choice})
		if err != nil {
			t.Fatal(err)
		}
	}
	late := func() string {
		t.Helper()
		return o.flash(o.post(page+"/approve-shown", url.Values{"target": targets}))
	}
	if got := late(); got != "Nothing changed: all of them were decided on already, and ben@hub.example has ended the review." {
		t.Errorf("%q", got)
	}
	if err := o.service.Cancel(signedIn(t.Context(), ben), ben, id, ""); err != nil {
		t.Fatal(err)
	}
	if got := late(); got != "Nothing changed: the draft is cancelled, and nothing more of it is sent." {
		t.Errorf("%q", got)
	}
}

// TestNextFlagged: who looks for what is flagged is led past the rest.
func TestNextFlagged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.authoring.draft(6, func(d *draftRow) { d.targets[2].Snapshot, d.targets[4].Snapshot = nil, nil })
	if _, err := h.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	if err := h.service.Inspect(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d, err := h.service.Draft(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, after := range []int{-1, 2, 4} {
		next, err := h.service.Next(t.Context(), d, reviewcontrol.TargetFilter{Choice: reviewcontrol.Pending, Flagged: true, After: after})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, next)
	}
	if fmt.Sprint(found) != "[2 4 -1]" {
		t.Errorf("%v", found)
	}
}
