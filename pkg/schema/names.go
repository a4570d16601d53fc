package schema

import (
	"bytes"
	"errors"
	"hash/maphash"

	"github.com/go-json-experiment/json/jsontext"
)

// names finds a name that is there twice in an object, a tenth as dear as the decoder's own way, which keeps a map of texts for each
// large object. It compares hashes: names that differ may have the same one, once in 2⁶⁴ pairs, and so what it finds is a suspicion.
// A nil *names looks for nothing.
type names struct {
	hashes []uint64 // of the objects that are open, the innermost last
	first  []int    // where in it those of each begin
	table  []uint64 // see distinct
}

// nameSeed is another one in each process, so that nobody can send names of one hash.
var nameSeed = maphash.MakeSeed()

// errTwice is a suspicion.
var errTwice = errors.New("an object may have a name twice")

// begin is told of an object's beginning.
func (n *names) begin() {
	if n != nil {
		n.first = append(n.first, len(n.hashes))
	}
}

// add takes a name in its quotes.
func (n *names) add(quoted []byte) (err error) {
	if n == nil {
		return nil
	}
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, err = jsontext.AppendUnquote(nil, quoted)
	}
	n.hashes = append(n.hashes, max(maphash.Bytes(nameSeed, name), 1))
	return err
}

// end is told of an object's end. Its error is errTwice.
func (n *names) end() error {
	if n == nil {
		return nil
	}
	last := len(n.first) - 1
	from := n.first[last]
	mine := n.hashes[from:]
	n.first, n.hashes = n.first[:last], n.hashes[:from]
	if !n.distinct(mine) {
		return errTwice
	}
	return nil
}

// few is up to how many names are compared each with each.
const few = 16

// distinct tells whether no two hashes are the same. Many are put into a table with open addressing, half full at most, in which 0
// is an empty place.
func (n *names) distinct(hashes []uint64) bool {
	if len(hashes) <= few {
		for i, h := range hashes {
			for _, other := range hashes[:i] {
				if h == other {
					return false
				}
			}
		}
		return true
	}
	size := 4 * few
	for size < 2*len(hashes) {
		size *= 2
	}
	if cap(n.table) < size {
		n.table = make([]uint64, size)
	}
	table := n.table[:size]
	clear(table)
	for _, h := range hashes {
		at := h & uint64(size-1)
		for ; table[at] != 0; at = (at + 1) & uint64(size-1) {
			if table[at] == h {
				return false
			}
		}
		table[at] = h
	}
	return true
}
