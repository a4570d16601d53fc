package body

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// fetches tells that the element's href is fetched, not followed.
func fetches(n *html.Node) bool {
	if n.DataAtom == atom.Link {
		return true
	}
	if n.Namespace == "svg" {
		switch n.Data {
		case "image", "use", "feImage", "script", "mpath", "pattern", "linearGradient", "radialGradient", "filter", "textPath":
			return true
		}
	}
	return false
}

// remoteOf counts the resources that an element would fetch from elsewhere.
func remoteOf(n *html.Node) (count int) {
	for _, a := range n.Attr {
		switch a.Key {
		case "src", "background", "poster", "dynsrc", "lowsrc", "icon":
			count += elsewhere(a.Val)
		case "data", "codebase", "classid":
			if n.DataAtom == atom.Object || n.DataAtom == atom.Embed || n.DataAtom == atom.Applet {
				count += elsewhere(a.Val)
			}
		case "srcset", "imagesrcset":
			for candidate := range strings.SplitSeq(a.Val, ", ") {
				first, _, _ := strings.Cut(strings.TrimSpace(candidate), " ")
				count += elsewhere(first)
			}
		case "href":
			if fetches(n) {
				count += elsewhere(a.Val)
			}
		case "style", "fill", "stroke", "filter", "mask", "clip-path", "cursor":
			count += remoteInCSS(a.Val)
		}
	}
	return count
}

// elsewhere is 1 for an address outside of the mail.
func elsewhere(address string) int {
	address = strings.TrimSpace(address)
	scheme, _ := splitScheme(address)
	if address == "" || address[0] == '#' || scheme == "data" || scheme == "cid" || scheme == "about" || scheme == "javascript" || scheme == "blob" {
		return 0
	}
	return 1
}

// remoteInCSS counts url(), and the strings that @import and image-set() take for one.
func remoteInCSS(css string) (count int) {
	if !strings.ContainsAny(css, `(@\`) {
		return 0
	}
	css = plainCSS(css)
	for _, function := range []string{"url(", "src(", "image("} {
		for rest := css; ; {
			_, after, ok := strings.Cut(rest, function)
			if !ok {
				break
			}
			count += elsewhere(strings.TrimLeft(after[:min(len(after), 64)], ` '"`))
			rest = after
		}
	}
	for rest := css; ; {
		_, after, ok := strings.Cut(rest, "@import")
		if !ok {
			break
		}
		if after = strings.TrimSpace(after); !strings.HasPrefix(after, "url(") {
			count++
		}
		rest = after
	}
	for rest := css; ; {
		_, after, ok := strings.Cut(rest, "image-set(")
		if !ok {
			return count
		}
		inner := after[:until(after, ')', 0)]
		if !strings.Contains(inner, "url(") {
			count += strings.Count(inner, ",") + 1
		}
		rest = after
	}
}
