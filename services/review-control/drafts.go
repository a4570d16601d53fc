package reviewcontrol

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/review-control/triage"
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

// DraftFilter asks for a page of drafts: those in review the longest waiting first, any others the newest first.
type DraftFilter struct {
	// Status "" is any.
	Status Status
	// Waiting asks for what waits for For: in review, and not made by them.
	Waiting bool
	// For is who asks.
	For Reviewer
	// Search is a part of the name of a draft or of its segment, or a draft's id; at most 200 characters count.
	Search string
	// After is Next of the page before; 0 for the first page.
	After ID
	// Limit is between 1 and 100; 0 is 50.
	Limit int
}

// DraftPage is a page of drafts at a moment. Next is 0 on the last one.
type DraftPage struct {
	Drafts []ListedDraft
	Next   ID
	Counts DraftCounts
	At     time.Time
}

// ListedDraft is a draft in a list.
type ListedDraft struct {
	Draft
	Flagged Flagged
	// Here are the names of the others who have it open.
	Here []string
}

// Flagged sums up what a reviewer should look at among the undecided mails of a draft, but for those whose recipient
// was suppressed since: that is not kept.
type Flagged struct {
	Mails int
	Flags triage.Flag
}

// DraftCounts are how many drafts the filter's search finds: all, by status, and those that wait for who asks. They are
// not Known while an authoring of an earlier release answers.
type DraftCounts struct {
	Known        bool
	All, Waiting int
	ByStatus     map[Status]int
}

const (
	defaultPage = 50
	// MaxPage bounds a page, and what one request may approve.
	MaxPage = 100
)

// pageSize is how many entries a page has: 50 without a limit, and 100 at most.
func pageSize(limit int) int { return min(cmp.Or(max(limit, 0), defaultPage), MaxPage) }

const (
	// maxSearch is how much of a search counts, in characters, as authoring takes it.
	maxSearch = 200
	// maxAhead and maxMakers bound what authoring is told.
	maxAhead, maxMakers = 5000, 1000
)

// ReviewStore reads reviews for lists and pages, and keeps who has a draft open.
type ReviewStore interface {
	Review(ctx context.Context, id ID) (Review, error)
	// Reviews returns the reviews that there are of the drafts.
	Reviews(ctx context.Context, ids []ID) (map[ID]Review, error)
	// Waiting returns reviews with targets to decide on that none of the makers has made, the oldest first.
	Waiting(ctx context.Context, own []Maker, limit int) ([]Review, error)
	// OpenMakers returns who has made the drafts that are in review, or about to be.
	OpenMakers(ctx context.Context) ([]Maker, error)
	// Ahead returns the status of at most so many drafts of which authoring may know another one.
	Ahead(ctx context.Context, limit int) (map[ID]Status, error)
	// Flagged sums up what a reviewer should look at among the undecided mails of drafts; those without are absent.
	Flagged(ctx context.Context, ids []ID) (map[ID]Flagged, error)
	// MailsTo returns the mails whose address begins with a text, in whatever case: by address, those of the newest draft first.
	MailsTo(ctx context.Context, begin string, limit int) ([]AddressedMail, error)
	// See keeps that a reviewer has a draft open, unless that was kept after since; it forgets who was seen before old.
	See(ctx context.Context, id ID, by Reviewer, at, since, old time.Time) error
	// Present returns the names of the others who were seen at the drafts after a moment.
	Present(ctx context.Context, ids []ID, but Reviewer, after time.Time) (map[ID][]string, error)
}

// Drafts returns a page of drafts. authoring has the names and the drafts that were never queued, and answers pages and
// counts together; it is told what is known here first, and who is asking.
func (s *Service) Drafts(ctx context.Context, f DraftFilter) (DraftPage, error) {
	q := DraftQuery{Status: f.Status, Search: text.Head(text.Storable(f.Search), maxSearch), After: f.After, Limit: pageSize(f.Limit),
		Others: f.Waiting}
	if f.Waiting {
		q.Status = InReview
	}
	q.ByQueue = q.Status == InReview
	var err error
	if q.Ahead, err = s.c.Store.Ahead(ctx, maxAhead); err != nil {
		return DraftPage{}, err
	}
	if q.Makers, err = s.own(ctx, f.For); err != nil {
		return DraftPage{}, err
	}
	found, err := s.c.Drafts.Drafts(ctx, q)
	if err != nil {
		return DraftPage{}, err
	}
	page := DraftPage{Next: found.Next, Counts: countsOf(found), At: s.now()}
	ids, err := s.underReview(ctx, found.Drafts)
	if err != nil {
		return DraftPage{}, err
	}
	flagged, err := s.c.Store.Flagged(ctx, ids)
	if err != nil {
		return DraftPage{}, err
	}
	here, err := s.c.Store.Present(ctx, ids, f.For, page.At.Add(-presentFor))
	if err != nil {
		return DraftPage{}, err
	}
	for _, d := range found.Drafts {
		// What has changed since authoring answered is on another list now.
		if q.Status != "" && d.Status != q.Status || f.Waiting && d.Maker.Is(f.For) {
			continue
		}
		row := ListedDraft{Draft: d, Here: here[d.ID]}
		if d.Status == InReview {
			row.Flagged = flagged[d.ID]
		}
		page.Drafts = append(page.Drafts, row)
	}
	makers := make([]*Maker, len(page.Drafts))
	for i := range page.Drafts {
		makers[i] = &page.Drafts[i].Maker
	}
	s.nameKeys(ctx, makers...)
	return page, nil
}

