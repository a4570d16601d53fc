package authoring

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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

// withRows are targets with the source's row for each snapshot that is empty, and how many have one. An id that the source does not
// have keeps its empty snapshot.
func (s *Service) withRows(ctx context.Context, kind Kind, targets SegmentTargets, empty []int64) (SegmentTargets, int, error) {
	if len(empty) == 0 {
		return targets, 0, nil
	}
	rows, err := s.c.Source.Rows(ctx, kind, empty)
	if err != nil {
		return nil, 0, err
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
