package body

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// reader gathers a view.
type reader struct {
	view   View
	seen   map[Link]bool
	hidden []*concealed
	// running tells that no shown text came after the last hidden one.
	running bool
	marks   map[rune]*mark

	sheet  sheet
	base   address
	inLink int
	tables int
}

// concealed is a hidden text that may go on.
type concealed struct {
	text   strings.Builder
	reason string
}

// hide adds hidden text. What goes on where the last ended belongs to it.
func (r *reader) hide(text, reason string) {
	if last := len(r.hidden) - 1; r.running && last >= 0 && r.hidden[last].reason == reason {
		r.hidden[last].text.WriteString(" " + text)
		return
	}
	c := &concealed{reason: reason}
	c.text.WriteString(text)
	r.hidden, r.running = append(r.hidden, c), true
}

// note tells of something that may hide any text.
func (r *reader) note(reason string) {
	r.hidden = append(r.hidden, &concealed{reason: reason})
	r.running = false
}

// report lists the hidden texts, each once.
func (r *reader) report() {
	seen := map[Hidden]bool{}
	for _, c := range r.hidden {
		h := Hidden{fold(c.text.String()), c.reason}
		if !seen[h] {
			seen[h] = true
			r.view.Hidden = append(r.view.Hidden, h)
		}
	}
	r.reportMarks()
}

// walk reads a node of look l and all below it.
func (r *reader) walk(n *html.Node, l look, p *prose) {
	switch n.Type {
	case html.TextNode:
		r.words(n.Data, l, p)
	case html.CommentNode:
		r.comment(n.Data)
	case html.DocumentNode:
		r.inner(n, l, p)
	case html.ElementNode:
		switch n.DataAtom {
		case atom.Script, atom.Style, atom.Title:
			if n.Namespace == "" {
				return
			}
		}
		r.linksOf(n)
		inside := r.inside(l, n)
		if inside.gone == "" {
			r.element(n, inside, p)
			return
		}
		if l.gone == "" {
			if text := withoutMarks(textOf(n, maxText)); !blank(text) {
				r.hide(text, inside.gone)
			}
		}
		r.inner(n, inside, p)
	}
}

func (r *reader) inner(n *html.Node, l look, p *prose) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.walk(c, l, p)
	}
}

// words reads a text node.
func (r *reader) words(text string, l look, p *prose) {
	text = r.findMarks(text)
	if l.gone != "" {
		return
	}
	if blank(text) {
		p.words(text)
		return
	}
	if why := l.why(); why != "" {
		r.hide(text, why)
		return
	}
	why := l.doubt
	if why == "" {
		why = l.faint()
	}
	if why != "" {
		r.hide(text, why)
	} else {
		r.running = false
	}
	p.words(text)
	if r.inLink == 0 {
		r.linksIn(text)
	}
}

// element writes a shown element as plain text.
func (r *reader) element(n *html.Node, l look, p *prose) {
	switch n.DataAtom {
	case atom.Br:
		p.breakLine()
	case atom.Hr:
		p.block(2)
		p.word("----------")
		p.block(2)
	case atom.Img:
		if alt := r.findMarks(value(n, "alt")); !blank(alt) {
			p.words("[" + fold(alt) + "]")
		}
	case atom.A:
		r.anchor(n, l, p)
	case atom.Input:
		for _, name := range []string{"value", "placeholder"} {
			if text := r.findMarks(value(n, name)); !blank(text) && !strings.EqualFold(value(n, "type"), "hidden") {
				r.hide(text, "in a field of a form, which the preview leaves out")
			}
		}
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		r.list(n, l, p)
	case atom.Li: // outside of a list
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
	case atom.Pre, atom.Textarea, atom.Listing, atom.Xmp, atom.Plaintext:
		p.block(2)
		p.pre++
		r.inner(n, l, p)
		p.pre--
		p.block(2)
	case atom.Tr:
		r.row(n, l, p)
	default:
		gap := gapOf(n.DataAtom)
		if gap > 0 {
			p.block(gap)
		}
		r.inner(n, l, p)
		if gap > 0 {
			p.block(gap)
		}
	}
}

