package authoring

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/tool"
	"hub.internal/services/authoring/template"
)

const (
	// idsTimeout bounds the wait for the source's word about a segment's ids: the segment is stored without it.
	idsTimeout = 3 * time.Second
	// mostNamed is how many ids a warning names.
	mostNamed = 10
)

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
func (s *Service) segmentWarnings(ctx context.Context, kind Kind, seen snapshotCheck) (list []tool.Warning) {
	if len(seen.ids) == 0 {
		return []tool.Warning{{Rule: "segment.empty", Message: "the segment has no targets and never will, since a segment does not change: " +
			"make another one, with rows of search_brands or search_campaigns as targets"}}
	}
	asking, cancel := context.WithTimeout(ctx, idsTimeout)
	unknown, err := s.c.Source.Unknown(asking, kind, seen.ids)
	cancel()
	switch {
	case err != nil:
		list = append(list, tool.Warning{Rule: "segment.unchecked", Message: fmt.Sprintf(
			"the source could not be asked whether it has these %s ids: the segment is stored unchecked; "+
				"save_message_draft checks each recipient again", kind)})
	case unknown.Count > 0:
		list = append(list, tool.Warning{Rule: "segment.ids", Message: unknown.message(kind, len(seen.ids))})
	}
	if w := seen.warning(kind); w != nil {
		list = append(list, *w)
	}
	return list
}

// message says which ids do not exist, and what they may be.
func (u UnknownIDs) message(kind Kind, targets int) string {
	m := fmt.Sprintf("%d of %d targets: the source has no %s %s", u.Count, targets, kind, numbers(u.First, u.Count))
	for _, other := range Kinds() {
		if n := u.Others[Kind(other)]; n > 0 && Kind(other) != kind {
			m += fmt.Sprintf("; ids of a %s among these: %d", other, n)
		}
	}
	return m + fmt.Sprintf(": make the segment again with the %s_id of each row as externalId, or with the kind that the ids are of", kind)
}

// numbers lists ids, the first ten of so many.
func numbers(ids []int64, count int) string {
	named := ids[:min(len(ids), mostNamed)]
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(named), "[]"), " ", ", ")
	if more := count - len(named); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// snapshotCheck is what was noticed of a segment's targets while they were read.
type snapshotCheck struct {
	ids []int64
	// mismatched counts the targets whose snapshot is of something else, swapped those of them whose externalId is another id of
	// the snapshot: by its kind.
	mismatched int
	swapped    map[Kind]int
	// first is a stray: its place, its ids.
	first struct {
		index                int
		externalID, snapshot int64
	}
}

// add notices a target.
func (t *snapshotCheck) add(kind Kind, target SegmentTarget) {
	t.ids = append(t.ids, target.ExternalID)
	if snapshotIs(kind, target) {
		return
	}
	ids := snapshotIDs(target.Snapshot)
	own, has := ids[string(kind)]
	if !has {
		own, has = ids[anyID]
	}
	if !has || own == target.ExternalID {
		return
	}
	if t.mismatched++; t.mismatched == 1 {
		t.first.index, t.first.externalID, t.first.snapshot = len(t.ids)-1, target.ExternalID, own
	}
	for _, other := range Kinds() {
		if id, there := ids[other]; there && id == target.ExternalID {
			if t.swapped == nil {
				t.swapped = map[Kind]int{}
			}
			t.swapped[Kind(other)]++
			return
		}
	}
}

// warning says of how many targets the snapshot is another's.
func (t snapshotCheck) warning(kind Kind) *tool.Warning {
	if t.mismatched == 0 {
		return nil
	}
	m := fmt.Sprintf("%d of %d targets have the snapshot of another %s, the first is target %d: externalId %d, and %d in its snapshot",
		t.mismatched, len(t.ids), kind, t.first.index, t.first.externalID, t.first.snapshot)
	for _, other := range Kinds() {
		if n := t.swapped[Kind(other)]; n > 0 {
			m += fmt.Sprintf("; of %d the externalId is the snapshot's %s_id, so kind %s may be meant", n, other, other)
		}
	}
	return &tool.Warning{Rule: "segment.snapshot", Message: m + fmt.Sprintf(
		": make the segment again with the %s_id of each row as externalId, and that row as its snapshot", kind)}
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
	for _, w := range []*tool.Warning{outside, mistakenIDsWarning(asked, objections), sharedMailboxWarning(asked), l.warning(),
		d.noSenderWarning()} {
		if w != nil {
			list = append(list, *w)
		}
	}
	return list, nil
}

