package reviewcontrol

import (
	"context"
	"slices"

	"hub.internal/pkg/fault"
)

// MaxRejected bounds what is rejected at once: as many targets as a draft may have.
const MaxRejected = 10_000

// Rejection is what became of mails that were rejected together.
type Rejection struct {
	// Rejected is how many, Left how many of those that were meant somebody had decided on since they were shown.
	Rejected, Left int
	Review         Review
}

// ApproveShown approves those of at most 100 targets, each shown in full, that nobody has
// decided on, all of them or none; one whose decision is undone meanwhile is left. Its errors are those of Decide, and E_CONFLICT
// when a mail is among them that has to be decided on by itself.
func (s *Service) ApproveShown(ctx context.Context, by Reviewer, id ID, shown []Shown) (approved int, r Review, err error) {
	return s.approveTogether(ctx, by, id, shown, map[string]any{}, func() (func(TargetView) error, error) { return anyMail, nil })
}

// approveTogether is ApproveShown of mails that a further rule holds for, which is asked for once the reviewer is judged; detail is what
// the audit row has beside the rest.
func (s *Service) approveTogether(ctx context.Context, by Reviewer, id ID, shown []Shown, detail map[string]any,
	rule func() (func(TargetView) error, error)) (approved int, r Review, err error) {
	if len(shown) == 0 || len(shown) > MaxPage {
		return 0, Review{}, fault.New(fault.Validation, "Between 1 and %d mails can be approved at once, not %d.", MaxPage, len(shown))
	}
	shown, indexes, err := inOrder(shown)
	if err != nil {
		return 0, Review{}, err
	}
	if r, err = s.mayDecide(ctx, by, id); err != nil {
		return 0, Review{}, err
	}
	holds, err := rule()
	if err != nil {
		return 0, Review{}, err
	}
	views, err := s.isShown(ctx, r, shown, holds)
	if err != nil {
		return 0, Review{}, err
	}
	if err := s.flagSuppressed(ctx, views); err != nil {
		return 0, Review{}, err
	}
	for _, v := range views {
		if v.Flags.Alone() && v.Decision.Choice == Pending {
			return 0, Review{}, fault.New(fault.Conflict, "Mail %d has to be decided on by itself: %s.", v.Index+1, v.Flags.Says())
		}
	}
	at := s.now()
	r, err = s.c.Store.Update(ctx, id, indexes, func(tx *Transaction) error {
		done, err := s.together(tx, func(i int, t *Target) (Decision, bool) {
			// One that was undecided again only after the check was held to neither its flags nor the rule.
			d := Decision{Choice: Approve, By: by.Email, At: &at, Hash: shown[i].Hash}
			return d, t.Decision.Revision == views[i].Decision.Revision
		})
		approved = len(done)
		detail["draft_id"], detail["indexes"], detail["choice"] = id.String(), done, Approve
		entry := s.entry(ctx, "review.decide", approved, detail)
		tx.Entry = &entry
		return err
	})
	if err != nil {
		return 0, Review{}, err
	}
	s.metrics.Decided(ctx, string(Approve), approved)
	return approved, r, nil
}

// inOrder are shown targets by index, and their indexes. E_VALIDATION where one is there twice.
func inOrder(shown []Shown) ([]Shown, []int, error) {
	shown = slices.SortedFunc(slices.Values(shown), func(a, b Shown) int { return a.Index - b.Index })
	indexes := make([]int, len(shown))
	for i, x := range shown {
		if i > 0 && x.Index == shown[i-1].Index {
			return nil, nil, fault.New(fault.Validation, "Mail %d is there twice.", x.Index+1)
		}
		indexes[i] = x.Index
	}
	return shown, indexes, nil
}

// together decides, as one action, on those of the targets that nobody has decided on and of which decide makes a decision. It
// returns their indexes.
func (s *Service) together(tx *Transaction, decide func(i int, t *Target) (Decision, bool)) (done []int, err error) {
	done = []int{}
	for i := range tx.Targets {
		t := &tx.Targets[i]
		if t.Decision.Choice != Pending {
			continue
		}
		d, means := decide(i, t)
		if !means {
			continue
		}
		d.Action = tx.Review.Actions + 1
		if _, err := tx.decide(t, d, t.Decision.Revision); err != nil {
			return nil, err
		}
		done = append(done, t.Index)
	}
	if len(done) > 0 {
		tx.Review.Actions++
		tx.leave(s.c.SendDelay)
	}
	return done, nil
}

