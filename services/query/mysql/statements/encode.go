package statements

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An encoder appends a value as JSON (CONTRACT.md 6.5), from the text that the server sends for it. It is chosen once per
// column.
type encoder func(to, text []byte) []byte

// largeValue is from where on a value is measured before it is encoded: escapes can make
// six bytes of one.
const largeValue = 64 << 10

// largeTail is for what follows a large value, so that it does not cost a copy of it all.
const largeTail = 1 << 10

// columnKind is a type's name as the server writes it, and how its values are encoded.
// It is looked up once for each column of an answer and not once for each value.
type columnKind struct {
	name   string
	encode encoder
	size   func(text []byte) int // what a large value takes as JSON; nil where none is large
}

// room makes room in to for a large value and what may follow it; false when the value
// would take more than most bytes.
// It measures at most one pass over the value, and refuses before a byte of it is copied.
func (k columnKind) room(to, value []byte, most int) ([]byte, bool) {
	if k.size == nil {
		return to, true
	}
	if len(value) > most { // JSON is not shorter
		return to, false
	}
	size := k.size(value)
	if size > most {
		return to, false
	}
	return slices.Grow(to, size+largeTail), true
}

// columnKinds are the driver's type names. It tells text from bytes by the column's
// character set. MariaDB has no type JSON: its JSON columns are longtext, with nothing in
// the protocol that the driver reads to tell them from other text, so they are answered as
// text; MySQL's are answered as JSON.
var columnKinds = map[string]columnKind{
	"TINYINT": {"tinyint", appendInteger, nil}, "UNSIGNED TINYINT": {"tinyint unsigned", appendInteger, nil},
	"SMALLINT": {"smallint", appendInteger, nil}, "UNSIGNED SMALLINT": {"smallint unsigned", appendInteger, nil},
	"MEDIUMINT": {"mediumint", appendInteger, nil}, "UNSIGNED MEDIUMINT": {"mediumint unsigned", appendInteger, nil},
	"INT": {"int", appendInteger, nil}, "UNSIGNED INT": {"int unsigned", appendInteger, nil},
	"BIGINT": {"bigint", appendInteger, nil}, "UNSIGNED BIGINT": {"bigint unsigned", appendInteger, nil},
	"YEAR": {"year", appendInteger, nil}, "FLOAT": {"float", appendFloat32, nil}, "DOUBLE": {"double", appendFloat64, nil},
	"BIT":     {"bit", appendBits, nil},
	"DECIMAL": {"decimal", appendQuoted, nil}, "DATE": {"date", appendQuoted, nil}, "TIME": {"time", appendQuoted, nil},
	"DATETIME": {"datetime", appendDateTime, nil}, "TIMESTAMP": {"timestamp", appendDateTime, nil},
	"CHAR": {"char", appendQuoted, sizeOfText}, "VARCHAR": {"varchar", appendQuoted, sizeOfText},
	"ENUM": {"enum", appendQuoted, sizeOfText}, "SET": {"set", appendQuoted, sizeOfText},
	"TINYTEXT": {"tinytext", appendQuoted, sizeOfText}, "TEXT": {"text", appendQuoted, sizeOfText},
	"MEDIUMTEXT": {"mediumtext", appendQuoted, sizeOfText}, "LONGTEXT": {"longtext", appendQuoted, sizeOfText},
	"JSON": {"json", appendJSON, sizeOfJSON}, "NULL": {"null", appendQuoted, sizeOfText},
}

// kindOf is the kind of a column by the driver's name of its type. What is unknown is bytes, answered as base64.
func kindOf(databaseType string) columnKind {
	if k, ok := columnKinds[databaseType]; ok {
		return k
	}
	// BINARY, VARBINARY, the BLOBs, GEOMETRY, VECTOR, and what a newer server brings.
	return columnKind{strings.ToLower(databaseType), appendBase64, sizeOfBase64}
}

// maxExact is the greatest integer that a JSON reader with 64-bit floats keeps exact.
const maxExact = 1 << 53

// fewDigits is how many bytes an integer may have to be within maxExact in any case, its sign included.
const fewDigits = 15

// appendInteger appends an integer, as a string beyond ±2^53: RFC 8259 warns that readers lose digits there. Most stand in JSON as the
// server writes them; a column with ZEROFILL begins with zeros, which JSON does not.
func appendInteger(to, text []byte) []byte {
	if isShort(text) {
		return append(to, text...)
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		if n > maxExact || n < -maxExact {
			return append(strconv.AppendInt(append(to, '"'), n, 10), '"')
		}
		return strconv.AppendInt(to, n, 10)
	}
	if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return appendUint(to, n)
	}
	return appendQuoted(to, text) // no server sends one
}

