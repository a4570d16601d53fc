// Package picture makes pictures anew: it decodes what somebody has sent and encodes what was seen in it, so that no byte of theirs
// stays but the colours. It judges a picture by its head before it decodes it: a few bytes can otherwise fill the memory.
package picture

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // the formats that Redraw decodes
	"image/jpeg"
	"image/png"

	_ "golang.org/x/image/webp"
)

const (
	// MaxBytes bounds a picture as it is sent.
	MaxBytes = 200_000
	// MaxSide bounds its width and its height, in pixels.
	MaxSide = 2048
	// maxAgain bounds it as it is encoded again, which may take more than its sender took.
	maxAgain = 2 * MaxBytes
	// maxScans bounds the passes of a JPEG: each goes over all of it, and takes a few bytes to ask for. Progressive ones have ten.
	maxScans = 40
	quality  = 85
)

// Redrawer makes pictures anew. It is for one call: not for several goroutines at once.
type Redrawer struct {
	// Pixels is how many may still be decoded.
	Pixels int
}

// Redraw decodes a picture that says to be of a format (png, jpeg, gif or webp) and encodes it: what has no transparency and was
// photographed as JPEG, all else as PNG. What a file says of itself, such as its place, author and orientation, does not stay. The error
// is a reason that completes "a picture …".
func (r *Redrawer) Redraw(format string, data []byte) (as string, again []byte, err error) {
	if len(data) > MaxBytes {
		return "", nil, fmt.Errorf("of more than %d bytes", MaxBytes)
	}
	head, found, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil || found != format:
		return "", nil, fmt.Errorf("that is no %s", format)
	case head.Width > MaxSide || head.Height > MaxSide:
		return "", nil, fmt.Errorf("of %d × %d pixels, more than %d", head.Width, head.Height, MaxSide)
	case head.Width*head.Height > r.Pixels:
		return "", nil, fmt.Errorf("of %d × %d pixels, more than are left of the page's", head.Width, head.Height)
	case found == "jpeg" && bytes.Count(data, startOfScan) > maxScans:
		return "", nil, fmt.Errorf("of more than %d scans", maxScans)
	}
	r.Pixels -= head.Width * head.Height
	m, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return "", nil, fmt.Errorf("whose %s cannot be decoded", format)
	}
	if as, again, err = encode(m, format); err == nil && len(again) > maxAgain {
		err = fmt.Errorf("that takes more than %d bytes as %s", maxAgain, as)
	}
	return as, again, err
}

// startOfScan is in a JPEG once for each pass, and nowhere in what is packed.
var startOfScan = []byte{0xff, 0xda}

// encode writes a picture in the format that suits it.
func encode(m image.Image, from string) (as string, again []byte, err error) {
	var b bytes.Buffer
	opaque, knows := m.(interface{ Opaque() bool })
	seeThrough := !knows || !opaque.Opaque()
	photographed := from == "jpeg" || from == "webp"
	if !photographed || seeThrough {
		if err := png.Encode(&b, m); err != nil || b.Len() <= MaxBytes || seeThrough {
			return "png", b.Bytes(), err
		}
		b.Reset()
	}
	err = jpeg.Encode(&b, m, &jpeg.Options{Quality: quality})
	return "jpeg", b.Bytes(), err
}
