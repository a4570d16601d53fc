package reviewcontrol

import (
	"context"
	"encoding/json"

	"hub.internal/pkg/fault"
	"hub.internal/services/review-control/body"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/suppression"
	"hub.internal/services/review-control/triage"
)

// TargetFilter asks for a page of a draft's targets.
type TargetFilter struct {
	// FlaggedFirst has those come first in whose mails the inspection has found a flag. Else, and among these, targets
	// come by index.
	FlaggedFirst bool
	// Choice "" is any; so is State.
	Choice Choice
	State  DeliveryState
	// Flag asks for mails with it, Variant for those of one, or for those of NoVariant; 0 is any.
	Flag    triage.Flag
	Variant int
	// Flagged asks for mails in which the inspection has found any flag.
	Flagged bool
	// Search is a part of the address or the name, or an external id.
	Search string
	// After is Next of the page before; -1 for the first page.
	After int
	// Back asks for those before After instead, the nearest first.
	Back bool
	// Limit is between 1 and 100; 0 is 50.
	Limit int
}

// TargetStore reads targets, and keeps what their inspection has found.
type TargetStore interface {
	Targets(ctx context.Context, id ID, f TargetFilter) ([]Target, error)
	// Place is which of the targets that a filter finds its After is, from 1; 0 when it is none of them.
	Place(ctx context.Context, id ID, f TargetFilter) (int, error)
	Target(ctx context.Context, id ID, index int) (Target, error)
	// TargetsAt returns the targets of the indexes, by index; E_NOT_FOUND when one is missing.
	TargetsAt(ctx context.Context, id ID, indexes []int) ([]Target, error)
	// History returns the decisions on a target, the newest first.
	History(ctx context.Context, id ID, index int) ([]Decision, error)
	// Tally counts the targets that a filter finds, by choice, by flag and by variant.
	Tally(ctx context.Context, id ID, f TargetFilter) (Tally, error)
	// Uninspected returns targets behind an index (-1 begins) that were not inspected, by index.
	Uninspected(ctx context.Context, id ID, after, limit int) ([]Target, error)
	// KeepInspected keeps the inspections of targets that have none yet.
	KeepInspected(ctx context.Context, id ID, batch []Inspected) error
	// Variants returns the variants of a draft that have several mails, the largest first.
	Variants(ctx context.Context, id ID) ([]Variant, error)
}

// TargetView is a target with what authoring has for it, and what it gets of that. That is up to four times the body, which may have
// 4 MiB: of several targets at once no more is kept than a page shows of each (list).
type TargetView struct {
	Target
	Mail      Mail
	Rendering Rendering
	// Flags are what of it a reviewer should look at, as it is now.
	Flags triage.Flag
}

// list is what a list shows of the target: without its mail.
func (v TargetView) list() TargetView { return TargetView{Target: v.Target, Flags: v.Flags} }

// Mail is what authoring has for a target, with what the agent and the segment have beside it.
type Mail struct {
	Subject, Body string
	HTML          bool
	// SubjectTemplate and BodyTemplate are what the target has instead of the draft's; empty for those.
	SubjectTemplate, BodyTemplate string
	Context, Snapshot             json.RawMessage
	// Doubts are what authoring doubts of it.
	Doubts []string
	// Repeats says which earlier mail it repeats; empty when none.
	Repeats string
}

// List returns a page of a draft's targets without their mails, flagged as far as they were inspected.
// Next is -1 on the last one. Before the draft was queued the filter but for After and Limit is ignored.
func (s *Service) List(ctx context.Context, d Draft, f TargetFilter) (views []TargetView, next int, err error) {
	f.Limit, f.After = pageSize(f.Limit), min(max(f.After, -1), MaxIndex)
	if d.Review == nil {
		views, next, err = s.c.Drafts.Page(ctx, d.ID, f.After, f.Limit)
		for i, v := range views {
			views[i] = s.preliminary(d, v).list()
		}
		return views, next, err
	}
	limit := f.Limit
	f.Limit++
	targets, err := s.c.Store.Targets(ctx, d.ID, f)
	if err != nil {
		return nil, -1, err
	}
	if next = -1; len(targets) > limit {
		targets, next = targets[:limit], targets[limit-1].Index
	}
	for _, t := range targets {
		views = append(views, TargetView{Target: t, Flags: t.Inspection.Flags})
	}
	return views, next, s.flagSuppressed(ctx, views)
}

