// Package authoring keeps what agents prepare: segments (named lists of targets) and
// drafts (a mail to each of a list). It owns a draft's status. It refuses to send, to
// decide, and to keep a draft for anybody but verified contacts of partners.
//
// The domain is in segment.go, draft.go, progress.go and the leaf template; this file is what the tools and
// the neighbours can ask for.
package authoring

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/markup"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/authoring/lint"
	"hub.internal/services/authoring/preview"
	"hub.internal/services/authoring/repeat"
)

// Store keeps segments and drafts. Its errors are faults; E_NOT_FOUND for an id that it
// does not have.
type Store interface {
	// StoredAnswer returns the answer of an earlier call with the key, if there is one.
	StoredAnswer(ctx context.Context, key write.Key) (tool.Result, bool, error)
	// Equal warns where an equal call of the last day has made the same thing; nil when not.
	Equal(ctx context.Context, key write.Key, what string) (*tool.Warning, error)
	// AddSegment stores a segment once for the key, together with what record makes of its id.
	AddSegment(ctx context.Context, key write.Key, s Segment, targets SegmentTargets, record Record) (tool.Result, error)
	// AddDraft does the same for a draft.
	AddDraft(ctx context.Context, key write.Key, d Draft, targets DraftTargets, record Record) (tool.Result, error)

	Segment(ctx context.Context, id ID) (Segment, error)
	// Segments returns the newest segments that the filter finds.
	Segments(ctx context.Context, f SegmentFilter) ([]Segment, error)
	Draft(ctx context.Context, id ID) (Draft, error)
	// Drafts returns a page of drafts, without their templates.
	Drafts(ctx context.Context, f DraftFilter) ([]Draft, error)
	// Rejected returns what is kept of the rejected targets of drafts, the newest of each first.
	Rejected(ctx context.Context, drafts []ID) (map[ID][]RejectedTarget, error)
	// CountedDrafts is Drafts with how many drafts its Search finds at that very moment, by status.
	CountedDrafts(ctx context.Context, f DraftFilter) ([]Draft, DraftCounts, error)
	// DraftTargets calls yield with targets in their order, from after the index after or, when
	// there are any, those of the indexes, until it answers false.
	DraftTargets(ctx context.Context, id ID, after int, indexes []int, yield func(StoredTarget) (bool, error)) error
	// DraftRecipients returns targets from after the index after, without what they are written.
	DraftRecipients(ctx context.Context, id ID, after, limit int) ([]StoredTarget, error)
	// Evidence calls yield with each snapshot that a segment has of the partners.
	Evidence(ctx context.Context, segment Segment, partners []int64, yield func(partner int64, snapshot []byte)) error
	// SegmentPartners counts the partners that a segment is of.
	SegmentPartners(ctx context.Context, segment Segment) (int, error)
	// Earlier returns the gravest earlier mail to each target that has any, by its place: to the same address or partner in another draft
	// than one that is about to leave or has left since then, and with the same text at any time; but those alone that were queued before
	// a moment, or have moved on before the one did. nil is no bound for before, and no mails to address or partner for since.
	Earlier(ctx context.Context, but ID, before, since *time.Time, targets []repeat.Target) (map[int]repeat.Mail, error)
	// OutsideSegment returns those of the partners that a segment has nothing of, in their order.
	OutsideSegment(ctx context.Context, segment Segment, partners []int64) ([]OutsidePartner, error)

	// Transition stores what Draft.Change says of the locked draft, unless that is a replay, and returns it.
	Transition(ctx context.Context, id ID, t Transition, by Origin, at time.Time) (StatusChange, error)
	// SetProgress stores what Draft.Count says of the locked draft, and returns the draft's progress.
	SetProgress(ctx context.Context, id ID, p Progress) (Progress, error)
}

// Record makes the stored answer and the audit row of what got the id.
type Record func(id ID) (tool.Result, audit.Entry, error)

// StoredTarget is a draft's target with its place, and the snapshots that the segment holds
// of the same partner in the order of the segment, ten at most: of a segment of partners it
// is one, and of brands or campaigns there may be more.
type StoredTarget struct {
	DraftTarget
	Index     int
	Snapshots []string
}

