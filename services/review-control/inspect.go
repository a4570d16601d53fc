package reviewcontrol

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/services/review-control/body"
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

// Tally is how many targets of a draft a filter finds, and would find with another choice, flag or variant.
type Tally struct {
	Found    int
	Choices  map[Choice]int
	Flags    map[triage.Flag]int
	Variants map[int]int
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
	x.Template, _, _ = templateOf(d, v)
	return x
}

// flagsOf are those of a mail as it is now, but for Suppressed.
func (s *Service) flagsOf(v TargetView) (f triage.Flag) {
	for flag, holds := range map[triage.Flag]bool{
		triage.Misleading: v.Rendering.View.Misleading() > 0,
		triage.Removed:    len(v.Rendering.Removed) > 0,
		triage.Warned:     len(v.Rendering.View.Warnings) > 0,
		triage.Large:      v.Rendering.View.Size.IsLarge(),
		triage.Duplicate:  v.Mailings > 1,
		triage.Outside:    v.Mail.Snapshot == nil,
		triage.PromptLike: triage.Prompting([]string{v.Rendering.Subject, v.Rendering.Text, v.ToName}, v.Mail.Context, v.Mail.Snapshot),
	} {
		if holds {
			f |= flag
		}
	}
	return f | triage.Doubted(v.Mail.Doubts) | s.c.Policy.Lacks(v.Rendering.Subject, v.Rendering.Text)
}

// VariantTemplate is what the mails of a variant are made of.
type VariantTemplate struct {
	// Digest is SHA-256 of the templates of subject and body.
	Digest [sha256.Size]byte
	// Subject is the template of the subject.
	Subject string
	// Placeholders are what the mails differ in, in the order in which they stand in the templates.
	Placeholders []string
}

// Variant is mails of a draft that differ in nothing but the values of placeholders.
type Variant struct {
	Number       int
	Digest       []byte
	Subject      string
	Placeholders []string
	Targets      int
	// Pending is how many of them nobody has decided on, Together how many of those have no flag as far as they were
	// inspected, and LastTogether the index of the last of these; -1 without one.
	Pending, Together, LastTogether int
}

// NoVariant stands, in a filter, for the mails that were inspected and are like no other.
const NoVariant = -1

// VariantPage is a page of the targets of a variant.
type VariantPage struct {
	Variant Variant
	Rows    []VariantRow
	// Mail is the target whose mail stands for those of the page; nil when no row is of the variant any more. Subject and
	// Text are the templates of that mail as it is read: without its markup. Elsewhere are the placeholders that do not
	// stand there, but in a link or in the markup; Source is the body's template as it is.
	Mail          *TargetView
	Subject, Text []triage.Part
	Elsewhere     []string
	Source        string
	// Next is the After of the next page, -1 on the last one.
	Next int
}

// VariantRow is a target of a variant, with the flags and the hash of its mail as it is now.
type VariantRow struct {
	Target
	Flags triage.Flag
	Hash  string
	// Made tells that its mail is, at this moment, made of the variant's templates and of its Values, which stand in the order
	// of the variant's placeholders; there are none otherwise.
	Made   bool
	Values []string
}

// Together tells that the target can be approved with the others of its variant: nobody has decided, and nothing but its
// values has to be looked at.
func (r VariantRow) Together() bool {
	return r.Made && !r.Flags.Alone() && r.Decision.Choice == Pending
}

// templateOf returns the template that makes a target's mail of its own values, and where these stand in its body; nil when there
// is none. What authoring says of templates is taken where they make this very mail.
func templateOf(d Draft, v TargetView) (*VariantTemplate, triage.Values, [][2]int) {
	subjectTemplate, bodyTemplate := d.templates(v.Mail)
	subject, ok1 := triage.ParseTemplate(subjectTemplate)
	text, ok2 := triage.ParseTemplate(bodyTemplate)
	values := triage.ValuesOf(v.ToName, v.ToEmail, v.Mail.Context)
	if !ok1 || !ok2 {
		return nil, nil, nil
	}
	_, ok1 = subject.Makes(v.Mail.Subject, values, false)
	spans, ok2 := text.Makes(v.Mail.Body, values, v.Mail.HTML)
	if !ok1 || !ok2 {
		return nil, nil, nil
	}
	return &VariantTemplate{Digest: sha256.Sum256([]byte(subjectTemplate + "\x00" + bodyTemplate)), Subject: subjectTemplate,
		Placeholders: triage.Placeholders(subject, text)}, values, spans
}

// Own are the placeholders of the templates that make the mail, with the target's own values of them: what is particular to it. There
// are none where no template makes it.
func (v TargetView) Own(d Draft) (placeholders []string, values triage.Values) {
	template, values, _ := templateOf(d, v)
	if template == nil {
		return nil, nil
	}
	return template.Placeholders, values
}

// Marked is the preview with the target's own values marked, and all that its template has dimmed. It is a second look: but for the
// marks it is the preview. It is false where no template makes the mail.
func (v TargetView) Marked(d Draft) (string, bool) {
	layout := body.Newest
	if d.Review != nil {
		layout = d.Review.Layout
	}
	template, _, spans := templateOf(d, v)
	if template == nil {
		return "", false
	}
	return body.Marked(v.Mail.Body, v.Mail.HTML, layout, spans)
}

