// Package query is authoring's client of the query service.
package query

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/services/authoring"
)

// Source is the source database behind the query service.
type Source struct{ client *remote.Client }

var _ authoring.Source = Source{}

// New returns the source behind a client of query.
func New(client *remote.Client) Source { return Source{client} }

// The wire forms of the two questions. Members that query may add are ignored.
type (
	// checkRequest names the recipients of a draft, all of them in one call.
	checkRequest struct {
		Targets []authoring.Recipient `json:"targets"`
	}
	// checkResponse has those that there is something against, by their index in the request.
	checkResponse struct {
		Targets []struct {
			Index   int              `json:"index"`
			Reasons []string         `json:"reasons"`
			Meant   *authoring.Meant `json:"meant"`
		} `json:"targets"`
		// Named has the names of the contacts that are named otherwise.
		Named []struct {
			Index int      `json:"index"`
			Names []string `json:"names"`
		} `json:"named"`
	}
	// idsRequest names the ids of a segment's targets, which are all of one kind.
	idsRequest struct {
		Kind authoring.Kind `json:"kind"`
		IDs  []int64        `json:"ids"`
	}
	// rowsResponse has the rows of those of the ids that exist.
	rowsResponse struct {
		Rows []struct {
			ID  int64           `json:"id"`
			Row json.RawMessage `json:"row"`
		} `json:"rows"`
	}
	// idsResponse counts the ids that the source does not have, names the first of them, and says of which other kinds they are.
	idsResponse struct {
		Unknown int     `json:"unknown"`
		First   []int64 `json:"first"`
		Others  []struct {
			Kind  authoring.Kind `json:"kind"`
			Count int            `json:"count"`
		} `json:"others"`
	}
)

var (
	// rows asks for the rows of 10,000 ids at most.
	rows = remote.Operation[idsRequest, rowsResponse]{Path: "/internal/rows", Most: mostBytes, Repeatable: true}
	// check asks about all targets of a draft at once.
	check = remote.Operation[checkRequest, checkResponse]{Path: "/internal/recipients/check", Repeatable: true}
	// checkIDs asks about all targets of a segment at once.
	checkIDs = remote.Operation[idsRequest, idsResponse]{Path: "/internal/ids/check", Repeatable: true}
)

// Contracts are what this client takes for granted of query.
func Contracts() []remote.Contract {
	return []remote.Contract{check.Contract(), checkIDs.Contract(), rows.Contract()}
}

// Check implements authoring.Source in one call. When query or the source cannot be reached,
// its fault passes through.
func (s Source) Check(ctx context.Context, targets []authoring.Recipient) (map[int]authoring.Objection, error) {
	answer, err := check.Call(ctx, s.client, checkRequest{targets})
	if err != nil {
		return nil, err
	}
	objections := make(map[int]authoring.Objection, len(answer.Targets))
	for _, t := range answer.Targets {
		if t.Meant != nil && !slices.Contains(authoring.Kinds(), string(t.Meant.Kind)) {
			t.Meant = nil // a kind of later releases, of which nothing can be said
		}
		objections[t.Index] = authoring.Objection{Reasons: t.Reasons, Meant: t.Meant}
	}
	for _, t := range answer.Named {
		o := objections[t.Index]
		o.Names = t.Names
		objections[t.Index] = o
	}
	return objections, nil
}

// Unknown implements authoring.Source in one call.
func (s Source) Unknown(ctx context.Context, kind authoring.Kind, ids []int64) (authoring.UnknownIDs, error) {
	answer, err := checkIDs.Call(ctx, s.client, idsRequest{kind, ids})
	if err != nil {
		return authoring.UnknownIDs{}, err
	}
	unknown := authoring.UnknownIDs{Count: answer.Unknown, First: answer.First, Others: map[authoring.Kind]int{}}
	for _, other := range answer.Others {
		unknown.Others[other.Kind] = other.Count
	}
	return unknown, nil
}

const (
	// mostRows is how many rows one question is for, mostBytes what those of a call have at most, which is what a body may have.
	mostRows, mostBytes = 10_000, 32 << 20
	// rowBytes is what a row takes, about.
	rowBytes = 512
	// freeBytes count for nothing, as of a body.
	freeBytes = 64 << 10
)

// Rows implements authoring.Source, 10,000 ids a call. Rows are memory that a snapshot of "{}" asks for, so they count as bodies do.
func (s Source) Rows(ctx context.Context, kind authoring.Kind, ids []int64) (map[int64][]byte, error) {
	// All at once: calls that wait for their next part, with the others in hand, would wait for each other.
	held, size := max(len(ids)*rowBytes, freeBytes), 0
	if err := rpc.Hold(ctx, int64(held-freeBytes)); err != nil {
		return nil, err
	}
	all := make(map[int64][]byte, len(ids))
	for part := range slices.Chunk(ids, mostRows) {
		answer, err := rows.Call(ctx, s.client, idsRequest{kind, part})
		if err != nil {
			return nil, fault.New(fault.DB, "The rows of the %d targets with an empty snapshot could not be read from the source, and nothing is "+
				"stored. Try again in a moment with the same Idempotency-Key, or send the row that a search tool answered as each snapshot.",
				len(ids)).After(time.Second).Because(err)
		}
		for _, r := range answer.Rows {
			all[r.ID] = r.Row
			size += len(r.Row)
		}
		if size > mostBytes {
			return nil, schema.Invalid("/targets", "maxBytes", "have rows of more than the %d bytes that are allowed, where their snapshots "+
				"are empty; make several segments of them", mostBytes)
		}
		if size > held {
			if err := rpc.Hold(ctx, int64(size-held)); err != nil {
				return nil, err
			}
			held = size
		}
	}
	return all, nil
}
