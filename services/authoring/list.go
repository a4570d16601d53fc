package authoring

import (
	"context"
	"slices"

	"hub.internal/pkg/fault"
)

// DraftFilter asks the store for drafts.
type DraftFilter struct {
	// Statuses to list; none means any.
	Statuses []Status
	// Search is a part of the draft's or the segment's name, or a draft's id; empty is any.
	Search string
	// ByQueue lists drafts that were queued, the longest waiting first; otherwise the newest come first.
	ByQueue bool
	// After is the last draft of the page before; 0 begins.
	After ID
	Limit int
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
// and both are null unless asked for. They are those of the very moment of the page.
type DraftListResponse struct {
	Drafts       []DraftSummary `json:"drafts"`
	NextAfterID  *string        `json:"next_after_id"`
	Counts       map[Status]int `json:"counts"`
	CountsOthers map[Status]int `json:"counts_others"`
}

const (
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
	after, ok := ParseID(in.AfterID)
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
		if _, ok := ParseID(a.DraftID); !ok {
			return DraftFilter{}, fault.New(fault.Validation, "ahead must name drafts by their ids.")
		}
	}
	return DraftFilter{Statuses: in.Status, Search: in.Search, ByQueue: in.Order == "queued", After: after, Limit: limit + 1,
		Makers: in.Makers, Others: in.Others, Ahead: in.Ahead}, nil
}

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
