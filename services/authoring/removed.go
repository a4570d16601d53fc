package authoring

import "hub.internal/pkg/markup"

// maxLooked is how much of a draft's texts, in bytes, is looked at for what recipients will not
// get: an answer is not to wait for 32 MiB of bodies, which are mostly alike.
const maxLooked = 1 << 20

// allowed is what of an HTML body stays when review-control renders it.
var allowed = markup.Mail()

// removed lists what review-control will take out of the mails: of the templates with the values of the
// first target, then of targets' own texts until maxLooked is reached. What is stored is the text as it
// was given.
func (d Draft) removed(targets DraftTargets) []markup.Removed {
	var list []markup.Removed
	templates, err := d.Templates()
	if err != nil {
		return []markup.Removed{} // checked lets no such draft through
	}
	looked := 0
	look := func(subject, body string, isHTML bool) {
		_, inSubject := markup.Text(subject)
		for i := range inSubject {
			inSubject[i].What += " in the subject"
		}
		var inBody []markup.Removed
		if isHTML {
			_, inBody = allowed.Clean(body)
		} else {
			_, inBody = markup.Text(body)
		}
		list = markup.Merge(list, inSubject, inBody)
		looked += len(subject) + len(body)
	}
	first := true
	for t, err := range targets {
		if err != nil || looked > maxLooked {
			break
		}
		if first {
			v := t.values()
			subject, _ := templates.subject.render(v) // without a value where the target has none:
			body, _ := templates.body.render(v)       // it may have texts of its own
			look(subject, body, templates.body.HTML)
			first = false
		}
		if t.Subject == "" && t.Body == "" {
			continue
		}
		own, subjectErr, bodyErr := templates.of(t)
		v := t.values()
		var subject, body string
		if t.Subject != "" && subjectErr == nil {
			subject, _ = own.subject.render(v)
		}
		if t.Body != "" && bodyErr == nil {
			body, _ = own.body.render(v)
		}
		look(subject, body, own.body.HTML)
	}
	return append([]markup.Removed{}, list...)
}
