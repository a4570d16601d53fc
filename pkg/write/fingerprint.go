package write

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint is SHA-256 of the input's canonical JSON (RFC 8785), so that the order
// of members, white space and 1 beside 1.0 make no difference. Unlike RFC 8785, which
// reads numbers as doubles, it keeps the digits of integers, however they are written: beyond
// 2^53 two ids must not become one.
//
// The elements of the lists in the root object are made canonical one at a time, so that
// a large body is not held twice. When ctx ends, so does the work, with its error.
func Fingerprint(ctx context.Context, input []byte) ([sha256.Size]byte, error) {
	f := fingerprint{sum: sha256.New(), canon: canonicalizer{ctx: ctx}}
	if err := f.root(input); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("fingerprint: %w", err)
	}
	return [sha256.Size]byte(f.sum.Sum(nil)), nil
}

// fingerprint hashes an input while it is made canonical.
type fingerprint struct {
	sum   hash.Hash
	canon canonicalizer
	room  []byte // what was made canonical last; its memory serves the next value
}

// rootMember is a member of the input, read and not yet made canonical.
type rootMember struct {
	name       []byte // without its escapes
	key, value jsontext.Value
}

// root hashes an input. The members of an object are read first, because they are hashed in the order of their names.
func (f *fingerprint) root(input []byte) error {
	dec := decoder(input)
	if dec.PeekKind() != '{' {
		return f.value(input)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var members []rootMember
	for dec.PeekKind() != '}' {
		key, err := dec.ReadValue()
		if err != nil {
			return err
		}
		name, err := jsontext.AppendUnquote(nil, key)
		if err != nil {
			return err
		}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		members = append(members, rootMember{name, key, value})
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if err := end(dec); err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b rootMember) int { return compareUTF16(a.name, b.name) })
	f.write("{")
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(m.name, members[i-1].name) {
				return errTwice
			}
			f.write(",")
		}
		if err := f.value(m.key); err != nil {
			return err
		}
		f.write(":")
		if err := f.member(m.value); err != nil {
			return err
		}
	}
	f.write("}")
	return nil
}

// member hashes a value of the root: of a list each element by itself, so that a long one takes no more memory than its longest
// element.
func (f *fingerprint) member(value jsontext.Value) error {
	if value.Kind() != '[' {
		return f.value(value)
	}
	dec := decoder(value)
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	f.write("[")
	for first := true; dec.PeekKind() != ']'; first = false {
		element, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if !first {
			f.write(",")
		}
		if err := f.value(element); err != nil {
			return err
		}
	}
	f.write("]")
	return nil
}

// value hashes a value.
func (f *fingerprint) value(value jsontext.Value) (err error) {
	if f.room, err = f.canon.append(slices.Grow(f.room[:0], len(value)), value); err == nil {
		_, _ = f.sum.Write(f.room)
	}
	return err
}

// write hashes punctuation. A hash takes whatever it is given.
func (f *fingerprint) write(text string) { _, _ = io.WriteString(f.sum, text) }

// end tells whether a decoder has read all.
func end(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the value")
	}
	return nil
}
