package sqlguard

import (
	"math"
	"math/bits"
	"strconv"
)

// checkSize refuses the call at i of a function whose constant arguments alone make a
// result beyond the cap of an answer.
func (g *Guard) checkSize(t tokens, i int) error {
	if t[i].key == "" || t.key(i+1) != "(" {
		return nil
	}
	if size := t.callSize(i); size > g.maxBytes {
		return refuse("sql.size", "%s() makes %d bytes or more, beyond the %d of an answer (HUB_MAX_RESULT_BYTES): make it shorter", t[i].key, size, g.maxBytes)
	}
	return nil
}

// callSize is the least number of bytes that the call at i makes, 0 where that is not
// known. Empty and NULL arguments apart: they make nothing, however often.
func (t tokens) callSize(i int) uint64 {
	args := t.arguments(i + 1)
	switch t[i].key {
	case "SPACE":
		if len(args) == 1 {
			return t.integer(args[0])
		}
	case "LPAD", "RPAD":
		if len(args) == 2 || len(args) == 3 && !t.isEmpty(args[2]) {
			return t.integer(args[1])
		}
	case "REPEAT":
		if len(args) == 2 && !t.isEmpty(args[0]) {
			high, low := bits.Mul64(t.integer(args[1]), max(t.size(args[0]), 1))
			if high > 0 {
				return math.MaxUint64
			}
			return low
		}
	}
	return 0
}

// An argument is the tokens from one index to before another.
type argument struct{ from, to int }

// arguments are those in the parenthesis at i.
func (t tokens) arguments(i int) []argument {
	var args []argument
	from := i + 1
	for j := from; j <= t[i].mate; j++ {
		switch {
		case j == t[i].mate || t[j].key == ",":
			args = append(args, argument{from, j})
			from = j + 1
		case t[j].key == "(":
			j = t[j].mate
		}
	}
	return args
}

// integer is the value of an argument of plain digits, 0 of any other.
func (t tokens) integer(a argument) uint64 {
	if a.to-a.from != 1 || !t[a.from].digits {
		return 0
	}
	// Beyond 64 bits it is the greatest.
	n, _ := strconv.ParseUint(t[a.from].text, 10, 64)
	return n
}

// size is the least number of bytes of an argument that is a string or a call of known size.
func (t tokens) size(a argument) uint64 {
	switch {
	case a.to-a.from == 1 && t[a.from].quoted:
		// An escaped byte takes two.
		return uint64(len(t[a.from].text)-2) / 2
	case a.to-a.from > 1 && t.key(a.from+1) == "(" && t[a.from+1].mate == a.to-1:
		return t.callSize(a.from)
	}
	return 0
}

func (t tokens) isEmpty(a argument) bool {
	return a.to-a.from == 1 && t[a.from].quoted && len(t[a.from].text) == 2
}
