package authoring

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hub.internal/pkg/tool"
	"hub.internal/services/authoring/evidence"
	"hub.internal/services/authoring/lint"
	"hub.internal/services/authoring/lookalike"
)

// idsTimeout bounds the wait for the source's word about a segment's ids: the segment is stored without it.
const idsTimeout = 3 * time.Second

// UnknownIDs are ids that the source does not have.
type UnknownIDs struct {
	// Count counts them, First are the first of them.
	Count int
	First []int64
	// Others are how many of them are ids of another kind, as far as that was looked up.
	Others map[Kind]int
}

// segmentWarnings is what of a segment may have been meant otherwise. The source is asked once, ahead of the transaction; without its
// answer the segment is stored as it is.
func (s *Service) segmentWarnings(ctx context.Context, kind Kind, seen evidence.Snapshots) (list []tool.Warning) {
	if len(seen.IDs) == 0 {
		return []tool.Warning{{Rule: "segment.empty", Message: "the segment has no targets and never will, since a segment does not change: " +
			"make another one, with rows of search_brands or search_campaigns as targets"}}
	}
	asking, cancel := context.WithTimeout(ctx, idsTimeout)
	unknown, err := s.c.Source.Unknown(asking, kind, seen.IDs)
	cancel()
	switch {
	case err != nil:
		list = append(list, tool.Warning{Rule: "segment.unchecked", Message: fmt.Sprintf(
			"the source could not be asked whether it has these %s ids: the segment is stored unchecked; "+
				"save_message_draft checks each recipient again", kind)})
	case unknown.Count > 0:
		list = append(list, tool.Warning{Rule: "segment.ids", Message: unknown.message(kind, len(seen.IDs))})
	}
	if w := seen.Warning(string(kind)); w != nil {
		list = append(list, *w)
	}
	return list
}

// message says which ids do not exist, and what they may be.
func (u UnknownIDs) message(kind Kind, targets int) string {
	m := fmt.Sprintf("%d of %d targets: the source has no %s %s", u.Count, targets, kind, lint.Numbers(u.First, u.Count))
	for _, other := range Kinds() {
		if n := u.Others[Kind(other)]; n > 0 && Kind(other) != kind {
			m += fmt.Sprintf("; ids of a %s among these: %d", other, n)
		}
	}
	return m + fmt.Sprintf(": make the segment again with the %s_id of each row as externalId, or with the kind that the ids are of", kind)
}

// OutsidePartner is a partner that a segment has nothing of.
type OutsidePartner struct {
	PartnerID int64
	// Named tells that the segment has a target of that id, which is a brand's or a campaign's there.
	Named bool
}

// draftWarnings is what of a draft may have been meant otherwise.
func (s *Service) draftWarnings(ctx context.Context, d Draft, segment Segment, asked []Recipient,
	objections map[int]Objection, l textCheck) (list []tool.Warning, err error) {
	outside, err := s.outsideSegmentWarning(ctx, segment, asked)
	if err != nil {
		return nil, err
	}
	leftOut, err := s.leftOutWarning(ctx, segment, asked)
	if err != nil {
		return nil, err
	}
	return lint.Warnings(outside, leftOut, mistakenIDsWarning(asked, objections), sharedMailboxWarning(asked), l.warning(),
		l.markdown.Warning(), l.unfinished.Warning(), l.insecure.Warning(), l.subjects.Warning("draft.subject", len(asked)),
		lint.Sender(d.SenderName, d.SenderEmail)), nil
}

// outsideSegmentWarning warns of recipients that are not in the segment.
func (s *Service) outsideSegmentWarning(ctx context.Context, segment Segment, asked []Recipient) (*tool.Warning, error) {
	partners := partnersOf(asked)
	warn := func(format string, args ...any) *tool.Warning {
		return &tool.Warning{Rule: "draft.outside", Message: fmt.Sprintf(format, args...)}
	}
	if segment.TargetCount == 0 {
		return warn("segment %s has no targets, so reviewers see no evidence for any recipient: "+
			"make a segment of these partners with create_segment, and save the draft with its segment_id", segment.ID), nil
	}
	partnersOutside, err := s.c.Store.OutsideSegment(ctx, segment, partners)
	if err != nil || len(partnersOutside) == 0 {
		return nil, err
	}
	ids, named := make([]int64, len(partnersOutside)), 0
	for i, x := range partnersOutside {
		ids[i] = x.PartnerID
		if x.Named {
			named++
		}
	}
	if named > 0 {
		return warn("recipients of partner %s are outside segment %s, where %d of these ids are those of a %s: externalId of a recipient "+
			"is the partner_id of the row, so save the draft again with that", lint.Numbers(ids, len(ids)), segment.ID, named, segment.Kind), nil
	}
	return warn("recipients of partner %s are outside segment %s, so reviewers see no evidence for them: save the draft without them, "+
		"or with a segment that has them", lint.Numbers(ids, len(ids)), segment.ID), nil
}

// mistakenIDsWarning warns of ids of brands and campaigns in the place of partners, where the policy lets them through.
func mistakenIDsWarning(asked []Recipient, objections map[int]Objection) *tool.Warning {
	n, first := 0, -1
	for i := range asked {
		if o := objections[i]; o.Meant != nil && slices.Contains(o.Reasons, unknownPartner) {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if n == 0 {
		return nil
	}
	meant := objections[first].Meant
	return &tool.Warning{Rule: "draft.ids", Message: fmt.Sprintf(
		"%d of %d targets have the id of a brand or campaign as externalId, the first is target %d: %d is a %s of partner %d; "+
			"save the draft again with the partner's id", n, len(asked), first, asked[first].PartnerID, meant.Kind, meant.PartnerID)}
}

// warning says what looks like a placeholder and is none.
func (l textCheck) warning() *tool.Warning {
	if len(l.lookalikes) == 0 {
		return nil
	}
	return &tool.Warning{Rule: "draft.placeholder", Message: lookalike.Message(l.lookalikes, l.foreign)}
}

// sharedMailboxWarning warns of mailboxes that get several mails.
func sharedMailboxWarning(asked []Recipient) *tool.Warning {
	var boxes lint.Mailboxes
	for _, r := range asked {
		boxes.Add(r.Email, r.PartnerID)
	}
	return boxes.Warning()
}
