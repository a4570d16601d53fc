package reviewcontrol

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/markup"
	"hub.internal/pkg/text"
	"hub.internal/services/review-control/body"
	"hub.internal/services/review-control/mailer"
)

// Rendering is a target's content, and what a reviewer should know of it.
type Rendering struct {
	mailer.Content
	// Removed is what was taken out of what authoring has.
	Removed []markup.Removed
	View    body.View
}

// Shown is the mail as a reviewer sees it, to whom nothing is loaded: of HTML the bytes that are sent, with a line in the
// place of each picture that is elsewhere.
func (r Rendering) Shown() string { return body.Preview(r.HTML, r.Text) }

// render is what a target gets: what a page shows, what a decision is bound to and what is handed
// over are its bytes. Whom the mail is from and for is what was kept when the draft was queued; of
// authoring are the subject and the body alone.
func (s *Service) render(from, to mailer.Address, m Mail, layout body.Layout) Rendering {
	c := body.Clean(m.Subject, m.Body, m.HTML, layout)
	r := Rendering{Removed: c.Removed, View: c.View,
		Content: mailer.Content{From: s.From(from), Sender: s.c.From, To: to, Subject: c.Subject, HTML: c.HTML, Text: c.Text}}
	for _, a := range []*mailer.Address{&r.From, &r.To} {
		name, _ := markup.Text(a.Name)
		a.Name = text.OneLine(name)
	}
	return r
}

// Mailbox is whom recipients see each mail of a draft come from, whose sender is from.
func (s *Service) Mailbox(from mailer.Address) mailer.Address {
	return s.render(from, mailer.Address{}, Mail{}, body.Newest).From
}

// renderings hands over what the targets of a review get, in the order of their indexes, with what
// authoring has beside it. It is E_NOT_FOUND when authoring has not all of them.
func (s *Service) renderings(ctx context.Context, r Review, targets []Target, each func(TargetView) error) error {
	byIndex, indexes := make(map[int]Target, len(targets)), make([]int, len(targets))
	for i, t := range targets {
		byIndex[t.Index], indexes[i] = t, t.Index
	}
	err := s.c.Drafts.Mails(ctx, r.DraftID, indexes, func(index int, m Mail) error {
		t, asked := byIndex[index]
		if !asked {
			return fmt.Errorf("authoring answers target %d of draft %s unasked", index, r.DraftID)
		}
		delete(byIndex, index)
		v := TargetView{Target: t, Mail: m, Rendering: s.render(r.Sender, mailer.Address{Name: t.ToName, Email: t.ToEmail}, m, r.Layout)}
		v.Flags = s.flagsOf(v)
		return each(v)
	})
	if err == nil && len(byIndex) > 0 {
		return MissingTarget(r.DraftID, slices.Min(slices.Collect(maps.Keys(byIndex))))
	}
	return err
}

// changed is E_CONFLICT for a mail that is not what a reviewer saw.
func changed(index int) error {
	return fault.New(fault.Conflict, "Mail %d is not what you were shown; open it again.", index+1)
}