// outsideSegmentWarning warns of recipients that are not in the segment.
func (s *Service) outsideSegmentWarning(ctx context.Context, segment Segment, asked []Recipient) (*tool.Warning, error) {
	partners := make([]int64, len(asked))
	for i, r := range asked {
		partners[i] = r.PartnerID
	}
	slices.Sort(partners)
	partners = slices.Compact(partners)
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
			"is the partner_id of the row, so save the draft again with that", numbers(ids, len(ids)), segment.ID, named, segment.Kind), nil
	}
	return warn("recipients of partner %s are outside segment %s, so reviewers see no evidence for them: save the draft without them, "+
		"or with a segment that has them", numbers(ids, len(ids)), segment.ID), nil
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

// mailbox is an address without what people write differently of one: case, and a tag behind a plus.
func mailbox(email string) string {
	local, domain, _ := strings.Cut(strings.ToLower(email), "@")
	if name, _, tagged := strings.Cut(local, "+"); tagged && name != "" {
		local = name
	}
	return local + "@" + domain
}

// sharedMailboxWarning warns of mailboxes that get several mails.
func sharedMailboxWarning(asked []Recipient) *tool.Warning {
	firsts, repeated := make(map[string]int, len(asked)), map[string]bool{}
	one, other, partners := -1, -1, false
	for i, r := range asked {
		box := mailbox(r.Email)
		first, twice := firsts[box]
		if !twice {
			firsts[box] = i
			continue
		}
		repeated[box] = true
		several := asked[first].PartnerID != r.PartnerID
		if one < 0 || several && !partners { // one address for several partners says the most
			one, other, partners = first, i, several
		}
	}
	if one < 0 {
		return nil
	}
	m := fmt.Sprintf("%d addresses get several mails of this draft: target %d (%.80q, partner %d)", len(repeated), one, asked[one].Email,
		asked[one].PartnerID)
	if len(repeated) == 1 {
		m = strings.Replace(m, "1 addresses get", "one address gets", 1)
	}
	return &tool.Warning{Rule: "draft.address", Message: m + fmt.Sprintf(" and target %d (%.80q, partner %d) are one mailbox: "+
		"if that is not meant, save the draft with one target for it", other, asked[other].Email, asked[other].PartnerID)}
}

// warning says what looks like a placeholder and is none.
func (l textCheck) warning() *tool.Warning {
	if len(l.lookalikes) == 0 {
		return nil
	}
	var texts, writes []string
	hint := ""
	for _, f := range l.lookalikes {
		texts = append(texts, f.Text)
		if f.Write != "" {
			writes = append(writes, f.Write+" for "+f.Text)
		}
		if strings.HasPrefix(f.Write, "{{"+template.ContextPrefix) {
			hint = ", with the value in each target's context"
		}
	}
	if len(writes) == 0 {
		writes, hint = []string{"the text itself, as subject or body of a target that needs another one"}, ""
	}
	return &tool.Warning{Rule: "draft.placeholder", Message: fmt.Sprintf("recipients will read %s literally (in %s): write %s%s",
		strings.Join(texts, " and "), strings.Join(l.foreign, ", "), strings.Join(writes, ", "), hint)}
}

// noSenderWarning warns of a draft that does not say whom it is from.
func (d Draft) noSenderWarning() *tool.Warning {
	if d.SenderEmail != nil && *d.SenderEmail != "" {
		return nil
	}
	from := "Hub's own name and address"
	if d.SenderName != nil && *d.SenderName != "" {
		from = fmt.Sprintf("%.60q with Hub's own address", *d.SenderName)
	}
	return &tool.Warning{Rule: "draft.sender", Message: "there is no senderEmail: recipients see the mail come from " + from +
		", which queue_for_review answers as from; save the draft with senderName and senderEmail to have it come from somebody else"}
}
