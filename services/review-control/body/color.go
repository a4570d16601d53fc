package body

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// color is red, green and blue from 0 to 255, and how opaque it is, from 0 to 1.
type color struct{ r, g, b, alpha float64 }

var (
	white = color{255, 255, 255, 1}
	black = color{0, 0, 0, 1}
	blue  = color{0, 0, 238, 1} // browsers' links
)

// over is the color that is seen when c lies on an opaque one.
func (c color) over(back color) color {
	mix := func(a, b float64) float64 { return a*c.alpha + b*(1-c.alpha) }
	return color{mix(c.r, back.r), mix(c.g, back.g), mix(c.b, back.b), 1}
}

// near tells that text of one color can hardly be read on the other: less than 28 of 255 apart
// in each part, or as much in all together. #eeeeee on white is near, #dddddd is not.
func (c color) near(d color) bool {
	return math.Sqrt((c.r-d.r)*(c.r-d.r)+(c.g-d.g)*(c.g-d.g)+(c.b-d.b)*(c.b-d.b)) < 48
}

func (c color) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(c.r+.5), int(c.g+.5), int(c.b+.5))
}

// parseColor reads a color of CSS, in lower case, or of an HTML attribute.
func parseColor(text string) (color, bool) {
	text = strings.TrimSpace(text)
	if text == "transparent" {
		return color{}, true
	}
	if n, ok := namedColors[text]; ok {
		return color{float64(n >> 16), float64(n >> 8 & 255), float64(n & 255), 1}, true
	}
	if c, ok := systemColors[text]; ok {
		return c, true
	}
	if hex, ok := strings.CutPrefix(text, "#"); ok {
		return parseHex(hex)
	}
	name, inner, ok := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !ok {
		return parseHexAttribute(text)
	}
	parts := strings.FieldsFunc(inner, func(r rune) bool { return r == ',' || r == '/' || r == ' ' })
	if len(parts) < 3 || len(parts) > 4 {
		return color{}, false
	}
	numbers := [4]float64{3: 1}
	for i, part := range parts {
		bare, percent := strings.CutSuffix(part, "%")
		n, err := strconv.ParseFloat(strings.TrimSuffix(bare, "deg"), 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return color{}, false
		}
		switch {
		case i == 3 && percent:
			n /= 100
		case percent && strings.HasPrefix(name, "rgb"):
			n *= 2.55
		}
		numbers[i] = n
	}
	limit := func(n, top float64) float64 { return math.Min(math.Max(n, 0), top) }
	numbers[3] = limit(numbers[3], 1)
	switch name {
	case "rgb", "rgba":
		return color{limit(numbers[0], 255), limit(numbers[1], 255), limit(numbers[2], 255), numbers[3]}, true
	case "hsl", "hsla":
		c := fromHSL(numbers[0], limit(numbers[1], 100)/100, limit(numbers[2], 100)/100)
		c.alpha = numbers[3]
		return c, true
	}
	return color{}, false
}

func parseHex(hex string) (color, bool) {
	if len(hex) == 3 || len(hex) == 4 {
		var long strings.Builder
		for i := range len(hex) {
			long.WriteString(hex[i:i+1] + hex[i:i+1])
		}
		hex = long.String()
	}
	if len(hex) == 6 {
		hex += "ff"
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) != 8 {
		return color{}, false
	}
	return color{float64(n >> 24), float64(n >> 16 & 255), float64(n >> 8 & 255), float64(n&255) / 255}, true
}

// parseHexAttribute reads color:ffffff, as browsers do in mails without a doctype.
func parseHexAttribute(text string) (color, bool) {
	if len(text) != 6 && len(text) != 3 {
		return color{}, false
	}
	return parseHex(text)
}

