// Package preview tells of rendered mails what their recipients will read, and what will be taken out of them, by the functions that
// review-control renders with. It knows no draft and no target.
package preview

import (
	"hub.internal/pkg/markup"
	"hub.internal/pkg/markup/prose"
	"hub.internal/pkg/text"
)

const (
	// MaxBytes is how much of a draft's texts, in bytes, is looked at for what recipients will not
	// get: an answer is not to wait for 32 MiB of bodies, which are mostly alike.
	MaxBytes = 1 << 20
	// maxText is how much of a mail's text a preview has, in characters.
	maxText = 500
)

// policy is what of an HTML body stays when review-control renders it.
var policy = markup.Mail()

// Mail is what the first target will read, as far as authoring can tell: its own texts or the templates with its values,
// without what is removed, and of HTML the plain-text part that goes along with it. It is made by the functions that
// review-control renders with, and is not the mail: from whom that is, how it is encoded, and whether it leaves at all are
// review-control's to say, of what it renders when it shows, decides and sends.
type Mail struct {
	ToEmail string `json:"toEmail" jsonschema:"Whose mail it is: the first target's"`
	Subject string `json:"subject" jsonschema:"Subject with the values of the target"`
	Text    string `json:"text" jsonschema:"Beginning of the body with the values of the target, as plain text: at most 500 characters"`
	HTML    bool   `json:"html" jsonschema:"Whether the mail is HTML, of which text is the plain-text part"`
	// Truncated tells that the body is longer.
	Truncated bool `json:"truncated" jsonschema:"Whether the body goes on beyond text"`
}

// Of is the preview of a mail.
func Of(toEmail, subject, body string, isHTML bool) Mail {
	subject, _ = markup.Text(subject)
	head := text.HeadBytes(body, MaxBytes)
	if isHTML {
		head, _ = policy.Clean(head)
		head = prose.Of(head)
	} else {
		head, _ = markup.Text(head)
	}
	p := Mail{ToEmail: toEmail, Subject: text.OneLine(subject), HTML: isHTML}
	p.Text = text.Head(head, maxText)
	p.Truncated = len(p.Text) < len(head) || len(body) > MaxBytes
	return p
}

// Losses add up what will be taken out of the mails of a draft. Those that lose the same whatever their values are looked at once.
type Losses struct {
	list, usual []markup.Removed
	usuals      int
	rendered    int
}

// Add adds a mail.
func (l *Losses) Add(subject, body string, isHTML bool) {
	l.list = markup.Merge(l.list, removed(subject, body, isHTML))
}

// Made adds what the templates make for a target, which is asked for where it is looked at: until MaxBytes have been. Usual mails lose
// all the same, and the first of them is looked at for all.
func (l *Losses) Made(usual, isHTML bool, texts func() (subject, body string)) {
	if usual {
		l.usuals++
	}
	if usual && l.usuals > 1 || !usual && l.rendered > MaxBytes {
		return
	}
	subject, body := texts()
	l.rendered += len(subject) + len(body)
	if usual {
		l.usual = removed(subject, body, isHTML)
	} else {
		l.Add(subject, body, isHTML)
	}
}

// List is what is lost, with how often; never nil.
func (l *Losses) List() []markup.Removed {
	usual := append([]markup.Removed{}, l.usual...)
	for i := range usual {
		usual[i].Count *= l.usuals
	}
	return append([]markup.Removed{}, markup.Merge(l.list, usual)...)
}

// removed is what will be taken out of a mail.
func removed(subject, body string, isHTML bool) []markup.Removed {
	_, inSubject := markup.Text(subject)
	for i := range inSubject {
		inSubject[i].What += " in the subject"
	}
	var inBody []markup.Removed
	if isHTML {
		_, inBody = policy.Clean(body)
	} else {
		_, inBody = markup.Text(body)
	}
	return markup.Merge(inSubject, inBody)
}
