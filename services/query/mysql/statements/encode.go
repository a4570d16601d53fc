package statements

import (
	"database/sql/driver"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An encoder appends a value, never nil, as JSON (CONTRACT.md 6.5). It is chosen once per
// column.
type encoder func(to []byte, v driver.Value) []byte

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
	size   func(b []byte) int // what a large value takes as JSON; nil where none is large
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
	"TINYINT": {"tinyint", appendNumber, nil}, "UNSIGNED TINYINT": {"tinyint unsigned", appendNumber, nil},
	"SMALLINT": {"smallint", appendNumber, nil}, "UNSIGNED SMALLINT": {"smallint unsigned", appendNumber, nil},
	"MEDIUMINT": {"mediumint", appendNumber, nil}, "UNSIGNED MEDIUMINT": {"mediumint unsigned", appendNumber, nil},
	"INT": {"int", appendNumber, nil}, "UNSIGNED INT": {"int unsigned", appendNumber, nil},
	"BIGINT": {"bigint", appendNumber, nil}, "UNSIGNED BIGINT": {"bigint unsigned", appendNumber, nil},
	"YEAR": {"year", appendNumber, nil}, "FLOAT": {"float", appendNumber, nil}, "DOUBLE": {"double", appendNumber, nil},
	"BIT":     {"bit", appendBits, nil},
	"DECIMAL": {"decimal", appendText, nil}, "DATE": {"date", appendText, nil}, "TIME": {"time", appendText, nil},
	"DATETIME": {"datetime", appendDateTime, nil}, "TIMESTAMP": {"timestamp", appendDateTime, nil},
	"CHAR": {"char", appendText, sizeOfText}, "VARCHAR": {"varchar", appendText, sizeOfText},
	"ENUM": {"enum", appendText, sizeOfText}, "SET": {"set", appendText, sizeOfText},
	"TINYTEXT": {"tinytext", appendText, sizeOfText}, "TEXT": {"text", appendText, sizeOfText},
	"MEDIUMTEXT": {"mediumtext", appendText, sizeOfText}, "LONGTEXT": {"longtext", appendText, sizeOfText},
	"JSON": {"json", appendJSON, sizeOfJSON}, "NULL": {"null", appendText, sizeOfText},
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

// appendNumber appends an integer, as a string beyond ±2^53, or a float.
func appendNumber(to []byte, v driver.Value) []byte {
	switch n := v.(type) {
	case int64:
		if n > maxExact || n < -maxExact {
			return append(strconv.AppendInt(append(to, '"'), n, 10), '"')
		}
		return strconv.AppendInt(to, n, 10)
	case uint64:
		return appendUint(to, n)
	case float32:
		return appendFloat(to, float64(n), 32)
	case float64:
		return appendFloat(to, n, 64)
	}
	return appendText(to, v)
}

// appendUint appends an unsigned integer, as a string beyond 2^53: RFC 8259 warns that readers lose digits
// there.
func appendUint(to []byte, n uint64) []byte {
	if n > maxExact {
		return append(strconv.AppendUint(append(to, '"'), n, 10), '"')
	}
	return strconv.AppendUint(to, n, 10)
}

// appendFloat writes a float as encoding/json does: the shortest text that reads back
// as the same number.
func appendFloat(to []byte, f float64, bits int) []byte {
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
func appendBits(to []byte, v driver.Value) []byte {
	b, ok := v.([]byte)
	if !ok || len(b) > 8 {
		return appendBase64(to, v)
	}
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return appendUint(to, n)
}

// appendDateTime appends "2026-01-31 09:00:00.250000" as "2026-01-31T09:00:00.250000".
// A fraction of nothing but zeros is left out: it says how wide the column is, not what
// the value is.
func appendDateTime(to []byte, v driver.Value) []byte {
	const seconds = len("2026-01-31 09:00:00")
	b, ok := v.([]byte)
	if !ok || len(b) < seconds || b[len("2026-01-31")] != ' ' {
		return appendText(to, v)
	}
	to = append(append(append(append(to, '"'), b[:10]...), 'T'), b[11:seconds]...)
	if fraction := b[seconds:]; strings.Trim(string(fraction), ".0") != "" {
		to = append(to, fraction...)
	}
	return append(to, '"')
}

// appendJSON appends the text of a JSON column as it is. The server checked it when it
// was stored; text that is none after all is answered as text.
func appendJSON(to []byte, v driver.Value) []byte {
	if b, ok := v.([]byte); ok && json.Valid(b) {
		return append(to, b...)
	}
	return appendText(to, v)
}

// sizeOfJSON is the length of what appendJSON appends.
func sizeOfJSON(b []byte) int {
	if json.Valid(b) {
		return len(b)
	}
	return sizeOfText(b)
}

// appendBase64 appends bytes as "base64:…".
func appendBase64(to []byte, v driver.Value) []byte {
	b, ok := v.([]byte)
	if !ok {
		return appendText(to, v)
	}
	to = append(to, `"base64:`...)
	return append(base64.StdEncoding.AppendEncode(to, b), '"')
}

// sizeOfBase64 is the length of what appendBase64 appends.
func sizeOfBase64(b []byte) int { return len(`"base64:"`) + base64.StdEncoding.EncodedLen(len(b)) }

// appendText appends text. What is not valid UTF-8 is replaced, never dropped.
func appendText(to []byte, v driver.Value) []byte {
	switch v := v.(type) {
	case []byte:
		return appendQuoted(to, v)
	case int64, uint64, float32, float64:
		return appendNumber(to, v)
	}
	return append(to, "null"...) // the driver yields nothing else
}

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

// appendQuoted appends b as a JSON string: it escapes what JSON requires and no more.
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
