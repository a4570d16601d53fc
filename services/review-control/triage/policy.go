package triage

import (
	"fmt"
	"strings"

	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
)

// Policy is what an operator wants of each mail, as the law of where its recipients live may (in Korea article 50 of the Network Act,
// with its mark "(광고)" and a way to opt out). Hub shows where it is missing, and writes nothing into a mail: that is for the operator's
// counsel to decide. An empty text wants nothing.
type Policy struct {
	// Mark is what a subject begins with.
	Mark string
	// Footer stands in the text that a reader sees. Blanks and line breaks are alike in it.
	Footer string
}

// Lacks are the flags of a mail of this subject and plain text.
func (p Policy) Lacks(subject, plain string) (f Flag) {
	if !strings.HasPrefix(text.OneLine(subject), p.Mark) {
		f |= Unmarked
	}
	if p.Footer != "" && !strings.Contains(text.OneLine(plain), text.OneLine(p.Footer)) { // a body may be long
		f |= NoFooter
	}
	return f
}

// Warnings tell an agent what the templates of its draft lack, so that it hears of it before a reviewer does. A draft without templates has
// none, and nothing is said of what a placeholder may bring: its mails are judged one by one, later.
func (p Policy) Warnings(subjectTemplate, plainTemplate string) (list []tool.Warning) {
	if subjectTemplate == "" && plainTemplate == "" {
		return nil
	}
	lacks := p.Lacks(subjectTemplate, plainTemplate)
	warn := func(flag Flag, where, what string) {
		if lacks.Has(flag) {
			list = append(list, tool.Warning{Rule: "draft." + flag.Name(), Message: fmt.Sprintf("The template of the %s %q, which mails "+
				"have to have here: reviewers see a flag on each that is made of it. Save the draft again with it", where, what)})
		}
	}
	if !strings.HasPrefix(text.OneLine(subjectTemplate), "{{") {
		warn(Unmarked, "subject does not begin with", p.Mark)
	}
	if !strings.Contains(plainTemplate, "{{context.") {
		warn(NoFooter, "body does not have", p.Footer)
	}
	return list
}
