package markup

import (
	"strings"

	"golang.org/x/net/html"
)

// cleaner writes what of a tree stays. Tags are closed, and text is escaped: what it writes is
// read the same way by every program.
// One walks one tree once; Clean makes another for each round, with the same removals.
type cleaner struct {
	*removals
	p *Policy
	// redrawn is nil where pictures stay as they came.
	redrawn *redrawn
	out     strings.Builder
}

// place is what stands around a node.
type place struct {
	// size is that of the font, in CSS pixels.
	size float64
	// mono tells that a typewriter's font is in force, which browsers make smaller once and not again inside.
	mono bool
	// parent is the element that stays around, link tells of one further out.
	parent string
	link   bool
}

// inside writes what stays of all below a node.
func (c *cleaner) inside(n *html.Node, at place) {
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		switch child.Type {
		case html.TextNode:
			c.out.WriteString(escapeText(visible(child.Data, c.removals)))
		case html.ElementNode:
			c.element(child, at)
		case html.CommentNode:
			c.comment(child.Data)
		}
	}
}

// comment tells of one in which something can be read: Outlook shows conditional ones.
// An example that is told: <!--[if mso]><p>For Outlook alone</p><![endif]-->. One without a word in it, such as <!-- -->, is not.
func (c *cleaner) comment(text string) {
	condition, inner, _ := strings.Cut(text, "]>")
	if !strings.HasPrefix(condition, "[if") {
		inner = text
	}
	inner = strings.TrimSuffix(strings.TrimSpace(inner), "<![endif]")
	if inner != "" && inner != "[endif]" && strings.Trim(inner, "<>!-[]/ \n\t") != "" {
		c.note("comment", "<!--"+text+"-->")
	}
}

// element writes what stays of an element: itself with what is in it, another element in its place, or its content alone.
func (c *cleaner) element(n *html.Node, at place) {
	name := n.Data
	switch {
	case n.Namespace != "" || droppedElements[name]:
		// A namespace is one of SVG or MathML: elements in these are drawn and not read.
		if !quietElements[name] && !plainMeta(n) {
			c.note("<"+name+">", source(n))
		}
		return
	case name == "img":
		c.picture(n, at)
		return
	// Replaced or left out, the content stays, so that no word of a mail is lost with an unknown element.
	case !c.p.elements[name]:
		other, known := replacements[name]
		if !quietElements[name] {
			c.note("<"+name+">", source(n))
		}
		if !known || !c.p.elements[other] {
			if quietElements[name] {
				c.attributesOf(n)
			}
			c.inside(n, at)
			return
		}
		name = other
	case name == "a" && at.link:
		c.note("link", "inside of another: "+source(n))
		c.inside(n, at)
		return
	}
	// Without a list around it programs put its mark at different places.
	if name == "li" && at.parent != "ul" && at.parent != "ol" {
		name = "div"
	}
	e := elements[name]
	inner := place{size: at.size * scaleOf(e, at), mono: at.mono || e.scale == monospaceScale, parent: name, link: at.link || name == "a"}
	if inner.size < leastFont && inner.size < at.size { // <small> in <small>, or in what is small already
		// A block has to stay, or its text would run into that before it; it stays as a div in the size around it.
		if e.kind == inline {
			c.note("<"+n.Data+">", "too small to be read: "+source(n))
			c.inside(n, at)
			return
		}
		name, inner.size, inner.parent = "div", at.size, "div"
		e = elements[name]
	}
	attributes, size := c.attributes(n, name, e, inner.size, at.size)
	inner.size = size
	// The parser makes html, head and body of any text. They stay, as a div, only for what they are given, such as a background.
	root := n.Data == "html" || n.Data == "body"
	if root && attributes == "" || name == "a" && !strings.Contains(attributes, ` href="`) {
		c.inside(n, at)
		return
	}
	c.out.WriteString("<" + name + attributes + ">")
	if e.kind == void {
		return
	}
	if first := n.FirstChild; name == "pre" && first != nil && first.Type == html.TextNode && strings.HasPrefix(first.Data, "\n") {
		c.out.WriteByte('\n') // browsers drop the first line break
	}
	c.inside(n, inner)
	c.out.WriteString("</" + name + ">")
}

// leastFont is the size in CSS pixels below which text is too small to be read.
const leastFont = 8

// scaleOf is the size of an element's font by that around it. A typewriter's font is made smaller once.
func scaleOf(e element, at place) float64 {
	switch {
	case e.scale == 0, e.scale == monospaceScale && at.mono:
		return 1
	}
	return e.scale
}

// plainMeta tells of a <meta> that says what every page does: its encoding, its width.
// Such as <meta charset="utf-8">. One with http-equiv="refresh" leads elsewhere, and is told.
func plainMeta(n *html.Node) bool {
	equivalent, has := attr(n, "http-equiv")
	harmless := !has || strings.EqualFold(equivalent, "content-type") || strings.EqualFold(equivalent, "x-ua-compatible")
	return n.Data == "meta" && n.Namespace == "" && harmless
}

