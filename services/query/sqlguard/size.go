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
		return refuse("sql.size", "%s() makes %d bytes or more, beyond the %d of an answer (HUB_MAX_RESULT_BYTES): "+
			"make it shorter", t[i].key, size, g.maxBytes)
	}
	return nil
}

// callSize is the least number of bytes that the call at i makes, 0 where that is not
// known. An empty text counts as one byte: it makes nothing, but MariaDB counts it out.
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
		if len(args) == 2 {
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

// maxGrowth bounds how much longer REGEXP_REPLACE may make a text.
const maxGrowth = 64

// charsetGrowth is how many bytes a character set makes of one byte at most. A text in the
// usual ones does not grow, however often it is converted.
func charsetGrowth(name string) int {
	switch name {
	case "", "UTF8MB4", "UTF8MB3", "UTF8", "BINARY", "ASCII":
		return 1
	case "UTF32":
		return 4
	}
	return 2
}

// replacementGrowth is how much longer REGEXP_REPLACE makes a text at most: each match,
// empty ones too, becomes the literal, and each group referred to in it.
func (t tokens) replacementGrowth(args []argument) int {
	if len(args) < 3 {
		return 1
	}
	with := args[2]
	if with.to-with.from != 1 || !t[with.from].quoted {
		return maxGrowth + 1 // who knows
	}
	literal, characters, groups := t[with.from].text, 0, 0
	for i := 1; i < len(literal)-1; i++ {
		switch {
		case literal[i] != '\\':
			characters++
		case i+2 < len(literal)-1 && literal[i+1] == '\\' && isDigit(literal[i+2]):
			groups++
			i += 2
		default:
			characters++
			i++
		}
	}
	return min(characters+max(groups, 1), maxGrowth+1)
}

// regexpGrowth is how much longer REGEXP_REPLACE makes a text. Alone it may be maxGrowth: only MariaDB, whose packets are a
// quarter as long, does not hold it against max_allowed_packet.
func (w *weigher) regexpGrowth(args []argument) float64 {
	growth := w.replacementGrowth(args)
	if growth > maxGrowth {
		return math.Inf(1)
	}
	return float64(min(growth, maxGrowth/4))
}

// converted is the size of a text in the character set that the call at i names.
func (w *weigher) converted(i int, size float64) float64 {
	growth := 1
	for j := i + 2; j < w.tokens[i+1].mate; j++ {
		switch w.key(j) {
		case "(":
			j = w.tokens[j].mate
		case "USING", "CHARSET", "SET":
			growth = charsetGrowth(w.name(j + 1))
		}
	}
	return size * float64(growth)
}

// repeated is the size of what SPACE, LPAD, RPAD and REPEAT make.
func (w *weigher) repeated(name string, args []argument, sizes []float64) float64 {
	at := 1
	if name == "SPACE" {
		at = 0
	}
	if at >= len(args) {
		return packet
	}
	times := w.atMost(args[at])
	switch name {
	case "REPEAT":
		return times * max(sizes[0], 1)
	case "SPACE":
		return times
	}
	return 4 * times // characters
}

// atMost is the greatest value of a number: its own, or that of one in LEAST().
func (w *weigher) atMost(a argument) float64 {
	if a.to-a.from == 1 && w.tokens[a.from].digits {
		return float64(w.integer(a))
	}
	most := float64(packet)
	if a.to-a.from > 1 && w.key(a.from) == "LEAST" && w.key(a.from+1) == "(" && w.tokens[a.from+1].mate == a.to-1 {
		for _, b := range w.arguments(a.from + 1) {
			if b.to-b.from == 1 && w.tokens[b.from].digits {
				most = min(most, float64(w.integer(b)))
			}
		}
	}
	return most
}
