package body

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// look is how the text in an element appears.
type look struct {
	// gone is why nothing of the element is shown, whatever stands inside.
	gone string
	// unseen and indent are why its own text is not shown; an element inside may undo them.
	unseen, indent string
	// doubt is why its text may not be seen by everybody.
	doubt string

	opacity     float64
	size        float64 // of the font, in pixels
	sizeWhy     string
	line        string // why its lines lie upon each other
	color, back color
	picture     bool // a picture lies under the text
}

// unreadable is the size in pixels below which nobody reads a text.
const unreadable = 5

// canvas is the look of an empty window.
func canvas() look { return look{opacity: 1, size: 16, color: black, back: white} }

// why is the look's reason for not being shown, if it has one.
func (l look) why() string {
	switch {
	case l.gone != "":
		return l.gone
	case l.unseen != "":
		return l.unseen
	case l.indent != "":
		return l.indent
	case l.size < unreadable:
		return l.sizeWhy
	case l.line != "":
		return l.line
	}
	return ""
}

// inside is the look of an element in one of look l.
func (r *reader) inside(l look, n *html.Node) look {
	s, doubt := r.styleOf(n)
	if doubt != "" {
		l.doubt = doubt
	}
	l.attributes(n, s)
	l.apply(s)
	if _, hidden := attr(n, "hidden"); hidden && s.get("display") == "" && l.gone == "" {
		l.gone = "hidden attribute"
	}
	if why := neverShown(n); why != "" && l.gone == "" && s.get("display") == "" {
		l.gone = why
	}
	if _, popover := attr(n, "popover"); popover && s.get("display") == "" && l.gone == "" {
		l.gone = "popover attribute"
	}
	if l.doubt == "" && (dropped[n.Data] || n.Namespace != "") {
		l.doubt = "inside of <" + n.Data + ">, which the preview leaves out"
	}
	if shadowed(n) {
		l.doubt = "beside a shadow tree, which may hide it"
	}
	if l.gone == "" {
		if why := s.covers(); why != "" {
			r.note(why)
		}
		if why := s.cuts(l, n); why != "" {
			l.doubt = why
		}
	}
	switch n.DataAtom {
	case atom.Audio, atom.Video, atom.Canvas:
		l.doubt = "inside of <" + n.Data + ">: shown by programs without it"
	case atom.Details:
		if _, open := attr(n, "open"); !open {
			l.doubt = closedDetails
		}
	case atom.Summary:
		if l.doubt == closedDetails {
			l.doubt = ""
		}
	}
	if n.DataAtom == atom.Bdo && strings.EqualFold(value(n, "dir"), "rtl") {
		l.doubt = "shown from right to left (bdo): it reads differently"
	}
	return l
}

// shadowed tells that an element has a shadow tree, which is shown in place of what it holds.
func shadowed(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Template {
			if _, ok := attr(c, "shadowrootmode"); ok {
				return true
			}
		}
	}
	return false
}

const closedDetails = "inside of a closed <details>"

// neverShown is why browsers do not show what is in such an element.
func neverShown(n *html.Node) string {
	switch n.DataAtom {
	case atom.Template, atom.Datalist, atom.Noembed, atom.Noframes, atom.Rp, atom.Iframe:
		return "inside of <" + n.Data + ">"
	case atom.Dialog:
		if _, open := attr(n, "open"); !open {
			return "closed <dialog>"
		}
	}
	if n.Namespace != "" {
		switch n.Data {
		case "title", "desc", "metadata", "defs", "symbol", "clipPath", "mask", "annotation", "annotation-xml":
			return "inside of <" + n.Data + ">"
		}
	}
	return ""
}