// RejectShown rejects those of at most 10,000 targets that nobody has decided on since they were shown, with one reason and
// note; the others are left. Of what was shown the revision counts, and not the content: nothing is sent on a rejection, so
// nobody has to have read what it is about. The decision keeps the hash that the inspection has found. One undo takes all of
// them back.
//
// E_SCOPE for anybody but a person, and for who made the draft; E_VALIDATION for a reason or a note that is none, for no
// target and for too many; E_NOT_FOUND; E_CONFLICT when the review has ended.
func (s *Service) RejectShown(ctx context.Context, by Reviewer, id ID, shown []Shown, j Judgement) (Rejection, error) {
	if len(shown) == 0 || len(shown) > MaxRejected {
		return Rejection{}, fault.New(fault.Validation, "Between 1 and %d mails can be rejected at once, not %d.", MaxRejected, len(shown))
	}
	return s.rejectTogether(ctx, by, id, shown, j, map[string]any{})
}

// RejectFound is RejectShown of those undecided targets that a filter finds now, of which a page has shown how many there are.
// E_CONFLICT when there are more: whoever rejects them has not been told of all.
func (s *Service) RejectFound(ctx context.Context, by Reviewer, id ID, f TargetFilter, found int, j Judgement) (Rejection, error) {
	if found < 1 || found > MaxRejected {
		return Rejection{}, fault.New(fault.Validation, "Between 1 and %d mails can be rejected at once, not %d.", MaxRejected, found)
	}
	f.Choice, f.After, f.Back, f.Limit = Pending, -1, false, found+1
	targets, err := s.c.Store.Targets(ctx, id, f)
	if err != nil {
		return Rejection{}, err
	}
	if len(targets) > found {
		return Rejection{}, fault.New(fault.Conflict, "More than %d mails are found by now; look at them again.", found)
	}
	shown := make([]Shown, len(targets))
	for i, t := range targets {
		shown[i] = Shown{Index: t.Index, Revision: t.Decision.Revision}
	}
	detail := map[string]any{"found": found}
	if f.Variant != 0 {
		detail["variant"] = f.Variant
	}
	out, err := s.rejectTogether(ctx, by, id, shown, j, detail)
	out.Left += found - len(targets)
	return out, err
}

// rejectTogether rejects what it finds as it was shown; detail is what the audit row has beside the rest.
func (s *Service) rejectTogether(ctx context.Context, by Reviewer, id ID, shown []Shown, j Judgement, detail map[string]any) (
	out Rejection, err error) {
	j.Choice = Reject
	if j, err = j.check(); err != nil {
		return Rejection{}, err
	}
	shown, indexes, err := inOrder(shown)
	if err != nil {
		return Rejection{}, err
	}
	for _, index := range indexes {
		if outOfRange(index) {
			return Rejection{}, MissingTarget(id, index)
		}
	}
	if _, err = s.mayDecide(ctx, by, id); err != nil {
		return Rejection{}, err
	}
	at := s.now()
	out.Review, err = s.c.Store.Update(ctx, id, indexes, func(tx *Transaction) error {
		done, err := s.together(tx, func(i int, t *Target) (Decision, bool) {
			d := Decision{Choice: Reject, Reason: j.Reason, Note: j.Note, By: by.Email, At: &at, Hash: t.Inspection.Hash}
			return d, t.Decision.Revision == shown[i].Revision
		})
		out.Rejected, out.Left = len(done), len(indexes)-len(done)
		detail["draft_id"], detail["indexes"], detail["choice"], detail["note"] = id.String(), done, Reject, j.Note
		if j.Reason != "" {
			detail["reason"] = j.Reason
		}
		entry := s.entry(ctx, "review.decide", out.Rejected, detail)
		tx.Entry = &entry
		return err
	})
	if err != nil {
		return Rejection{}, err
	}
	s.metrics.Decided(ctx, string(Reject), out.Rejected)
	return out, nil
}