// countsOf are the counts of the list's filters.
func countsOf(found DraftsFound) DraftCounts {
	c := DraftCounts{Known: found.Counts != nil && found.Others != nil, ByStatus: found.Counts, Waiting: found.Others[InReview]}
	for _, n := range found.Counts {
		c.All += n
	}
	return c
}

// own are the makers of drafts in review that are the reviewer.
func (s *Service) own(ctx context.Context, r Reviewer) ([]Maker, error) {
	makers, err := s.c.Store.OpenMakers(ctx)
	own := slices.DeleteFunc(makers, func(m Maker) bool { return !m.Is(r) })
	return own[:min(len(own), maxMakers)], err
}

// FindDrafts returns the newest drafts that a search finds, as Drafts does for a list, but nothing about them that a list has beside their
// names and their status; at most limit, which is between 1 and 100.
func (s *Service) FindDrafts(ctx context.Context, search string, limit int) ([]Draft, error) {
	found, err := s.c.Drafts.Drafts(ctx, DraftQuery{Search: text.Head(text.Storable(search), maxSearch), Limit: pageSize(limit),
		Uncounted: true})
	if err != nil {
		return nil, err
	}
	_, err = s.underReview(ctx, found.Drafts)
	return found.Drafts, err
}

// underReview has drafts that were queued be as their reviews have them. It returns the ids of all.
func (s *Service) underReview(ctx context.Context, drafts []Draft) ([]ID, error) {
	ids := make([]ID, len(drafts))
	for i, d := range drafts {
		ids[i] = d.ID
	}
	reviews, err := s.c.Store.Reviews(ctx, ids)
	for i, d := range drafts {
		if r, queued := reviews[d.ID]; queued {
			drafts[i] = d.under(r)
		}
	}
	return ids, err
}

// AddressedMail is a target with the draft that it is of.
type AddressedMail struct {
	Draft ID
	Target
}

// MailsTo returns the mails of all reviews whose address begins with a text, whatever became of them: by address, those of the newest
// draft first; at most limit.
func (s *Service) MailsTo(ctx context.Context, begin string, limit int) ([]AddressedMail, error) {
	return s.c.Store.MailsTo(ctx, strings.ToLower(text.Storable(begin)), limit)
}

// nameKeys says what keys are called. Without auth their ids have to do.
func (s *Service) nameKeys(ctx context.Context, makers ...*Maker) {
	var ids []string
	for _, m := range makers {
		if id := m.Key(); id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || s.c.Keys == nil {
		return
	}
	names, err := s.c.Keys.Names(itself(ctx), ids)
	if err != nil {
		s.c.Logger.DebugContext(ctx, "keys have no names", "error", err)
	}
	for _, m := range makers {
		m.KeyName = names[m.Key()]
	}
}

const (
	// presentFor is how long somebody who was seen at a draft has it open.
	presentFor = time.Minute
	// seenEvery is how often that is kept.
	seenEvery = 15 * time.Second
	// presenceKept is how long it is there at all.
	presenceKept = time.Hour
)

// Here keeps that a reviewer has a draft open, and returns the names of the others who have. Nothing depends on it but
// what colleagues see of each other; it is not in the audit log. A draft that is not there is E_NOT_FOUND.
func (s *Service) Here(ctx context.Context, by Reviewer, id ID) ([]string, error) {
	if err := caller.RequirePerson(ctx); err != nil {
		return nil, err
	}
	_, err := s.c.Store.Review(ctx, id)
	if fault.Is(err, fault.NotFound) { // it may be one that nobody has queued yet
		_, err = s.c.Drafts.Draft(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	now := s.now()
	if err := s.c.Store.See(ctx, id, by, now, now.Add(-seenEvery), now.Add(-presenceKept)); err != nil {
		return nil, err
	}
	return s.Present(ctx, by, id)
}

// Present returns the names of the others who have a draft open.
func (s *Service) Present(ctx context.Context, by Reviewer, id ID) ([]string, error) {
	present, err := s.c.Store.Present(ctx, []ID{id}, by, s.now().Add(-presentFor))
	return present[id], err
}

// Draft returns one draft.
func (s *Service) Draft(ctx context.Context, id ID) (Draft, error) {
	d, err := s.c.Drafts.Draft(ctx, id)
	if err != nil {
		return Draft{}, err
	}
	r, err := s.c.Store.Review(ctx, id)
	switch {
	case err == nil:
		d = d.under(r)
	case !fault.Is(err, fault.NotFound):
		return Draft{}, err
	}
	s.nameKeys(ctx, &d.Maker)
	return d, nil
}

// Waiting returns the draft that has waited longest for a reviewer, but for one.
func (s *Service) Waiting(ctx context.Context, by Reviewer, but ID) (ID, bool, error) {
	own, err := s.own(ctx, by)
	if err != nil {
		return 0, false, err
	}
	list, err := s.c.Store.Waiting(ctx, own, pageSize(0))
	i := slices.IndexFunc(list, func(r Review) bool { return r.DraftID != but && !r.Maker.Is(by) })
	if err != nil || i < 0 {
		return 0, false, err
	}
	return list[i].DraftID, true, nil
}

// Undoable returns the action that a reviewer could undo next: their own newest, or the one that has ended
// the review.
func (s *Service) Undoable(ctx context.Context, by Reviewer, r Review) (Action, bool, error) {
	switch {
	case r.Maker.Is(by):
		return Action{}, false, nil
	case r.Status == Approved && !r.Attempted:
		return s.c.Store.LastAction(ctx, r.DraftID, "")
	case r.Status == InReview:
		return s.c.Store.LastAction(ctx, r.DraftID, by.Email)
	}
	return Action{}, false, nil
}
