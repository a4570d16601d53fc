package query

import (
	"context"
	"slices"

	"hub.internal/pkg/fault"
)

// IDsPath is where authoring asks which of a segment's ids the source does not have.
const IDsPath = "/internal/ids/check"

const (
	// maxIDs is how many ids one check takes: a whole segment.
	maxIDs = 50_000
	// idsMaxBody holds as many of the longest.
	idsMaxBody = 2 << 20
	// mostUnknown is how many of those that do not exist are named.
	mostUnknown = 10
	// mostGuessed is how many of those that do not exist are looked up as something else.
	mostGuessed = 500
)

// Kind is what an id is the primary key of.
type Kind string

// The kinds of what is written to, or about.
const (
	PartnerID  Kind = "partner"
	BrandID    Kind = "brand"
	CampaignID Kind = "campaign"
)

var kinds = []Kind{PartnerID, BrandID, CampaignID}

// IDsRequest asks which of the ids are ids of the kind, at most 50,000.
type IDsRequest struct {
	Kind Kind    `json:"kind"`
	IDs  []int64 `json:"ids"`
}

// IDsResponse names those that are not.
type IDsResponse struct {
	// Unknown counts them, each once; First are the first ten in the order of the request.
	Unknown int     `json:"unknown"`
	First   []int64 `json:"first"`
	// Others tell how many of the first 500 of them are ids of another kind; kinds without one are absent.
	Others []OtherKind `json:"others"`
}

// OtherKind is how many ids are ids of another kind than was said.
type OtherKind struct {
	Kind  Kind `json:"kind"`
	Count int  `json:"count"`
}

// IDSource knows what exists. Its errors are faults.
type IDSource interface {
	// Owners are those of the ids that exist, each with its partner's id; of a partner that is its own.
	Owners(ctx context.Context, kind Kind, ids []int64) (map[int64]int64, error)
}

// CheckIDs names the ids that the source does not have. It reads the source by primary key, 500 ids at a time. It returns
// E_VALIDATION for another kind or more than 50,000 ids.
func (r *Recipients) CheckIDs(ctx context.Context, in IDsRequest) (IDsResponse, error) {
	if len(in.IDs) > maxIDs || !slices.Contains(kinds, in.Kind) {
		return IDsResponse{}, fault.New(fault.Validation, "At most %d ids of one of %v can be checked at once.", maxIDs, kinds)
	}
	ids := distinct(in.IDs)
	known, err := r.source.Owners(ctx, in.Kind, ids)
	if err != nil {
		return IDsResponse{}, err
	}
	missing := slices.DeleteFunc(ids, func(id int64) bool { _, exists := known[id]; return exists })
	out := IDsResponse{Unknown: len(missing), First: missing[:min(len(missing), mostUnknown)], Others: []OtherKind{}}
	for _, kind := range kinds {
		if kind == in.Kind || len(missing) == 0 {
			continue
		}
		others, err := r.source.Owners(ctx, kind, missing[:min(len(missing), mostGuessed)])
		if err != nil {
			return IDsResponse{}, err
		}
		if len(others) > 0 {
			out.Others = append(out.Others, OtherKind{kind, len(others)})
		}
	}
	return out, nil
}

// distinct has each id once, where it came first.
func distinct(ids []int64) []int64 {
	seen, list := make(map[int64]bool, len(ids)), make([]int64, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}