// attributes applies the attributes that stand for style; CSS is stronger.
func (l *look) attributes(n *html.Node, s style) {
	for _, a := range n.Attr {
		if a.Namespace != "" {
			continue
		}
		switch {
		case a.Key == "bgcolor":
			if c, ok := attributeColor(a.Val); ok {
				l.back, l.picture = c.over(l.back), false
			}
		case a.Key == "background" && a.Val != "":
			l.picture = true
		case a.Key == "color" && n.DataAtom == atom.Font, a.Key == "text" && n.DataAtom == atom.Body, a.Key == "fill" && n.Namespace == "svg":
			if c, ok := attributeColor(a.Val); ok {
				l.color = c
			}
		}
	}
	if n.DataAtom == atom.A && s.get("color") == "" {
		if _, ok := attr(n, "href"); ok {
			l.color = blue
		}
	}
	if n.DataAtom == atom.Mark && s.get("background-color") == "" {
		l.back, l.color = color{255, 255, 0, 1}, black
	}
	switch n.DataAtom {
	case atom.Small, atom.Sub, atom.Sup:
		l.size, l.sizeWhy = l.size/1.2, "font made small by many <"+n.Data+">"
	case atom.Font:
		// From 1 to 7, or relative to 3; none of them is too small.
		if v := value(n, "size"); v != "" {
			if _, err := strconv.Atoi(v); err == nil {
				l.size = 16
			}
		}
	}
}

// apply applies the style of an element to the look it inherited.
func (l *look) apply(s style) {
	if len(s) == 0 {
		return
	}
	l.applyFont(s)
	l.applyColors(s)
	switch v := s.get("visibility"); v {
	case "hidden", "collapse":
		l.unseen = s.why("visibility")
	case "visible", "initial":
		l.unseen = ""
	}
	if indent, ok := length(s.get("text-indent"), widthOfPage(s.get("text-indent"), l.size)); ok {
		if l.indent = ""; indent <= -200 || indent >= 800 {
			l.indent = s.why("text-indent")
		}
	}
	if bidi := s.get("unicode-bidi"); strings.HasSuffix(bidi, "override") && s.get("direction") == "rtl" {
		l.doubt = "shown from right to left (" + s.why("unicode-bidi") + "): it reads differently"
	}
	if s.get("mso-hide") == "all" {
		l.doubt = s.why("mso-hide") + ", not shown by Outlook"
	}
	if property := s.strange(l); property != "" {
		l.doubt = s.why(property) + ", which may hide it"
	}
	if why := s.box(l); why != "" && l.gone == "" {
		l.gone = why
	}
}

func (l *look) applyFont(s style) {
	defer l.applyLine(s)
	v := s.get("font-size")
	if v == "" {
		return
	}
	if size, ok := sizeKeyword(v, l.size); ok {
		l.size = size
	} else if size, ok := length(v, l.size); ok {
		l.size = size
	} else {
		return
	}
	l.sizeWhy = s.why("font-size")
}

// applyLine looks at the height of a line; a number is of the font.
func (l *look) applyLine(s style) {
	v := s.get("line-height")
	if v == "" {
		return
	}
	n, ok := length(v, l.size)
	if _, err := strconv.ParseFloat(v, 64); err == nil {
		n *= l.size
	}
	if l.line = ""; ok && n < l.size/4 {
		l.line = s.why("line-height")
	}
}

func (l *look) applyColors(s style) {
	for _, property := range []string{"color", "-webkit-text-fill-color"} {
		if c, ok := parseColor(s.get(property)); ok {
			l.color = c
		}
	}
	c, ok := parseColor(s.get("background-color"))
	if s.get("background-color") == "currentcolor" {
		c, ok = l.color, true
	}
	if ok {
		l.back = c.over(l.back)
		if c.alpha == 1 {
			l.picture = false
		}
	}
	if v := s.get("background-image"); isPicture(v) {
		if c, ok := plainGradient(v); ok {
			l.back = c.over(l.back)
		} else {
			l.picture = true
		}
	}
}

// faint is why text of this look can hardly be told from what is behind it.
func (l look) faint() string {
	text := l.color
	text.alpha *= min(max(l.opacity, 0), 1)
	seen := text.over(l.back)
	if !seen.near(l.back) {
		return ""
	}
	why := fmt.Sprintf("text of color %s on %s", seen, l.back)
	if text.alpha <= 0.05 {
		why = "transparent text"
	}
	if l.picture {
		why += ", until a background picture is loaded"
	}
	return why
}
