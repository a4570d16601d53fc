package body

import (
	"regexp"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Safe is the part of an HTML body that a page may show: the usual markup of mails with inline
// style and pictures that it carries itself. Nothing of it runs, is sent or is fetched. Links
// stay, for a window of their own. It is a second layer: show it in a sandboxed frame under a
// strict Content-Security-Policy all the same.
func Safe(text string) string {
	root, _ := parse(text)
	content := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Body {
			// Its colors are those of the whole mail.
			content.Attr = slices.Clone(n.Attr)
			break
		}
	}
	content.AppendChild(root)
	var b strings.Builder
	writeSafe(&b, content)
	return policy.Sanitize(b.String())
}

// writeSafe writes the tree's elements that the policy knows, with their attributes in a form
// that it can judge. Tags are closed, and text is escaped: what the policy reads is what a
// browser will.
func writeSafe(b *strings.Builder, n *html.Node) {
	switch n.Type {
	case html.TextNode:
		b.WriteString(html.EscapeString(n.Data))
		return
	case html.ElementNode:
		if n.Namespace != "" || dropped[n.Data] {
			return
		}
	case html.CommentNode, html.DoctypeNode, html.RawNode, html.ErrorNode:
		return
	}
	shown := n.Type == html.ElementNode && shownElements[n.Data]
	if shown {
		b.WriteString("<" + n.Data)
		for _, a := range n.Attr {
			if a.Namespace == "" {
				writeAttribute(b, a)
			}
		}
		if n.DataAtom == atom.A {
			b.WriteString(` target="_blank" rel="noopener noreferrer nofollow"`)
		}
		b.WriteString(">")
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		writeSafe(b, c)
	}
	if shown && !isVoid(n.DataAtom) {
		b.WriteString("</" + n.Data + ">")
	}
}

func writeAttribute(b *strings.Builder, a html.Attribute) {
	switch a.Key {
	case "target", "rel":
		return
	case "href":
		a.Val = strings.TrimSpace(a.Val)
	case "style":
		var style []string
		for _, d := range declarations(a.Val) {
			if harmlessValue(d.value) {
				style = append(style, d.property+": "+d.value)
			}
		}
		a.Val = strings.Join(style, "; ")
	}
	if !attributeName.MatchString(a.Key) {
		return
	}
	b.WriteString(" " + a.Key + `="` + html.EscapeString(a.Val) + `"`)
}

var attributeName = regexp.MustCompile(`^[a-z-]+$`)

// kept are the elements of a mail, dropped those that go with all that is in them. Of any other
// only the content is shown.
var (
	kept = []string{
		"a", "abbr", "address", "article", "aside", "b", "bdi", "bdo", "big", "blockquote", "br", "caption", "center", "cite", "code",
		"col", "colgroup", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "font", "footer",
		"h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "li", "main", "mark", "menu", "nav", "ol", "p", "pre",
		"q", "rp", "rt", "ruby", "s", "samp", "section", "small", "span", "strike", "strong", "sub", "summary", "sup", "table",
		"tbody", "td", "tfoot", "th", "thead", "time", "tr", "tt", "u", "ul", "var", "wbr",
	}
	droppedNames = []string{
		"applet", "audio", "canvas", "embed", "frame", "frameset", "head", "iframe", "math", "noembed", "noframes", "object", "plaintext",
		"script", "select", "style", "svg", "template", "textarea", "title", "video", "xmp",
	}
)

var dropped, shownElements = setOf(droppedNames), setOf(kept)

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// policy is what a page may show of a mail.
var policy = emailPolicy()

func emailPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(kept...)
	p.AllowNoAttrs().OnElements(kept...)
	p.AllowAttrs("dir").Matching(regexp.MustCompile(`^(?i:ltr|rtl|auto)$`)).Globally()
	p.AllowAttrs("lang").Matching(regexp.MustCompile(`^[A-Za-z0-9-]{1,35}$`)).Globally()
	p.AllowAttrs("title", "aria-label").Globally()
	p.AllowAttrs("align").Matching(plainWord).Globally()
	p.AllowAttrs("valign").Matching(plainWord).OnElements("td", "th", "tr", "tbody", "thead", "tfoot", "col", "colgroup")
	p.AllowAttrs("bgcolor").Matching(colorAttribute).OnElements("div", "table", "td", "th", "tr", "tbody", "thead", "tfoot")
	p.AllowAttrs("color").Matching(colorAttribute).OnElements("font", "hr")
	p.AllowAttrs("face").Matching(regexp.MustCompile(`^[A-Za-z0-9 ,'"_-]+$`)).OnElements("font")
	p.AllowAttrs("size").Matching(regexp.MustCompile(`^[+-]?\d{1,3}$`)).OnElements("font", "hr")
	p.AllowAttrs("width", "height").Matching(measure).OnElements("table", "td", "th", "tr", "col", "colgroup", "img", "hr")
	p.AllowAttrs("border", "cellpadding", "cellspacing", "hspace", "vspace").Matching(measure).OnElements("table", "img")
	p.AllowAttrs("colspan", "rowspan", "span", "start", "value").Matching(regexp.MustCompile(`^\d{1,5}$`)).OnElements("td", "th", "col", "colgroup", "ol", "li")
	p.AllowAttrs("nowrap", "noshade", "reversed", "open").OnElements("td", "th", "hr", "ol", "details")
	p.AllowAttrs("type").Matching(regexp.MustCompile(`^(?:[1aAiI]|disc|circle|square)$`)).OnElements("ol", "ul", "li")
	p.AllowAttrs("alt").OnElements("img")
	p.AllowAttrs("src").Matching(carriedPicture).OnElements("img")
	p.AllowAttrs("href").Matching(regexp.MustCompile(`^(?i:https?://|mailto:|tel:)[^\s<>"'\\` + "`" + `]*$`)).OnElements("a")
	p.AllowAttrs("target").Matching(regexp.MustCompile(`^_blank$`)).OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`^noopener noreferrer nofollow$`)).OnElements("a")
	p.AllowStyles(styles...).MatchingHandler(harmlessValue).Globally()
	return p
}

var (
	plainWord      = regexp.MustCompile(`^[A-Za-z]{1,20}$`)
	measure        = regexp.MustCompile(`^\d{1,5}(?:\.\d{1,3})?(?:%|px)?$`)
	colorAttribute = regexp.MustCompile(`^(?:#?[0-9A-Fa-f]{3,8}|[A-Za-z]{3,30})$`)
	carriedPicture = regexp.MustCompile(`^data:image/(?:gif|jpe?g|png|webp);base64,[A-Za-z0-9+/=\s]*$`)
)

// styles are the properties of mails that neither fetch nor leave their place.
var styles = []string{
	"background", "background-color", "border", "border-bottom", "border-bottom-color", "border-bottom-left-radius",
	"border-bottom-right-radius", "border-bottom-style", "border-bottom-width", "border-collapse", "border-color", "border-left",
	"border-left-color", "border-left-style", "border-left-width", "border-radius", "border-right", "border-right-color",
	"border-right-style", "border-right-width", "border-spacing", "border-style", "border-top", "border-top-color",
	"border-top-left-radius", "border-top-right-radius", "border-top-style", "border-top-width", "border-width", "box-sizing",
	"caption-side", "clear", "color", "direction", "display", "empty-cells", "float", "font", "font-family", "font-size",
	"font-stretch", "font-style", "font-variant", "font-weight", "height", "letter-spacing", "line-height", "list-style-position",
	"list-style-type", "margin", "margin-bottom", "margin-left", "margin-right", "margin-top", "max-height", "max-width",
	"min-height", "min-width", "opacity", "overflow", "overflow-wrap", "overflow-x", "overflow-y", "padding", "padding-bottom",
	"padding-left", "padding-right", "padding-top", "table-layout", "text-align", "text-decoration", "text-indent", "text-overflow",
	"text-transform", "unicode-bidi", "vertical-align", "visibility", "white-space", "width", "word-break", "word-spacing", "word-wrap",
}

// harmlessValue tells that a value of CSS is plain words, numbers, quoted names and colors.
func harmlessValue(value string) bool { return plainValue.MatchString(value) }

var plainValue = regexp.MustCompile(`^(?:[\p{L}\p{N}#%.,/+! -]|"[\p{L}\p{N} ._-]*"|'[\p{L}\p{N} ._-]*'|(?:rgba?|hsla?|calc)\([0-9a-z%.,/ *+-]*\))*$`)
