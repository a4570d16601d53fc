package markup

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// Bounds of what is laid out as browsers do it. Their algorithm reopens unclosed formatting
// elements in every later paragraph, searches the open elements at every tag, and gathers the
// attributes of every <html> and <body>: a short text could otherwise make an endless tree.
const (
	maxTags  = 100_000
	maxNodes = 500_000
	maxRoots = 4
)

// treeOf is the tree that browsers make of a text in standards mode, where no script runs: mail
// programs run none, so that <noscript> is shown. It is false when the tree would be too deep
// or too large.
// The doctype is put in front because without one browsers work in quirks mode, which makes another tree of a table in a paragraph, and
// other sizes of fonts in tables.
func treeOf(text string) (*html.Node, bool) {
	if !affordable(text) {
		return nil, false
	}
	root, err := html.ParseWithOptions(strings.NewReader("<!doctype html>"+text), html.ParseOptionEnableScripting(false))
	return root, err == nil
}

// wellFormed is a start tag of which the end is where it seems to be.
var wellFormed = regexp.MustCompile(`^<[A-Za-z0-9]+(?:\s+[^\s"'<>/=]+(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=` + "`" + `]+))?)*\s*>`)

// affordable estimates the tree from above. It takes every "<" for a tag, also in comments and
// scripts: which ones are depends on the tree. Of equal formatting elements browsers reopen
// three, and one <a>; a tag that is not well formed counts as different from all others.
// An example that it refuses: a thousand <font> of as many colours, never closed, in front of a thousand paragraphs; each of these would
// reopen them all.
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
		// 512 is the depth at which the parser gives up by itself.
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

// tagName is the name at the start of the text, in lower case; empty when it is a long one.
func tagName(text string) string {
	const longest = len("strong")
	for i := range min(len(text), longest+1) {
		if c := text[i] | 0x20; c < 'a' || c > 'z' {
			return strings.ToLower(text[:i])
		}
	}
	return ""
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

var textEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapeText escapes ">" as well, which HTML does not ask for: no program can take it for the end of a tag.
func escapeText(text string) string { return textEscapes.Replace(text) }

var valueEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escapeValue is for a value between double quotes.
func escapeValue(text string) string { return valueEscapes.Replace(text) }
