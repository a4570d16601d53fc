package reviewcontrol

import (
	"cmp"
	"context"
	"slices"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// MaxNote bounds a note or a reason, in characters.
const MaxNote = 2000

// DecisionStore changes reviews, one change after the other.
type DecisionStore interface {
	// Update locks a review, hands it over with the targets of the indexes, and commits the steps that the function
	// makes, with the jobs that follow.
	Update(ctx context.Context, id ID, indexes []int, change func(*Transaction) error) (Review, error)
	// UpdateAction is Update with those targets whose newest decision is a part of the action, and with
	// the decisions that held before those.
	UpdateAction(ctx context.Context, id ID, action int, change func(*Transaction) error) (Review, error)
	// LastAction returns the newest action on a draft of which something is left: a reviewer's, or
	// anybody's when by is empty.
	LastAction(ctx context.Context, id ID, by string) (Action, bool, error)
	// Queueing tells that a draft is about to be queued for review.
	Queueing(ctx context.Context, id ID) (bool, error)
	// BeginCancel keeps the audit row of a cancellation that authoring is about to be asked for. Unless it is anew it tells whether one is
	// kept. EndCancel puts that into the log, or the entry of the call that was anew and has gone through, of several who cancel at once;
	// false when none is kept, because another call has.
	BeginCancel(ctx context.Context, id ID, entry audit.Entry, anew bool) (begun bool, err error)
	EndCancel(ctx context.Context, id ID, entry audit.Entry, anew bool) (ended bool, err error)
}

// Decide records a reviewer's decision on a target whose mail was shown to them.
//
// E_SCOPE for anybody but a person, and for who made the draft; E_VALIDATION for a choice, a
// reason or a note that is none; E_NOT_FOUND; E_CONFLICT when the review has ended, when the mail
// is not what was shown, and when somebody else has decided otherwise in the meantime.
func (s *Service) Decide(ctx context.Context, by Reviewer, id ID, shown Shown, j Judgement) (Review, error) {
	j, err := j.check()
	if err != nil {
		return Review{}, err
	}
	r, err := s.mayDecide(ctx, by, id)
	if err != nil {
		return Review{}, err
	}
	if _, err := s.isShown(ctx, r, []Shown{shown}, anyMail); err != nil {
		return Review{}, err
	}
	at, changed := s.now(), false
	r, err = s.c.Store.Update(ctx, id, []int{shown.Index}, func(tx *Transaction) (err error) {
		d := Decision{Choice: j.Choice, Reason: j.Reason, By: by.Email, At: &at, Note: j.Note, Hash: shown.Hash, Action: tx.Review.Actions + 1}
		if changed, err = tx.decide(&tx.Targets[0], d, shown.Revision); changed {
			tx.Review.Actions++
			tx.leave(s.c.SendDelay)
		}
		detail := map[string]any{
			"draft_id": id.String(), "index": shown.Index, "to_email": tx.Targets[0].ToEmail,
			"choice": j.Choice, "note": j.Note, "hash": shown.Hash, "changed": changed,
		}
		if j.Reason != "" {
			detail["reason"] = j.Reason
		}
		entry := s.entry(ctx, "review.decide", 1, detail)
		tx.Entry = &entry
		return err
	})
	if err == nil && changed {
		s.metrics.Decided(ctx, string(j.Choice), 1)
	}
	return r, err
}

// check returns the judgement as it is kept. E_VALIDATION.
func (j Judgement) check() (Judgement, error) {
	switch {
	case j.Choice != Approve && j.Choice != Reject:
		return j, fault.New(fault.Validation, "A decision is %s or %s.", Approve, Reject)
	case j.Choice == Approve:
		j.Reason = ""
	case j.Reason != "" && !slices.Contains(Reasons(), j.Reason):
		return j, fault.New(fault.Validation, "%q is no reason to reject a mail for; there are %q.", j.Reason, Reasons())
	}
	var err error
	j.Note, err = schema.Note("note", j.Note, MaxNote, false)
	return j, err
}

// Undo takes back what a reviewer decided in one action: on each of its targets that nobody has decided
// on since, what held before holds again. It tells on how many. The last action of a review can be undone
// by every reviewer who may decide on it, until the first mail is handed over; the review goes on then.
//
// E_SCOPE for anybody but a person, for who made the draft, and while the review goes on for who did not
// decide; E_NOT_FOUND; E_CONFLICT when nothing is left of the action, and when it is too late.
func (s *Service) Undo(ctx context.Context, by Reviewer, id ID, action int) (undone int, r Review, err error) {
	if r, err = s.mayDecide(ctx, by, id); err != nil {
		return 0, Review{}, err
	}
	if action < 1 || action > r.Actions {
		return 0, Review{}, fault.New(fault.NotFound, "The review of draft %s has no action %d.", id, action)
	}
	r, err = s.c.Store.UpdateAction(ctx, id, action, func(tx *Transaction) error {
		from := tx.Review.Status
		if err := tx.undo(tx.Targets, tx.Earlier, by); err != nil {
			return err
		}
		indexes := make([]int, len(tx.Targets))
		for i, t := range tx.Targets {
			indexes[i] = t.Index
		}
		undone = len(indexes)
		entry := s.entry(ctx, "review.undo", undone, map[string]any{"draft_id": id.String(), "action": action, "indexes": indexes, "from": from})
		tx.Entry = &entry
		return nil
	})
	if err != nil {
		return 0, Review{}, err
	}
	s.metrics.Undone(ctx, undone)
	return undone, r, nil
}

// mayDecide judges the reviewer before anything else is read.
func (s *Service) mayDecide(ctx context.Context, by Reviewer, id ID) (Review, error) {
	if err := caller.RequirePerson(ctx); err != nil {
		return Review{}, err
	}
	r, err := s.c.Store.Review(ctx, id)
	if fault.Is(err, fault.NotFound) {
		d, err := s.c.Drafts.Draft(ctx, id)
		if err != nil {
			return Review{}, err
		}
		return Review{}, refused(d.Status, Decide)
	}
	if err != nil {
		return Review{}, err
	}
	if r.Maker.Is(by) {
		return Review{}, fault.New(fault.Scope, "You made this draft; another reviewer has to decide on it.")
	}
	return r, nil
}

// anyMail is the rule that holds for each mail.
func anyMail(TargetView) error { return nil }

// isShown holds what the targets get now to what the reviewer saw, and each mail to a further rule. shown is in order of index; so are
// the targets that it returns as a list has them.
func (s *Service) isShown(ctx context.Context, r Review, shown []Shown, rule func(TargetView) error) ([]TargetView, error) {
	indexes, seen := make([]int, len(shown)), make(map[int]string, len(shown))
	for i, x := range shown {
		if outOfRange(x.Index) {
			return nil, MissingTarget(r.DraftID, x.Index)
		}
		indexes[i], seen[x.Index] = x.Index, x.Hash
	}
	targets, err := s.c.Store.TargetsAt(ctx, r.DraftID, indexes)
	if err != nil {
		return nil, err
	}
	var views []TargetView
	err = s.renderings(ctx, r, targets, func(v TargetView) error {
		if v.Rendering.Hash() != seen[v.Index] {
			return changed(v.Index)
		}
		views = append(views, v.list())
		return rule(v)
	})
	return views, err
}

// Cancel ends a draft that is not on its way yet, for good. E_SCOPE for anybody but a
// person, E_NOT_FOUND, E_CONFLICT when it is too late.
func (s *Service) Cancel(ctx context.Context, by Reviewer, id ID, note string) error {
	note, err := schema.Note("note", note, MaxNote, false)
	if err != nil {
		return err
	}
	if err := caller.RequirePerson(ctx); err != nil {
		return err
	}
	detail := map[string]any{"draft_id": id.String(), "note": note}
	at := s.now()
	_, err = s.c.Store.Update(ctx, id, nil, func(tx *Transaction) error {
		detail["from"] = tx.Review.Status
		entry := s.entry(ctx, "review.cancel", 1, detail)
		tx.Entry = &entry
		return tx.cancel(by.Email, at)
	})
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return s.cancelDrafted(ctx, id, detail)
}

// cancelDrafted cancels a draft that is not in review: its status is authoring's alone, and
// authoring settles a race with queue_for_review. What broke off before its audit row was there is
// ended by the same wish again, as it was begun.
func (s *Service) cancelDrafted(ctx context.Context, id ID, detail map[string]any) error {
	d, err := s.c.Drafts.Draft(ctx, id)
	if err != nil {
		return err
	}
	detail["from"] = Drafted
	_, tooLate := Next(d.Status, Cancel, Counts{}, false)
	entry := s.entry(ctx, "review.cancel", 1, detail)
	begun, err := s.c.Store.BeginCancel(ctx, id, entry, tooLate == nil)
	if err != nil || !begun {
		return cmp.Or(err, tooLate)
	}
	wish := Transition{From: []Status{Drafted}, To: Cancelled, Operation: "review:" + id.String() + ":cancelled"}
	if err := s.c.Drafts.Transition(ctx, id, wish); err != nil {
		if queueing, lookErr := s.c.Store.Queueing(ctx, id); lookErr == nil && queueing && fault.Is(err, fault.Conflict) {
			return fault.New(fault.Conflict, "The draft is being queued for review right now. Try again in a moment.").After(QueueTakes).Because(err)
		}
		return err
	}
	if ended, err := s.c.Store.EndCancel(ctx, id, entry, tooLate == nil); err != nil || ended {
		return err
	}
	return refused(Cancelled, Cancel)
}
