// Package body reads a mail body as its recipient will: what is said, where each link really
// leads, what is there but not seen. It also makes the form of an HTML body that a page may
// show. It judges nothing and fetches nothing.
package body

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// View is what a body is to a reader.
type View struct {
	// Text is the body in plain text, as a recipient without HTML should get it. Text that is
	// certainly not shown is left out of it; see Hidden.
	Text string
	// Links are the addresses that the body can lead to, in order, each once.
	Links []Link
	// Hidden is text that a recipient is not, or may not be, shown, or is shown where Safe does
	// not show it.
	Hidden []Hidden
	// Remote is the number of resources elsewhere (pictures, fonts, style sheets) that showing
	// the body would fetch.
	Remote int
}

// Link is an address in a body.
type Link struct {
	// Text is what the link shows; empty when it shows nothing.
	Text string
	// Href is the address as it is written, without surrounding white space.
	Href string
	// Host is where a browser would really go: lower case, an international name followed by
	// its ASCII form in parentheses. For mailto it is the domain; empty where there is none.
	Host string
	// Misleading tells that the text, or the address at first sight, names another host.
	Misleading bool
}

// Hidden is text and why it is not seen. Without a text it is a reason to doubt all of it.
type Hidden struct{ Text, Reason string }

// Read reads a body. It takes any text: what is not valid HTML is read as browsers read it.
// The time is linear in its length, under half a second for 4 MiB.
func Read(text string, isHTML bool) View {
	text = strings.ToValidUTF8(text, "\uFFFD")
	r := &reader{seen: map[Link]bool{}, marks: map[rune]*mark{}}
	if !isHTML {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		r.linksIn(r.findMarks(text))
		r.report()
		r.view.Text = text
		return r.view
	}
	root, whole := parse(text)
	if !whole {
		r.hide("", "nested too deep, or with too much markup, to be laid out as a mail program does: what is seen there may differ from what is told here")
	}
	r.sheet, r.view.Remote = readSheets(root)
	for _, what := range r.sheet.unread {
		r.note(what + " is not followed here: it may hide text, or show other")
	}
	for _, g := range r.sheet.generated {
		r.hide(r.findMarks(g.Text), g.Reason)
		r.running = false
	}
	r.base = baseOf(root)
	var p prose
	r.walk(root, canvas(), &p)
	if r.sheet.budget < 0 {
		r.hide("", "more style rules than are followed here: some may hide text")
	}
	r.report()
	r.view.Text = p.String()
	return r.view
}

// Bounds of what is laid out as browsers do it. Their algorithm reopens unclosed formatting
// elements in every later paragraph, searches the open elements at every tag, and gathers the
// attributes of every <html> and <body>: a short body could otherwise make an endless tree.
const (
	maxTags       = 250_000
	maxNodes      = 2_000_000
	maxRoots      = 4
	maxPlainDepth = 256
)

// parse is the tree that browsers make of the text. whole is false when it would be too deep
// or too large; then the tree follows the tags as they come.
func parse(text string) (root *html.Node, whole bool) {
	if affordable(text) {
		// Mail programs run no scripts, so that <noscript> is shown.
		if root, err := html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(false)); err == nil {
			return root, true
		}
	}
	return plainTree(text), false
}

// wellFormed is a start tag of which the end is where it seems to be.
var wellFormed = regexp.MustCompile(`^<[A-Za-z0-9]+(?:\s+[^\s"'<>/=]+(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=` + "`" + `]+))?)*\s*>`)

// affordable estimates the tree from above. It takes every "<" for a tag, also in comments and
// scripts: which ones are depends on the tree. Of equal formatting elements browsers reopen
// three, and one <a>; a tag that is not well formed counts as different from all others.
func affordable(text string) bool {
	var tags, odd, htmls, bodies int
	kinds := map[string]bool{}
	for i := strings.IndexByte(text, '<'); i >= 0 && i < len(text); {
		rest := text[i:]
		tags++
		switch name := tagName(rest[1:]); name {
		case "html":
			htmls++
		case "body":
			bodies++
		case "b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u":
			if end := wellFormed.FindStringIndex(rest); end != nil {
				kinds[rest[:end[1]]] = true
			} else {
				odd++
			}
		}
		reopened := min(2+3*len(kinds)+odd, 512)
		if tags > maxTags || tags*reopened > maxNodes || htmls > maxRoots || bodies > maxRoots {
			return false
		}
		next := strings.IndexByte(rest[1:], '<')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return true
}

// tagName is the name at the begin of the text, in lower case; empty when it is a long one.
func tagName(text string) string {
	const longest = len("strong")
	for i := range min(len(text), longest+1) {
		if c := text[i] | 0x20; c < 'a' || c > 'z' {
			return strings.ToLower(text[:i])
		}
	}
	return ""
}

// plainTree takes each tag for what it says: no implied elements, and elements below
// maxPlainDepth become siblings.
func plainTree(text string) *html.Node {
	root := &html.Node{Type: html.DocumentNode}
	open := []*html.Node{root}
	count := map[string]int{}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return root
		}
		token := tokens.Token()
		top := open[len(open)-1]
		switch kind {
		case html.TextToken:
			top.AppendChild(&html.Node{Type: html.TextNode, Data: token.Data})
		case html.CommentToken:
			top.AppendChild(&html.Node{Type: html.CommentNode, Data: token.Data})
		case html.StartTagToken, html.SelfClosingTagToken:
			n := &html.Node{Type: html.ElementNode, Data: token.Data, DataAtom: token.DataAtom, Attr: token.Attr}
			top.AppendChild(n)
			if n.DataAtom == atom.Noscript {
				tokens.NextIsNotRawText()
			}
			if !isVoid(n.DataAtom) && len(open) <= maxPlainDepth {
				open = append(open, n)
				count[n.Data]++
			}
		case html.EndTagToken:
			// Without an open element of the name there is nothing to search for.
			for count[token.Data] > 0 {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				count[last.Data]--
				if last.Data == token.Data {
					break
				}
			}
		}
	}
}

func isVoid(kind atom.Atom) bool {
	switch kind {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Keygen,
		atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

// attr is the value of an attribute, and whether it is there.
func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val, true
		}
	}
	return "", false
}

// value is the value of an attribute, empty without it.
func value(n *html.Node, name string) string {
	v, _ := attr(n, name)
	return v
}

// fold makes one space of each run of white space, and none at the ends.
func fold(s string) string { return strings.Join(strings.Fields(s), " ") }
