package mcp

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"
	"slices"
	"strconv"
)

// part is a piece of an answer; quoted pieces are written as the inside of a JSON string.
type part struct {
	data   []byte
	quoted bool
}

// splice cuts the protocol's answer at the words, puts the data in their place, and says how long it is then.
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
		length += int64(len(p.data))
		if p.quoted {
			length += escaped(p.data)
		}
	}
	return length
}

// escaped is by how much data grow as the inside of a string. What is usual is counted by the word.
func escaped(data []byte) (n int64) {
	n = int64(bytes.Count(data, []byte{'"'}) + bytes.Count(data, []byte{'\\'}))
	rest := data
	for ; len(rest) >= 8; rest = rest[8:] {
		// The high bit of each byte that is less than 0x20 (and maybe of one after it, which is counted by itself).
		word := binary.LittleEndian.Uint64(rest)
		if (word-0x2020202020202020)&^word&0x8080808080808080 != 0 {
			n += controls(rest[:8])
		}
	}
	return n + controls(rest)
}

func controls(data []byte) (n int64) {
	for _, c := range data {
		switch {
		case c == '\n', c == '\r', c == '\t':
			n++
		case c < ' ':
			n += int64(len(`\u0000`) - 1)
		}
	}
	return n
}

const (
	// atOnce is up to which size an answer is written in one piece, and the size of the pieces of a larger one.
	atOnce = 64 << 10
	piece  = 32 << 10
)

func writeAll(w io.Writer, parts []part, length int64) error {
	if length <= atOnce {
		whole := make([]byte, 0, length)
		for _, p := range parts {
			whole = p.append(whole, p.data)
		}
		_, err := w.Write(whole)
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
	buf := make([]byte, 0, 2*piece)
	for rest := p.data; len(rest) > 0; {
		next := rest[:min(len(rest), piece)]
		rest = rest[len(next):]
		buf = p.append(buf[:0], next)
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// append appends a piece of the part's data as it is written.
func (p part) append(to, data []byte) []byte {
	if !p.quoted {
		return append(to, data...)
	}
	for len(data) >= 8 {
		// Eight bytes go over at once; what does not belong is written over by what comes next.
		to = slices.Grow(to, 8)
		word := binary.LittleEndian.Uint64(data)
		binary.LittleEndian.PutUint64(to[len(to):len(to)+8], word)
		at := bits.TrailingZeros64(special(word)) / 8
		to = to[:len(to)+at]
		if at == 8 {
			data = data[8:]
			continue
		}
		to = appendEscape(to, data[at])
		data = data[at+1:]
	}
	for _, c := range data {
		if c < ' ' || c == '"' || c == '\\' {
			to = appendEscape(to, c)
		} else {
			to = append(to, c)
		}
	}
	return to
}

// special has the high bit of the first byte of a word that a JSON string cannot hold as it is
// (RFC 8259 section 7), and maybe those of later ones: Hacker's Delight, section 6-1.
func special(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^'"'*ones, word^'\\'*ones
	return ((word-' '*ones)&^word | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
}

// appendEscape appends one of those bytes as it is written in a string.
func appendEscape(to []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(to, '\\', c)
	case '\n':
		return append(to, `\n`...)
	case '\r':
		return append(to, `\r`...)
	case '\t':
		return append(to, `\t`...)
	default:
		const hex = "0123456789abcdef"
		return append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}
