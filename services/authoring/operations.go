package authoring

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/services/authoring/evidence"
	"hub.internal/services/authoring/lint"
	"hub.internal/services/authoring/repeat"
)

// Operations declares what authoring does for its neighbours. The JSON of these only grows.
func Operations(s *Service) []rpc.Operation {
	review := caller.Neighbour("review-control")
	return []rpc.Operation{
		rpc.New(rpc.Declaration{Path: DraftGetPath, Takes: review}, s.getDraft),
		rpc.New(rpc.Declaration{Path: DraftListPath, Takes: review}, s.pageDrafts),
		rpc.New(rpc.Declaration{Path: DraftTargetsPath, Takes: review}, s.pageTargets),
		rpc.New(rpc.Declaration{Path: DraftRecipientsPath, Takes: review}, s.pageRecipients),
		rpc.New(rpc.Declaration{Path: DraftProgressPath, Takes: review}, s.progress),
		// The history says who has moved a draft, and an agent may do less than a person: so it is
		// shown for whom, where somebody has asked for it.
		rpc.New(rpc.Declaration{Path: DraftTransitionPath,
			Takes: caller.Rule{"review-control": {caller.Service, caller.Key, caller.App, caller.User}}}, s.transition),
	}
}

// Where review-control reaches drafts.
const (
	DraftGetPath        = "/internal/drafts/get"
	DraftListPath       = "/internal/drafts/list"
	DraftTargetsPath    = "/internal/drafts/targets"
	DraftRecipientsPath = "/internal/drafts/recipients"
	DraftTransitionPath = "/internal/drafts/transition"
	DraftProgressPath   = "/internal/drafts/progress"
)

// DraftRequest names a draft.
type DraftRequest struct {
	DraftID string `json:"draft_id"`
}

// id is the draft's id; E_NOT_FOUND for a text that is none.
func (r DraftRequest) id() (ID, error) {
	id, ok := schema.ParseID(r.DraftID)
	if !ok {
		return 0, notFound("draft", r.DraftID)
	}
	return id, nil
}

// DraftSummary is a draft in a list for a neighbour.
type DraftSummary struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Status      Status    `json:"status"`
	SegmentID   string    `json:"segment_id"`
	SegmentName string    `json:"segment_name"`
	SegmentKind Kind      `json:"segment_kind"`
	TargetCount int       `json:"target_count"`
	Decisions   Decisions `json:"decisions"`
	Delivery    Delivery  `json:"delivery"`
	// ProgressVersion is 0 until review-control has counted.
	ProgressVersion int64   `json:"progress_version"`
	CreatedBy       *string `json:"created_by"`
	// Origin is who made the draft, as the internal token said it.
	Origin    Origin  `json:"origin"`
	CreatedAt string  `json:"created_at"`
	QueuedAt  *string `json:"queued_at"`
}

// DraftDetail is a draft without its targets.
type DraftDetail struct {
	DraftSummary
	SubjectTemplate string  `json:"subject_template"`
	BodyTemplate    string  `json:"body_template"`
	SenderName      *string `json:"sender_name"`
	SenderEmail     *string `json:"sender_email"`
}

// summary is the draft as neighbours list it.
func (d Draft) summary() DraftSummary {
	return DraftSummary{ID: d.ID.String(), Name: d.Name, Status: d.Status, SegmentID: d.SegmentID.String(), SegmentName: d.SegmentName,
		SegmentKind: d.SegmentKind, TargetCount: d.TargetCount, Decisions: d.Progress.Decisions, Delivery: d.Progress.Delivery,
		ProgressVersion: d.Progress.Version, CreatedBy: d.CreatedBy, Origin: d.Origin,
		CreatedAt: schema.Moment(d.CreatedAt), QueuedAt: momentOrNil(d.QueuedAt)}
}

// getDraft answers a draft without its targets.
func (s *Service) getDraft(ctx context.Context, in DraftRequest) (DraftDetail, error) {
	id, err := in.id()
	if err != nil {
		return DraftDetail{}, err
	}
	d, err := s.c.Store.Draft(ctx, id)
	return DraftDetail{DraftSummary: d.summary(), SubjectTemplate: d.SubjectTemplate, BodyTemplate: d.BodyTemplate, SenderName: d.SenderName,
		SenderEmail: d.SenderEmail}, err
}

