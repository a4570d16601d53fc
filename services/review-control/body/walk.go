package body

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/markup/prose"
)

// reader gathers a view.
type reader struct {
	view    View
	seen    map[[2]string]bool
	remarks []*remark
	// running tells that no other text came after the last one that is told of.
	running bool
	// words tells that there is text that can be read, outside of pictures.
	words bool

	inLink int
	looks  []look // of the elements around, and at first of the page
}

// remark is something to be told, of a text that may go on.
type remark struct {
	text   strings.Builder
	reason string
}

// tell tells of a text. What goes on where the last ended belongs to it.
func (r *reader) tell(text, reason string) {
	if last := len(r.remarks) - 1; r.running && last >= 0 && r.remarks[last].reason == reason {
		r.remarks[last].text.WriteString(" " + text)
		return
	}
	c := &remark{reason: reason}
	c.text.WriteString(text)
	r.remarks, r.running = append(r.remarks, c), true
}

// report lists what is told, each once.
func (r *reader) report() {
	seen := map[Warning]bool{}
	for _, c := range r.remarks {
		t := Warning{fold(c.text.String()), c.reason}
		if !seen[t] {
			seen[t] = true
			r.view.Warnings = append(r.view.Warnings, t)
		}
	}
}

// look is how text in an element appears.
type look struct{ color, back markup.Color }

// leastContrast is the contrast below which text can hardly be told from what is behind it: #dddddd
// on white is below, #cccccc is not.
const leastContrast = 1.6

// linkColor is browsers' own.
var linkColor = markup.Color{B: 0xee}

// inside is the look of an element in one of look l.
func (l look) inside(n *html.Node) look {
	for _, background := range []string{prose.Attribute(n, "bgcolor"), prose.Property(n, "background-color")} {
		if c, ok := markup.ParseColor(background); ok {
			l.back = c
		}
	}
	foreground := prose.Property(n, "color")
	if prose.Element(n) == atom.A && foreground == "" {
		l.color = linkColor
	}
	for _, foreground := range []string{prose.Attribute(n, "color"), foreground} {
		if c, ok := markup.ParseColor(foreground); ok {
			l.color = c
		}
	}
	return l
}

// Enter implements prose.Visitor.
func (r *reader) Enter(n *html.Node) {
	r.looks = append(r.looks, r.look().inside(n))
	switch prose.Element(n) {
	case atom.A:
		r.inLink++
	case atom.Img:
		r.picture(n)
	}
}

// Leave implements prose.Visitor.
func (r *reader) Leave(n *html.Node) {
	r.looks = r.looks[:len(r.looks)-1]
	if prose.Element(n) == atom.A {
		r.inLink--
		r.link(linkText(n), prose.Attribute(n, "href"))
	}
}

// look is how text appears in the element that is being read.
func (r *reader) look() look { return r.looks[len(r.looks)-1] }

// Text implements prose.Visitor.
func (r *reader) Text(text string) {
	if !blank(text) {
		if l := r.look(); markup.Contrast(l.color, l.back) < leastContrast {
			r.tell(text, fmt.Sprintf("text of color %s on %s", l.color, l.back))
		} else {
			r.running, r.words = false, true
		}
	}
	if r.inLink == 0 {
		r.linksIn(text)
	}
}

// picture notes one that is elsewhere.
func (r *reader) picture(n *html.Node) {
	if p, elsewhere := pictureOf(func(name string) string { return prose.Attribute(n, name) }); elsewhere {
		r.view.Pictures = append(r.view.Pictures, p)
		r.running = false
	}
}

// linkText is what a link shows.
func linkText(n *html.Node) string {
	const enough = 4096
	var b strings.Builder
	for d := range n.Descendants() {
		if b.Len() > enough {
			break
		}
		switch {
		case d.Type == html.TextNode:
			b.WriteString(d.Data)
		case prose.Gap(prose.Element(d)) > 0:
			b.WriteByte(' ')
		case prose.Element(d) == atom.Img:
			b.WriteString(prose.Attribute(d, "alt"))
		}
	}
	return b.String()
}
