package reviewcontrol

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"hub.internal/services/review-control/triage"
)

// Inspection is what was found out about a target's mail once its draft was queued, for lists and filters.
// Nothing is decided on it: a decision is bound to what is rendered when it is taken.
type Inspection struct {
	Subject string
	// Hash is that of the content; empty before the mail was inspected.
	Hash  string
	Flags triage.Flag
	// Variant is the number of the variant that the mail is one of; 0 for a mail like no other.
	Variant int
}

// Inspected is the inspection of a target, with the templates that made its mail, if any did.
type Inspected struct {
	Index int
	Inspection
	Template *VariantTemplate
}

// Tally is how many targets of a draft a filter finds, and would find with another choice or flag.
type Tally struct {
	Found   int
	Choices map[Choice]int
	Flags   map[triage.Flag]int
}

// inspectBatch is how many targets are inspected between two looks at the review.
const inspectBatch = 200

// Inspect is the job of a draft that was queued: it finds out what of each mail a reviewer should look at,
// and which mails are variants of one. It goes on where it was, and ends with the review.
func (s *Service) Inspect(ctx context.Context, id ID) error {
	ctx = itself(ctx)
	draft, err := s.c.Drafts.Draft(ctx, id)
	if err != nil {
		return err
	}
	for after := -1; ; {
		r, err := s.c.Store.Review(ctx, id)
		if err != nil || r.Status != InReview {
			return err
		}
		targets, err := s.c.Store.Uninspected(ctx, id, after, inspectBatch)
		if err != nil || len(targets) == 0 {
			return err
		}
		after = targets[len(targets)-1].Index
		batch := make([]Inspected, 0, len(targets))
		err = s.renderings(ctx, r, targets, func(v TargetView) error {
			batch = append(batch, inspect(draft, v))
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.c.Store.KeepInspected(ctx, id, batch); err != nil {
			return err
		}
	}
}

// inspect judges one mail.
func inspect(d Draft, v TargetView) Inspected {
	x := Inspected{Index: v.Index, Inspection: Inspection{Subject: v.Rendering.Subject, Hash: v.Rendering.Hash(), Flags: v.Flags}}
	x.Template, _ = templateOf(d, v)
	return x
}

// flagsOf are those of a mail as it is now, but for Suppressed.
func flagsOf(v TargetView) (f triage.Flag) {
	for flag, holds := range map[triage.Flag]bool{
		triage.Misleading: v.Rendering.Misleading() > 0,
		triage.Removed:    len(v.Rendering.Removed) > 0,
		triage.Told:       len(v.Rendering.View.Told) > 0,
		triage.Large:      !fits(v.Rendering.View.Room),
		triage.Duplicate:  v.Mailings > 1,
		triage.Outside:    v.Mail.Snapshot == nil,
		triage.PromptLike: slices.ContainsFunc([]string{v.Rendering.Subject, v.Rendering.Text, v.ToName}, triage.ReadsLikePrompt) ||
			promptIn(v.Mail.Context) || promptIn(v.Mail.Snapshot),
	} {
		if holds {
			f |= flag
		}
	}
	return f
}

// promptIn looks through the texts of a JSON value.
func promptIn(raw json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		if text, isText := token.(string); isText && triage.ReadsLikePrompt(text) {
			return true
		}
	}
}

// Misleading is how many links name another host than they lead to.
func (r Rendering) Misleading() int {
	n := 0
	for _, l := range r.View.Links {
		if l.Misleading {
			n++
		}
	}
	return n
}
