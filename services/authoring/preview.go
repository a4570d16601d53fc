package authoring

import (
	"maps"
	"slices"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/markup/prose"
	"hub.internal/pkg/text"
	"hub.internal/services/authoring/lint"
	"hub.internal/services/authoring/lookalike"
	"hub.internal/services/authoring/template"
)

const (
	// maxCheckedBytes is how much of a draft's texts, in bytes, is looked at for what recipients will not
	// get: an answer is not to wait for 32 MiB of bodies, which are mostly alike.
	maxCheckedBytes = 1 << 20
	// maxPreview is how much of a mail's text a preview has, in characters.
	maxPreview = 500
	// mostLookalikes is how many texts that look like placeholders are named.
	mostLookalikes = 5
	// mostForeign is how many members that hold such are named.
	mostForeign = 3
	// mostKeys is how many names of a context help to say what was meant by them.
	mostKeys = 100
)

// mailPolicy is what of an HTML body stays when review-control renders it.
var mailPolicy = markup.Mail()

// Preview is what the first target will read, as far as authoring can tell: its own texts or the templates with its values,
// without what is removed, and of HTML the plain-text part that goes along with it. It is made by the functions that
// review-control renders with, and is not the mail: from whom that is, how it is encoded, and whether it leaves at all are
// review-control's to say, of what it renders when it shows, decides and sends.
type Preview struct {
	ToEmail string `json:"toEmail" jsonschema:"Whose mail it is: the first target's"`
	Subject string `json:"subject" jsonschema:"Subject with the values of the target"`
	Text    string `json:"text" jsonschema:"Beginning of the body with the values of the target, as plain text: at most 500 characters"`
	HTML    bool   `json:"html" jsonschema:"Whether the mail is HTML, of which text is the plain-text part"`
	// Truncated tells that the body is longer.
	Truncated bool `json:"truncated" jsonschema:"Whether the body goes on beyond text"`
}

// preview is that of a mail.
func (m Mail) preview() Preview {
	subject, _ := markup.Text(m.Subject)
	body := text.HeadBytes(m.Body, maxCheckedBytes)
	if m.HTML {
		body, _ = mailPolicy.Clean(body)
		body = prose.Of(body)
	} else {
		body, _ = markup.Text(body)
	}
	p := Preview{ToEmail: m.ToEmail, Subject: text.OneLine(subject), HTML: m.HTML}
	p.Text = text.Head(body, maxPreview)
	p.Truncated = len(p.Text) < len(body) || len(m.Body) > maxCheckedBytes
	return p
}

// textCheck is what can be told of a draft's texts before they are rendered for its reviewers.
type textCheck struct {
	preview Preview
	// removed is never nil.
	removed []markup.Removed
	// lookalikes are the first of the texts that look like placeholders of another language.
	lookalikes []lookalike.Found
	// foreign are the first members that hold such.
	foreign []string
	// markdown, unfinished and insecure are what else was noticed in the texts, subjects the targets with a long one.
	markdown, unfinished, insecure lint.Noted
	subjects                       lint.Finding
	// bytes have been looked at.
	bytes int
}

// checkTexts looks at the templates with the values of the first target, then at targets' own texts until maxCheckedBytes is reached.
// It lists what review-control will take out of the mails; what is stored is the text as it was given.
func (d Draft) checkTexts(targets DraftTargets) textCheck {
	l := textCheck{removed: []markup.Removed{}, markdown: lint.Noted{Rule: lint.MarkdownRule},
		unfinished: lint.Noted{Rule: lint.UnfinishedRule}, insecure: lint.Noted{Rule: lint.InsecureRule}}
	templates, err := d.Templates()
	if err != nil {
		return l // checked lets no such draft through
	}
	var keys []string
	i := -1
	for t, err := range targets {
		if err != nil || l.bytes > maxCheckedBytes {
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
			l.addRemoved(subject, body, templates.body.HTML)
			l.add("/subjectTemplate", d.SubjectTemplate, keys, nil)
			l.add("/bodyTemplate", d.BodyTemplate, keys, &templates.body)
			if mail, err := Render(templates, t); err == nil {
				l.preview = mail.preview()
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
		if subject != "" || body != "" {
			l.addRemoved(subject, body, own.body.HTML)
		}
	}
	return l
}

// addRemoved adds what will be taken out of a mail.
func (l *textCheck) addRemoved(subject, body string, isHTML bool) {
	_, inSubject := markup.Text(subject)
	for i := range inSubject {
		inSubject[i].What += " in the subject"
	}
	var inBody []markup.Removed
	if isHTML {
		_, inBody = mailPolicy.Clean(body)
	} else {
		_, inBody = markup.Text(body)
	}
	l.removed = append([]markup.Removed{}, markup.Merge(l.removed, inSubject, inBody)...)
	l.bytes += len(subject) + len(body)
}

// add adds what of a text looks like placeholders, and what else in it recipients should not get; body is nil for a subject.
func (l *textCheck) add(member, written string, keys []string, body *template.Template) {
	written = text.HeadBytes(written, maxCheckedBytes)
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
