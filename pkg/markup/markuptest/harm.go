// Package markuptest judges what pkg/markup lets stay by lists of its own: a second look at
// what a browser makes of it.
package markuptest

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var (
	elements = words("a b blockquote br center cite code dd del div dl dt em font h1 h2 h3 h4 h5 h6 hr i img ins kbd li ol p pre s samp " +
		"small span strike strong sub sup table tbody td th tr tt u ul var wbr")
	attributes = words("align alt bgcolor border cellpadding cellspacing color colspan dir face height href lang size src start style " +
		"valign width")

	harmless = regexp.MustCompile(`^(?:(?:color|background-color|border[a-z-]*|font-[a-z]+|line-height|letter-spacing|text-align|` +
		`text-decoration|text-transform|white-space|vertical-align|width|max-width|height|margin[a-z-]*|padding[a-z-]*|list-style-type)` +
		`:[a-z0-9#%., '\p{L}-]+(?:;|$))*$`)
	negative = regexp.MustCompile(`(?:^|[^a-z0-9-])-(?:[1-9]|0\.[6-9])`)
	link     = regexp.MustCompile(`^(?:https?://[a-z0-9_.-]+(?::[0-9]+)?(?:[/?#]|$)|mailto:[^\s@]+@|tel:\+?[0-9])`)
	source   = regexp.MustCompile(`^(?:https?://[a-z0-9_.-]+(?::[0-9]+)?(?:[/?#]|$)|data:image/(?:png|jpeg|gif);base64,[A-Za-z0-9+/=]+$)`)
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// Harm says what in a fragment could run, fetch, submit, hide text or break out of what is around
// it, whether or not scripts run; it is empty when nothing can.
func Harm(fragment string) string {
	for _, scripting := range []bool{true, false} {
		context := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
		nodes, err := html.ParseFragmentWithOptions(strings.NewReader(fragment), context, html.ParseOptionEnableScripting(scripting))
		if err != nil {
			return err.Error()
		}
		for _, root := range nodes {
			if problem := harmOf(root); problem != "" {
				return problem
			}
			for n := range root.Descendants() {
				if problem := harmOf(n); problem != "" {
					return problem
				}
			}
		}
	}
	return ""
}

func harmOf(n *html.Node) string {
	switch {
	case n.Type == html.TextNode:
		return ""
	case n.Type != html.ElementNode:
		return "a node that is no element: " + n.Data
	case n.Namespace != "" || !elements[n.Data]:
		return "element " + n.Data
	}
	for _, a := range n.Attr {
		low := strings.ToLower(a.Val)
		switch {
		case !attributes[a.Key] || a.Namespace != "":
			return "attribute " + a.Key
		case a.Key == "href" && (n.Data != "a" || !link.MatchString(a.Val)):
			return "href " + a.Val
		case a.Key == "src" && (n.Data != "img" || !source.MatchString(a.Val)):
			return "src " + a.Val
		case a.Key == "style" && (!harmless.MatchString(low) || negative.MatchString(low)):
			return "style " + a.Val
		case a.Key == "align" && (n.Data == "img" || n.Data == "table" && low != "center"):
			return "align " + a.Val
		}
	}
	return ""
}
