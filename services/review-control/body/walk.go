package body

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"hub.internal/pkg/markup"
)

// reader gathers a view.
type reader struct {
	view View
	seen map[Link]bool
	told []*remark
	// running tells that no other text came after the last one that is told of.
	running bool
	// words tells that there is text that can be read, outside of pictures.
	words bool

	inLink int
	tables int
}

// remark is something to be told, of a text that may go on.
type remark struct {
	text   strings.Builder
	reason string
}

// tell tells of a text. What goes on where the last ended belongs to it.
func (r *reader) tell(text, reason string) {
	if last := len(r.told) - 1; r.running && last >= 0 && r.told[last].reason == reason {
		r.told[last].text.WriteString(" " + text)
		return
	}
	c := &remark{reason: reason}
	c.text.WriteString(text)
	r.told, r.running = append(r.told, c), true
}

// report lists what is told, each once.
func (r *reader) report() {
	seen := map[Told]bool{}
	for _, c := range r.told {
		t := Told{fold(c.text.String()), c.reason}
		if !seen[t] {
			seen[t] = true
			r.view.Told = append(r.view.Told, t)
		}
	}
}

// look is how text in an element appears.
type look struct{ color, back markup.Color }

// leastContrast is the contrast below which text can hardly be told from what is behind it: #dddddd
// on white is below, #cccccc is not.
const leastContrast = 1.6

// browsers' own colour of links.
var linkColor = markup.Color{B: 0xee}

// inside is the look of an element in one of look l.
func (l look) inside(n *html.Node) look {
	for _, background := range []string{value(n, "bgcolor"), property(n, "background-color")} {
		if c, ok := markup.ParseColor(background); ok {
			l.back = c
		}
	}
	foreground := property(n, "color")
	if elementOf(n) == atom.A && foreground == "" {
		l.color = linkColor
	}
	for _, foreground := range []string{value(n, "color"), foreground} {
		if c, ok := markup.ParseColor(foreground); ok {
			l.color = c
		}
	}
	return l
}

// walk reads a node in an element of look l, and all below it.
func (r *reader) walk(n *html.Node, l look, p *prose) {
	switch n.Type {
	case html.TextNode:
		r.text(n.Data, l, p)
	case html.DocumentNode:
		r.inner(n, l, p)
	case html.ElementNode:
		r.element(n, l.inside(n), p)
	}
}

func (r *reader) inner(n *html.Node, l look, p *prose) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.walk(c, l, p)
	}
}

// text reads a text node.
func (r *reader) text(text string, l look, p *prose) {
	if !blank(text) {
		if markup.Contrast(l.color, l.back) < leastContrast {
			r.tell(text, fmt.Sprintf("text of color %s on %s", l.color, l.back))
		} else {
			r.running, r.words = false, true
		}
	}
	p.words(text)
	if r.inLink == 0 {
		r.linksIn(text)
	}
}

// element writes an element as plain text.
func (r *reader) element(n *html.Node, l look, p *prose) {
	switch elementOf(n) {
	case atom.Br:
		p.breakLine()
	case atom.Hr:
		p.block(2)
		p.word("----------")
		p.block(2)
	case atom.Img:
		r.picture(n, p)
	case atom.A:
		r.anchor(n, l, p)
	case atom.Ul, atom.Ol:
		r.list(n, l, p)
	case atom.Li:
		r.item(n, l, p, "- ")
	case atom.Blockquote:
		p.block(2)
		p.indent("> ", "> ")
		r.inner(n, l, p)
		p.outdent()
		p.block(2)
	case atom.Dd:
		p.block(1)
		p.indent("  ", "  ")
		r.inner(n, l, p)
		p.outdent()
		p.block(1)
	case atom.Pre:
		p.block(2)
		p.pre++
		r.inner(n, l, p)
		p.pre--
		p.block(2)
	case atom.Tr:
		r.row(n, l, p)
	default:
		gap, pre := gapOf(n.DataAtom), strings.HasPrefix(property(n, "white-space"), "pre")
		if gap > 0 {
			p.block(gap)
		}
		if pre {
			p.pre++
		}
		r.inner(n, l, p)
		if pre {
			p.pre--
		}
		if gap > 0 {
			p.block(gap)
		}
	}
}

// gapOf is how far an element stands from what is around it: 0 in the line, 1 on lines of its
// own, 2 with an empty line around it.
func gapOf(kind atom.Atom) int {
	switch kind {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table,
		atom.Blockquote, atom.Pre, atom.Hr:
		return 2
	case atom.Body, atom.Center, atom.Dd, atom.Div, atom.Dt, atom.Html, atom.Li, atom.Tbody, atom.Td, atom.Th, atom.Tr, atom.Br:
		return 1
	}
	return 0
}

// picture writes what a picture says where none is shown, and notes one that is elsewhere.
func (r *reader) picture(n *html.Node, p *prose) {
	alt := fold(value(n, "alt"))
	if alt != "" {
		p.words("[" + alt + "]")
	}
	if p, elsewhere := pictureOf(func(name string) string { return value(n, name) }); elsewhere {
		r.view.Pictures = append(r.view.Pictures, p)
		r.running = false
	}
}

// anchor writes a link as "text (href)".
func (r *reader) anchor(n *html.Node, l look, p *prose) {
	r.inLink++
	before := p.out.Len()
	r.inner(n, l, p)
	r.inLink--
	href := value(n, "href")
	shown := strings.TrimSpace(p.out.String()[before:])
	r.link(linkText(n), href)
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
		case gapOf(elementOf(d)) > 0:
			b.WriteByte(' ')
		case elementOf(d) == atom.Img:
			b.WriteString(value(d, "alt"))
		}
	}
	return b.String()
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

func (r *reader) list(n *html.Node, l look, p *prose) {
	gap := 2
	if len(p.margin) > 0 {
		gap = 1
	}
	p.block(gap)
	number, err := strconv.Atoi(value(n, "start"))
	if err != nil {
		number = 1
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if elementOf(c) != atom.Li {
			r.walk(c, l, p)
			continue
		}
		mark := "- "
		if n.DataAtom == atom.Ol {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		r.item(c, l.inside(c), p, mark)
	}
	p.block(gap)
}

func (r *reader) item(n *html.Node, l look, p *prose, mark string) {
	p.block(1)
	p.indent(mark, strings.Repeat(" ", len(mark)))
	r.inner(n, l, p)
	p.outdent()
	p.block(1)
}

// maxTables is how deep tables in tables are written cell by cell. Mails are laid out with
// tables, and each level copies its text once.
const maxTables = 12

// row writes the cells of a table's row side by side if each is a single line.
func (r *reader) row(n *html.Node, l look, p *prose) {
	p.block(1)
	defer p.block(1)
	if r.tables >= maxTables {
		r.inner(n, l, p)
		return
	}
	r.tables++
	defer func() { r.tables-- }()
	var cells []string
	single := true
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		cell := &prose{}
		r.walk(c, l, cell)
		text := cell.String()
		if blank(text) {
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
