package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"sync"
)

// payload is the data of an answer, which is written twice: the first time as they come, if they have not come yet.
type payload struct {
	// kept is what has come, and has room for what has not.
	kept []byte
	// rest is what is still to come; nil when nothing is.
	rest io.ReadCloser
	// free takes kept back, if it is lent.
	free func()
}

// errCut tells that data ended before their end.
var errCut = errors.New("the data of the answer were cut off")

// pieces are the data: what has come, at most so many bytes at a time, and then what comes, as it does.
func (p *payload) pieces(size int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for at := 0; ; {
			if at == len(p.kept) {
				if p.rest == nil {
					return
				}
				n, err := p.rest.Read(p.kept[at:min(at+piece, cap(p.kept))])
				switch p.kept = p.kept[:at+n]; {
				case len(p.kept) == cap(p.kept):
					p.closeRest() // a slow reader of the second copy holds nobody up
				case n == 0 && err != nil:
					yield(nil, fmt.Errorf("%w: %w", errCut, err))
					return
				}
			}
			next := p.kept[at:min(at+size, len(p.kept))]
			if at += len(next); len(next) > 0 && !yield(next, nil) {
				return
			}
		}
	}
}

func (p *payload) closeRest() {
	if p.rest != nil {
		_ = p.rest.Close()
		p.rest = nil
	}
}

// end releases what the payload holds; nobody reads it any more.
func (p *payload) end() {
	p.closeRest()
	if p.free != nil {
		p.free()
	}
}

// buffers are what large answers are kept in and written through, for one after the other: making them anew takes a
// part of the time of an answer.
type buffers struct{ keep, write sync.Pool }

// most is how large a buffer may be, in bytes, to be kept for another answer.
const most = 4 << 20

// comes is the data of an answer of that length which are still to come.
func (b *buffers) comes(data io.ReadCloser, length int64) *payload {
	buf, _ := b.keep.Get().(*[]byte)
	if buf == nil || int64(cap(*buf)) < length {
		buf = new(make([]byte, 0, length))
	}
	return &payload{kept: (*buf)[:0:length], rest: data, free: func() {
		if cap(*buf) <= most {
			b.keep.Put(buf)
		}
	}}
}

// part is a piece of an answer; quoted pieces are written as the inside of a JSON string.
type part struct {
	*payload
	quoted bool
}

func verbatim(b []byte) part { return part{payload: &payload{kept: b}} }

// splice cuts the protocol's answer at the words, puts the data in their place, and says how long it is then: -1 as long
// as nobody knows, since data are still to come.
func (x *exchange) splice() (parts []part, length int64) {
	rest := x.out.Bytes()
	for {
		at := bytes.Index(rest, []byte(`"`+x.word))
		if at < 0 {
			parts = append(parts, verbatim(rest))
			return parts, lengthOf(parts)
		}
		end := at + 1 + len(x.word)
		closing := end + bytes.IndexByte(rest[end:], '"')
		slot, _ := strconv.Atoi(string(rest[end+1 : closing])) // keep made it
		if rest[end] == 'i' {
			parts = append(parts, verbatim(rest[:at]), verbatim(x.messages[slot].id))
			rest = rest[closing+1:]
			continue
		}
		if rest[end] == 'v' {
			parts = append(parts, verbatim(rest[:at]), part{payload: x.data[slot]})
			rest = rest[closing+1:]
		} else {
			parts = append(parts, verbatim(rest[:at+1]), part{payload: x.data[slot], quoted: true})
			rest = rest[closing:]
		}
	}
}

func lengthOf(parts []part) (length int64) {
	for _, p := range parts {
		if p.rest != nil {
			return -1
		}
		length += int64(len(p.kept))
		if p.quoted {
			length += escaped(p.kept)
		}
	}
	return length
}

const (
	// atOnce is up to which size, in bytes, data are read before they are answered, and an answer is written in one piece.
	atOnce = 64 << 10
	// piece is what is read and written at a time of larger ones.
	piece = 64 << 10
)

// writeAll writes an answer of that length. Its error is errCut, or the writer's.
func (b *buffers) writeAll(w io.Writer, parts []part, length int64) error {
	if 0 <= length && length <= atOnce {
		whole := make([]byte, 0, 2*length) // what escape wants
		for _, p := range parts {
			if p.quoted {
				whole = escape(whole, p.kept)
			} else {
				whole = append(whole, p.kept...)
			}
		}
		_, err := w.Write(whole)
		return err
	}
	out, _ := b.write.Get().(*bufio.Writer)
	if out == nil {
		out = bufio.NewWriterSize(w, 5*piece) // two pieces at their largest
	}
	out.Reset(w)
	defer func() {
		out.Reset(nil)
		b.write.Put(out)
	}()
	for _, p := range parts {
		if err := p.write(out); err != nil {
			return err
		}
	}
	return out.Flush()
}

func (p part) write(out *bufio.Writer) error {
	size := cap(p.kept)
	if p.quoted {
		size = piece
	}
	for data, err := range p.pieces(size) {
		if err == nil && p.quoted && out.Available() < room(data) {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
		if p.quoted {
			data = escape(out.AvailableBuffer(), data)
		}
		if _, err = out.Write(data); err != nil {
			return err
		}
	}
	return nil
}
