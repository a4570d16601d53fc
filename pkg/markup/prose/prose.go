// Package prose writes HTML that markup has let stay as plain text: paragraphs, lists, quotes and tables as lines, links with
// their addresses, pictures as what they say. It is the one way in which Hub does so: the plain-text part of a mail is
// made here, and so is every preview of it.
package prose

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Visitor hears of what is read, in order.
type Visitor interface {
	// Enter and Leave are called around an element and all that is in it.
	Enter(n *html.Node)
	Leave(n *html.Node)
	// Text is called with each text.
	Text(text string)
}

// Of returns a cleaned fragment in plain text. Lines end with \n, the last one without. The time is linear in its length.
func Of(fragment string) string {
	root, err := html.ParseWithOptions(strings.NewReader("<!doctype html>"+fragment), html.ParseOptionEnableScripting(false))
	if err != nil { // nested too deep, which markup lets nothing be
		return fragment
	}
	return Write(root, noVisitor{})
}

// Write returns a tree in plain text, and lets the visitor hear of it.
func Write(root *html.Node, v Visitor) string {
	var p writer
	(&reader{visitor: v}).walk(root, &p)
	return p.String()
}

// noVisitor is the visitor that wants to hear nothing.
type noVisitor struct{}

func (noVisitor) Enter(*html.Node) {}
func (noVisitor) Leave(*html.Node) {}
func (noVisitor) Text(string)      {}

// reader walks a tree.
type reader struct {
	visitor Visitor
	// tables is how many rows of tables are open, one within another.
	tables int
}

// walk reads a node, and all below it.
func (r *reader) walk(n *html.Node, p *writer) {
	switch n.Type {
	case html.TextNode:
		r.visitor.Text(n.Data)
		p.words(n.Data)
	case html.DocumentNode:
		r.inner(n, p)
	case html.ElementNode:
		r.visitor.Enter(n)
		r.element(n, p)
		r.visitor.Leave(n)
	}
}

// inner reads all below a node.
func (r *reader) inner(n *html.Node, p *writer) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.walk(c, p)
	}
}

// element writes an element.
func (r *reader) element(n *html.Node, p *writer) {
	switch Element(n) {
	case atom.Br:
		p.breakLine()
	case atom.Hr:
		p.block(2)
		p.word("----------")
		p.block(2)
	case atom.Img:
		if alt := strings.Join(strings.Fields(Attribute(n, "alt")), " "); alt != "" {
			p.words("[" + alt + "]")
		}
	case atom.A:
		r.anchor(n, p)
	case atom.Ul, atom.Ol:
		r.list(n, p)
	case atom.Li:
		r.item(n, p, "- ")
	case atom.Blockquote:
		p.block(2)
		p.indent("> ", "> ")
		r.inner(n, p)
		p.outdent()
		p.block(2)
	case atom.Dd:
		p.block(1)
		p.indent("  ", "  ")
		r.inner(n, p)
		p.outdent()
		p.block(1)
	case atom.Pre:
		p.block(2)
		p.pre++
		r.inner(n, p)
		p.pre--
		p.block(2)
	case atom.Tr:
		r.row(n, p)
	default:
		r.plain(n, p)
	}
}

// plain writes an element that has nothing of its own but the room around it.
func (r *reader) plain(n *html.Node, p *writer) {
	gap, pre := Gap(n.DataAtom), strings.HasPrefix(Property(n, "white-space"), "pre")
	if gap > 0 {
		p.block(gap)
	}
	if pre {
		p.pre++
	}
	r.inner(n, p)
	if pre {
		p.pre--
	}
	if gap > 0 {
		p.block(gap)
	}
}

// Gap is how far an element stands from what is around it: 0 in the line, 1 on lines of its
// own, 2 with an empty line around it.
func Gap(kind atom.Atom) int {
	switch kind {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table,
		atom.Blockquote, atom.Pre, atom.Hr:
		return 2
	case atom.Body, atom.Center, atom.Dd, atom.Div, atom.Dt, atom.Html, atom.Li, atom.Tbody, atom.Td, atom.Th, atom.Tr, atom.Br:
		return 1
	}
	return 0
}

// anchor writes a link as "text (href)".
func (r *reader) anchor(n *html.Node, p *writer) {
	before := p.out.Len()
	r.inner(n, p)
	href := Attribute(n, "href")
	shown := strings.TrimSpace(p.out.String()[before:])
	if sameAddress(shown, href) {
		return
	}
	if shown == "" {
		p.words(href)
		return
	}
	p.space = true
	p.words("(" + href + ")")
}

// sameAddress tells that the text of a link is its address, but for what people leave out.
func sameAddress(text, href string) bool {
	bare := func(s string) string {
		s = strings.ToLower(s)
		for _, prefix := range []string{"https://", "http://", "mailto:", "tel:"} {
			s = strings.TrimPrefix(s, prefix)
		}
		return strings.TrimSuffix(s, "/")
	}
	return bare(text) == bare(href)
}

// list writes the items of a list, those of an <ol> with their numbers. A list in a list stands closer.
func (r *reader) list(n *html.Node, p *writer) {
	gap := 2
	if len(p.margin) > 0 {
		gap = 1
	}
	p.block(gap)
	number, err := strconv.Atoi(Attribute(n, "start"))
	if err != nil {
		number = 1
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if Element(c) != atom.Li {
			r.walk(c, p)
			continue
		}
		mark := "- "
		if n.DataAtom == atom.Ol {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		r.visitor.Enter(c)
		r.item(c, p, mark)
		r.visitor.Leave(c)
	}
	p.block(gap)
}

// item writes an item behind its mark; its further lines are as far in.
func (r *reader) item(n *html.Node, p *writer, mark string) {
	p.block(1)
	p.indent(mark, strings.Repeat(" ", len(mark)))
	r.inner(n, p)
	p.outdent()
	p.block(1)
}

// maxTables is how deep tables in tables are written cell by cell. Mails are laid out with
// tables, and each level copies its text once.
const maxTables = 12

// row writes the cells of a table's row side by side if each is a single line.
func (r *reader) row(n *html.Node, p *writer) {
	p.block(1)
	defer p.block(1)
	if r.tables >= maxTables {
		r.inner(n, p)
		return
	}
	r.tables++
	defer func() { r.tables-- }()
	var cells []string
	single := true
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		cell := &writer{}
		r.walk(c, cell)
		text := cell.String()
		if strings.TrimSpace(text) == "" {
			continue
		}
		cells = append(cells, text)
		single = single && !strings.Contains(text, "\n")
	}
	if single && len(cells) > 0 {
		p.word(strings.Join(cells, " | "))
		return
	}
	for _, text := range cells {
		p.block(2)
		p.lines(text)
		p.block(2)
	}
}

// Element is the kind of a node that is an element, else 0.
func Element(n *html.Node) atom.Atom {
	if n.Type != html.ElementNode {
		return 0
	}
	return n.DataAtom
}

// Attribute is the value of an attribute, empty without it.
func Attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// Property is the value of a property in the style that markup has let stay.
func Property(n *html.Node, name string) string {
	for declaration := range strings.SplitSeq(Attribute(n, "style"), ";") {
		if found, v, _ := strings.Cut(declaration, ":"); found == name {
			return v
		}
	}
	return ""
}
