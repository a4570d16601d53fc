package markup

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"regexp"
	"strings"
)

// Redraw makes a picture anew that says to be of a format: png, jpeg, gif or webp. The error is a reason that completes "a picture …".
type Redraw func(format string, data []byte) (as string, again []byte, err error)

// redrawn are the pictures of a text that were made anew.
// A text may show one picture many times; each is made anew once.
type redrawn struct {
	redraw Redraw
	// made has the addresses of pictures by those that they were made of, and by themselves.
	made map[string]string
}

// redrawnAddress takes WebP, too: what is redrawn leaves in the format that Redraw answers.
var redrawnAddress = regexp.MustCompile(`^(?i:data:image/(png|jpe?g|gif|webp);base64,)`)

// again is the address of a picture that is made of one that the text carries.
func (r *redrawn) again(src string) (string, error) {
	if made, ok := r.made[src]; ok {
		return made, nil
	}
	m := redrawnAddress.FindStringSubmatch(src[:min(len(src), 40)])
	if m == nil {
		return "", errors.New("that is not a PNG, JPEG, GIF or WebP in base64")
	}
	format := formatOf(m[1])
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(src[len(m[0]):]), ""))
	if err != nil {
		return "", errors.New("whose base64 cannot be read")
	}
	as, again, err := r.redraw(format, data)
	if err != nil {
		return "", err
	}
	if f, known := formats[format]; known && !f.still(data) {
		return "", errors.New("that moves")
	}
	made := "data:image/" + as + ";base64," + base64.StdEncoding.EncodeToString(again)
	// By itself as well, because Clean runs in rounds: the second one meets what the first has made.
	r.made[src], r.made[made] = made, made
	return made, nil
}

// formatOf is the name of a format that has two.
func formatOf(name string) string { return strings.Replace(strings.ToLower(name), "jpg", "jpeg", 1) }

// source judges where a picture comes from; why is "" or what is wrong with it.
func (c *cleaner) source(src string) (clean, why string, ok bool) {
	src = strings.TrimSpace(src)
	if c.redrawn == nil || !strings.HasPrefix(strings.ToLower(src[:min(len(src), 5)]), "data:") {
		clean, ok = c.p.source(src)
		return clean, "", ok
	}
	clean, err := c.redrawn.again(src)
	if err != nil {
		return "", err.Error() + ": ", false
	}
	return clean, "", true
}

// source judges where a picture comes from.
// A page of Hub's own shows carried pictures alone; a mail also those of http and https.
func (p *Policy) source(src string) (string, bool) {
	src = strings.TrimSpace(src)
	if m := dataAddress.FindStringSubmatch(src[:min(len(src), 40)]); m != nil {
		return dataPicture(formatOf(m[1]), src[len(m[0]):])
	}
	if !p.mail {
		return "", false
	}
	return webAddress(src)
}

// dataAddress is the begin of a data URL (RFC 2397) of one of the three formats.
var dataAddress = regexp.MustCompile(`^(?i:data:image/(png|jpe?g|gif);base64,)`)

// maxPixels bounds a picture: a few bytes could otherwise fill the memory of whoever looks at it.
const maxPixels = 16 << 20

// dataPicture judges a picture that the text carries itself. Every program shows the three formats
// alike as long as the picture is what it says and does not change while somebody looks at it.
func dataPicture(format, text string) (string, bool) {
	text = strings.Join(strings.Fields(text), "")
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	f := formats[format]
	config, err := f.read(bytes.NewReader(data))
	if err != nil || config.Width*config.Height > maxPixels || !f.still(data) {
		return "", false
	}
	return "data:image/" + format + ";base64," + text, true
}

// formats are those of carried pictures, by their names in an address.
var formats = map[string]struct {
	read  func(io.Reader) (image.Config, error)
	still func([]byte) bool
}{
	"gif": {gif.DecodeConfig, stillGIF}, "jpeg": {jpeg.DecodeConfig, func([]byte) bool { return true }},
	"png": {png.DecodeConfig, stillPNG},
}

// stillPNG tells that no chunk of the picture says that it is animated.
// A PNG is a signature of 8 bytes and then chunks: length, type, data, checksum. acTL, fcTL and fdAT are those of APNG.
func stillPNG(data []byte) bool {
	const signature, head, checksum = 8, 8, 4
	for data = data[signature:]; len(data) >= head; {
		size := int(binary.BigEndian.Uint32(data))
		switch string(data[4:head]) {
		case "acTL", "fdAT", "fcTL":
			return false
		case "IEND":
			return true
		}
		if size > len(data)-head-checksum {
			return false
		}
		data = data[head+size+checksum:]
	}
	return false
}

// stillGIF tells that there is one image in the file.
// What begins no block that it knows is not still. A file without its end mark is judged by what is there.
func stillGIF(data []byte) bool {
	const head, descriptor, colorTable = 13, 9, 0x80
	table := func(flags byte) int {
		if flags&colorTable == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	at, images := head+table(data[10]), 0
	// blocks skips the pieces of data that follow, up to the empty one.
	blocks := func() {
		for at < len(data) && data[at] != 0 {
			at += int(data[at]) + 1
		}
		at++
	}
	for at < len(data) {
		switch data[at] {
		case 0x21: // an extension
			at += 2
			blocks()
		case 0x2c: // an image
			images++
			if at+descriptor >= len(data) {
				return false
			}
			at += 1 + descriptor + table(data[at+descriptor]) + 1
			blocks()
		case 0x3b:
			return images == 1
		default:
			return false
		}
	}
	return images == 1
}
