// Package picture makes pictures anew: it decodes what somebody has sent and encodes what was seen in it, so that no byte of theirs
// stays but the colours. It judges a picture by its head before it decodes it, and decodes one at a time: a few bytes can otherwise fill
// the memory.
package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // the formats that Redraw decodes
	"image/jpeg"
	"image/png"

	_ "golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"
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

// turn is whose picture is decoded: one takes up to 100 MiB as it is, and a process has room for that once.
var turn = semaphore.NewWeighted(1)

// Redrawer makes pictures anew. It is for one call: not for several goroutines at once.
type Redrawer struct {
	// Pixels is how many may still be decoded. Those of colours of 16 bits a channel count twice, as they take twice the memory.
	Pixels int
}

// Redraw decodes a picture that says to be of a format (png, jpeg, gif or webp) and encodes it: what has no transparency and was
// photographed as JPEG, all else as PNG. What a file says of itself, such as its place, author and orientation, does not stay. The error
// is a reason that completes "a picture …", or that of ctx: pictures of the process wait for each other, and one is not begun whose call is
// over.
func (r *Redrawer) Redraw(ctx context.Context, format string, data []byte) (as string, again []byte, err error) {
	if len(data) > MaxBytes {
		return "", nil, fmt.Errorf("of more than %d bytes", MaxBytes)
	}
	head, found, err := image.DecodeConfig(bytes.NewReader(data))
	counted, twice := head.Width*head.Height, ""
	if head.ColorModel == color.RGBA64Model || head.ColorModel == color.NRGBA64Model {
		counted, twice = 2*counted, " of 16 bits a channel, which count twice"
	}
	switch {
	case err != nil || found != format:
		return "", nil, fmt.Errorf("that is no %s", format)
	case head.Width > MaxSide || head.Height > MaxSide:
		return "", nil, fmt.Errorf("of %d × %d pixels, more than %d", head.Width, head.Height, MaxSide)
	case counted > r.Pixels:
		return "", nil, fmt.Errorf("of %d × %d pixels%s, more than are left of the page's", head.Width, head.Height, twice)
	case found == "jpeg" && bytes.Count(data, startOfScan) > maxScans:
		return "", nil, fmt.Errorf("of more than %d scans", maxScans)
	}
	if err := turn.Acquire(ctx, 1); err != nil {
		return "", nil, err
	}
	defer turn.Release(1)
	r.Pixels -= counted
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
