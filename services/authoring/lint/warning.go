package lint

import (
	"fmt"
	"strings"

	"hub.internal/pkg/tool"
)

// mostTargets, mostMembers and mostIDs are how many targets, members and ids a warning names.
const mostTargets, mostMembers, mostIDs = 3, 3, 10

// Finding is what was found of targets: how many, and the first of them.
type Finding struct {
	count int
	first []string
	// Says is what it is, and Mend what to do about it.
	Says, Mend string
}

// Add adds a target.
func (f *Finding) Add(index int, format string, args ...any) {
	if f.count++; f.count <= mostTargets {
		f.first = append(f.first, fmt.Sprintf("target %d (%s)", index, fmt.Sprintf(format, args...)))
	}
}

// Warning says how many of the targets it is about.
func (f Finding) Warning(rule string, targets int) *tool.Warning {
	if f.count == 0 {
		return nil
	}
	m := fmt.Sprintf("%d of %d targets %s: %s", f.count, targets, f.Says, strings.Join(f.first, ", "))
	if more := f.count - len(f.first); more > 0 {
		m += fmt.Sprintf(" and %d more", more)
	}
	return &tool.Warning{Rule: rule, Message: m + "; " + f.Mend}
}

// Noted is what was noticed in a draft's texts: the first example, and the members with any.
type Noted struct {
	Rule    [3]string
	example string
	members []string
	more    int
}

// The rules of texts: the rule, what is said of the example, and what to do about it.
var (
	MarkdownRule = [3]string{"draft.markdown", "recipients will read %q as it is written (in %s)",
		"a mail has no Markdown: write HTML such as <h2>, <b> and <a href>, or plain text without signs"}
	UnfinishedRule = [3]string{"draft.unfinished", "recipients will read %q (in %s)", "write what is to stand there"}
	InsecureRule   = [3]string{"draft.links", "%q leads without TLS, of which browsers warn (in %s)", "write https:// where the site has it"}
)

// Add adds a member; without an example there is nothing in it.
func (n *Noted) Add(member, example string) {
	if example == "" {
		return
	}
	if n.example == "" {
		n.example = example
	}
	if len(n.members) == mostMembers {
		n.more++
		return
	}
	n.members = append(n.members, member)
}

// Warning names the members.
func (n Noted) Warning() *tool.Warning {
	if n.example == "" {
		return nil
	}
	in := strings.Join(n.members, ", ")
	if n.more > 0 {
		in += fmt.Sprintf(" and %d more", n.more)
	}
	return &tool.Warning{Rule: n.Rule[0], Message: fmt.Sprintf(n.Rule[1], n.example, in) + ": " + n.Rule[2]}
}

// Warnings lists the warnings that there are.
func Warnings(all ...*tool.Warning) (list []tool.Warning) {
	for _, w := range all {
		if w != nil {
			list = append(list, *w)
		}
	}
	return list
}

// Numbers lists ids, the first ten of so many.
func Numbers(ids []int64, count int) string {
	named := ids[:min(len(ids), mostIDs)]
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(named), "[]"), " ", ", ")
	if more := count - len(named); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
