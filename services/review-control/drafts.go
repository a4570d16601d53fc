package reviewcontrol

import (
	"context"
	"encoding/json"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// ID is the identity of a draft.
type ID = schema.ID

// Draft is a draft as reviewers see it: what authoring says of it, and the review.
type Draft struct {
	ID                                  ID
	Name                                string
	Status                              Status
	SegmentID, SegmentName, SegmentKind string
	TargetCount                         int
	Counts                              Counts
	Maker                               Maker
	CreatedAt                           time.Time
	QueuedAt                            *time.Time
	// SubjectTemplate and BodyTemplate are known of a single draft alone.
	SubjectTemplate, BodyTemplate string
	SenderName, SenderEmail       string
	// Review is nil until the draft was queued.
	Review *Review
}

// under is the draft with its review: authoring hears of what happens there a moment later. Who made
// it and whom its mails are from is what was kept when it was queued.
func (d Draft) under(r Review) Draft {
	d.Status, d.Counts, d.TargetCount, d.QueuedAt, d.Review = r.Status, r.Counts, r.Counts.Total(), &r.QueuedAt, &r
	d.Maker, d.SenderName, d.SenderEmail = r.Maker, r.Sender.Name, r.Sender.Email
	return d
}

// MayCancel is E_CONFLICT for a draft that is too late to cancel.
func (d Draft) MayCancel() error {
	_, err := Next(d.Status, Cancel, d.Counts, d.Review == nil || d.Review.Attempted)
	return err
}

// DraftFilter asks for a page of drafts, the newest first.
type DraftFilter struct {
	// Status "" is any.
	Status Status
	// Below is Next of the page before; 0 for the first page.
	Below ID
	// Limit is between 1 and 100; 0 is 50.
	Limit int
}

// DraftPage is a page of drafts. Next is 0 on the last one.
type DraftPage struct {
	Drafts []Draft
	Next   ID
}

// TargetFilter asks for a page of a draft's targets, by index.
type TargetFilter struct {
	// Choice "" is any; so is State.
	Choice Choice
	State  DeliveryState
	// Search is a part of the address or the name, or an external id.
	Search string
	// After is Next of the page before; -1 for the first page.
	After int
	// Limit is between 1 and 100; 0 is 50.
	Limit int
}

// TargetPage is a page of targets. Next is -1 on the last one.
type TargetPage struct {
	Targets []TargetView
	Next    int
}

// TargetView is a target with what authoring has for it, and what it gets of that.
type TargetView struct {
	Target
	Mail      Mail
	Rendering Rendering
}

// Mail is what authoring has for a target, with what the agent and the segment have beside it.
type Mail struct {
	Subject, Body     string
	HTML              bool
	Context, Snapshot json.RawMessage
}

const (
	defaultPage = 50
	// MaxPage bounds a page, and what one request may approve.
	MaxPage = 100
)

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, MaxPage)
}

// Drafts returns a page of drafts.
func (s *Service) Drafts(ctx context.Context, f DraftFilter) (DraftPage, error) {
	drafts, next, err := s.c.Drafts.Drafts(ctx, f.Status, f.Below, pageSize(f.Limit))
	if err != nil {
		return DraftPage{}, err
	}
	ids := make([]ID, len(drafts))
	for i, d := range drafts {
		ids[i] = d.ID
	}
	reviews, err := s.c.Store.Reviews(ctx, ids)
	if err != nil {
		return DraftPage{}, err
	}
	page := DraftPage{Drafts: make([]Draft, 0, len(drafts)), Next: next}
	for _, d := range drafts {
		if r, queued := reviews[d.ID]; queued {
			d = d.under(r)
		}
		if f.Status == "" || d.Status == f.Status {
			page.Drafts = append(page.Drafts, d)
		}
	}
	return page, nil
}

// Draft returns one draft.
func (s *Service) Draft(ctx context.Context, id ID) (Draft, error) {
	d, err := s.c.Drafts.Draft(ctx, id)
	if err != nil {
		return Draft{}, err
	}
	r, err := s.c.Store.Review(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return d, nil
	}
	return d.under(r), err
}

// Targets returns a page of a draft's targets with their mails. Before the draft was queued
// the filter but for After and Limit is ignored.
func (s *Service) Targets(ctx context.Context, d Draft, f TargetFilter) (TargetPage, error) {
	f.Limit, f.After = pageSize(f.Limit), min(max(f.After, -1), MaxIndex)
	if d.Review == nil {
		targets, next, err := s.c.Drafts.Page(ctx, d.ID, f.After, f.Limit)
		for i := range targets {
			targets[i].Rendering = s.preliminary(d, targets[i])
		}
		return TargetPage{targets, next}, err
	}
	limit := f.Limit
	f.Limit++
	targets, err := s.c.Store.Targets(ctx, d.ID, f)
	if err != nil {
		return TargetPage{}, err
	}
	page := TargetPage{Next: -1}
	if len(targets) > limit {
		targets, page.Next = targets[:limit], targets[limit-1].Index
	}
	page.Targets = make([]TargetView, 0, len(targets))
	err = s.renderings(ctx, *d.Review, targets, func(v TargetView) error {
		page.Targets = append(page.Targets, v)
		return nil
	})
	return page, err
}

// preliminary is what a target would get, were its draft queued as authoring has it now.
func (s *Service) preliminary(d Draft, v TargetView) Rendering {
	return s.render(Address{d.SenderName, d.SenderEmail}, Address{v.ToName, v.ToEmail}, v.Mail)
}

// Target returns one target with its mail. It is E_NOT_FOUND for an index that is not there.
func (s *Service) Target(ctx context.Context, id ID, index int) (TargetView, error) {
	if noIndex(index) {
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
		page[0].Rendering = s.preliminary(d, page[0])
		return page[0], err
	}
	if err != nil {
		return TargetView{}, err
	}
	r, err := s.c.Store.Review(ctx, id)
	if err != nil {
		return TargetView{}, err
	}
	var view TargetView
	err = s.renderings(ctx, r, []Target{t}, func(v TargetView) error {
		view = v
		return nil
	})
	return view, err
}

// MaxIndex bounds an index, which comes from the address of a page: no draft has more targets.
const MaxIndex = 1_000_000

func noIndex(index int) bool { return index < 0 || index > MaxIndex }

// MissingTarget is E_NOT_FOUND for a target that a draft does not have.
func MissingTarget(id ID, index int) error {
	return fault.New(fault.NotFound, "Draft %s has no target %d.", id, index)
}

// History returns all decisions on a target, the newest first.
func (s *Service) History(ctx context.Context, id ID, index int) ([]Decision, error) {
	if noIndex(index) {
		return nil, MissingTarget(id, index)
	}
	return s.c.Store.History(ctx, id, index)
}