// Source knows what the source database has, and who may be written to. Its errors are faults.
type Source interface {
	// Check returns what there is against targets, by index.
	Check(ctx context.Context, targets []Recipient) (map[int]Objection, error)
	// Unknown returns those of a segment's ids that are none.
	Unknown(ctx context.Context, kind Kind, ids []int64) (UnknownIDs, error)
	// Rows are those of the ids that exist, each a JSON object as a search tool answers it. E_DB when they cannot be read, E_RATE_LIMIT
	// without memory for them, and E_VALIDATION for more than 32 MiB.
	Rows(ctx context.Context, kind Kind, ids []int64) (map[int64][]byte, error)
}

// Recipient is a target as the source knows it.
type Recipient struct {
	PartnerID int64  `json:"partner_id"`
	Email     string `json:"email"`
	// Name is what the draft calls them; absent where it has no name.
	Name string `json:"name,omitempty"`
}

// Objection is what there is against a target.
type Objection struct {
	// Reasons begin with the gravest.
	Reasons []string
	// Meant is who may have been meant; nil when nobody comes to mind.
	Meant *Meant
	// Names are those of the contact, where they are none of the recipient's.
	Names []string
}

// Meant is the partner of a brand or campaign whose id was given for that of a partner.
type Meant struct {
	Kind      Kind  `json:"kind"`
	PartnerID int64 `json:"partner_id"`
}

// Policy says which reasons against a recipient count.
type Policy string

// The values of HUB_DRAFT_RECIPIENTS.
const (
	// Verified lets through verified contacts of the partner alone.
	Verified Policy = "verified"
	// NotB2C lets through everybody but members.
	NotB2C Policy = "not_b2c"
)

const (
	// b2cMember is the reason that counts under each policy.
	b2cMember           = "b2c_member"
	unknownPartner      = "unknown_partner"
	notAVerifiedContact = "not_a_verified_contact"
)

// UnmarshalText reads HUB_DRAFT_RECIPIENTS.
func (p *Policy) UnmarshalText(text []byte) error {
	if *p = Policy(text); *p != Verified && *p != NotB2C {
		return fmt.Errorf("has to be %s or %s, not %q", Verified, NotB2C, text)
	}
	return nil
}

