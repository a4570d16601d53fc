package console

import (
	"html/template"
	"regexp"
	"strconv"

	"hub.internal/services/admin"
)

// headingTag is a tag of a heading in what CleanText lets stay.
var headingTag = regexp.MustCompile(`<(/?)h([1-6])\b`)

// prose is the HTML of a text section. It is cleaned again, by the rules of this release, and its headings continue
// the page's own from level on, without a gap: screen readers go by them.
func prose(body string, level int) template.HTML {
	clean, _ := admin.CleanText(body)
	var open []int // the headings that the place is below, by their own levels
	clean = headingTag.ReplaceAllStringFunc(clean, func(tag string) string {
		m := headingTag.FindStringSubmatch(tag)
		own, _ := strconv.Atoi(m[2])
		if m[1] == "" {
			for len(open) > 0 && open[len(open)-1] >= own {
				open = open[:len(open)-1]
			}
			open = append(open, own)
		}
		return "<" + m[1] + "h" + strconv.Itoa(min(6, level+len(open)-1))
	})
	return template.HTML(clean)
}
