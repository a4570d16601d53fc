package write

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint is SHA-256 of the input's canonical JSON (RFC 8785), so that the order
// of members, white space and 1 beside 1.0 make no difference. Unlike RFC 8785, which
// reads numbers as doubles, it keeps the digits of integers: beyond 2^53 two ids must
// not become one.
//
// The elements of the lists in the root object are made canonical a few at a time, so that
// a large body is not held twice. When ctx ends, so does the work, with its error.
func Fingerprint(ctx context.Context, input []byte) ([sha256.Size]byte, error) {
	f := fingerprint{ctx: ctx, sum: sha256.New(), canon: canon{ctx: ctx}}
	if err := f.root(input); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("fingerprint: %w", err)
	}
	return [sha256.Size]byte(f.sum.Sum(nil)), nil
}

type fingerprint struct {
	ctx   context.Context
	sum   hash.Hash
	canon canon
	room  []byte
}

type rootMember struct {
	name  []byte
	key   jsontext.Value
	value jsontext.Value
}

func (f *fingerprint) root(input []byte) error {
	dec := decoder(input)
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
		members = append(members, rootMember{name, key, value})
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if err := end(dec); err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b rootMember) int { return compareUTF16(a.name, b.name) })
	separator := "{"
	for i, m := range members {
		if i > 0 && bytes.Equal(m.name, members[i-1].name) {
			return errTwice
		}
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

// batchSize is how much of a list is made canonical at a time, beside other batches: that is
// most of the work, and a large body should not wait for one processor.
const batchSize = 64 << 10

func (f *fingerprint) member(value jsontext.Value) error {
	if value.Kind() != '[' {
		return f.canonical(value)
	}
	dec := decoder(value)
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	_, _ = io.WriteString(f.sum, "[")
	var (
		batch    []jsontext.Value
		size     int
		first    = true
		batches  []chan canonicalBatch // in the order of the list
		wrong    error
		together = runtime.GOMAXPROCS(0)
	)
	start := func() {
		done, elements, room := make(chan canonicalBatch, 1), batch, size+len(batch)
		go func() { done <- canonicalList(f.ctx, elements, room) }()
		batches, batch, size = append(batches, done), nil, 0
	}
	await := func(left int) {
		for ; len(batches) > left; batches = batches[1:] {
			b := <-batches[0]
			wrong = errors.Join(wrong, b.err)
			if !first {
				_, _ = io.WriteString(f.sum, ",")
			}
			first = false
			_, _ = f.sum.Write(b.text)
		}
	}
	for dec.PeekKind() != ']' && wrong == nil {
		element, err := dec.ReadValue()
		if err != nil {
			wrong = err
			break
		}
		batch, size = append(batch, element), size+len(element)
		if size >= batchSize {
			start()
			await(together)
		}
	}
	if len(batch) > 0 {
		start()
	}
	await(0)
	_, _ = io.WriteString(f.sum, "]")
	return wrong
}

type canonicalBatch struct {
	text []byte
	err  error
}

// canonicalList joins canonical elements by commas; room is how many bytes that takes, or a
// few less.
func canonicalList(ctx context.Context, elements []jsontext.Value, room int) (b canonicalBatch) {
	c := canon{ctx: ctx}
	b.text = make([]byte, 0, room)
	for i, element := range elements {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		if b.text, b.err = c.append(b.text, element); b.err != nil {
			return b
		}
	}
	return b
}

func (f *fingerprint) canonical(value jsontext.Value) (err error) {
	if f.room, err = f.canon.append(f.room[:0], value); err == nil {
		_, _ = f.sum.Write(f.room)
	}
	return err
}

func end(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the value")
	}
	return nil
}