// isShort reports whether a text is an integer of few digits, written as JSON does.
func isShort(text []byte) bool {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(text) > fewDigits || digits[0] == '0' && len(text) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// appendUint appends an unsigned integer, as a string beyond 2^53.
func appendUint(to []byte, n uint64) []byte {
	if n > maxExact {
		return append(strconv.AppendUint(append(to, '"'), n, 10), '"')
	}
	return strconv.AppendUint(to, n, 10)
}

// appendFloat32 appends a FLOAT, and appendFloat64 a DOUBLE.
func appendFloat32(to, text []byte) []byte { return appendFloat(to, text, 32) }
func appendFloat64(to, text []byte) []byte { return appendFloat(to, text, 64) }

// appendFloat writes a float as encoding/json does: the shortest text that reads back
// as the same number.
func appendFloat(to, text []byte, bits int) []byte {
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return appendQuoted(to, text) // no server sends one
	}
	if math.IsNaN(f) || math.IsInf(f, 0) { // no server sends one
		return append(to, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(to, f, format, -1, bits)
}

// appendBits appends a BIT as the integer it stands for.
func appendBits(to, bits []byte) []byte {
	if len(bits) > 8 {
		return appendBase64(to, bits)
	}
	var n uint64
	for _, c := range bits {
		n = n<<8 | uint64(c)
	}
	return appendUint(to, n)
}

// appendDateTime appends "2026-01-31 09:00:00.250000" as "2026-01-31T09:00:00.250000".
// A fraction of nothing but zeros is left out: it says how wide the column is, not what
// the value is.
func appendDateTime(to, b []byte) []byte {
	const seconds = len("2026-01-31 09:00:00")
	if len(b) < seconds || b[len("2026-01-31")] != ' ' {
		return appendQuoted(to, b)
	}
	to = append(append(append(append(to, '"'), b[:10]...), 'T'), b[11:seconds]...)
	if fraction := b[seconds:]; strings.Trim(string(fraction), ".0") != "" {
		to = append(to, fraction...)
	}
	return append(to, '"')
}

// appendJSON appends the text of a JSON column as it is. The server checked it when it
// was stored; text that is none after all is answered as text.
func appendJSON(to, text []byte) []byte {
	if json.Valid(text) {
		return append(to, text...)
	}
	return appendQuoted(to, text)
}

// sizeOfJSON is the length of what appendJSON appends.
func sizeOfJSON(b []byte) int {
	if json.Valid(b) {
		return len(b)
	}
	return sizeOfText(b)
}

// appendBase64 appends bytes as "base64:…".
func appendBase64(to, b []byte) []byte {
	to = append(to, `"base64:`...)
	return append(base64.StdEncoding.AppendEncode(to, b), '"')
}

// sizeOfBase64 is the length of what appendBase64 appends.
func sizeOfBase64(b []byte) int { return len(`"base64:"`) + base64.StdEncoding.EncodedLen(len(b)) }

// hex are the digits of an escape such as \u001f.
const hex = "0123456789abcdef"

// plain is how many bytes at the begin of b stand in a JSON string as they are, provided that they are UTF-8.
// It is a SWAR loop (SIMD within a register): most texts have nothing to escape, and eight bytes are tested at a time.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(b)-n >= 8; n += 8 { // eight at a time: a borrow below a byte is one of that byte, so none is missed
		x := binary.LittleEndian.Uint64(b[n:])
		quote, backslash := x^ones*'"', x^ones*'\\'
		if ((x-ones*' ')&^x|(quote-ones)&^quote|(backslash-ones)&^backslash)&highs != 0 {
			break
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// appendQuoted appends b as a JSON string: it escapes what JSON requires and no more. What is not valid UTF-8 is replaced, never dropped.
// done is up to where b has been copied: what needs no escape is copied in runs.
func appendQuoted(to, b []byte) []byte {
	to = append(to, '"')
	done := 0
	valid := utf8.Valid(b) // almost always, and then no rune has to be decoded
	for i := 0; i < len(b); {
		if valid {
			if i += plain(b[i:]); i == len(b) {
				break
			}
		}
		c := b[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				to = append(append(to, b[done:i]...), "\ufffd"...)
				done = i + 1
			}
			i += size
			continue
		}
		to = append(to, b[done:i]...)
		switch c {
		case '"', '\\':
			to = append(to, '\\', c)
		case '\n':
			to = append(to, '\\', 'n')
		case '\r':
			to = append(to, '\\', 'r')
		case '\t':
			to = append(to, '\\', 't')
		default:
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		done = i
	}
	return append(append(to, b[done:]...), '"')
}

// sizeOfText is the length of what appendQuoted appends.
func sizeOfText(b []byte) int {
	size := len(`""`)
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(b[i:])
			if i += n; r == utf8.RuneError && n == 1 {
				n = len("\ufffd")
			}
			size += n
			continue
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			size += 2
		case c < ' ':
			size += len(`\u0000`)
		default:
			size++
		}
		i++
	}
	return size
}
