package markup

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"regexp"
	"strings"
)

// source judges where a picture comes from.
func (p *Policy) source(src string) (string, bool) {
	src = strings.TrimSpace(src)
	if m := dataAddress.FindStringSubmatch(src[:min(len(src), 40)]); m != nil {
		return dataPicture(strings.Replace(strings.ToLower(m[1]), "jpg", "jpeg", 1), src[len(m[0]):])
	}
	if !p.mail {
		return "", false
	}
	return webAddress(src)
}

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
