package authoring

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/schema"
	"hub.internal/services/authoring/evidence"
)

// segmentTargets reads the targets of a validated input where they are: snapshots are
// parts of raw, not copies. They end with ctx.
func segmentTargets(ctx context.Context, raw json.RawMessage) SegmentTargets {
	return evidence.Elements(ctx, raw, func(t *SegmentTarget, name string, value jsontext.Value) error {
		switch name {
		case "externalId":
			return evidence.ReadInteger(value, &t.ExternalID)
		case "snapshot":
			t.Snapshot = value
		}
		return nil
	})
}

// draftTargets reads the targets of a validated input; contexts are parts of raw. They end with ctx.
func draftTargets(ctx context.Context, raw json.RawMessage) DraftTargets {
	return evidence.Elements(ctx, raw, func(t *DraftTarget, name string, value jsontext.Value) error {
		switch name {
		case "externalId":
			return evidence.ReadInteger(value, &t.ExternalID)
		case "toEmail":
			return evidence.ReadText(value, &t.ToEmail)
		case "toName":
			return evidence.ReadText(value, &t.ToName)
		case "subject":
			return evidence.ReadText(value, &t.Subject)
		case "body":
			return evidence.ReadText(value, &t.Body)
		case "context":
			t.Context = value
		}
		return nil
	})
}

const (
	// mostRows is how many rows the source is asked for at once.
	mostRows = 10_000
	// rowBytes is what a row of the source takes, about.
	rowBytes = 512
	// freeRows are as many as count for nothing.
	freeRows = 128
)

// withRows are targets with the source's row for each snapshot that is empty, and how many have one. An id that the source does not
// have keeps its empty snapshot. Rows are memory that a body of "{}" asks for: they count as it does, and all together have no more bytes
// than it may have. It returns E_DB when the rows cannot be read, E_RATE_LIMIT without memory for them, and E_VALIDATION beyond 32 MiB.
func (s *Service) withRows(ctx context.Context, kind Kind, targets SegmentTargets, empty []int64) (SegmentTargets, int, error) {
	if len(empty) == 0 {
		return targets, 0, nil
	}
	// All at once: calls that wait for their next part, with the others in hand, would wait for each other.
	held, size := max(0, len(empty)-freeRows)*rowBytes, 0
	if err := hop.Hold(ctx, int64(held)); err != nil {
		return nil, 0, err
	}
	rows := make(map[int64][]byte, len(empty))
	for part := range slices.Chunk(empty, mostRows) {
		some, err := s.c.Source.Rows(ctx, kind, part)
		if err != nil {
			return nil, 0, fault.New(fault.DB, "The rows of the %d targets with an empty snapshot could not be read from the source, and nothing "+
				"is stored. Try again in a moment with the same Idempotency-Key, or send the row that a search tool answered as each snapshot.",
				len(empty)).After(time.Second).Because(err)
		}
		for id, row := range some {
			rows[id] = row
			size += len(row)
		}
		if size > maxWrite {
			return nil, 0, schema.Invalid("/targets", "maxBytes", "have rows of more than the %d bytes that are allowed, where their snapshots "+
				"are empty; make several segments of them", maxWrite)
		}
		if more := size - held; more > freeRows*rowBytes {
			if err := hop.Hold(ctx, int64(more)); err != nil {
				return nil, 0, err
			}
			held = size
		}
	}
	return func(yield func(SegmentTarget, error) bool) {
		for t, err := range targets {
			if row := rows[t.ExternalID]; row != nil && evidence.IsEmpty(t.Snapshot) {
				t.Snapshot = row
			}
			if !yield(t, err) {
				return
			}
		}
	}, len(rows), nil
}

// targetPath is the JSON pointer to a target, or to a member of it.
func targetPath(index int, member ...string) string {
	return strings.Join(append([]string{"/targets/" + strconv.Itoa(index)}, member...), "/")
}

// isPlainLine tells in most cases that a text is a fit line, without a path made for it.
func isPlainLine(text string, max int) bool {
	return len(text) <= max && strings.IndexFunc(text, schema.Unprintable) < 0
}
