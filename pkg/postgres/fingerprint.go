package postgres

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint is SHA-256 of the input's canonical JSON (RFC 8785), so that the order
// of members, white space and 1 beside 1.0 make no difference. Unlike RFC 8785, which
// reads numbers as doubles, it keeps the digits of integers: beyond 2^53 two ids must
// not become one.
//
// The elements of the lists in the root object are made canonical one by one, so that
// a large body is not held twice.
func Fingerprint(input []byte) ([sha256.Size]byte, error) {
	f := fingerprint{sum: sha256.New()}
	if err := f.root(input); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("fingerprint: %w", err)
	}
	return [sha256.Size]byte(f.sum.Sum(nil)), nil
}

type fingerprint struct {
	sum     hash.Hash
	scratch jsontext.Value
}

type rootMember struct {
	name  []uint16 // how RFC 8785 orders
	key   jsontext.Value
	value jsontext.Value
}

func (f *fingerprint) root(input []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(input)) // reads input itself: what it returns stays valid
	if dec.PeekKind() != '{' {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		return errors.Join(f.canonical(value), end(dec))
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
		members = append(members, rootMember{utf16.Encode([]rune(string(name))), key, value})
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if err := end(dec); err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b rootMember) int { return slices.Compare(a.name, b.name) })
	separator := "{"
	for _, m := range members {
		_, _ = io.WriteString(f.sum, separator)
		separator = ","
		if err := f.canonical(m.key); err != nil {
			return err
		}
		_, _ = io.WriteString(f.sum, ":")
		if err := f.member(m.value); err != nil {
			return err
		}
	}
	if len(members) == 0 {
		_, _ = io.WriteString(f.sum, separator)
	}
	_, _ = io.WriteString(f.sum, "}")
	return nil
}

func (f *fingerprint) member(value jsontext.Value) error {
	if value.Kind() != '[' {
		return f.canonical(value)
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(value))
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	separator := "["
	for dec.PeekKind() != ']' {
		_, _ = io.WriteString(f.sum, separator)
		separator = ","
		element, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := f.canonical(element); err != nil {
			return err
		}
	}
	if separator == "[" {
		_, _ = io.WriteString(f.sum, separator)
	}
	_, _ = io.WriteString(f.sum, "]")
	return nil
}

func (f *fingerprint) canonical(value jsontext.Value) error {
	f.scratch = append(f.scratch[:0], value...)
	if err := f.scratch.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return err
	}
	_, _ = f.sum.Write(f.scratch)
	return nil
}

func end(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the value")
	}
	return nil
}
