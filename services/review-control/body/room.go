package body

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/text/width"

	"hub.internal/pkg/markup/prose"
)

// room is the height that a body needs at most in windows of Narrow and of Wide: an estimate from
// above, because fonts differ from machine to machine.
func room(root *html.Node, s setting, margin float64) (heights [2]int) {
	for i, window := range []float64{Narrow, Wide} {
		f := &flow{width: window - 2*margin, strut: s.size * s.line}
		f.node(root, s)
		f.flush()
		if !f.wider {
			heights[i] = int(math.Ceil(1.06*f.y + 2*margin + 16))
		}
	}
	return heights
}

// setting is how text is set in an element.
type setting struct {
	// size is in CSS pixels, line is by the size, spacing is between letters.
	size, line, spacing float64
	mono, pre, upper    bool
	tables              int
}

// flow is a column that is filled from its top.
type flow struct {
	// width is that of the column, y what is filled of it, margin what is due before the next line.
	width, y, margin float64
	// x is how far the line under way is filled, tall its height, strut the least that it has in the
	// block around it.
	x, tall, strut float64
	begun          bool
	// wider tells that something may not fit into the width, or into any window, padded that there
	// is room for a bar to scroll by.
	wider, padded bool
}

const scrollBar = 16

// tallest is a height in CSS pixels beyond which it is not told, and longest the same for a line.
const tallest, longest = 5_000, 50_000

// leastColumn is the width in sizes of the font in which words can still be read.
const leastColumn = 3

// line begins a line, unless one is under way.
func (f *flow) line(s setting) {
	if !f.begun {
		f.y += f.margin
		f.margin, f.begun = 0, true
		f.wider = f.wider || f.width < leastColumn*s.size
	}
	tall := max(s.size*s.line, f.strut)
	if math.Abs(s.size*s.line-f.strut) > 1 { // fonts of two sizes stand on one line, each with room above and below
		tall *= 1.12
	}
	f.tall = max(f.tall, tall)
}

// end ends the line under way.
func (f *flow) end() {
	f.y += f.tall
	f.x, f.tall, f.begun = 0, 0, false
}

// flush ends the line, and the margin below it.
func (f *flow) flush() {
	f.end()
	f.y += f.margin
	f.margin = 0
}

func (f *flow) node(n *html.Node, s setting) {
	if f.y > tallest {
		f.wider = true
		return
	}
	switch n.Type {
	case html.TextNode:
		f.text(n.Data, s)
	case html.ElementNode:
		f.element(n, s)
	default:
		f.inner(n, s)
	}
}

func (f *flow) inner(n *html.Node, s setting) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		f.node(c, s)
	}
}

// text fills lines with words. One that is longer than a line is broken.
func (f *flow) text(text string, s setting) {
	if s.pre {
		for i, line := range strings.SplitN(text, "\n", tallest) {
			if i > 0 {
				f.line(s)
				f.end()
			}
			f.words(strings.ReplaceAll(line, "\t", "        "), s)
		}
		return
	}
	f.words(text, s)
}

func (f *flow) words(text string, s setting) {
	space := advance(' ', s)
	if s.upper {
		text = strings.ToUpper(text)
	}
	if len(text) > longest {
		f.wider = true
		return
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }) {
		w := 0.0
		for _, c := range word {
			w += advance(c, s)
		}
		f.line(s)
		f.place(w, space, s)
	}
	if s.pre { // where spaces take room as well
		f.x += float64(strings.Count(text, " ")) * space
		for f.x > f.width && f.width > 0 && f.y < tallest {
			f.x -= f.width
			f.end()
			f.line(s)
		}
	}
}

// place puts something of a width into the line, or into as many lines as it needs.
func (f *flow) place(w, space float64, s setting) {
	if f.x > 0 && f.x+w > f.width {
		f.end()
		f.line(s)
	}
	for w > f.width && f.width >= s.size && f.y < tallest {
		w -= f.width - s.size
		f.end()
		f.line(s)
	}
	f.x += w + space
}

// advance is the width of a character, in a wide font.
func advance(c rune, s setting) float64 {
	em := .64
	switch {
	case strings.ContainsRune(" .,:;!'|ijl", c):
		em = .38
	case strings.ContainsRune("MWmw@%&", c):
		em = 1.05
	case c >= 'A' && c <= 'Z':
		em = .82
	case c < 0x80:
	case unicode.In(c, unicode.Mn, unicode.Me):
		em = 0
	case c < 0x250:
		em = .82
	default:
		em = .85
		k := width.LookupRune(c).Kind()
		if k == width.EastAsianWide || k == width.EastAsianFullwidth || c > 0xffff || c >= 0x2000 && c < 0x3000 {
			em = 1.05
			if c > 0xffff {
				em = 1.4
			}
		}
	}
	if s.mono && em > 0 {
		em = max(em, .64)
	}
	return em*s.size + s.spacing
}

// margins are what browsers put above and below elements, by the size of the font.
var margins = map[atom.Atom]float64{
	atom.P: 1, atom.Blockquote: 1, atom.Pre: 1, atom.Ul: 1, atom.Ol: 1, atom.Dl: 1,
	atom.H1: .67, atom.H2: .83, atom.H3: 1, atom.H4: 1.33, atom.H5: 1.67, atom.H6: 2.33,
}

var scales = map[atom.Atom]float64{
	atom.H1: 2, atom.H2: 1.5, atom.H3: 1.17, atom.H5: .83, atom.H6: .67, atom.Small: .84, atom.Sub: .84, atom.Sup: .84,
}

