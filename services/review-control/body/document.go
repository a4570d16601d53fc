package body

import "hub.internal/pkg/markup"

// The page that a mail's HTML stands in. Its colours are said, so that no program sets others, and
// links never lead away from what shows the mail.
const (
	documentHead = `<!doctype html>` + "\n" +
		`<html lang="und"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
		`<meta name="color-scheme" content="light"><title></title><base target="_blank"></head>` + "\n" +
		`<body style="margin:16px;background-color:#ffffff;color:#1b1b1b;font-family:Arial,Helvetica,sans-serif;` +
		`font-size:15px;line-height:1.5;overflow-wrap:anywhere">` + "\n"
	documentFoot = "\n</body></html>\n"
)

// Document is a whole page around the HTML of a mail's body.
func Document(fragment string) string { return documentHead + fragment + documentFoot }

// How that page sets a body: the margin is in CSS pixels, the line's height is by the size of the font.
const (
	pageMargin     = 16.
	pageLineHeight = 1.5
	pageFontSize   = markup.MailFontSize
)

// pageLook is how text appears on it.
var pageLook = look{color: markup.Color{R: 0x1b, G: 0x1b, B: 0x1b}, back: markup.Color{R: 255, G: 255, B: 255}}
