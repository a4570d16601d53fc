package authoring

import (
	"context"
	"fmt"
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
)

// SegmentInfo is a row of list_segments.
type SegmentInfo struct {
	ID          string  `json:"id" jsonschema:"Segment id"`
	SegmentID   string  `json:"segment_id" jsonschema:"The same, as create_segment answers it: segmentId of save_message_draft"`
	Name        string  `json:"name" jsonschema:"Name"`
	Kind        Kind    `json:"kind" jsonschema:"What the targets are: partner, brand or campaign"`
	Description *string `json:"description" jsonschema:"Description; null without one"`
	TargetCount int     `json:"targetCount" jsonschema:"Number of targets"`
	CreatedBy   *string `json:"createdBy" jsonschema:"Label of whoever made it; null without one"`
	CreatedAt   string  `json:"createdAt" jsonschema:"When it was stored, UTC"`
}

// SegmentList is the answer of list_segments.
type SegmentList struct {
	Segments []SegmentInfo  `json:"segments" jsonschema:"Newest first"`
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"Why nothing was found; absent otherwise"`
}

// Count is the number of segments.
func (l SegmentList) Count() int { return len(l.Segments) }

// ListSegments lists the newest segments.
func (s *Service) ListSegments(ctx context.Context, in listSegmentsIn) (SegmentList, error) {
	f := SegmentFilter{ID: wanted(in.SegmentID), Kind: Kind(in.Kind), Offset: in.Offset, Limit: int(in.Limit)}
	segments, err := s.c.Store.Segments(ctx, f)
	list := SegmentList{Segments: make([]SegmentInfo, len(segments))}
	for i, x := range segments {
		list.Segments[i] = SegmentInfo{ID: x.ID.String(), SegmentID: x.ID.String(), Name: x.Name, Kind: x.Kind, Description: x.Description,
			TargetCount: x.TargetCount, CreatedBy: x.CreatedBy, CreatedAt: schema.Moment(x.CreatedAt)}
	}
	if len(segments) == 0 {
		list.Warnings = nothingListed("segment", in.SegmentID, in.Offset)
	}
	return list, err
}

// SegmentFilter asks the store for segments, the newest first.
type SegmentFilter struct {
	// ID is the one segment that is wanted; 0 is any.
	ID ID
	// Kind "" is any.
	Kind Kind
	// Offset is how many of the newest are passed over.
	Offset int64
	Limit  int
}

// wanted is the id that a list is asked for: 0 without one, and one that nothing has for a text that no id is written as.
func wanted(id string) ID {
	n, ok := schema.ParseID(id)
	if !ok && id != "" {
		return -1
	}
	return n
}

// nothingListed says what a list without an entry was asked for: an id, or an offset beyond the end.
func nothingListed(what, id string, offset int64) []tool.Warning {
	switch {
	case id != "":
		return []tool.Warning{{Rule: what + "Id", Message: fmt.Sprintf("no %s has the id %s and all else that was asked for: "+
			"send it alone, or list them without it", what, text.Shown(id, 40))}}
	case offset > 0:
		return []tool.Warning{{Rule: "offset", Message: fmt.Sprintf("there are not more than %d such %ss, so offset is beyond the end: "+
			"begin again at 0, and end at the first page with fewer than limit", offset, what)}}
	}
	return nil
}

// DraftInfo is a row of list_drafts.
type DraftInfo struct {
	ID          string    `json:"id" jsonschema:"Draft id"`
	DraftID     string    `json:"draft_id" jsonschema:"The same, as save_message_draft answers it: draftId of queue_for_review"`
	Name        string    `json:"name" jsonschema:"Name"`
	Status      Status    `json:"status" jsonschema:"draft, in_review, approved, rejected, sent or cancelled"`
	SegmentID   string    `json:"segmentId" jsonschema:"Segment of the draft"`
	SegmentName string    `json:"segmentName" jsonschema:"Its name"`
	SegmentKind Kind      `json:"segmentKind" jsonschema:"Its kind"`
	TargetCount int       `json:"targetCount" jsonschema:"Number of targets"`
	Decisions   Decisions `json:"decisions" jsonschema:"Targets by what reviewers decided"`
	Delivery    Delivery  `json:"delivery" jsonschema:"Approved targets by what became of their mail"`
	// Rejections are never null.
	Rejections Rejections `json:"rejections" jsonschema:"Rejected targets by the reason that reviewers chose; empty without any"`
	// Rejected is never null.
	Rejected []RejectedInfo `json:"rejected" jsonschema:"Rejected targets to write again, newest first: 50 of a draft, 200 of a call"`
	// RejectedMore counts those of Decisions.Rejected that are not in Rejected.
	RejectedMore int64   `json:"rejected_more" jsonschema:"How many more are rejected than rejected has"`
	CreatedBy    *string `json:"createdBy" jsonschema:"Label of whoever made it; null without one"`
	CreatedAt    string  `json:"createdAt" jsonschema:"When it was stored, UTC"`
	QueuedAt     *string `json:"queuedAt" jsonschema:"When it was queued for review, UTC; null before"`
	ReviewURL    string  `json:"review_url" jsonschema:"Page on which people see it and decide; agents cannot"`
}

// RejectedInfo is a rejected target as agents read it.
type RejectedInfo struct {
	ExternalID int64   `json:"externalId" jsonschema:"Id of the partner, as the draft has it"`
	ToEmail    string  `json:"toEmail" jsonschema:"Its recipient"`
	Subject    string  `json:"subject" jsonschema:"Subject as reviewers saw it"`
	Reason     *string `json:"reason" jsonschema:"Reason that the reviewer chose; null without one"`
	Note       *string `json:"note" jsonschema:"What the reviewer wrote; null without one"`
	DecidedAt  string  `json:"decidedAt" jsonschema:"When it was rejected, UTC"`
}

// DraftList is the answer of list_drafts.
type DraftList struct {
	Drafts   []DraftInfo    `json:"drafts" jsonschema:"Newest first"`
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"Why nothing was found; absent otherwise"`
}

