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

// splice cuts the protocol's answer at the words, puts the data in their place, and says how long it is.
func (x *exchange) splice() (parts []part, length int64) {
	rest := x.out.Bytes()
	add := func(p part) {
		parts, length = append(parts, p), length+p.length()
	}
	for {
		at := bytes.Index(rest, []byte(`"`+x.word))
		if at < 0 {
			add(part{data: rest})
			return parts, length
		}
		end := at + 1 + len(x.word)
		close := end + bytes.IndexByte(rest[end:], '"')
		slot, _ := strconv.Atoi(string(rest[end+1 : close])) // keep made it
		if rest[end] == 'v' {
			add(part{data: rest[:at]})
			add(part{data: x.data[slot]})
			rest = rest[close+1:]
			continue
		}
		add(part{data: rest[:at+1]})
		add(part{data: x.data[slot], quoted: true})
		rest = rest[close:]
	}
}

func (p part) length() int64 {
	n := int64(len(p.data))
	if p.quoted {
		for _, c := range p.data {
			n += int64(len(escapes[c]))
			if escapes[c] != "" {
				n--
			}
		}
	}
	return n
}

func (p part) write(w io.Writer) error {
	if !p.quoted {
		_, err := w.Write(p.data)
		return err
	}
	buf := make([]byte, 0, min(2*len(p.data)+8, 32<<10))
	for _, c := range p.data {
		if escape := escapes[c]; escape != "" {
			buf = append(buf, escape...)
		} else {
			buf = append(buf, c)
		}
		if len(buf) > cap(buf)-8 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
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
