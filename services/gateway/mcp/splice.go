package mcp

import (
	"bytes"
	"io"
	"strconv"
)

// part is a piece of an answer; quoted pieces are written as the inside of a JSON string.
type part struct {
	data   []byte
	quoted bool
}

// counted is up to which size an answer tells its length: to count is to read all of it once more.
const counted = 64 << 10

// splice cuts the protocol's answer at the words, and puts the data in their place; length is -1 for a large one.
func (x *exchange) splice() (parts []part, length int64) {
	rest := x.out.Bytes()
	for {
		at := bytes.Index(rest, []byte(`"`+x.word))
		if at < 0 {
			parts = append(parts, part{data: rest})
			return parts, lengthOf(parts)
		}
		end := at + 1 + len(x.word)
		closing := end + bytes.IndexByte(rest[end:], '"')
		slot, _ := strconv.Atoi(string(rest[end+1 : closing])) // keep made it
		if rest[end] == 'v' {
			parts = append(parts, part{data: rest[:at]}, part{data: x.data[slot]})
			rest = rest[closing+1:]
		} else {
			parts = append(parts, part{data: rest[:at+1]}, part{data: x.data[slot], quoted: true})
			rest = rest[closing:]
		}
	}
}

func lengthOf(parts []part) (length int64) {
	for _, p := range parts {
		if length += int64(len(p.data)); length > counted {
			return -1
		}
		for i := 0; p.quoted && i < len(p.data); i++ {
			length += int64(max(len(escapes[p.data[i]])-1, 0))
		}
	}
	return length
}

// writeAll writes a small answer at once, and a large one as it is.
func writeAll(w io.Writer, parts []part, length int64) error {
	if length >= 0 {
		whole := bytes.NewBuffer(make([]byte, 0, length))
		for _, p := range parts {
			_ = p.write(whole) // a buffer takes all
		}
		_, err := w.Write(whole.Bytes())
		return err
	}
	for _, p := range parts {
		if err := p.write(w); err != nil {
			return err
		}
	}
	return nil
}

func (p part) write(w io.Writer) error {
	if !p.quoted {
		_, err := w.Write(p.data)
		return err
	}
	// The longest escape has six bytes.
	buf := make([]byte, 0, min(6*len(p.data), 64<<10))
	rest := p.data
	for len(rest) > 0 {
		piece := rest[:min(len(rest), cap(buf)/6)]
		rest = rest[len(piece):]
		start := 0
		for i, c := range piece {
			if plainByte[c] {
				continue
			}
			buf = append(append(buf, piece[start:i]...), escapes[c]...)
			start = i + 1
		}
		buf = append(buf, piece[start:]...)
		if _, err := w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	return nil
}

// escapes are how the bytes of UTF-8 are written that a JSON string cannot hold (RFC 8259 section 7).
var escapes = func() (all [256]string) {
	const hex = "0123456789abcdef"
	for c := range 0x20 {
		all[c] = `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	all['\n'], all['\r'], all['\t'], all['"'], all['\\'] = `\n`, `\r`, `\t`, `\"`, `\\`
	return all
}()

// plainByte are those that it can hold.
var plainByte = func() (all [256]bool) {
	for c := range all {
		all[c] = escapes[c] == ""
	}
	return all
}()
