package schema

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// names finds a name that is there twice in an object, a tenth as dear as the decoder's own way, which keeps a map of texts for each
// large object. It compares hashes: names that differ may have the same one, once in 2⁶⁴ pairs, and so what it finds is a suspicion.
// Another reading compares the names that have a suspected hash as texts, and no others. A nil *names looks for nothing.
type names struct {
	hashes []uint64 // of the objects that are open, the innermost last
	first  []int    // where in it those of each begin
	table  []uint64 // see repeated
	// suspects are hashes that an object had twice in an earlier reading, and seen the names of open objects that have one of them.
	suspects []uint64
	seen     []suspect
}

// suspect is a name without its escapes, and how many objects were open where it stands.
type suspect struct {
	name string
	open int
}

// nameSeed is another one in each process, so that nobody can send names of one hash.
var nameSeed = maphash.MakeSeed()

// errSuspected asks for another reading.
var errSuspected = errors.New("an object may have a name twice")

// again begins another reading.
func (n *names) again() { n.hashes, n.first, n.seen = n.hashes[:0], n.first[:0], n.seen[:0] }

// begin is told of an object's beginning.
func (n *names) begin() {
	if n != nil {
		n.first = append(n.first, len(n.hashes))
	}
}

// add takes a name in its quotes. Its error is jsontext.ErrDuplicateName, of a name that was suspected.
func (n *names) add(quoted []byte) (err error) {
	if n == nil {
		return nil
	}
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		if name, err = jsontext.AppendUnquote(nil, quoted); err != nil {
			return err
		}
	}
	hash := max(maphash.Bytes(nameSeed, name), 1)
	if !slices.Contains(n.suspects, hash) {
		n.hashes = append(n.hashes, hash)
		return nil
	}
	found := suspect{string(name), len(n.first)}
	if slices.Contains(n.seen, found) {
		return jsontext.ErrDuplicateName
	}
	n.seen = append(n.seen, found)
	return nil
}

// end is told of an object's end. Its error is errSuspected. The objects around it may have a name twice that stands before it.
func (n *names) end() error {
	if n == nil {
		return nil
	}
	for len(n.seen) > 0 && n.seen[len(n.seen)-1].open == len(n.first) {
		n.seen = n.seen[:len(n.seen)-1]
	}
	last := len(n.first) - 1
	if n.repeated(n.hashes[n.first[last]:]) == 0 {
		n.hashes, n.first = n.hashes[:n.first[last]], n.first[:last]
		return nil
	}
	for end := len(n.hashes); last >= 0; last-- {
		if hash := n.repeated(n.hashes[n.first[last]:end]); hash != 0 {
			n.suspects = append(n.suspects, hash)
		}
		end = n.first[last]
	}
	return errSuspected
}

// few is up to how many names are compared each with each.
const few = 16

// repeated returns the first hash that was there before, or 0. Many are put into a table with open addressing, half full at most, in
// which 0 is an empty place.
func (n *names) repeated(hashes []uint64) uint64 {
	if len(hashes) <= few {
		for i, h := range hashes {
			for _, other := range hashes[:i] {
				if h == other {
					return h
				}
			}
		}
		return 0
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
				return h
			}
		}
		table[at] = h
	}
	return 0
}