// Next returns the index of the first target behind After that a filter finds; -1 when there is none.
func (s *Service) Next(ctx context.Context, d Draft, f TargetFilter) (int, error) {
	f.After = min(max(f.After, -1), MaxIndex)
	if d.Review == nil {
		if f.After+1 < d.TargetCount {
			return f.After + 1, nil
		}
		return -1, nil
	}
	f.Limit = 1
	targets, err := s.c.Store.Targets(ctx, d.ID, f)
	if err != nil || len(targets) == 0 {
		return -1, err
	}
	return targets[0].Index, nil
}

// Above returns the index of the target at most so many places before one, of what a filter finds; -1 when there are
// fewer.
func (s *Service) Above(ctx context.Context, d Draft, f TargetFilter, index, places int) (int, error) {
	if d.Review == nil {
		return max(index-places, -1), nil
	}
	f.After, f.Back, f.Limit = min(index, MaxIndex), true, pageSize(places)
	targets, err := s.c.Store.Targets(ctx, d.ID, f)
	if err != nil || len(targets) < f.Limit {
		return -1, err
	}
	return targets[len(targets)-1].Index, nil
}

// Place is which of the targets that a filter finds one is, from 1; 0 when it is none of them.
func (s *Service) Place(ctx context.Context, id ID, f TargetFilter, index int) (int, error) {
	f.After = index
	return s.c.Store.Place(ctx, id, f)
}

// flagSuppressed flags those whose recipient has been put on the suppression list.
func (s *Service) flagSuppressed(ctx context.Context, views []TargetView) error {
	emails := make([]string, len(views))
	for i, v := range views {
		emails[i] = v.ToEmail
	}
	listed, err := s.c.Suppressions.Listed(ctx, emails)
	if err != nil {
		return err
	}
	for i := range views {
		if listed[suppression.Key(views[i].ToEmail)] {
			views[i].Flags |= triage.Suppressed
		}
	}
	return nil
}

// Tally counts the targets of a draft in review that a filter finds, and would find with another choice,
// flag or variant.
func (s *Service) Tally(ctx context.Context, id ID, f TargetFilter) (Tally, error) {
	return s.c.Store.Tally(ctx, id, f)
}

// preliminary is a target with what it would get, were its draft queued as authoring has it now.
func (s *Service) preliminary(d Draft, v TargetView) TargetView {
	v.Rendering = s.render(mailer.Address{Name: d.SenderName, Email: d.SenderEmail}, mailer.Address{Name: v.ToName, Email: v.ToEmail}, v.Mail,
		body.Newest)
	v.Flags = s.flagsOf(v)
	return v
}

// Target returns one target with its mail. It is E_NOT_FOUND for an index that is not there.
func (s *Service) Target(ctx context.Context, id ID, index int) (TargetView, error) {
	if outOfRange(index) {
		return TargetView{}, MissingTarget(id, index)
	}
	t, err := s.c.Store.Target(ctx, id, index)
	if fault.Is(err, fault.NotFound) { // not queued, perhaps
		page, _, err := s.c.Drafts.Page(ctx, id, index-1, 1)
		if err != nil {
			return TargetView{}, err
		}
		if len(page) == 0 || page[0].Index != index {
			return TargetView{}, MissingTarget(id, index)
		}
		d, err := s.c.Drafts.Draft(ctx, id)
		return s.preliminary(d, page[0]), err
	}
	if err != nil {
		return TargetView{}, err
	}
	r, err := s.c.Store.Review(ctx, id)
	if err != nil {
		return TargetView{}, err
	}
	views := make([]TargetView, 1)
	err = s.renderings(ctx, r, []Target{t}, func(v TargetView) error {
		views[0] = v
		return nil
	})
	if err != nil {
		return TargetView{}, err
	}
	err = s.flagSuppressed(ctx, views)
	return views[0], err
}

// MaxIndex bounds an index, which comes from the address of a page: no draft has more targets.
const MaxIndex = 1_000_000

// outOfRange tells an index that no target can have, before a store is asked.
func outOfRange(index int) bool { return index < 0 || index > MaxIndex }

// MissingTarget is E_NOT_FOUND for a target that a draft does not have.
func MissingTarget(id ID, index int) error {
	return fault.New(fault.NotFound, "Draft %s has no target %d.", id, index)
}

// History returns all decisions on a target, the newest first.
func (s *Service) History(ctx context.Context, id ID, index int) ([]Decision, error) {
	if outOfRange(index) {
		return nil, MissingTarget(id, index)
	}
	return s.c.Store.History(ctx, id, index)
}
