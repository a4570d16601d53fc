package body

import (
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"

	"hub.internal/pkg/markup/prose"
	"hub.internal/pkg/text"
)

// Picture is a picture elsewhere, as its mail describes it: nobody has seen it.
type Picture struct {
	// Alt is what it says where it is not shown; empty when it says nothing.
	Alt string
	// Width and Height are as declared, in pixels, or with a "%"; empty where nothing is.
	Width, Height string
	// Host is where it is, as Link.Host.
	Host string
}

// pictureOf reads the attributes of an img; false for a picture that the mail brings with it.
func pictureOf(attribute func(name string) string) (Picture, bool) {
	to := resolve(attribute("src"))
	return Picture{fold(attribute("alt")), attribute("width"), attribute("height"), to.show()}, to.host != ""
}

// Size is how large the picture is declared to be: "600×200", "100% wide", or empty.
func (p Picture) Size() string {
	switch {
	case p.Width != "" && p.Height != "":
		return p.Width + "×" + p.Height
	case p.Width != "":
		return p.Width + " wide"
	case p.Height != "":
		return p.Height + " high"
	}
	return ""
}

// maxAlt is how much of what a picture says stands in its place, in characters.
const maxAlt = 120

// says is the line that stands for the picture.
func (p Picture) says() string {
	parts := []string{"no text"}
	if p.Alt != "" {
		parts[0] = "“" + text.Shorten(p.Alt, maxAlt) + "”"
	}
	if size := p.Size(); size != "" {
		parts = append(parts, size)
	}
	return "Picture not loaded: " + strings.Join(append(parts, "from "+p.Host), ", ")
}

// leastBox is the width in pixels below which the line does not keep to that of its picture.
const leastBox = 80

// boxStyle is how the line looks, whatever the mail around it does.
const boxStyle = "display:inline-block;box-sizing:border-box;max-width:100%;padding:4px 8px;border:1px dashed #6b6b6b;" +
	"background-color:#f2f2f2;color:#333333;font:normal 13px/18px Arial,Helvetica,sans-serif;text-align:left;" +
	"white-space:normal;vertical-align:top;overflow-wrap:anywhere"

// box is the line in the place that the picture would take.
func (p Picture) box() string {
	style := boxStyle
	if w, ok := lengthOf(unit(p.Width), leastBox); ok && w >= leastBox {
		// In a function, so that a table does not grow to hold it: a picture would shrink there.
		style += ";width:min(" + unit(p.Width) + ",100%)"
	}
	if _, ok := lengthOf(unit(p.Height), 0); ok {
		style += ";min-height:" + unit(p.Height)
	}
	return `<span style="` + style + `"><bdi>` + html.EscapeString(p.says()) + `</bdi></span>`
}

// unit is a length of an attribute as one of a style.
func unit(length string) string {
	if length == "" || strings.HasSuffix(length, "%") {
		return length
	}
	return length + "px"
}

// Shown is HTML that markup.Mail has let stay, or a document around such, as somebody sees it whose browser loads
// nothing: in the place of each picture that is elsewhere stands a line that describes it. All else is as it was,
// byte by byte.
func Shown(document string) string {
	if !strings.Contains(document, "<img") {
		return document
	}
	var out strings.Builder
	for z := html.NewTokenizer(strings.NewReader(document)); ; {
		kind := z.Next()
		raw := string(z.Raw())
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				return document
			}
			out.WriteString(raw)
			return out.String()
		}
		if strings.HasPrefix(raw, "<img") && (kind == html.StartTagToken || kind == html.SelfClosingTagToken) {
			img := z.Token()
			attribute := func(name string) string { return prose.Attribute(&html.Node{Attr: img.Attr}, name) }
			if p, elsewhere := pictureOf(attribute); elsewhere {
				raw = p.box()
			}
		}
		out.WriteString(raw)
	}
}
