package authoring

import (
	"maps"
	"slices"

	"hub.internal/pkg/text"
	"hub.internal/services/authoring/lint"
	"hub.internal/services/authoring/lookalike"
	"hub.internal/services/authoring/preview"
	"hub.internal/services/authoring/template"
)

const (
	// mostLookalikes is how many texts that look like placeholders are named.
	mostLookalikes = 5
	// mostForeign is how many members that hold such are named.
	mostForeign = 3
	// mostKeys is how many names of a context help to say what was meant by them.
	mostKeys = 100
)

// textCheck is what can be told of a draft's texts before they are rendered for its reviewers.
type textCheck struct {
	preview preview.Mail
	losses  preview.Losses
	// lookalikes are the first of the texts that look like placeholders of another language.
	lookalikes []lookalike.Found
	// foreign are the first members that hold such.
	foreign []string
	// markdown, unfinished and insecure are what else was noticed in the texts, subjects the targets with a long one.
	markdown, unfinished, insecure lint.Noted
	subjects                       lint.Finding
	// bytes have been looked at of the first target's mail and of targets' own texts.
	bytes int
}

// checkTexts looks at the templates with the values of the first target, then at targets' own texts until preview.MaxBytes is reached,
// and at what the templates become for the other targets, whose values may be what does not stay, until as much is rendered.
// It lists what review-control will take out of the mails; what is stored is the text as it was given.
func (d Draft) checkTexts(targets DraftTargets) textCheck {
	l := textCheck{markdown: lint.Noted{Rule: lint.MarkdownRule},
		unfinished: lint.Noted{Rule: lint.UnfinishedRule}, insecure: lint.Noted{Rule: lint.InsecureRule}}
	templates, err := d.Templates()
	if err != nil {
		return l // checked lets no such draft through
	}
	var keys []string
	i := -1
	for t, err := range targets {
		if err != nil || l.bytes > preview.MaxBytes {
			break
		}
		i++
		own, subjectErr, bodyErr := templates.forTarget(t)
		v := t.values()
		if i == 0 {
			context, _ := v.Context() // what was read before it broke will do
			keys = slices.Sorted(maps.Keys(context))
			keys = keys[:min(len(keys), mostKeys)]
			// Without a value where the target has none, and no longer than a mail may be: it may have texts of its own.
			subject, _ := templates.subject.Head(v, maxSubject)
			body, _ := templates.body.Head(v, MaxBody)
			l.losses.Add(subject, body, templates.body.HTML)
			l.bytes += len(subject) + len(body)
			l.add("/subjectTemplate", d.SubjectTemplate, keys, nil)
			l.add("/bodyTemplate", d.BodyTemplate, keys, &templates.body)
			if mail, err := Render(templates, t); err == nil {
				l.preview = preview.Of(mail.ToEmail, mail.Subject, mail.Body, mail.HTML)
			}
		}
		l.addSubject(i, own.subject, v)
		var subject, body string
		if t.Subject != "" && subjectErr == nil {
			subject, _ = own.subject.Render(v)
			l.add(targetPath(i, "subject"), t.Subject, keys, nil)
		}
		if t.Body != "" && bodyErr == nil {
			body, _ = own.body.Render(v)
			l.add(targetPath(i, "body"), t.Body, keys, &own.body)
		}
		l.bytes += len(subject) + len(body)
		if subject != "" || body != "" {
			l.losses.Add(subject, body, own.body.HTML)
		}
		if i > 0 {
			usual := t.Subject == "" && t.Body == "" && own.subject.Usual(v) && own.body.Usual(v)
			l.losses.Made(usual, own.body.HTML, func() (subject, body string) {
				if t.Subject == "" {
					subject, _ = own.subject.Render(v)
				}
				if t.Body == "" {
					body, _ = own.body.Render(v)
				}
				return subject, body
			})
		}
	}
	return l
}

// add adds what of a text looks like placeholders, and what else in it recipients should not get; body is nil for a subject.
func (l *textCheck) add(member, written string, keys []string, body *template.Template) {
	written = text.HeadBytes(written, preview.MaxBytes)
	l.unfinished.Add(member, lint.Unfinished(written))
	if body != nil {
		l.markdown.Add(member, lint.Markdown(written))
		l.insecure.Add(member, lint.Insecure(written, body.HTML))
	}
	for _, f := range lookalike.Find(written, keys, mostLookalikes) {
		if len(l.foreign) < mostForeign && !slices.Contains(l.foreign, member) {
			l.foreign = append(l.foreign, member)
		}
		if len(l.lookalikes) < mostLookalikes && !slices.Contains(l.lookalikes, f) {
			l.lookalikes = append(l.lookalikes, f)
		}
	}
}