// attributeColor reads a color of an HTML attribute: any text is one there.
func attributeColor(text string) (color, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || text == "transparent" {
		return color{}, false
	}
	if c, ok := systemColors[text]; ok {
		return c, true
	}
	if n, ok := namedColors[text]; ok {
		return color{float64(n >> 16), float64(n >> 8 & 255), float64(n & 255), 1}, true
	}
	if len(text) == 4 && text[0] == '#' {
		if c, ok := parseHex(text[1:]); ok {
			return c, true
		}
	}
	// Each part is a third of it; of long parts the first digits count.
	digits := []byte(strings.TrimPrefix(text, "#"))
	digits = digits[:min(len(digits), 128)]
	for i, c := range digits {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			digits[i] = '0'
		}
	}
	for len(digits) == 0 || len(digits)%3 != 0 {
		digits = append(digits, '0')
	}
	n := len(digits) / 3
	parts := []string{string(digits[:n]), string(digits[n : 2*n]), string(digits[2*n:])}
	for i := range parts {
		parts[i] = parts[i][max(0, n-8):]
	}
	for len(parts[0]) > 2 && parts[0][0] == '0' && parts[1][0] == '0' && parts[2][0] == '0' {
		for i := range parts {
			parts[i] = parts[i][1:]
		}
	}
	var values [3]float64
	for i, part := range parts {
		v, err := strconv.ParseUint(part[:min(2, len(part))], 16, 8)
		if err != nil {
			return color{}, false
		}
		values[i] = float64(v)
	}
	return color{values[0], values[1], values[2], 1}, true
}

// plainGradient is the color of a gradient of which all colors are about the same.
func plainGradient(text string) (first color, ok bool) {
	name, inner, found := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !found || !strings.HasSuffix(name, "gradient") {
		return color{}, false
	}
	for stop := range pieces(inner, ',') {
		for word := range pieces(strings.TrimSpace(stop), ' ') {
			c, is := parseColor(word)
			switch {
			case !is:
			case !ok:
				first, ok = c, true
			case !c.over(white).near(first.over(white)):
				return color{}, false
			}
			break
		}
	}
	return first, ok
}

// systemColors are those of CSS on a light screen, as far as mails name them.
var systemColors = map[string]color{
	"canvas": white, "window": white, "field": white, "menu": white, "highlighttext": white, "background": white, "infobackground": white,
	"buttonface": {239, 239, 239, 1}, "threedface": {239, 239, 239, 1}, "buttonhighlight": {239, 239, 239, 1}, "threedhighlight": {239, 239, 239, 1},
	"canvastext": black, "windowtext": black, "fieldtext": black, "menutext": black, "buttontext": black, "captiontext": black, "infotext": black,
	"linktext": blue,
}

// fromHSL takes a hue in degrees, and saturation and lightness from 0 to 1.
func fromHSL(hue, saturation, lightness float64) color {
	part := func(n float64) float64 {
		k := math.Mod(math.Mod(n+hue/30, 12)+12, 12)
		return 255 * (lightness - saturation*math.Min(lightness, 1-lightness)*math.Max(-1, math.Min(k-3, math.Min(9-k, 1))))
	}
	return color{part(0), part(8), part(4), 1}
}