const (
	// defaultPage and maxPage are how many entries a page has without a limit, and at most.
	defaultPage = 100
	maxPage     = 500
	// maxRecipients is the largest page of recipients.
	maxRecipients = 5000
	// maxPageBytes is how much of mails and evidence a page holds; its last target may go beyond.
	maxPageBytes = 4 << 20
)

// pageSize is the size of a page: defaultPage without a limit, and E_VALIDATION beyond most.
func pageSize(limit, most int) (int, error) {
	switch {
	case limit == 0:
		return defaultPage, nil
	case limit < 0 || limit > most:
		return 0, fault.New(fault.Validation, "limit must be between 1 and %d, not %d.", most, limit)
	}
	return limit, nil
}

// lastIndex is the index behind which a page begins: -1 for the first page.
func lastIndex(after *int) int {
	if after == nil {
		return -1
	}
	return *after
}

// DraftTargetsRequest asks for a page of a draft's targets, rendered.
type DraftTargetsRequest struct {
	DraftRequest
	// After is the last index of the page before; absent for the first page.
	After *int `json:"after,omitempty"`
	// Limit is between 1 and 500; absent is 100.
	Limit int `json:"limit,omitempty"`
	// IDs, when there are any, are the indexes of the targets wanted, in any order.
	IDs []int `json:"ids,omitempty"`
}

// DraftTargetsResponse is a page of targets by index. It ends at its limit or when it
// holds 4 MiB; NextAfter is the last index when there is more, else null.
type DraftTargetsResponse struct {
	Targets   []TargetView `json:"targets"`
	NextAfter *int         `json:"next_after"`
}

// TargetView is a target with the mail that it would get.
type TargetView struct {
	Index      int    `json:"index"`
	ExternalID int64  `json:"external_id"`
	ToEmail    string `json:"to_email"`
	ToName     string `json:"to_name"`
	Subject    string `json:"subject"`
	Body       string `json:"body"`
	// HTML tells whether the body is HTML or plain text.
	HTML bool `json:"html"`
	// SubjectTemplate and BodyTemplate are the target's own, where it has one instead of the draft's.
	SubjectTemplate *string `json:"subject_template,omitempty"`
	BodyTemplate    *string `json:"body_template,omitempty"`
	// Context is what the agent wants the reviewer to see; null without one.
	Context json.RawMessage `json:"context"`
	// Snapshot is the segment's evidence of the same partner: a snapshot as it was sent, a list
	// of several (at most ten) when the segment has brands or campaigns, null without any.
	Snapshot json.RawMessage `json:"snapshot"`
	// Doubts name what a reviewer should look at: context (of somebody else), name (not the contact's), markdown, unfinished, sender (at
	// a provider of private mailboxes), repeated (the very text) and recent (another mail). Later releases may name others.
	Doubts []string `json:"doubts,omitempty"`
	// Repeats says which earlier mail it repeats; absent when none.
	Repeats string `json:"repeats,omitempty"`
	// ContentHash is for releases of review-control before the one that renders mails itself, in
	// hexadecimal: nothing newer reads it.
	ContentHash string `json:"content_hash"`
}

