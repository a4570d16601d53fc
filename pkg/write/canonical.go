package write

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/schema"
)

// stepsPerLook is how many values are made canonical before it is asked again whether somebody still waits.
const stepsPerLook = 1024

// canonicalizer makes JSON canonical (RFC 8785, but for the digits of integers, which stay). It is jsontext's Canonicalize, which does the
// same in one piece, however long that takes (TestFingerprintIsRFC8785 compares them): this one stops with its context. Its room is
// used again for the next value.
type canonicalizer struct {
	ctx   context.Context
	dec   *jsontext.Decoder
	steps int
	// names are those of the objects that are open, the innermost last.
	names   []nameAt
	scratch []byte
}

// nameAt is a name as text, and where its member stands in the result.
type nameAt struct {
	begin    uint64 // what the name begins with, in its order: most are told apart by it
	name     []byte
	from, to int
}

// append appends the canonical form of a value, which is all that there is.
func (c *canonicalizer) append(to []byte, value jsontext.Value) ([]byte, error) {
	if c.dec == nil {
		c.dec = decoder(value)
	} else {
		c.dec.Reset(bytes.NewBuffer(value), namesTwice())
	}
	to, err := c.next(to)
	if err != nil {
		return to, err
	}
	return to, end(c.dec)
}

// decoder reads text itself: what it returns stays valid. It leaves names that are there twice to canonicalizer, which has them in order.
func decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), namesTwice())
}

func namesTwice() jsontext.Options { return jsontext.AllowDuplicateNames(true) }

// next appends the canonical form of the value that the decoder reads next.
func (c *canonicalizer) next(to []byte) ([]byte, error) {
	if c.steps++; c.steps%stepsPerLook == 0 && c.ctx.Err() != nil {
		return to, c.ctx.Err()
	}
	switch c.dec.PeekKind() {
	case '{':
		return c.object(to)
	case '[':
		return c.list(to)
	}
	value, err := c.dec.ReadValue()
	if err != nil {
		return to, err
	}
	switch value.Kind() {
	case '"':
		return text(to, value)
	case '0':
		return number(to, value)
	}
	return append(to, value...), nil
}

// text appends a string in the one way to write it.
func text(to []byte, quoted jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(to, quoted...), nil // there is one way to write it
	}
	plain, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return to, err
	}
	return jsontext.AppendQuote(to, plain)
}

// number appends a number; only one with a fraction or an exponent can be written otherwise. What inputs take for whole (schema.Int64) is
// its digits: as doubles, 9007199254740993.0 and 9007199254740992 are one.
func number(to []byte, digits jsontext.Value) ([]byte, error) {
	if bytes.ContainsAny(digits, ".eE") || string(digits) == "-0" {
		if whole, ok := schema.Int64(digits); ok {
			return strconv.AppendInt(to, whole, 10), nil
		}
		digits = bytes.Clone(digits)
		if err := digits.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
			return to, err
		}
	}
	return append(to, digits...), nil
}

// list appends an array, element by element.
func (c *canonicalizer) list(to []byte) ([]byte, error) {
	if _, err := c.dec.ReadToken(); err != nil {
		return to, err
	}
	to = append(to, '[')
	for first := true; c.dec.PeekKind() != ']'; first = false {
		if !first {
			to = append(to, ',')
		}
		var err error
		if to, err = c.next(to); err != nil {
			return to, err
		}
	}
	_, err := c.dec.ReadToken()
	return append(to, ']'), err
}

// object appends an object, and sorts its members when it has ended.
func (c *canonicalizer) object(to []byte) ([]byte, error) {
	if _, err := c.dec.ReadToken(); err != nil {
		return to, err
	}
	first, start := len(c.names), len(to)+1
	to = append(to, '{')
	for c.dec.PeekKind() != '}' {
		quoted, err := c.dec.ReadValue()
		if err != nil {
			return to, err
		}
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			if name, err = jsontext.AppendUnquote(nil, quoted); err != nil {
				return to, err
			}
		}
		if len(c.names) > first {
			to = append(to, ',')
		}
		from := len(to)
		if to, err = text(to, quoted); err != nil {
			return to, err
		}
		if to, err = c.next(append(to, ':')); err != nil {
			return to, err
		}
		c.names = append(c.names, nameAt{beginning(name), name, from, len(to)})
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return to, err
	}
	err := c.sort(to[start:], start, c.names[first:])
	c.names = c.names[:first]
	return append(to, '}'), cmp.Or(err, c.ctx.Err())
}

// sort brings the members of an object into the order of their names; members begin at start. A name may be there once.
func (c *canonicalizer) sort(members []byte, start int, names []nameAt) error {
	byName := func(a, b nameAt) int {
		if a.begin != b.begin {
			return cmp.Compare(a.begin, b.begin)
		}
		return compareUTF16(a.name, b.name)
	}
	inOrder := slices.IsSortedFunc(names, byName)
	if !inOrder {
		slices.SortFunc(names, byName)
	}
	for i := range len(names) - 1 {
		if bytes.Equal(names[i].name, names[i+1].name) {
			return errTwice
		}
	}
	if inOrder {
		return nil
	}
	sorted := c.scratch[:0]
	for i, n := range names {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, members[n.from-start:n.to-start]...)
	}
	copy(members, sorted)
	c.scratch = sorted
	return nil
}

var errTwice = errors.New("an object has a name twice")

// compareUTF16 compares texts of UTF-8 by their UTF-16 code units, as RFC 8785 orders names.
func compareUTF16(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int(rank(a[i])) - int(rank(b[i]))
		}
	}
	return len(a) - len(b)
}

// beginning is a number in the order of compareUTF16, of the first eight bytes of a name.
func beginning(name []byte) (n uint64) {
	for i := range 8 {
		if n <<= 8; i < len(name) {
			n |= uint64(rank(name[i]))
		}
	}
	return n
}

// rank is the place of a byte of UTF-8 in the order of UTF-16. It is that of the bytes, but that a character beyond U+FFFF, which begins
// with 0xf0 to 0xf4, is a pair of surrogates there (0xd800 and more), and so comes before those of U+E000 to U+FFFF, which begin with 0xee
// and 0xef. A byte inside a character is below all of these.
func rank(b byte) byte {
	if b == 0xee || b == 0xef {
		return b + 0x10
	}
	return b
}