// namedColors are those of CSS Color 4.
var namedColors = map[string]uint32{
	"aliceblue": 0xf0f8ff, "antiquewhite": 0xfaebd7, "aqua": 0x00ffff, "aquamarine": 0x7fffd4, "azure": 0xf0ffff,
	"beige": 0xf5f5dc, "bisque": 0xffe4c4, "black": 0x000000, "blanchedalmond": 0xffebcd, "blue": 0x0000ff,
	"blueviolet": 0x8a2be2, "brown": 0xa52a2a, "burlywood": 0xdeb887, "cadetblue": 0x5f9ea0,
	"chartreuse": 0x7fff00, "chocolate": 0xd2691e, "coral": 0xff7f50, "cornflowerblue": 0x6495ed,
	"cornsilk": 0xfff8dc, "crimson": 0xdc143c, "cyan": 0x00ffff, "darkblue": 0x00008b, "darkcyan": 0x008b8b,
	"darkgoldenrod": 0xb8860b, "darkgray": 0xa9a9a9, "darkgreen": 0x006400, "darkgrey": 0xa9a9a9,
	"darkkhaki": 0xbdb76b, "darkmagenta": 0x8b008b, "darkolivegreen": 0x556b2f, "darkorange": 0xff8c00,
	"darkorchid": 0x9932cc, "darkred": 0x8b0000, "darksalmon": 0xe9967a, "darkseagreen": 0x8fbc8f,
	"darkslateblue": 0x483d8b, "darkslategray": 0x2f4f4f, "darkslategrey": 0x2f4f4f, "darkturquoise": 0x00ced1,
	"darkviolet": 0x9400d3, "deeppink": 0xff1493, "deepskyblue": 0x00bfff, "dimgray": 0x696969,
	"dimgrey": 0x696969, "dodgerblue": 0x1e90ff, "firebrick": 0xb22222, "floralwhite": 0xfffaf0,
	"forestgreen": 0x228b22, "fuchsia": 0xff00ff, "gainsboro": 0xdcdcdc, "ghostwhite": 0xf8f8ff, "gold": 0xffd700,
	"goldenrod": 0xdaa520, "gray": 0x808080, "green": 0x008000, "greenyellow": 0xadff2f, "grey": 0x808080,
	"honeydew": 0xf0fff0, "hotpink": 0xff69b4, "indianred": 0xcd5c5c, "indigo": 0x4b0082, "ivory": 0xfffff0,
	"khaki": 0xf0e68c, "lavender": 0xe6e6fa, "lavenderblush": 0xfff0f5, "lawngreen": 0x7cfc00,
	"lemonchiffon": 0xfffacd, "lightblue": 0xadd8e6, "lightcoral": 0xf08080, "lightcyan": 0xe0ffff,
	"lightgoldenrodyellow": 0xfafad2, "lightgray": 0xd3d3d3, "lightgreen": 0x90ee90, "lightgrey": 0xd3d3d3,
	"lightpink": 0xffb6c1, "lightsalmon": 0xffa07a, "lightseagreen": 0x20b2aa, "lightskyblue": 0x87cefa,
	"lightslategray": 0x778899, "lightslategrey": 0x778899, "lightsteelblue": 0xb0c4de, "lightyellow": 0xffffe0,
	"lime": 0x00ff00, "limegreen": 0x32cd32, "linen": 0xfaf0e6, "magenta": 0xff00ff, "maroon": 0x800000,
	"mediumaquamarine": 0x66cdaa, "mediumblue": 0x0000cd, "mediumorchid": 0xba55d3, "mediumpurple": 0x9370db,
	"mediumseagreen": 0x3cb371, "mediumslateblue": 0x7b68ee, "mediumspringgreen": 0x00fa9a,
	"mediumturquoise": 0x48d1cc, "mediumvioletred": 0xc71585, "midnightblue": 0x191970, "mintcream": 0xf5fffa,
	"mistyrose": 0xffe4e1, "moccasin": 0xffe4b5, "navajowhite": 0xffdead, "navy": 0x000080, "oldlace": 0xfdf5e6,
	"olive": 0x808000, "olivedrab": 0x6b8e23, "orange": 0xffa500, "orangered": 0xff4500, "orchid": 0xda70d6,
	"palegoldenrod": 0xeee8aa, "palegreen": 0x98fb98, "paleturquoise": 0xafeeee, "palevioletred": 0xdb7093,
	"papayawhip": 0xffefd5, "peachpuff": 0xffdab9, "peru": 0xcd853f, "pink": 0xffc0cb, "plum": 0xdda0dd,
	"powderblue": 0xb0e0e6, "purple": 0x800080, "rebeccapurple": 0x663399, "red": 0xff0000, "rosybrown": 0xbc8f8f,
	"royalblue": 0x4169e1, "saddlebrown": 0x8b4513, "salmon": 0xfa8072, "sandybrown": 0xf4a460,
	"seagreen": 0x2e8b57, "seashell": 0xfff5ee, "sienna": 0xa0522d, "silver": 0xc0c0c0, "skyblue": 0x87ceeb,
	"slateblue": 0x6a5acd, "slategray": 0x708090, "slategrey": 0x708090, "snow": 0xfffafa, "springgreen": 0x00ff7f,
	"steelblue": 0x4682b4, "tan": 0xd2b48c, "teal": 0x008080, "thistle": 0xd8bfd8, "tomato": 0xff6347,
	"turquoise": 0x40e0d0, "violet": 0xee82ee, "wheat": 0xf5deb3, "white": 0xffffff, "whitesmoke": 0xf5f5f5,
	"yellow": 0xffff00, "yellowgreen": 0x9acd32,
}