// pageTargets renders a page of a draft's targets. A page ends at its limit or its bytes, whichever comes first.
func (s *Service) pageTargets(ctx context.Context, in DraftTargetsRequest) (DraftTargetsResponse, error) {
	id, err := in.id()
	if err != nil {
		return DraftTargetsResponse{}, err
	}
	limit, err := pageSize(in.Limit, maxPage)
	if err != nil {
		return DraftTargetsResponse{}, err
	}
	if len(in.IDs) > maxPage {
		return DraftTargetsResponse{}, fault.New(fault.Validation, "At most %d ids can be asked for at once.", maxPage)
	}
	if len(in.IDs) > 0 {
		limit = maxPage
	}
	draft, err := s.c.Store.Draft(ctx, id)
	if err != nil {
		return DraftTargetsResponse{}, err
	}
	templates, err := draft.Templates()
	if err != nil {
		return DraftTargetsResponse{}, fmt.Errorf("draft %s: %w", id, err)
	}
	out := DraftTargetsResponse{Targets: []TargetView{}}
	size, asked := 0, []repeat.Target{}
	err = s.c.Store.DraftTargets(ctx, id, lastIndex(in.After), in.IDs, func(t StoredTarget) (bool, error) {
		if len(out.Targets) == limit || size > maxPageBytes {
			out.NextAfter = &out.Targets[len(out.Targets)-1].Index
			return false, nil
		}
		mail, err := Render(templates, t.DraftTarget)
		if err != nil {
			return false, fmt.Errorf("draft %s, target %d: %w", id, t.Index, err)
		}
		hash, snapshot := mail.ContentHash(), evidence.Shown(t.Snapshots)
		view := TargetView{Index: t.Index, ExternalID: t.ExternalID, ToEmail: mail.ToEmail, ToName: mail.ToName,
			Subject: mail.Subject, Body: mail.Body, HTML: mail.HTML,
			Context: t.Context, Snapshot: snapshot, ContentHash: hex.EncodeToString(hash[:]),
			Doubts: append(t.Doubts, lint.Doubts(mail.Subject, mail.Body, draft.SenderEmail)...)}
		if t.Subject != "" {
			view.SubjectTemplate = &t.Subject
		}
		if t.Body != "" {
			view.BodyTemplate = &t.Body
			size += len(t.Body)
		}
		out.Targets, asked = append(out.Targets, view), append(asked, t.asks())
		size += len(mail.Body) + len(t.Context) + len(snapshot)
		return true, nil
	})
	if err != nil {
		return DraftTargetsResponse{}, err
	}
	return out, s.sayRepeats(ctx, draft, out.Targets, asked)
}

// sayRepeats says of a page's targets which earlier mail they repeat.
func (s *Service) sayRepeats(ctx context.Context, draft Draft, page []TargetView, asked []repeat.Target) error {
	found, err := s.repeats(ctx, draft.ID, draft.QueuedAt, asked)
	for i, r := range found {
		page[i].Repeats, page[i].Doubts = r.says, append(page[i].Doubts, r.doubt)
	}
	return err
}

// RecipientsRequest asks for a page of a draft's recipients: its targets without their mails.
type RecipientsRequest struct {
	DraftRequest
	// After is the last index of the page before; absent for the first page.
	After *int `json:"after,omitempty"`
	// Limit is between 1 and 5,000; absent is 100.
	Limit int `json:"limit,omitempty"`
}

// RecipientsResponse is a page of recipients by index. NextAfter is the last index when
// there are more, else null.
type RecipientsResponse struct {
	Recipients []RecipientView `json:"recipients"`
	NextAfter  *int            `json:"next_after"`
}

// RecipientView is who a target is.
type RecipientView struct {
	Index      int    `json:"index"`
	ExternalID int64  `json:"external_id"`
	ToEmail    string `json:"to_email"`
	ToName     string `json:"to_name"`
	// Repeats says which earlier mail it repeats; absent when none.
	Repeats string `json:"repeats,omitempty"`
}

// pageRecipients answers who the targets are; one row more than the page is read, to tell whether another page follows. It is asked when
// the draft is queued, and of two that are queued at once either may be the first: so drafts that were queued later count, too.
func (s *Service) pageRecipients(ctx context.Context, in RecipientsRequest) (RecipientsResponse, error) {
	id, err := in.id()
	if err != nil {
		return RecipientsResponse{}, err
	}
	limit, err := pageSize(in.Limit, maxRecipients)
	if err != nil {
		return RecipientsResponse{}, err
	}
	if _, err := s.c.Store.Draft(ctx, id); err != nil {
		return RecipientsResponse{}, err
	}
	targets, err := s.c.Store.DraftRecipients(ctx, id, lastIndex(in.After), limit+1)
	if err != nil {
		return RecipientsResponse{}, err
	}
	asked := make([]repeat.Target, len(targets))
	for i, t := range targets {
		asked[i] = t.asks()
	}
	found, err := s.repeats(ctx, id, nil, asked)
	if err != nil {
		return RecipientsResponse{}, err
	}
	out := RecipientsResponse{Recipients: make([]RecipientView, 0, len(targets))}
	for i, t := range targets {
		if i == limit {
			out.NextAfter = &out.Recipients[limit-1].Index
			break
		}
		out.Recipients = append(out.Recipients, RecipientView{t.Index, t.ExternalID, t.ToEmail, t.ToName, found[i].says})
	}
	return out, nil
}

