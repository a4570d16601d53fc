package authoring

import (
	"iter"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/services/authoring/evidence"
)

// Kind is what the externalIds of a segment are ids of.
type Kind string

// The kinds of segments. Partner and brand mean a corporate unit.
const (
	Partner  Kind = "partner"
	Brand    Kind = "brand"
	Campaign Kind = "campaign"
)

// Kinds lists them.
func Kinds() []string { return []string{string(Partner), string(Brand), string(Campaign)} }

// MaxSegmentTargets is how many targets a segment may have.
const MaxSegmentTargets = 50_000

// Bounds of the texts, in characters.
const (
	maxName        = 200
	maxDescription = 1000
	maxCreatedBy   = 200
)

// Segment is a named list of targets. It never changes.
type Segment struct {
	ID   ID
	Name string
	Kind Kind
	// Description and CreatedBy are nil when nobody gave them.
	Description *string
	CreatedBy   *string
	Origin      Origin
	CreatedAt   time.Time
	TargetCount int
}

// SegmentTarget is a member of a segment: an id of the source and the row that a search
// tool answered for it, kept byte for byte as evidence.
type SegmentTarget struct {
	ExternalID int64
	Snapshot   []byte
}

// Partner is the partner that the target of a segment of brands or campaigns belongs to, as
// the snapshot has it: search tools name it partner_id. It is nil where the snapshot has
// none, and in a segment of partners, where ExternalID is the partner.
func (t SegmentTarget) Partner(kind Kind) *int64 {
	if kind == Partner {
		return nil
	}
	return evidence.PartnerOf(t.Snapshot)
}

// SegmentTargets are read one by one, and more than once: a body of 32 MiB is not held in
// another form. An error ends them.
type SegmentTargets = iter.Seq2[SegmentTarget, error]

// validate judges a segment that is about to be stored and counts its targets. It answers what it has seen of them.
func (s Segment) validate(targets SegmentTargets) (Segment, evidence.Snapshots, error) {
	var v schema.Violations
	var seen evidence.Snapshots
	v.Line("/name", s.Name, maxName)
	checkNote(&v, "/description", s.Description)
	checkLabel(&v, "/createdBy", s.CreatedBy)
	first := map[int64]int{}
	for t, err := range targets {
		if err != nil {
			return Segment{}, seen, err
		}
		if earlier, twice := first[t.ExternalID]; twice {
			v.Add(targetPath(s.TargetCount, "externalId"), "uniqueItems",
				"is %d, as is that of target %d; name each target once", t.ExternalID, earlier)
		} else {
			first[t.ExternalID] = s.TargetCount
		}
		s.TargetCount++
		seen.Add(string(s.Kind), t.ExternalID, t.Snapshot)
	}
	return s, seen, v.Err()
}

// checkLabel holds a label to one line.
func checkLabel(v *schema.Violations, path string, text *string) {
	if text != nil {
		v.Line(path, *text, maxCreatedBy)
	}
}

// checkNote holds a description to its bound; it may have several lines.
func checkNote(v *schema.Violations, path string, text *string) {
	if text != nil {
		v.Prose(path, *text)
		v.Length(path, *text, maxDescription)
	}
}
