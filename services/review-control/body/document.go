package body

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/text"
)

// Layout is how the page around a mail's HTML is written. A draft keeps that of the release which queued it: what was approved leaves
// as it was approved, whatever a later release writes.
type Layout int

const (
	// BreakAnywhere breaks words wherever a column is narrow.
	BreakAnywhere Layout = 1
	// WholeWords keeps words and numbers whole, lets long addresses break behind their marks, and says the language where letters tell it.
	WholeWords Layout = 2
	// Newest is that of drafts which are queued now.
	Newest = WholeWords
)

// The page that a mail's HTML stands in. Its colours are said, so that no program sets others, and
// links never lead away from what shows the mail.
const (
	documentHead = `<!doctype html>` + "\n" +
		`<html lang="und"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
		`<meta name="color-scheme" content="light"><title></title><base target="_blank"></head>` + "\n" +
		`<body style="margin:16px;background-color:#ffffff;color:#1b1b1b;font-family:Arial,Helvetica,sans-serif;` +
		`font-size:15px;line-height:1.5;` + breakAnywhere + `">` + "\n"
	breakAnywhere, breakWords = "overflow-wrap:anywhere", "overflow-wrap:break-word"
	documentFoot              = "\n</body></html>\n"
)

// Document is a whole page around the HTML of a mail's body, in the newest layout; read is the body as plain text.
func Document(fragment, read string) string { return Newest.document(fragment, read) }

func (l Layout) document(fragment, read string) string {
	if l == BreakAnywhere {
		return documentHead + fragment + documentFoot
	}
	head := strings.Replace(documentHead, breakAnywhere, breakWords, 1)
	if language := text.Language(read); language != "" {
		head = strings.Replace(head, `lang="und"`, `lang="`+language+`"`, 1)
	}
	return head + breakable(fragment) + documentFoot
}

// Words of 30 characters of ASCII and more, addresses mostly, would make a column of a table wide: they may break behind some of these
// marks, so few that the mail hardly grows by it. A text that is cleaned has each & as a character reference, which the semicolon
// ends.
var (
	longWord = regexp.MustCompile(`[!-~]{30,}`)
	mark     = regexp.MustCompile(`[!-~]{10,}?[/?=;_.@-]`)
)

// breakable is a cleaned fragment whose long words may break.
func breakable(fragment string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(fragment))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		raw := string(z.Raw())
		if kind == html.TextToken {
			raw = longWord.ReplaceAllStringFunc(raw, func(word string) string { return mark.ReplaceAllString(word, "$0<wbr>") })
		}
		b.WriteString(raw)
	}
	return b.String()
}

// How that page sets a body: the margin is in CSS pixels, the line's height is by the size of the font.
const (
	pageMargin     = 16.
	pageLineHeight = 1.5
	pageFontSize   = markup.MailFontSize
)

// pageLook is how text appears on it.
var pageLook = look{color: markup.Color{R: 0x1b, G: 0x1b, B: 0x1b}, back: markup.Color{R: 255, G: 255, B: 255}}