// Config is what a Service is made of.
type Config struct {
	Store  Store
	Source Source
	// PublicURL is where browsers reach the console; empty makes addresses of its pages paths.
	PublicURL string
	// Policy defaults to Verified.
	Policy Policy
	// ContactPause is how long an address and a partner are left alone after a mail; 0 lets them have any number.
	ContactPause time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service keeps segments and drafts.
type Service struct{ c Config }

// New returns a service. It touches no database.
func New(c Config) *Service {
	if c.Policy == "" {
		c.Policy = Verified
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	return &Service{c}
}

// SegmentCreated is the answer of create_segment.
type SegmentCreated struct {
	SegmentID   string `json:"segment_id" jsonschema:"Id of the segment: segmentId of save_message_draft"`
	ID          string `json:"id" jsonschema:"The same, as list_segments names it"`
	Name        string `json:"name" jsonschema:"Name as given"`
	Kind        Kind   `json:"kind" jsonschema:"partner, brand or campaign"`
	TargetCount int    `json:"targetCount" jsonschema:"Number of targets"`
	CreatedAt   string `json:"createdAt" jsonschema:"When it was stored, UTC"`
	// SnapshotsTaken is absent where there are none.
	SnapshotsTaken int `json:"snapshots_taken,omitempty" jsonschema:"How many targets came with an empty snapshot and have the source's row of this moment; absent for none"`
	// Warnings are about targets.
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"What may have been meant otherwise, such as ids that the source does not have; absent when there is nothing"`
}

// CreateSegment stores a segment once for the call's Idempotency-Key. The source is asked about its targets, and has no say:
// to look for an earlier answer first would cost each call a round trip to save one of a replay, which has the warnings of then.
// Where a snapshot is empty the source's row is needed: without it nothing is stored, and an earlier answer is looked for first.
func (s *Service) CreateSegment(ctx context.Context, in createSegmentIn) (tool.Result, error) {
	w, err := write.NewCall(ctx, createSegment, s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	targets := segmentTargets(ctx, in.Targets)
	segment, seen, err := Segment{Name: in.Name, Kind: Kind(in.Kind), Description: in.Description, CreatedBy: in.CreatedBy,
		Origin: origin(w.Caller), CreatedAt: w.At}.validate(targets)
	if err != nil {
		return tool.Result{}, err
	}
	if len(seen.Empty) > 0 {
		if earlier, found, err := s.c.Store.StoredAnswer(ctx, w.Key); err != nil || found {
			return earlier, err
		}
	}
	targets, taken, err := s.withRows(ctx, segment.Kind, targets, seen.Empty)
	if err != nil {
		return tool.Result{}, err
	}
	equal, err := s.c.Store.Equal(ctx, w.Key, segmentKind)
	if err != nil {
		return tool.Result{}, err
	}
	warnings := append(s.segmentWarnings(ctx, segment.Kind, seen), lint.Warnings(equal)...)
	return s.c.Store.AddSegment(ctx, w.Key, segment, targets, recording(w, segment.TargetCount, func(id ID) (answer, detail any) {
		return SegmentCreated{SegmentID: id.String(), ID: id.String(), Name: segment.Name, Kind: segment.Kind,
				TargetCount: segment.TargetCount, CreatedAt: schema.Moment(segment.CreatedAt),
				SnapshotsTaken: taken, Warnings: warnings},
			map[string]any{"segment_id": id.String(), "name": segment.Name, "kind": segment.Kind, "targets": segment.TargetCount,
				"snapshots_taken": taken}
	}))
}

// DraftSaved is the answer of save_message_draft.
type DraftSaved struct {
	DraftID     string `json:"draft_id" jsonschema:"Id of the draft: draftId of queue_for_review"`
	ID          string `json:"id" jsonschema:"The same, as list_drafts names it"`
	Status      Status `json:"status" jsonschema:"draft"`
	SegmentID   string `json:"segmentId" jsonschema:"Segment that the draft belongs to"`
	TargetCount int    `json:"targetCount" jsonschema:"Number of targets"`
	CreatedAt   string `json:"createdAt" jsonschema:"When it was stored, UTC"`
	// Removed is never null.
	Removed []markup.Removed `json:"removed" jsonschema:"What recipients will not get of the texts, because it could hide or move text or is not shown alike everywhere; empty when all stays"`
	Preview preview.Mail     `json:"preview" jsonschema:"What the first target will read"`
	// Warnings are about recipients, placeholders and the sender.
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"What may have been meant otherwise, such as a recipient outside the segment; absent when there is nothing"`
}

// SaveMessageDraft stores a draft once for the call's Idempotency-Key. An earlier answer
// is given again before anybody is asked: contacts may have changed since.
func (s *Service) SaveMessageDraft(ctx context.Context, in saveMessageDraftIn) (tool.Result, error) {
	w, err := write.NewCall(ctx, saveMessageDraft, s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	if earlier, found, err := s.c.Store.StoredAnswer(ctx, w.Key); err != nil || found {
		return earlier, err
	}
	targets := draftTargets(ctx, in.Targets)
	draft, err := Draft{Name: in.Name, Status: Drafted, SubjectTemplate: in.SubjectTemplate, BodyTemplate: in.BodyTemplate,
		SenderName: in.SenderName, SenderEmail: in.SenderEmail, CreatedBy: in.CreatedBy, Origin: origin(w.Caller),
		CreatedAt: w.At}.validate(targets)
	if err != nil {
		return tool.Result{}, err
	}
	id, ok := schema.ParseID(in.SegmentID)
	if !ok {
		return tool.Result{}, notFound(segmentKind, in.SegmentID)
	}
	segment, err := s.c.Store.Segment(ctx, id)
	if err != nil {
		return tool.Result{}, err
	}
	draft.SegmentID = segment.ID
	asked, err := recipients(targets, draft.TargetCount)
	if err != nil {
		return tool.Result{}, err
	}
	objections, err := s.checkRecipients(ctx, asked)
	if err != nil {
		return tool.Result{}, err
	}
	look := draft.checkTexts(targets)
	warnings, err := s.draftWarnings(ctx, draft, segment, asked, objections, look)
	if err != nil {
		return tool.Result{}, err
	}
	doubts, strange, err := s.strangers(ctx, segment, targets, asked, objections)
	if err != nil {
		return tool.Result{}, err
	}
	targets = draft.marked(targets, doubts)
	repeated, err := s.repeatedWarning(ctx, targets, draft.TargetCount)
	if err != nil {
		return tool.Result{}, err
	}
	equal, err := s.c.Store.Equal(ctx, w.Key, "draft")
	if err != nil {
		return tool.Result{}, err
	}
	warnings = append(append(warnings, strange...), lint.Warnings(repeated, equal)...)
	return s.c.Store.AddDraft(ctx, w.Key, draft, targets, recording(w, draft.TargetCount, func(id ID) (answer, detail any) {
		return DraftSaved{DraftID: id.String(), ID: id.String(), Status: draft.Status, SegmentID: draft.SegmentID.String(),
				TargetCount: draft.TargetCount, CreatedAt: schema.Moment(draft.CreatedAt), Removed: look.losses.List(), Preview: look.preview,
				Warnings: warnings},
			map[string]any{"draft_id": id.String(), "segment_id": draft.SegmentID.String(), "name": draft.Name, "targets": draft.TargetCount}
	}))
}

// RefusedTarget is a target that may not be written to.
type RefusedTarget struct {
	Index      int    `json:"index"`
	ExternalID int64  `json:"externalId"`
	ToEmail    string `json:"toEmail"`
	Reason     string `json:"reason"`
	// Meant is who may have been meant; absent when nobody comes to mind.
	Meant *Meant `json:"meant,omitempty"`
}

// recipients are a draft's, in order.
func recipients(targets DraftTargets, count int) ([]Recipient, error) {
	list := make([]Recipient, 0, count)
	for t, err := range targets {
		if err != nil {
			return nil, err
		}
		list = append(list, Recipient{t.ExternalID, t.ToEmail, t.ToName})
	}
	return list, nil
}

// checkRecipients asks the source about all targets at once. The refusal lists every
// offender: violations up to their bound, targets whole. Else it returns what there is against targets that the policy lets through.
func (s *Service) checkRecipients(ctx context.Context, asked []Recipient) (map[int]Objection, error) {
	objections, err := s.c.Source.Check(ctx, asked)
	if err != nil {
		return nil, err
	}
	var v schema.Violations
	refused := []RefusedTarget{}
	for i, t := range asked {
		for _, reason := range objections[i].Reasons {
			if s.c.Policy == NotB2C && reason != b2cMember {
				continue
			}
			v.Add(targetPath(i, refusedMember(reason)), reason, "%s", explainReason(reason, t, objections[i].Meant))
			refused = append(refused, RefusedTarget{i, t.PartnerID, t.Email, reason, objections[i].Meant})
			break
		}
	}
	if len(refused) == 0 {
		return objections, nil
	}
	return nil, fault.New(fault.Validation, "%d of %d targets may not be written to, the first of them target %d: %s.",
		len(refused), len(asked), refused[0].Index, v.List()[0].Message).
		With(map[string]any{"violations": v.List(), "targets": refused})
}

// refusedMember is the member of a target that a reason is about.
func refusedMember(reason string) string {
	if reason == unknownPartner {
		return "externalId"
	}
	return "toEmail"
}

// explainReason says what is wrong with a recipient, and what to send instead.
func explainReason(reason string, t Recipient, meant *Meant) string {
	instead := " (search_brands answers the partner_id of each brand)"
	if reason != unknownPartner {
		instead = " (search_partner_contacts lists them)"
	}
	if meant != nil {
		instead = fmt.Sprintf("; %d is the id of a %s of partner %d: send externalId %[3]d", t.PartnerID, meant.Kind, meant.PartnerID)
	}
	switch reason {
	case unknownPartner:
		return fmt.Sprintf("must be the id of a partner; the source has no partner %d%s", t.PartnerID, instead)
	case notAVerifiedContact:
		return fmt.Sprintf("must be a verified contact of partner %d with an active account%s", t.PartnerID,
			instead)
	case b2cMember:
		return "is the address of a B2C member, and members are never written to: leave the target out, or write to another contact " +
			"of the partner, if search_partner_contacts lists one"
	}
	return "may not be written to: " + reason
}

// recording makes what is stored beside the effect of a call.
func recording(w write.Call, count int, of func(ID) (answer, detail any)) Record {
	return func(id ID) (tool.Result, audit.Entry, error) {
		data, detail := of(id)
		answer, err := write.Answer(data, count)
		return answer, w.Entry(count, detail), err
	}
}

// origin is who makes something, of the internal token.
func origin(c caller.Caller) Origin {
	return Origin{Service: c.Service, ExternalUserID: c.ExternalUserID, CredentialID: c.CredentialID, HubUser: c.HubUser}
}

// segmentKind is how missing calls a segment.
const segmentKind = "segment"

// notFound is the refusal of an id that names nothing.
func notFound(kind, id string) error {
	id = text.Shown(id, 40)
	if kind == segmentKind {
		return fault.New(fault.NotFound, "There is no segment %q: send a segment_id that create_segment or list_segments has answered.", id)
	}
	return fault.New(fault.NotFound, "There is no %s %q.", kind, id)
}

// NotFound is E_NOT_FOUND for the store.
func NotFound(kind string, id ID) error { return notFound(kind, id.String()) }
