package picture_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"
	"strings"
	"testing"

	"hub.internal/pkg/picture"
)

// plenty is more than any test decodes.
const plenty = 100 << 20

// painted is a picture of colours; noise keeps it from being packed.
func painted(width, height int, noise bool) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	seed := uint32(1)
	for i := range m.Pix {
		seed = seed*1664525 + 1013904223
		if noise {
			m.Pix[i] = byte(seed >> 24)
		}
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	return m
}

// file is a picture in a format.
func file(t testing.TB, format string, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, m)
	case "jpeg":
		err = jpeg.Encode(&b, m, nil)
	case "gif":
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// chunk is one of a PNG.
func chunk(name string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, name...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// headOnly is a PNG of a size that has nothing else.
func headOnly(width, height uint32) []byte {
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(size, 8, 6, 0, 0, 0))...)
}

// webps are a pixel each: VP8, VP8L.
var webps = []string{"UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA", "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="}

func TestRedraw(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	clear.Set(1, 1, color.NRGBA{200, 10, 20, 120})
	told := file(t, "png", painted(5, 3, true))
	told = append(append(bytes.Clone(told[:33]), chunk("tEXt", []byte("Author\x00secret"))...), told[33:]...)
	photo := file(t, "jpeg", painted(5, 3, true))
	photo = append(append([]byte{0xff, 0xd8, 0xff, 0xfe, 0, 8}, "secret"...), photo[2:]...)
	webp := func(n int) []byte {
		data, err := base64.StdEncoding.DecodeString(webps[n])
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, c := range map[string]struct {
		format string
		data   []byte
		as     string
		size   image.Point
	}{
		"png": {"png", told, "png", image.Pt(5, 3)}, "jpeg": {"jpeg", photo, "jpeg", image.Pt(5, 3)},
		"gif":             {"gif", file(t, "gif", painted(7, 2, false)), "png", image.Pt(7, 2)},
		"see-through":     {"png", file(t, "png", clear), "png", image.Pt(4, 4)},
		"webp":            {"webp", webp(0), "jpeg", image.Pt(1, 1)},
		"lossless webp":   {"webp", webp(1), "png", image.Pt(1, 1)},
		"as much as goes": {"png", file(t, "png", painted(picture.MaxSide, picture.MaxSide, false)), "png", image.Pt(2048, 2048)},
	} {
		r := picture.Redrawer{Pixels: plenty}
		as, again, err := r.Redraw(t.Context(), c.format, c.data)
		if err != nil || as != c.as || bytes.Contains(again, []byte("secret")) {
			t.Errorf("%s: %s, %d bytes, %v", name, as, len(again), err)
			continue
		}
		m, found, err := image.Decode(bytes.NewReader(again))
		if err != nil || found != as || m.Bounds().Size() != c.size {
			t.Errorf("%s: %s of %v, %v", name, found, m.Bounds(), err)
		}
		if r.Pixels != plenty-c.size.X*c.size.Y {
			t.Errorf("%s: %d pixels are left", name, r.Pixels)
		}
	}
}

func TestWhatIsNotRedrawn(t *testing.T) {
	whole := file(t, "png", painted(40, 40, true))
	huge := file(t, "gif", painted(1, 1, false))
	copy(huge[6:], []byte{0xff, 0xff, 0xff, 0xff})
	for name, c := range map[string]struct {
		format, why string
		data        []byte
	}{
		"nothing":    {"png", "is no png", nil},
		"another":    {"png", "is no png", file(t, "jpeg", painted(4, 4, false))},
		"a vector":   {"png", "is no png", []byte("<svg xmlns='http://www.w3.org/2000/svg'/>")},
		"the half":   {"png", "cannot be decoded", whole[:len(whole)/2]},
		"a bomb":     {"png", "of 60000 × 60000 pixels, more than 2048", headOnly(60000, 60000)},
		"wide":       {"png", "of 2049 × 1 pixels", file(t, "png", painted(2049, 1, false))},
		"a huge gif": {"gif", "of 65535 × 65535 pixels", huge},
		"heavy":      {"png", "of more than 200000 bytes", file(t, "png", painted(300, 300, true))},
		"deep": {"png", "of 71 × 71 pixels of 16 bits a channel, which count twice, more than are left of the page's",
			file(t, "png", image.NewNRGBA64(image.Rect(0, 0, 71, 71)))},
		"too many": {"png", "than are left of the page's", file(t, "png", painted(101, 100, false))},
		"many passes": {"jpeg", "of more than 40 scans", append(file(t, "jpeg", painted(4, 4, false)), bytes.Repeat([]byte{0xff, 0xda},
			40)...)},
		"broken pixel": {"webp", "is no webp", []byte("RIFF\x00\x00\x00\x00WEBPVP8 ")},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := picture.Redrawer{Pixels: 10_000}
		_, again, err := r.Redraw(t.Context(), c.format, c.data)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.why) || again != nil {
			t.Errorf("%s: %v, %d bytes", name, err, len(again))
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
			t.Errorf("%s: takes %d bytes of memory", name, took)
		}
	}
}

// TestOnePictureAtATime: a process decodes one picture at a time, whatever calls it has; a call that ends while it waits for its turn, and
// one that has ended, decode nothing.
func TestOnePictureAtATime(t *testing.T) {
	format := rand.Text() // a format stays registered, and the test may run again
	begun, release := make(chan bool, 3), make(chan bool)
	image.RegisterFormat(format, format, func(io.Reader) (image.Image, error) {
		begun <- true
		<-release
		return painted(1, 1, false), nil
	}, func(io.Reader) (image.Config, error) {
		return image.Config{ColorModel: color.NRGBAModel, Width: 1, Height: 1}, nil
	})
	redraw := func(ctx context.Context, answer chan error) {
		r := picture.Redrawer{Pixels: plenty}
		_, _, err := r.Redraw(ctx, format, []byte(format))
		answer <- err
	}
	first, waits, is := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go redraw(t.Context(), first)
	<-begun
	over, end := context.WithCancel(t.Context())
	go redraw(over, waits)
	end()
	go redraw(over, is)
	for _, answer := range []chan error{waits, is} {
		select {
		case err := <-answer:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		case <-begun:
			t.Fatal("two are decoded at once")
		}
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	go redraw(over, is)
	if !errors.Is(<-is, context.Canceled) || len(begun) > 0 {
		t.Error("a call that is over decodes")
	}
	go redraw(t.Context(), first)
	if <-first != nil || len(begun) != 1 {
		t.Error("the turn is not given back")
	}
}

// FuzzRedraw: nothing breaks, and what is made can be decoded.
func FuzzRedraw(f *testing.F) {
	for _, format := range []string{"png", "jpeg", "gif"} {
		f.Add(format, file(f, format, painted(3, 2, true)))
	}
	for _, text := range webps {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("webp", data)
	}
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		r := picture.Redrawer{Pixels: 1 << 16}
		as, again, err := r.Redraw(t.Context(), format, data)
		if err != nil {
			return
		}
		if _, found, err := image.DecodeConfig(bytes.NewReader(again)); err != nil || found != as {
			t.Errorf("%s %s: %v", as, found, err)
		}
	})
}
