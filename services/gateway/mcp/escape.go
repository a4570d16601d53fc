package mcp

// escape appends data of UTF-8 to the inside of a JSON string (RFC 8259 section 7).
func escape(to, data []byte) []byte {
	copied := 0
	for i, c := range data {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, data[copied:i]...)
		copied = i + 1
		switch c {
		case '"', '\\':
			to = append(to, '\\', c)
		case '\n':
			to = append(to, `\n`...)
		case '\r':
			to = append(to, `\r`...)
		case '\t':
			to = append(to, `\t`...)
		default:
			const hex = "0123456789abcdef"
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(to, data[copied:]...)
}

// escapedLength is how many bytes the inside of a JSON string of data has.
func escapedLength(data []byte) (n int64) {
	for _, c := range data {
		n += escapedSize(c)
	}
	return n
}

// escapedSize is how many bytes a byte takes in a JSON string.
func escapedSize(c byte) int64 {
	switch {
	case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
		return 2
	case c < ' ':
		return int64(len(`\u0000`))
	}
	return 1
}
