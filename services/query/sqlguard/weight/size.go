package weight

import (
	"math"
	"strconv"

	"hub.internal/services/query/sqlguard/lexer"
)

// maxGrowth bounds how much longer REGEXP_REPLACE may make a text.
const maxGrowth = 64

// charsetGrowth is how many bytes a character set makes of one byte at most. A text in the
// usual ones does not grow, however often it is converted.
// UTF-16, UCS-2 and the like make two bytes of one; an unknown name is taken for one of those.
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
// An empty pattern matches between all characters. A replacement that is computed may be of any length, and what
// is beyond maxGrowth is not told apart.
func (w *weigher) replacementGrowth(args []lexer.Argument) int {
	if len(args) < 3 {
		return 1
	}
	with := args[2]
	if with.To-with.From != 1 || !w.Tokens[with.From].Quoted {
		return maxGrowth + 1 // who knows
	}
	literal, characters, groups := w.Tokens[with.From].Text, 0, 0
	for i := 1; i < len(literal)-1; i++ {
		switch {
		case literal[i] != '\\':
			characters++
		// A group is written '\\1' in a literal: the first backslash escapes the second.
		case i+2 < len(literal)-1 && literal[i+1] == '\\' && lexer.IsDigit(literal[i+2]):
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
func (w *weigher) regexpGrowth(args []lexer.Argument) float64 {
	growth := w.replacementGrowth(args)
	if growth > maxGrowth {
		return math.Inf(1)
	}
	return float64(min(growth, maxGrowth/4))
}

// converted is the size of a text in the character set that the call at i names.
// CONVERT(x USING utf32), CAST(x AS CHAR CHARACTER SET ucs2) and CHAR(n USING utf16) name one; without a name nothing
// grows.
func (w *weigher) converted(i int, size float64) float64 {
	growth := 1
	for j := i + 2; j < w.Tokens[i+1].Mate; j++ {
		switch w.Key(j) {
		case "(":
			j = w.Tokens[j].Mate
		case "USING", "CHARSET", "SET":
			growth = charsetGrowth(w.Name(j + 1))
		}
	}
	return size * float64(growth)
}

// repeated is the size of what SPACE, LPAD, RPAD and REPEAT make.
// A number that is computed may be anything that atMost allows; one that is missing makes the function's greatest text.
func (w *weigher) repeated(name string, args []lexer.Argument, sizes []float64) float64 {
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
// LEAST(n, 100) is the way to say how large a computed number is at most, which the message of a refusal proposes.
func (w *weigher) atMost(a lexer.Argument) float64 {
	if a.To-a.From == 1 && w.Tokens[a.From].Digits {
		return float64(w.Integer(a))
	}
	most := float64(packet)
	if !w.multiplies(a) {
		most = w.times
	}
	if a.To-a.From > 1 && w.Key(a.From) == "LEAST" && w.Key(a.From+1) == "(" && w.Tokens[a.From+1].Mate == a.To-1 {
		for _, b := range w.Arguments(a.From + 1) {
			if b.To-b.From == 1 && w.Tokens[b.From].Digits {
				most = min(most, float64(w.Integer(b)))
			}
		}
	}
	return most
}

// mostFactor is the greatest factor of a usual number, as of percent.
const mostFactor = 1000

// multiplies reports whether a number may be much larger than the columns that it is made of.
// n * 100, as for percent, is not one, and COUNT(*) multiplies nothing; n * m, POW(n, 9) and 1 << n are. What is none of
// those counts for at most usualNumber in the scale that takes unknown numbers so.
func (w *weigher) multiplies(a lexer.Argument) bool {
	factors := 0
	for i := a.From; i < a.To; i++ {
		switch w.Key(i) {
		case "*":
			if w.Key(i-1) != "(" { // of COUNT(*)
				factors++
			}
			if w.Key(i-1) != "(" && !w.isBelow(i-1, mostFactor) && !w.isBelow(i+1, mostFactor) {
				return true
			}
		case "<", "POW", "POWER", "EXP":
			return true
		}
		if w.Tokens[i].Digits && !w.isBelow(i, usualNumber) {
			return true
		}
	}
	return factors > 1
}

// isBelow reports whether a number of at most that much stands at i.
func (w *weigher) isBelow(i int, most float64) bool {
	if i >= len(w.Tokens) {
		return false
	}
	n, err := strconv.ParseFloat(w.Tokens[i].Text, 64)
	return err == nil && n <= most
}
