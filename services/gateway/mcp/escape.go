package mcp

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// escaped is by how much data grow as the inside of a string. What is usual is counted by the word.
func escaped(data []byte) (n int64) {
	n = int64(bytes.Count(data, []byte{'"'}) + bytes.Count(data, []byte{'\\'}))
	rest := data
	for ; len(rest) >= 8; rest = rest[8:] {
		if control(binary.LittleEndian.Uint64(rest)) != 0 {
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

// escape appends data of UTF-8 to the inside of a JSON string (RFC 8259 section 7). What is usual goes over by the word.
func escape(to, data []byte) []byte {
	to = slices.Grow(to, room(data))
	out, at := to[:cap(to)], len(to)
	for len(data) >= 8 {
		word := binary.LittleEndian.Uint64(data)
		if control(word) != 0 {
			to = out[:at]
			for _, c := range data[:8] {
				to = appendEscaped(to, c)
			}
			data = data[8:]
			to = slices.Grow(to, room(data))
			out, at = to[:cap(to)], len(to)
			continue
		}
		data = data[8:]
		// Eight bytes go over at once, and again from each mark on, one further.
		next := at + 8
		for marks := special(word); marks != 0; marks &= marks - 1 {
			n := bits.TrailingZeros64(marks) / 8
			binary.LittleEndian.PutUint64(out[at:], word)
			out[at+n] = '\\'
			at += n + 1
			next++
			word, marks = word>>(8*n), marks>>(8*n)
		}
		binary.LittleEndian.PutUint64(out[at:], word)
		at = next
	}
	to = out[:at]
	for _, c := range data {
		to = appendEscaped(to, c)
	}
	return to
}

// room is what the inside of a string of data takes, and what is written over, but for control characters.
func room(data []byte) int { return 2*len(data) + 8 }

const ones, sevens, highs = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f, 0x8080808080808080

// special has the high bit of each byte that is a quotation mark or a backslash, and control one of a word that has any
// byte below the space: Hacker's Delight, 6-1.
func special(word uint64) uint64 {
	quote, backslash := word^'"'*ones, word^'\\'*ones
	return (^((quote & sevens) + sevens | quote) | ^((backslash & sevens) + sevens | backslash)) & highs
}

func control(word uint64) uint64 { return (word - ' '*ones) &^ word & highs }

// appendEscaped appends a byte as it is written in a string.
func appendEscaped(to []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(to, '\\', c)
	case '\n':
		return append(to, `\n`...)
	case '\r':
		return append(to, `\r`...)
	case '\t':
		return append(to, `\t`...)
	}
	if c < ' ' {
		const hex = "0123456789abcdef"
		return append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(to, c)
}