// templates are those that authoring names for a mail of the draft.
func (d Draft) templates(m Mail) (subject, text string) {
	return cmp.Or(m.SubjectTemplate, d.SubjectTemplate), cmp.Or(m.BodyTemplate, d.BodyTemplate)
}

// PolicyWarnings are about what the templates of a draft lack of the operator's Policy.
func (s *Service) PolicyWarnings(d Draft) []tool.Warning {
	if s.c.Policy == (triage.Policy{}) {
		return nil
	}
	return s.c.Policy.Warnings(d.SubjectTemplate, body.Clean("", d.BodyTemplate, true, body.Newest).View.Text)
}

// Variants returns the mails of a draft that differ in nothing but the values of placeholders, the
// largest first; those that were inspected so far.
func (s *Service) Variants(ctx context.Context, id ID) ([]Variant, error) {
	return s.c.Store.Variants(ctx, id)
}

// variant returns one of the variants of a draft. E_NOT_FOUND.
func (s *Service) variant(ctx context.Context, id ID, number int) (Variant, error) {
	list, err := s.c.Store.Variants(ctx, id)
	if err != nil {
		return Variant{}, err
	}
	if i := slices.IndexFunc(list, func(v Variant) bool { return v.Number == number }); i >= 0 {
		return list[i], nil
	}
	return Variant{}, missingVariant(id, number)
}

// missingVariant is E_NOT_FOUND for a variant that a draft does not have.
func missingVariant(id ID, number int) error {
	return fault.New(fault.NotFound, "Draft %s has no variant %d.", id, number)
}

// Variant returns the page of a variant's targets that lie behind an index, -1 for the first: at most 100, each rendered and
// held to the variant's templates as it is now; of these mails one is kept. E_NOT_FOUND when there is no such variant.
func (s *Service) Variant(ctx context.Context, d Draft, number, after int) (VariantPage, error) {
	if d.Review == nil { // it may have been queued since it was read
		return VariantPage{}, missingVariant(d.ID, number)
	}
	v, err := s.variant(ctx, d.ID, number)
	if err != nil {
		return VariantPage{}, err
	}
	found, next, err := s.List(ctx, d, TargetFilter{Variant: number, After: after, Limit: MaxPage})
	if err != nil {
		return VariantPage{}, err
	}
	targets := make([]Target, len(found))
	for i, x := range found {
		targets[i] = x.Target
	}
	page := VariantPage{Variant: v, Next: next}
	err = s.renderings(ctx, *d.Review, targets, func(x TargetView) error {
		x.Flags |= found[len(page.Rows)].Flags & triage.Suppressed
		row := VariantRow{Target: x.Target, Flags: x.Flags, Hash: x.Rendering.Hash()}
		template, values, _ := templateOf(d, x)
		if row.Made = template != nil && bytes.Equal(template.Digest[:], v.Digest); row.Made {
			for _, name := range v.Placeholders {
				row.Values = append(row.Values, values[name])
			}
			if page.Mail == nil || page.Mail.Flags.Alone() && !row.Flags.Alone() {
				page.Mail = &x
			}
		}
		page.Rows = append(page.Rows, row)
		return nil
	})
	if err != nil {
		return VariantPage{}, err
	}
	if page.Mail != nil {
		page.outline(d)
	}
	return page, nil
}

// outline makes the templates of the page's mail readable.
func (p *VariantPage) outline(d Draft) {
	var subject string
	subject, p.Source = d.templates(p.Mail.Mail)
	p.Subject, p.Text = triage.Outline(subject), triage.Outline(body.Clean("", p.Source, p.Mail.Mail.HTML, body.Newest).View.Text)
	for _, name := range p.Variant.Placeholders {
		if part := (triage.Part{Text: name, Named: true}); !slices.Contains(p.Subject, part) && !slices.Contains(p.Text, part) {
			p.Elsewhere = append(p.Elsewhere, name)
		}
	}
}

// ApproveVariant is ApproveShown of targets of one variant: also E_CONFLICT when a mail that nobody has decided on is not
// made of the variant's templates and its target's values any more, and E_NOT_FOUND when there is no such variant.
func (s *Service) ApproveVariant(ctx context.Context, by Reviewer, id ID, number int, shown []Shown) (approved int, r Review, err error) {
	return s.approveTogether(ctx, by, id, shown, map[string]any{"variant": number}, func() (func(TargetView) error, error) {
		v, err := s.variant(ctx, id, number)
		if err != nil {
			return nil, err
		}
		d, err := s.c.Drafts.Draft(ctx, id)
		return func(view TargetView) error {
			template, _, _ := templateOf(d, view)
			if view.Decision.Choice == Pending && (template == nil || !bytes.Equal(template.Digest[:], v.Digest)) {
				return fault.New(fault.Conflict, "The mail to target %d is no longer of this variant; it has to be decided on by itself.",
					view.Index+1)
			}
			return nil
		}, err
	})
}
