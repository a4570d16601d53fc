package weight

import (
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// What an expression is made of, and what each function makes of its arguments: weight.go asks it of each query.

// counted are the operators whose result is a number.
var counted = lexer.WordSet(`+ * / % & ^ = < > DIV MOD AND OR XOR IS LIKE RLIKE REGEXP BETWEEN IN`)

// isNumber reports whether an operator makes a number of an expression, outside of CASE.
// CASE WHEN a > 1 THEN text END compares as well, and is a text: what stands between CASE and END tells nothing.
func (w *weigher) isNumber(from, to int) bool {
	cases := 0
	for i := from; i < to; i++ {
		switch k := w.Key(i); {
		case k == "(":
			i = w.Tokens[i].Mate
		case k == "CASE":
			cases++
		case k == "END":
			cases--
		case k == ">" && (w.Key(i-1) == "-" || w.Key(i-1) == ">" && w.Key(i-2) == "-"): // -> and ->> take from a document
		case cases == 0 && counted[k] && !(k == "+" && i == from):
			return true
		}
	}
	return false
}

// plainWords are reserved words that stand in an expression: no name is written so.
var plainWords = lexer.WordSet(`AND OR XOR NOT IS NULL TRUE FALSE CASE WHEN THEN ELSE AS DISTINCT ALL EXISTS IN LIKE RLIKE REGEXP BETWEEN
	DIV MOD BINARY COLLATE INTERVAL ASC DESC BY OVER ON USING JOIN LEFT RIGHT INNER OUTER CROSS NATURAL STRAIGHT_JOIN WITH ROWS RANGE
	ORDER SEPARATOR FROM`)

// expression estimates the greatest value among tokens: columns have in, and known in subqueries.
// An operator makes nothing longer than its operands, so the greatest of all parts is the size of the whole: only calls,
// and what a name stands for, make values longer. A text is as long as it is written, without its quotes.
func (w *weigher) expression(from, to int, in, known yield) (greatest float64) {
	operator := -1 // REGEXP, whose pattern is behind it
	for i := from; i < to; i++ {
		size := 0.0
		tok := &w.Tokens[i]
		switch {
		case tok.Key == "REGEXP" || tok.Key == "RLIKE":
			operator = i
		case tok.Key == ",":
			operator = -1
		case tok.Name != "" && w.Key(i+1) == "(" && !lexer.GrammarWords[tok.Key]:
			size = w.call(i, in, known)
			i = w.Tokens[i+1].Mate
		case tok.Key == "(" && w.IsQuery(i) && w.isSelect(i):
			made := w.subquery(i, known)
			size = made.value
			if made.documents && w.column == smallColumn && !w.isFiltered(i) {
				size = max(size, document) // the same one for each row
			}
			i = tok.Mate
		case tok.Key == "(":
			size = w.expression(i+1, tok.Mate, in, known)
			i = tok.Mate
		case tok.Quoted:
			size = float64(max(len(tok.Text)-len(`''`), 1))
		// Numbers and marks count as one byte, and so do a table's name in front of a dot, and an alias.
		case tok.Name == "" || plainWords[tok.Key] || w.Key(i+1) == "." || w.Key(i-1) == "AS":
			size = 1
		default:
			size = w.named(i, in)
		}
		if operator >= 0 {
			w.matches(operator, size)
		}
		greatest = max(greatest, size)
	}
	return greatest
}

// isFiltered reports whether there is a WHERE in the parenthesis at i, without which a subquery is the same for each row.
// A correlated subquery has a WHERE, and gathers a part of the rows for each row around it.
func (w *weigher) isFiltered(i int) bool {
	for j := i + 1; j < w.Tokens[i].Mate; j++ {
		if w.Key(j) == "WHERE" {
			return true
		}
	}
	return false
}

// isAggregateOfJSON reports whether a call of JSON_ARRAYAGG or JSON_OBJECTAGG begins at i.
func isAggregateOfJSON(t lexer.Tokens, i int) bool {
	return (t[i].Name == "JSON_ARRAYAGG" || t[i].Name == "JSON_OBJECTAGG") && t.Key(i+1) == "("
}

// matches notes a pattern that may be too long.
// It is looked at under small columns alone, where a pattern of a column itself passes, and one of REPEAT() does not.
func (w *weigher) matches(i int, size float64) {
	if w.column == smallColumn && size > mostPattern && w.pattern < 0 {
		w.pattern = i
	}
}

// isSelect reports whether a query begins at i, in any number of parentheses.
func (w *weigher) isSelect(i int) bool {
	for w.Key(i) == "(" {
		i++
	}
	return w.Key(i) == "SELECT" || w.Key(i) == "WITH" || w.Key(i) == "VALUES"
}

// call estimates what the function at i makes.
// Arguments are estimated first, from within: so HEX(HEX(x)) is four times x. What is longer than each argument takes room
// of its own and is added to the sum; what hands on an argument, as COALESCE does, takes none.
func (w *weigher) call(i int, in, known yield) float64 {
	args := w.Arguments(i + 1)
	sizes, sum, greatest := make([]float64, len(args)), 0.0, 0.0
	for n, a := range args {
		sizes[n] = w.expression(a.From, a.To, in, known)
		sum += sizes[n]
		greatest = max(greatest, sizes[n])
	}
	if strings.HasPrefix(w.Name(i), "REGEXP_") && len(sizes) > 1 {
		w.matches(i, sizes[1])
	}
	if in.spread && w.Name(i) == "GROUP_CONCAT" { // also without ORDER BY: MariaDB looks at KILL once for each join buffer
		w.gather(i, sum)
	}
	size, bounded := w.makes(i, args, sizes, sum, greatest)
	if bounded {
		size = min(size, packet)
	}
	if size > greatValue && w.largest < 0 {
		w.largest = i
	}
	if size > greatest {
		w.add(size)
	}
	return size
}

// makes is the size of what the function at i makes of arguments; bounded says that servers hold it against max_allowed_packet.
// A function that no case names makes nothing longer than its greatest argument. sizes are those of args, with their sum
// and the greatest; functions.txt holds what can be called at all, and a new entry there that makes texts longer belongs
// here.
func (w *weigher) makes(i int, args []lexer.Argument, sizes []float64, sum, greatest float64) (size float64, bounded bool) {
	switch name := w.Tokens[i].Name; name {
	case "HEX":
		return 2 * sum, false
	case "CONCAT_WS":
		// The separator stands between each two of the others; one of those is in the sum already.
		return sum + sizes[0]*float64(max(len(sizes)-3, 0)), true
	case "JSON_QUOTE": // six times what is all control characters
		return 4 * sum, false
	case "MAKE_SET":
		return sum, false
	case "REGEXP_REPLACE":
		return greatest * w.regexpGrowth(args), false
	case "CONVERT", "CAST", "CHAR":
		return w.converted(i, greatest), false
	case "SPACE", "LPAD", "RPAD", "REPEAT":
		return w.repeated(name, args, sizes), true
	case "TO_BASE64", "QUOTE", "JSON_PRETTY", "JSON_DETAILED", "JSON_LOOSE", "WEIGHT_STRING":
		return 2 * sum, true
	case "REPLACE":
		if len(sizes) == 3 {
			return sizes[0] * max(sizes[2]-2, 1), true
		}
	case "EXPORT_SET":
		// EXPORT_SET writes one of two texts, and a separator, for each of 64 bits.
		return 64 * sum, true
	case "DATE_FORMAT", "TIME_FORMAT", "TO_CHAR":
		// A format has a character for at least each 16 of the result (%W is Wednesday).
		return min(64*sum, number+16*sizes[len(sizes)-1]), true
	case "MAX", "MIN", "ANY_VALUE":
		w.add(sum) // the one that is kept beside that which is made
	case "GROUP_CONCAT":
		w.add(sum)
		w.sort(i, sum)
		w.add(w.aggregate)
		return w.aggregate, true
	case "COUNT", "SUM", "AVG":
		if w.own(i+2, w.Tokens[i+1].Mate, w.calls) >= 0 { // a column itself is kept once
			w.sort(i, sum)
		}
		return number, true
	case "JSON_ARRAYAGG", "JSON_OBJECTAGG":
		w.gathering = true
		w.gather(i, sum)
		return max(w.aggregate, w.document), true
	default:
		switch {
		case joined[name]:
			if strings.HasPrefix(name, "JSON_") {
				w.add(sum) // the tree that it is made as, beside the text
			}
			return sum, true
		case numeric[name]:
			return number, true
		}
	}
	return greatest, false
}

// gather notes an aggregate that holds more of each row than it should.
// It is looked at under small columns alone, as matches is.
func (w *weigher) gather(i int, row float64) {
	if w.column == smallColumn && row > gathered && w.gathers < 0 {
		w.gathers = i
	}
}

// sort notes an aggregate with DISTINCT or ORDER BY, which keeps what it is given of each row until the group ends.
// Below gathered, but above sortedColumn, such a statement runs as a heavy one.
func (w *weigher) sort(i int, row float64) {
	if w.isSorted(i + 1) {
		w.gather(i, row)
		w.gathering = w.gathering || w.column == smallColumn && row > sortedColumn
	}
}

// calls reports whether a call begins at i.
func (w *weigher) calls(i int) bool {
	return w.Tokens[i].Name != "" && w.Key(i+1) == "(" && !lexer.GrammarWords[w.Key(i)]
}

// isSorted reports whether the arguments in the parenthesis at i begin with DISTINCT or end with ORDER BY.
// ORDER BY within parentheses of its own, as in OVER (ORDER BY x), is not the aggregate's.
func (w *weigher) isSorted(i int) bool {
	if w.Key(i+1) == "DISTINCT" {
		return true
	}
	for j := i + 1; j < w.Tokens[i].Mate; j++ {
		switch w.Key(j) {
		case "(":
			j = w.Tokens[j].Mate
		case "ORDER":
			return true
		}
	}
	return false
}

// joined are functions that put their arguments behind one another.
var joined = lexer.WordSet(`CONCAT INSERT ELT JSON_ARRAY JSON_OBJECT JSON_SET JSON_INSERT JSON_REPLACE JSON_ARRAY_APPEND JSON_ARRAY_INSERT
	JSON_MERGE JSON_MERGE_PATCH JSON_MERGE_PRESERVE`)

// numeric are functions whose result is a number, a hash or a date, whatever they are given.
var numeric = lexer.WordSet(`STD STDDEV STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP VARIANCE BIT_AND BIT_OR BIT_XOR
	ROW_NUMBER RANK DENSE_RANK NTILE PERCENT_RANK CUME_DIST
	LENGTH CHAR_LENGTH CHARACTER_LENGTH OCTET_LENGTH DATEDIFF TIMESTAMPDIFF JSON_LENGTH INSTR LOCATE FIELD FIND_IN_SET
	ABS CEIL CEILING FLOOR ROUND TRUNCATE MOD POW POWER SQRT LN LOG LOG2 LOG10 EXP SIGN RAND BIT_COUNT MD5 SHA SHA1 SHA2 CRC32 UUID DATE YEAR
	MONTH DAY HOUR MINUTE SECOND NOW CURDATE`)