// gapOf is how far an element stands from what is around it: 0 in the line, 1 on lines of its
// own, 2 with an empty line around it.
func gapOf(kind atom.Atom) int {
	switch kind {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Blockquote,
		atom.Pre, atom.Figure, atom.Fieldset, atom.Hr:
		return 2
	case atom.Address, atom.Article, atom.Aside, atom.Body, atom.Caption, atom.Center, atom.Dd, atom.Details, atom.Dialog, atom.Div,
		atom.Dt, atom.Figcaption, atom.Footer, atom.Form, atom.Header, atom.Html, atom.Legend, atom.Li, atom.Main, atom.Nav,
		atom.Optgroup, atom.Option, atom.Section, atom.Summary, atom.Tbody, atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Br:
		return 1
	}
	return 0
}

// anchor writes a link as "text (href)".
func (r *reader) anchor(n *html.Node, l look, p *prose) {
	r.inLink++
	before := p.out.Len()
	r.inner(n, l, p)
	r.inLink--
	href := strings.TrimSpace(value(n, "href"))
	if href == "" {
		return
	}
	to := resolve(href, r.base)
	switch to.scheme {
	case "http", "https", "mailto", "tel", "ftp":
	default:
		return
	}
	shown := strings.TrimSpace(p.out.String()[before:])
	if sameAddress(shown, href) || l.why() != "" {
		return
	}
	href = strings.ReplaceAll(ignored.Replace(href), " ", "%20")
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
		if c.DataAtom != atom.Li || c.Type != html.ElementNode {
			r.walk(c, l, p)
			continue
		}
		mark := "- "
		if n.DataAtom == atom.Ol {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		r.linksOf(c)
		inside := r.inside(l, c)
		if inside.gone != "" {
			r.walk(c, l, p)
			continue
		}
		r.item(c, inside, p, mark)
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

// comment reads a comment: nobody sees it, but Outlook shows conditional ones.
func (r *reader) comment(text string) {
	condition, inner := "", text
	if strings.HasPrefix(text, "[if") {
		var ok bool
		if condition, inner, ok = strings.Cut(text, "]>"); !ok {
			return // the begin of text that the others see
		}
		condition += "]"
	}
	inner = strings.TrimSuffix(strings.TrimSpace(inner), "<![endif]")
	if strings.IndexFunc(inner, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 || inner == "[endif]" {
		return
	}
	if condition == "" {
		r.hide(r.findMarks(inner), "HTML comment")
		return
	}
	root, _ := parse(inner)
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			r.linksOf(n)
			r.view.Remote += remoteOf(n)
		}
	}
	if shown := r.findMarks(textOf(root, maxText)); !blank(shown) {
		r.hide(shown, "shown by Outlook alone (conditional comment "+condition+")")
	}
}

// maxText is more than any body has.
const maxText = 1 << 30

// textOf is the text below a node, without scripts and styles, as long as it is below limit.
func textOf(n *html.Node, limit int) string {
	var b strings.Builder
	var add func(n *html.Node)
	add = func(n *html.Node) {
		if b.Len() > limit {
			return
		}
		switch n.Type {
		case html.TextNode:
			b.WriteString(n.Data)
			return
		case html.ElementNode:
			if n.DataAtom == atom.Script || n.DataAtom == atom.Style || n.Data == "xml" {
				return
			}
			if n.DataAtom == atom.Img || n.DataAtom == atom.Area {
				b.WriteString(value(n, "alt"))
			}
		}
		apart := gapOf(n.DataAtom) > 0
		if apart {
			b.WriteByte(' ')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			add(c)
		}
		if apart {
			b.WriteByte(' ')
		}
	}
	add(n)
	return b.String()
}

// textIn is the text of an element's own text nodes.
func textIn(n *html.Node) string {
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// blank tells that there is nothing to see in a text.
func blank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !invisible(r) }) < 0
}