// source is the start of an element as it may have been written.
// It is for the list of what was taken out: a start tag and some text, cut where it is long. It need not be what was written byte by
// byte.
func source(n *html.Node) string {
	const enough = 200
	var b strings.Builder
	b.WriteString("<" + n.Data)
	for _, a := range n.Attr {
		if b.Len() > enough {
			break
		}
		b.WriteString(" " + a.Key)
		if a.Val != "" {
			b.WriteString(`="` + a.Val[:min(len(a.Val), enough)] + `"`)
		}
	}
	b.WriteString(">")
	for d := range n.Descendants() {
		if b.Len() > enough {
			break
		}
		if d.Type == html.TextNode {
			b.WriteString(d.Data[:min(len(d.Data), enough)])
		}
	}
	return b.String()
}

// attributes are those that stay of an element that stays as name, each with a space in front,
// and the size of the font in it.
// What is written is in the order of the text, and style comes last. Attributes that an unknown element may have, such as onclick, are
// none of these.
func (c *cleaner) attributes(n *html.Node, name string, e element, size, around float64) (string, float64) {
	var b strings.Builder
	write := func(key, value string) { b.WriteString(" " + key + `="` + escapeValue(value) + `"`) }
	styled := style{cleaner: c, element: e, name: name, size: size, around: around}
	for _, a := range n.Attr {
		if a.Namespace != "" {
			c.noteAttribute(a)
			continue
		}
		value := strings.TrimSpace(a.Val)
		if form, known := e.attributes[a.Key]; known {
			if clean, ok := form(value); ok {
				// The form answers for the value: a number, a word, a colour or a list of fonts is all that it can be.
				write(a.Key, strings.ToLower(clean))
				styled.attribute(a.Key, clean)
			} else {
				c.noteAttribute(a)
			}
			continue
		}
		switch a.Key {
		case "href":
			if name != "a" {
				c.noteAttribute(a)
			} else if to, ok := c.p.address(value); ok {
				write("href", to)
			} else {
				c.note("link", source(n))
			}
		case "dir":
			if low := strings.ToLower(value); low == "ltr" || low == "rtl" {
				write("dir", low)
			}
		case "lang":
			if languageTag.MatchString(value) {
				write("lang", value)
			}
		case "style":
			styled.read(value)
		// <body text=red> is old HTML for a colour; its bgcolor is the same as that of tables.
		case "text":
			if n.Data == "body" {
				styled.read("color:" + value)
			} else {
				c.noteAttribute(a)
			}
		case "bgcolor":
			if color, ok := colorForm(value); ok && e.kind == block {
				styled.read("background-color:" + color)
			} else {
				c.noteAttribute(a)
			}
		default:
			c.noteAttribute(a)
		}
	}
	if declarations := styled.write(); declarations != "" {
		write("style", declarations)
	}
	return b.String(), styled.size
}

// attributesOf tells what an element loses that does not stay itself.
func (c *cleaner) attributesOf(n *html.Node) {
	for _, a := range n.Attr {
		c.noteAttribute(a)
	}
}

// noteAttribute tells of an attribute that is taken out, unless it did nothing.
func (c *cleaner) noteAttribute(a html.Attribute) {
	switch {
	case a.Namespace == "" && idleAttributes[a.Key], a.Key == "aria-hidden":
	case strings.HasPrefix(a.Key, "data-"), strings.HasPrefix(a.Key, "xml"), strings.HasPrefix(a.Key, "item"):
	default:
		c.note("attribute "+a.Key, a.Key+`="`+a.Val+`"`)
	}
}

// picture writes a picture that stays. Of another its words do, as programs show them that
// show no pictures.
// The words of alt are cleaned as any text. src and alt are left out of what attributes judges, because both have been judged here.
func (c *cleaner) picture(n *html.Node, at place) {
	src, _ := attr(n, "src")
	alt, _ := attr(n, "alt")
	alt = strings.Join(strings.Fields(visible(alt, c.removals)), " ")
	clean, why, ok := c.source(src)
	if !ok || !c.p.elements["img"] {
		if strings.TrimSpace(src) != "" {
			c.note("picture", why+source(n))
		}
		c.out.WriteString(escapeText(alt))
		return
	}
	rest := &html.Node{Type: n.Type, Data: n.Data}
	for _, a := range n.Attr {
		if a.Namespace != "" || a.Key != "src" && a.Key != "alt" {
			rest.Attr = append(rest.Attr, a)
		}
	}
	attributes, _ := c.attributes(rest, "img", elements["img"], at.size, at.size)
	c.out.WriteString(`<img src="` + escapeValue(clean) + `" alt="` + escapeValue(alt) + `"` + attributes + `>`)
}