func (f *flow) element(n *html.Node, s setting) {
	kind := prose.Element(n)
	s = s.inside(n)
	switch kind {
	case atom.Head:
		return
	case atom.Br:
		f.line(s)
		f.end()
		return
	case atom.Wbr:
		return
	case atom.Img:
		f.picture(n, s)
		return
	case atom.Hr:
		f.end()
		f.margin = max(f.margin, s.size/2)
		f.line(s)
		f.tall = 2
		f.end()
		f.margin = s.size / 2
		return
	case atom.Table:
		f.table(n, s)
		return
	}
	box := boxOf(n, s.size)
	if prose.Gap(kind) == 0 {
		if kind == atom.Sub || kind == atom.Sup {
			f.line(s)
			f.tall += s.size / 2
		}
		f.x += box.left
		f.inner(n, s)
		f.x += box.right
		if box.right > 0 && !f.padded { // which may stand beside the window, and then bars to scroll by stand below
			f.y, f.padded = f.y+scrollBar, true
		}
		return
	}
	f.end()
	f.margin = max(f.margin, box.above)
	if box.top > 0 {
		f.flush()
		f.y += box.top
	}
	around, strut := f.width, f.strut
	f.strut = s.size * s.line
	f.width -= box.left + box.right
	if most, ok := lengthOf(prose.Property(n, "max-width"), around); ok {
		f.width = min(f.width, most)
	}
	f.inner(n, s)
	f.end()
	f.width, f.strut = around, strut
	if box.bottom > 0 {
		f.flush()
		f.y += box.bottom
	}
	f.margin = max(f.margin, box.below)
}

// inside is the setting in an element.
func (s setting) inside(n *html.Node) setting {
	kind := prose.Element(n)
	if scale, ok := scales[kind]; ok {
		s.size *= scale
	}
	switch kind {
	case atom.Pre, atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		s.mono = true
	case atom.Font:
		if v := prose.Attribute(n, "size"); v != "" {
			step, _ := strconv.Atoi(v) // markup lets stay what is one
			if v[0] == '+' || v[0] == '-' {
				step += 3
			}
			s.size = []float64{10, 13, 16, 18, 24, 32, 48}[min(max(step, 1), 7)-1]
		}
	}
	if size, ok := lengthOf(prose.Property(n, "font-size"), 0); ok {
		s.size = size
	}
	if line, err := strconv.ParseFloat(prose.Property(n, "line-height"), 64); err == nil {
		s.line = line
	} else if prose.Property(n, "line-height") == "normal" {
		s.line = 1.5
	}
	if spacing, ok := lengthOf(prose.Property(n, "letter-spacing"), 0); ok {
		s.spacing = spacing
	}
	if families := prose.Property(n, "font-family") + prose.Attribute(n, "face"); families != "" {
		s.mono = slices.ContainsFunc([]string{"mono", "courier", "consolas", "menlo"}, func(name string) bool {
			return strings.Contains(families, name)
		})
	}
	if transform := prose.Property(n, "text-transform"); transform != "" {
		s.upper = transform == "uppercase"
	}
	if space := prose.Property(n, "white-space"); space != "" {
		s.pre = strings.HasPrefix(space, "pre")
	}
	return s
}

// unknown is the size in CSS pixels of a picture that is not known.
const unknown = 300

// picture puts a picture into its line.
func (f *flow) picture(n *html.Node, s setting) {
	if p, elsewhere := pictureOf(func(name string) string { return prose.Attribute(n, name) }); elsewhere {
		f.line(s)
		f.box(p, s)
		return
	}
	natural := image.Config{Width: unknown, Height: unknown}
	if data, ok := strings.CutPrefix(prose.Attribute(n, "src"), "data:image/"); ok {
		if c, ok := dimensions(data); ok {
			natural = c
		}
	}
	ratio := float64(natural.Height) / float64(max(natural.Width, 1))
	w, wide := sizeOf(n, "width", f.width)
	h, high := sizeOf(n, "height", 0)
	switch {
	case wide:
		w = min(w, f.width)
		h = max(h, w*ratio)
	case high:
		w = min(h/max(ratio, .01), f.width)
	default:
		w = min(float64(natural.Width), f.width)
		h = w * ratio
	}
	b := boxOf(n, s.size)
	f.line(s)
	f.place(w+b.left+b.right, 0, s)
	for word := range strings.FieldsSeq(prose.Attribute(n, "alt")) { // which stands there while it is not loaded
		h += float64(len(word)) * s.size / max(w, s.size) * s.size
	}
	f.tall = max(f.tall, h+b.top+b.bottom+s.size)
}

// box takes the room of the line that stands for a picture elsewhere: at least the picture's.
func (f *flow) box(p Picture, s setting) {
	says := float64(len(p.says()))*lineFont + linePadding // no letter is wider than the font is high
	w, ok := lengthOf(unit(p.Width), f.width)
	if !ok || w < leastBox {
		w = says
	}
	w = min(w, f.width)
	h, _ := lengthOf(unit(p.Height), 0)
	f.place(w, 0, s)
	f.tall = max(f.tall, h+s.size, lineHeight*math.Ceil(says/max(w-2*linePadding, lineFont))+linePadding+s.size)
}

// dimensions are those of a picture in base64, behind the name of its format.
func dimensions(data string) (image.Config, bool) {
	format, text, _ := strings.Cut(data, ";base64,")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return image.Config{}, false
	}
	var c image.Config
	switch format {
	case "png":
		c, err = png.DecodeConfig(bytes.NewReader(raw))
	case "gif":
		c, err = gif.DecodeConfig(bytes.NewReader(raw))
	default:
		c, err = jpeg.DecodeConfig(bytes.NewReader(raw))
	}
	return c, err == nil
}