// TransitionRequest asks for a change of a draft's status.
type TransitionRequest struct {
	DraftRequest
	// From is where the caller believes the draft to be, one of them.
	From []Status `json:"from"`
	To   Status   `json:"to"`
	// QueuedAt is for the transition from draft to in_review; absent is now.
	QueuedAt *time.Time `json:"queued_at,omitempty"`
	// OperationID names the wish: sent again, it answers the same and changes nothing.
	OperationID string `json:"operation_id"`
	// Version is that of the counts which the caller has told; when newer ones are known, the wish is
	// out of date, and refused. Absent is any.
	Version int64 `json:"version,omitempty"`
}

// TransitionResponse tells what became of it.
type TransitionResponse struct {
	DraftID  string  `json:"draft_id"`
	From     Status  `json:"from"`
	To       Status  `json:"to"`
	QueuedAt *string `json:"queued_at"`
	At       string  `json:"at"`
	// Replayed tells that an earlier call of this operation changed the draft.
	Replayed bool `json:"replayed"`
}

// transition is a compare-and-set on the draft's status, which answers the same when it is sent again.
func (s *Service) transition(ctx context.Context, in TransitionRequest) (TransitionResponse, error) {
	c := caller.From(ctx)
	t := Transition{Operation: in.OperationID, From: in.From, To: in.To, Version: in.Version,
		ByAgent: c.Kind == caller.Key || c.Kind == caller.App}
	if in.QueuedAt != nil {
		t.QueuedAt = new(in.QueuedAt.UTC().Truncate(time.Millisecond))
	}
	if err := t.check(); err != nil {
		return TransitionResponse{}, err
	}
	id, err := in.id()
	if err != nil {
		return TransitionResponse{}, err
	}
	now := s.c.Now().UTC().Truncate(time.Millisecond)
	if t.To == InReview && t.QueuedAt == nil {
		t.QueuedAt = &now
	}
	done, err := s.c.Store.Transition(ctx, id, t, origin(c), now)
	return TransitionResponse{DraftID: id.String(), From: done.From, To: done.To, QueuedAt: momentOrNil(done.QueuedAt),
		At: schema.Moment(done.At), Replayed: done.Replayed}, err
}

// ProgressRequest sets a draft's counters.
type ProgressRequest struct {
	DraftRequest
	// Version grows with each count: an older one changes nothing.
	Version   int64     `json:"version"`
	Decisions Decisions `json:"decisions"`
	Delivery  Delivery  `json:"delivery"`
	// Rejections is absent where a release of review-control counts none; nothing is known of reasons then.
	Rejections Rejections `json:"rejections,omitempty"`
	// Rejected are the newest rejected targets, at most 50; absent where a release of review-control tells none.
	Rejected []RejectedTarget `json:"rejected,omitempty"`
}

// ProgressResponse is what the draft has now; Version tells whether that is what was sent.
type ProgressResponse struct {
	DraftID    string     `json:"draft_id"`
	Version    int64      `json:"version"`
	Decisions  Decisions  `json:"decisions"`
	Delivery   Delivery   `json:"delivery"`
	Rejections Rejections `json:"rejections"`
}

// progress keeps the newest counters. Messages may overtake each other: the version orders them.
func (s *Service) progress(ctx context.Context, in ProgressRequest) (ProgressResponse, error) {
	id, err := in.id()
	if err != nil {
		return ProgressResponse{}, err
	}
	p, err := s.c.Store.SetProgress(ctx, id,
		Progress{Version: in.Version, Decisions: in.Decisions, Delivery: in.Delivery, Rejections: in.Rejections, Rejected: in.Rejected})
	return ProgressResponse{DraftID: id.String(), Version: p.Version, Decisions: p.Decisions, Delivery: p.Delivery,
		Rejections: p.Rejections.orEmpty()}, err
}
