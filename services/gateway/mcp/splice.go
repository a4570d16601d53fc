package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
)

const (
	// atOnce is up to which size, in bytes, data are read to their end before they are answered.
	// A small answer is read whole before its first byte is written, so that it has a Content-Length and can still fail with a
	// status. A large one goes out while it comes in.
	atOnce = 64 << 10
	// chunkSize is what is read and written at a time of larger ones.
	chunkSize = 64 << 10
)

// payload is the data of an answer, which is written twice: the first time as they come, if they have not come yet.
type payload struct {
	// kept is what has come, and has room for what has not.
	kept []byte
	// rest is what is still to come; nil when nothing is.
	rest io.ReadCloser
}

// length is how many bytes the data have.
func (p *payload) length() int {
	if p.rest != nil {
		return cap(p.kept) // made for all that comes
	}
	return len(p.kept)
}

// errCut tells that data ended before their end.
var errCut = errors.New("the data of the answer were cut off")

// chunks are the data: what has come, and then what comes, as it does.
func (p *payload) chunks() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for at := 0; ; {
			if at == len(p.kept) {
				if p.rest == nil {
					return
				}
				n, err := p.rest.Read(p.kept[at:min(at+chunkSize, cap(p.kept))])
				switch p.kept = p.kept[:at+n]; {
				case len(p.kept) == cap(p.kept):
					p.end() // a slow reader of the second copy holds nobody up
				case n == 0 && err != nil:
					yield(nil, fmt.Errorf("%w: %w", errCut, err))
					return
				}
			}
			next := p.kept[at:min(at+chunkSize, len(p.kept))]
			if at += len(next); len(next) > 0 && !yield(next, nil) {
				return
			}
		}
	}
}

// end releases what is still to come.
func (p *payload) end() {
	if p.rest != nil {
		_ = p.rest.Close()
		p.rest = nil
	}
}

// part is a piece of an answer; quoted pieces are written as the inside of a JSON string.
type part struct {
	*payload
	quoted bool
}

// verbatim is a part that is written as it is.
func verbatim(b []byte) part { return part{payload: &payload{kept: b}} }

// splice cuts the protocol's answer at the words, puts the data in their place, and says how long it is then: -1 as long
// as nobody knows, since data are still to come.
func (x *exchange) splice() (parts []part, length int64) {
	rest := x.out.Bytes()
	for {
		at := bytes.Index(rest, []byte(`"`+x.placeholder))
		if at < 0 {
			parts = append(parts, verbatim(rest))
			return parts, lengthOf(parts)
		}
		end := at + 1 + len(x.placeholder)
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

// lengthOf is how many bytes parts take; -1 while data of one of them are still to come.
func lengthOf(parts []part) (length int64) {
	for _, p := range parts {
		if p.rest != nil {
			return -1
		}
		if p.quoted {
			length += escapedLength(p.kept)
		} else {
			length += int64(len(p.kept))
		}
	}
	return length
}

// write writes a part. Its error is errCut, or the writer's.
func (p part) write(w io.Writer) error {
	var text []byte
	for data, err := range p.chunks() {
		if err != nil {
			return err
		}
		if p.quoted {
			text = escape(slices.Grow(text[:0], 2*len(data)), data)
			data = text
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}
