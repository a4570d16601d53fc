package body

import (
	"crypto/rand"
	stdhtml "html"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Preview is the document that a reviewer sees of a mail: its HTML as Shown has it, or else its text.
func Preview(html, text string) string {
	if html != "" {
		return Shown(html)
	}
	return BreakAnywhere.document(`<pre style="margin:0;font:inherit;white-space:pre-wrap">`+stdhtml.EscapeString(text)+`</pre>`, text)
}

// dimmed is how a marked preview looks: a mail's own styles give way to it.
const dimmed = `<style>*{color:#767676!important}mark,mark *{background:#ffe08a!important;color:#1b1b1b!important}</style></head>`

// Marked is the Preview of a body with what stands in some spans of it marked, and the rest dimmed. A span has the index of its first
// byte and of the one behind its last; spans come in their order. What stands in no text, as in a link's address, is not marked. It is
// false where a mark would make another document: without the marks it is the preview.
func Marked(content string, isHTML bool, layout Layout, spans [][2]int) (document string, same bool) {
	// Words that nothing else of the mail has, to be found again in what has been cleaned.
	begin, end := "b"+rand.Text(), "e"+rand.Text()
	var b strings.Builder
	at := 0
	for _, s := range inText(content, isHTML, spans) {
		b.WriteString(content[at:s[0]] + begin + content[s[0]:s[1]] + end)
		at = s[1]
	}
	marked, plain := Clean("", b.String()+content[at:], isHTML, BreakAnywhere), Clean("", content, isHTML, BreakAnywhere)
	document = Preview(marked.HTML, marked.Text)
	if strings.NewReplacer(begin, "", end, "").Replace(document) != Preview(plain.HTML, plain.Text) {
		return "", false
	}
	document = strings.NewReplacer(begin, "<mark>", end, "</mark>").Replace(document)
	if isHTML && layout != BreakAnywhere { // as wide as the preview, whose words the marks have made longer
		document = strings.Replace(breakable(document), breakAnywhere, breakWords, 1)
	}
	return strings.Replace(document, "</head>", dimmed, 1), true
}

// inText are those of the spans that are not empty and stand in a text.
func inText(content string, isHTML bool, spans [][2]int) (list [][2]int) {
	var texts [][2]int
	if z, at := html.NewTokenizer(strings.NewReader(content)), 0; isHTML {
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			from := at
			if at += len(z.Raw()); kind == html.TextToken {
				texts = append(texts, [2]int{from, at})
			}
		}
	} else {
		texts = [][2]int{{0, len(content)}}
	}
	for _, s := range spans {
		if s[0] < s[1] && slices.ContainsFunc(texts, func(t [2]int) bool { return t[0] <= s[0] && s[1] <= t[1] }) {
			list = append(list, s)
		}
	}
	return list
}
