package sqlguard

import (
	"math"
	"math/bits"

	"hub.internal/services/query/sqlguard/lexer"
)

// checkSize refuses the call at i of a function whose constant arguments alone make a
// result beyond the cap of an answer.
func (g *Guard) checkSize(t lexer.Tokens, i int) error {
	if t[i].Key == "" || t.Key(i+1) != "(" {
		return nil
	}
	if size := callSize(t, i); size > g.maxBytes {
		return lexer.Refuse("sql.size", "%s() makes %d bytes or more, beyond the %d of an answer (HUB_MAX_RESULT_BYTES): "+
			"make it shorter", t[i].Key, size, g.maxBytes)
	}
	return nil
}

// callSize is the least number of bytes that the call at i makes, 0 where that is not
// known. An empty text counts as one byte: it makes nothing, but MariaDB counts it out.
func callSize(t lexer.Tokens, i int) uint64 {
	args := t.Arguments(i + 1)
	switch t[i].Key {
	case "SPACE":
		if len(args) == 1 {
			return t.Integer(args[0])
		}
	case "LPAD", "RPAD":
		if len(args) == 2 || len(args) == 3 && !isEmpty(t, args[2]) {
			return t.Integer(args[1])
		}
	case "REPEAT":
		if len(args) == 2 {
			high, low := bits.Mul64(t.Integer(args[1]), max(size(t, args[0]), 1))
			if high > 0 {
				return math.MaxUint64
			}
			return low
		}
	}
	return 0
}

// size is the least number of bytes of an argument that is a string or a call of known size.
func size(t lexer.Tokens, a lexer.Argument) uint64 {
	switch {
	case a.To-a.From == 1 && t[a.From].Quoted:
		// An escaped byte takes two.
		return uint64(len(t[a.From].Text)-2) / 2
	case a.To-a.From > 1 && t.Key(a.From+1) == "(" && t[a.From+1].Mate == a.To-1:
		return callSize(t, a.From)
	}
	return 0
}

func isEmpty(t lexer.Tokens, a lexer.Argument) bool {
	return a.To-a.From == 1 && t[a.From].Quoted && len(t[a.From].Text) == 2
}
