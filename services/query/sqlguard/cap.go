package sqlguard

import (
	"strconv"
	"unicode/utf8"
)

// A slot is the place in a text where its row count stands: the digits of the
// statement's own LIMIT, or the empty place where one can be added. The zero
// slot means that there is none.
type slot struct{ start, end int }

// Capped returns the statement with its end edited so that the server yields
// at most n rows, n at least 0: LIMIT n is added, or the count of the
// statement's own LIMIT lowered to n. Neither order, offset, duplicate column
// names nor the statement's own shorter LIMIT are touched. SHOW, EXPLAIN, FETCH, LIMIT ROWS EXAMINED and a text that would become
// too long to be accepted come back unchanged: their reader has to stop at n.
func (s Statement) Capped(n int) string {
	if s.slot == (slot{}) {
		return s.text
	}
	count := strconv.Itoa(max(n, 0))
	if own := s.text[s.slot.start:s.slot.end]; own == "" {
		// A new line, because the text may end in a line comment.
		count = "\nLIMIT " + count
	} else if k, err := strconv.Atoi(own); err == nil && k <= n {
		return s.text
	}
	capped := s.text[:s.slot.start] + count + s.text[s.slot.end:]
	if utf8.RuneCountInString(capped) > maxRunes {
		return s.text
	}
	return capped
}

// limitSlot finds the slot of the query t is. A query that is one pair of
// parentheses as a whole is edited inside them: MariaDB turns (... LIMIT 5)
// LIMIT 3 into a derived table, which refuses duplicate column names.
func (t tokens) limitSlot(text string) slot {
	from, to, end := 0, len(t), len(text)
	for {
		if t.key(from) == "WITH" {
			from = t.withEnd(from)
		} else if t.key(from) == "(" && t[from].mate == to-1 {
			from, to = from+1, to-1
			end = t[to].start
		} else {
			break
		}
	}
	for i := from; i < to; i++ {
		switch t[i].key {
		case "(":
			i = t[i].mate
		case "LIMIT":
			return t[i+1 : to].countSlot(text)
		case "FETCH", "OFFSET":
			return slot{}
		}
	}
	return slot{end, end}
}

// countSlot returns the slot of the row count in t, the tokens behind LIMIT:
// count, or offset, count, or count OFFSET offset, in plain digits.
func (t tokens) countSlot(text string) slot {
	isInt := func(i int) bool {
		return t[i].key == "" && t[i].name == "" && digitsEnd(text, t[i].start) == t[i].end
	}
	count := 0
	switch {
	case len(t) == 1 && isInt(0):
	case len(t) == 3 && isInt(0) && isInt(2) && t[1].key == ",":
		count = 2
	case len(t) == 3 && isInt(0) && isInt(2) && t[1].key == "OFFSET":
	default:
		return slot{}
	}
	return slot{t[count].start, t[count].end}
}
