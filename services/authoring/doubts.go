package authoring

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/tool"
	"hub.internal/services/authoring/evidence"
	"hub.internal/services/authoring/lint"
	"hub.internal/services/authoring/repeat"
	"hub.internal/services/authoring/template"
)

// What may be doubted of a target, by the names that review-control flags mails by.
const (
	doubtContext = "context"
	doubtName    = "name"
	doubtSender  = "sender"
	// The very same text, and another mail lately.
	doubtRepeated = "repeated"
	doubtRecent   = "recent"
)

// longSubject is how many characters a subject may have, values included: mail programs show half of that at most.
const longSubject = 150

// addSubject adds a target with a long subject.
func (l *textCheck) addSubject(index int, subject template.Template, v template.Values) {
	length := 0
	for piece, err := range subject.Pieces(v) {
		if err == nil {
			length += utf8.RuneCountInString(piece.Text)
		}
	}
	if length > longSubject {
		l.subjects.Says = fmt.Sprintf("get a subject of more than %d characters, of which mail programs show the beginning", longSubject)
		l.subjects.Mend = "shorten it, the news first"
		l.subjects.Add(index, "%d characters", length)
	}
}

// partnersOf are the recipients' partners, each once.
func partnersOf(asked []Recipient) []int64 {
	partners := make([]int64, len(asked))
	for i, r := range asked {
		partners[i] = r.PartnerID
	}
	slices.Sort(partners)
	return slices.Compact(partners)
}

// leftOutWarning warns of a draft that writes to less than half of its segment's partners.
func (s *Service) leftOutWarning(ctx context.Context, segment Segment, asked []Recipient) (*tool.Warning, error) {
	written := len(partnersOf(asked))
	if segment.TargetCount < 3 || written*2 >= segment.TargetCount {
		return nil, nil // there are at most as many partners as targets
	}
	of, err := s.c.Store.SegmentPartners(ctx, segment)
	if err != nil || of < 3 || written*2 >= of {
		return nil, err
	}
	return &tool.Warning{Rule: "draft.segment", Message: fmt.Sprintf(
		"the draft writes to %d partners, and segment %s is of %d: if that is not meant, save it with a target for each", written, segment.ID,
		of)}, nil
}

// doubts are those of targets, by their index.
type doubts map[int][]string

// marked are the targets with what is doubted of each, and the hashes of their texts.
func (d Draft) marked(targets DraftTargets, doubted doubts) DraftTargets {
	hasher := repeat.NewHasher(d.SubjectTemplate, d.BodyTemplate)
	return func(yield func(DraftTarget, error) bool) {
		i := 0
		for t, err := range targets {
			t.Doubts, t.TextHash = doubted[i], hasher.Sum(t.ToEmail, t.ToName, t.Subject, t.Body, t.Context)
			if i++; !yield(t, err) {
				return
			}
		}
	}
}

// strangers finds targets whose context is of somebody else than their partner, as far as the segment's snapshots tell, and those that
// are called otherwise than the source and the snapshots know them. It ends with ctx: a target may be compared with 50 names.
func (s *Service) strangers(ctx context.Context, segment Segment, targets DraftTargets, asked []Recipient, objections map[int]Objection) (
	doubts, []tool.Warning, error) {
	said, suspect := map[int][]evidence.Fact{}, false
	i := 0
	for t, err := range targets {
		if err != nil {
			return nil, nil, err
		}
		if list := evidence.Facts(t.Context); len(list) > 0 {
			said[i] = list
		}
		suspect = suspect || len(said[i]) > 0 || lint.Unlike(t.ToName, objections[i].Names)
		i++
	}
	if !suspect {
		return nil, nil, nil
	}
	known := evidence.Known{}
	if err := s.c.Store.Evidence(ctx, segment, partnersOf(asked), known.Add); err != nil {
		return nil, nil, err
	}
	d, owners := doubts{}, known.Owners()
	contexts := lint.Finding{Says: "have a context of somebody else", Mend: "give each target what its own row has, and save the draft again"}
	names := lint.Finding{Says: "have a toName that is not their contact's", Mend: "send the name that search_partner_contacts answers"}
	for i, r := range asked {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if x := known.Stray(r.PartnerID, said[i], owners); x != nil {
			d[i] = append(d[i], doubtContext)
			of := ""
			if x.Owner != 0 {
				of = fmt.Sprintf(" of partner %d", x.Owner)
			}
			contexts.Add(i, "%s %.60q%s, not %.60q of partner %d", x.Name, x.Value, of, x.Own, r.PartnerID)
		}
		if !lint.Unlike(r.Name, objections[i].Names) {
			continue
		}
		if called, all := known.Names(r.PartnerID); all && !lint.IsOneOf(r.Name, called) {
			d[i] = append(d[i], doubtName)
			names.Add(i, "%.60q, in the source %.60q", r.Name, objections[i].Names[0])
		}
	}
	return d, lint.Warnings(contexts.Warning("draft.context", len(asked)), names.Warning("draft.name", len(asked))), nil
}

// asks is what is asked of earlier mails to the target.
func (t DraftTarget) asks() repeat.Target {
	return repeat.Target{Partner: t.ExternalID, Email: t.ToEmail, Text: t.TextHash}
}

// repetition is what a target repeats, in words, and the doubt that it is.
type repetition struct{ says, doubt string }

// repeats says of targets of a draft, by their place, which earlier mail they repeat: of drafts that were queued before it, or have moved
// on before it did (decided on, sent); of all without a time before.
func (s *Service) repeats(ctx context.Context, id ID, before *time.Time, targets []repeat.Target) (map[int]repetition, error) {
	now, since := s.c.Now(), (*time.Time)(nil)
	if s.c.ContactPause > 0 {
		since = new(now.Add(-s.c.ContactPause))
	}
	mails, err := s.c.Store.Earlier(ctx, id, before, since, targets)
	found := make(map[int]repetition, len(mails))
	for place, m := range mails {
		doubt := doubtRecent
		if m.Kind == repeat.SameText {
			doubt = doubtRepeated
		}
		found[place] = repetition{m.Says(now), doubt}
	}
	return found, err
}

// repeatedWarning warns of targets that repeat an earlier mail.
func (s *Service) repeatedWarning(ctx context.Context, targets DraftTargets, count int) (*tool.Warning, error) {
	asked := make([]repeat.Target, 0, count)
	for t, err := range targets {
		if err != nil {
			return nil, err
		}
		asked = append(asked, t.asks())
	}
	found, err := s.repeats(ctx, 0, nil, asked)
	f := lint.Finding{Says: "repeat an earlier mail", Mend: "if that is not meant, save the draft without them, or with another text where " +
		"that was rejected (list_drafts has what reviewers wrote)"}
	for i, t := range asked {
		if says := found[i].says; says != "" {
			f.Add(i, "%.80s: %s", t.Email, says)
		}
	}
	return f.Warning("draft.repeated", count), err
}