// Count is the number of drafts.
func (l DraftList) Count() int { return len(l.Drafts) }

// ListDrafts lists the newest drafts.
func (s *Service) ListDrafts(ctx context.Context, in listDraftsIn) (DraftList, error) {
	f := DraftFilter{ID: wanted(in.DraftID), Offset: in.Offset, Limit: int(in.Limit)}
	if in.Status != "" {
		f.Statuses = []Status{Status(in.Status)}
	}
	drafts, err := s.c.Store.Drafts(ctx, f)
	if err != nil {
		return DraftList{}, err
	}
	list := DraftList{Drafts: make([]DraftInfo, len(drafts))}
	if len(drafts) == 0 {
		list.Warnings = nothingListed("draft", in.DraftID, in.Offset)
		return list, nil
	}
	rejected, err := s.rejected(ctx, drafts)
	for i, d := range drafts {
		list.Drafts[i] = s.info(d, rejected[d.ID])
	}
	return list, err
}

// maxRejectedListed is how many rejected targets one list has, of all its drafts.
const maxRejectedListed = 200

// rejected returns the rejected targets that a list of drafts has: those of the first drafts, until there are maxRejectedListed. It asks
// for those drafts alone.
func (s *Service) rejected(ctx context.Context, drafts []Draft) (map[ID][]RejectedTarget, error) {
	var ids []ID
	expected := int64(0)
	for _, d := range drafts {
		if n := d.Progress.Decisions.Rejected; n > 0 && expected < maxRejectedListed {
			ids = append(ids, d.ID)
			expected += min(n, maxRejected)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	of, err := s.c.Store.Rejected(ctx, ids)
	left := maxRejectedListed
	for _, id := range ids {
		of[id] = of[id][:min(len(of[id]), left)]
		left -= len(of[id])
	}
	return of, err
}

// info is a row of the list. Before the draft is queued its targets wait for nobody.
func (s *Service) info(d Draft, rejected []RejectedTarget) DraftInfo {
	infos := make([]RejectedInfo, len(rejected))
	for i, t := range rejected {
		infos[i] = RejectedInfo{ExternalID: t.ExternalID, ToEmail: t.ToEmail, Subject: t.Subject, Reason: textOrNil(t.Reason),
			Note: textOrNil(t.Note), DecidedAt: schema.Moment(t.DecidedAt)}
	}
	decisions := d.Progress.Decisions
	if d.QueuedAt == nil {
		decisions.Pending = 0
	}
	return DraftInfo{ID: d.ID.String(), DraftID: d.ID.String(), Name: d.Name, Status: d.Status, SegmentID: d.SegmentID.String(),
		SegmentName: d.SegmentName, SegmentKind: d.SegmentKind, TargetCount: d.TargetCount, Decisions: decisions,
		Delivery: d.Progress.Delivery, Rejections: d.Progress.Rejections.orEmpty(), Rejected: infos,
		RejectedMore: max(0, decisions.Rejected-int64(len(infos))), CreatedBy: d.CreatedBy,
		CreatedAt: schema.Moment(d.CreatedAt), QueuedAt: momentOrNil(d.QueuedAt), ReviewURL: s.c.PublicURL + "/drafts/" + d.ID.String()}
}

// textOrNil is a text that may be missing, as answers tell it.
func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// DraftFilter asks the store for drafts.
type DraftFilter struct {
	// ID is the one draft that is wanted; 0 is any.
	ID ID
	// Statuses to list; none means any.
	Statuses []Status
	// Search is a part of the draft's or the segment's name, or a draft's id; empty is any.
	Search string
	// ByQueue lists drafts that were queued, the longest waiting first; otherwise the newest come first.
	ByQueue bool
	// After is the last draft of the page before; 0 begins.
	After ID
	// Offset is how many of the newest are passed over. It goes with no other order, no Search, and nothing Ahead.
	Offset int64
	Limit  int
	// Makers are whom Others tells from: it leaves out what they have made.
	Makers []Maker
	Others bool
	// Ahead are drafts whose status counts as another one than is stored.
	Ahead []StatusAhead
}

// Maker is who made a draft, as it was stored: the label, and what the internal token said.
type Maker struct {
	CreatedBy      string `json:"created_by"`
	HubUser        string `json:"hub_user"`
	ExternalUserID string `json:"external_user_id"`
}

// StatusAhead is a status that authoring has not heard of yet.
type StatusAhead struct {
	DraftID string `json:"draft_id"`
	Status  Status `json:"status"`
}

// DraftCounts are the drafts that a search finds, by status.
type DraftCounts struct {
	// All has them all, Others those that Makers have not made.
	All, Others map[Status]int
}

// DraftListRequest asks for drafts, the newest first unless Order says otherwise.
type DraftListRequest struct {
	// Status are the statuses to list; none means any.
	Status []Status `json:"status,omitempty"`
	// AfterID is the last id of the page before; empty begins.
	AfterID string `json:"after_id,omitempty"`
	// Limit is between 1 and 500; absent is 100.
	Limit int `json:"limit,omitempty"`
	// Search is a part of the name of a draft or its segment without regard to case, or a draft's id;
	// at most 200 characters.
	Search string `json:"search,omitempty"`
	// Order is "newest", which is also absent, or "queued": drafts that were queued, the longest waiting first.
	Order string `json:"order,omitempty"`
	// Makers are at most 1,000 who made drafts, each with the same members; Others leaves out their drafts.
	Makers []Maker `json:"makers,omitempty"`
	Others bool    `json:"others,omitempty"`
	// Ahead are at most 5,000 drafts whose status is another one for this list and its counts: review-control
	// knows it first.
	Ahead []StatusAhead `json:"ahead,omitempty"`
	// Count asks for the counts.
	Count bool `json:"count,omitempty"`
}

// DraftListResponse is a page of drafts. NextAfterID is null on the last page. Counts are all drafts that the
// search finds by status, CountsOthers those that Makers have not made: statuses without a draft are absent,
// and both are absent unless asked for. They are those of the very moment of the page.
type DraftListResponse struct {
	Drafts       []DraftSummary `json:"drafts"`
	NextAfterID  *string        `json:"next_after_id"`
	Counts       map[Status]int `json:"counts,omitzero"`
	CountsOthers map[Status]int `json:"counts_others,omitzero"`
}

const (
	// Bounds of a neighbour's request: of its search, in characters, and of its lists, in entries.
	maxSearch = 200
	maxMakers = 1000
	maxAhead  = 5000
)

// filter judges the request.
func (in DraftListRequest) filter() (DraftFilter, error) {
	limit, err := pageSize(in.Limit, maxPage)
	if err != nil {
		return DraftFilter{}, err
	}
	after, ok := schema.ParseID(in.AfterID)
	switch {
	case !ok && in.AfterID != "":
		return DraftFilter{}, fault.New(fault.Validation, "after_id must be the id of a draft.")
	case len([]rune(in.Search)) > maxSearch:
		return DraftFilter{}, fault.New(fault.Validation, "search must have at most %d characters.", maxSearch)
	case !slices.Contains([]string{"", "newest", "queued"}, in.Order):
		return DraftFilter{}, fault.New(fault.Validation, "order must be newest or queued.")
	case len(in.Makers) > maxMakers:
		return DraftFilter{}, fault.New(fault.Validation, "makers must have at most %d entries.", maxMakers)
	case len(in.Ahead) > maxAhead:
		return DraftFilter{}, fault.New(fault.Validation, "ahead must have at most %d entries.", maxAhead)
	}
	for _, a := range in.Ahead {
		if _, ok := schema.ParseID(a.DraftID); !ok {
			return DraftFilter{}, fault.New(fault.Validation, "ahead must name drafts by their ids.")
		}
	}
	return DraftFilter{Statuses: in.Status, Search: in.Search, ByQueue: in.Order == "queued", After: after, Limit: limit + 1,
		Makers: in.Makers, Others: in.Others, Ahead: in.Ahead}, nil
}

// pageDrafts is keyset pagination: it asks the store for one draft more than the page has, to tell whether another page follows.
func (s *Service) pageDrafts(ctx context.Context, in DraftListRequest) (out DraftListResponse, err error) {
	f, err := in.filter()
	if err != nil {
		return DraftListResponse{}, err
	}
	var drafts []Draft
	if in.Count {
		var counts DraftCounts
		drafts, counts, err = s.c.Store.CountedDrafts(ctx, f)
		out.Counts, out.CountsOthers = counts.All, counts.Others
	} else {
		drafts, err = s.c.Store.Drafts(ctx, f)
	}
	if err != nil {
		return DraftListResponse{}, err
	}
	out.Drafts = []DraftSummary{}
	for i, d := range drafts {
		if i == f.Limit-1 {
			out.NextAfterID = &out.Drafts[i-1].ID
			break
		}
		out.Drafts = append(out.Drafts, d.summary())
	}
	return out, nil
}
