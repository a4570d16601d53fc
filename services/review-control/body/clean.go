package body

import (
	"strings"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/text"
)

// Cleaned is a mail's subject and body as they leave, and what a reviewer should know of them.
type Cleaned struct {
	Subject string
	// HTML is a whole document, empty for a mail of plain text. Text is always there. Lines end
	// with CRLF.
	HTML, Text string
	// Removed is what was taken out.
	Removed []markup.Removed
	View    View
}

// allowed is what of an HTML body stays.
var allowed = markup.Mail()

// Clean takes out of a subject and a body what could hide or move text, or is not shown alike everywhere.
func Clean(subject, content string, isHTML bool, layout Layout) Cleaned {
	var c Cleaned
	subject, removed := markup.Text(subject)
	c.Subject = text.OneLine(subject)
	for i := range removed {
		removed[i].What += " in the subject"
	}
	clean := markup.Text
	if isHTML {
		clean = allowed.Clean
	}
	cleaned, more := clean(content)
	c.Removed = markup.Merge(removed, more)
	c.View = Read(cleaned, isHTML)
	c.Text = lines(c.View.Text)
	if isHTML {
		c.HTML = lines(layout.document(cleaned, c.View.Text))
	}
	return c
}

// lines is a text with the ends of lines that it has in a mail, also of the last one.
func lines(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return strings.ReplaceAll(text, "\n", "\r\n")
}
