package sqlguard

import (
	"strconv"
	"unicode/utf8"

	"hub.internal/services/query/sqlguard/lexer"
)

// A slot is the place in a text where its row count stands: the digits of the
// statement's own LIMIT, or the empty place where one can be added. The zero
// slot means that there is none.
type slot struct{ start, end int }

// Capped returns the statement as it is to run, its end edited so that the server yields
// at most n rows, n at least 0: LIMIT n is added, or the count of the statement's own
// LIMIT lowered to n. Neither order, offset, duplicate column names nor the statement's
// own shorter LIMIT are touched. SHOW, EXPLAIN, FETCH, LIMIT ROWS EXAMINED and a text that
// would become too long to be accepted come back without such an edit, and edited false:
// their reader has to stop at n.
func (s Statement) Capped(n int) (text string, edited bool) {
	if s.slot == (slot{}) {
		return s.run, false
	}
	count := strconv.Itoa(max(n, 0))
	if own := s.run[s.slot.start:s.slot.end]; own == "" {
		// A new line, because the text may end in a line comment.
		count = "\nLIMIT " + count
	} else if k, err := strconv.Atoi(own); err == nil && k <= n {
		return s.run, false
	}
	capped := s.run[:s.slot.start] + count + s.run[s.slot.end:]
	if utf8.RuneCountInString(capped) > lexer.MaxRunes {
		return s.run, false
	}
	return capped, true
}

// Offset is how many rows the statement's own LIMIT leaves out before the first; -1 where that is not plain.
func (s Statement) Offset() int { return s.offset }

// limitSlot finds the slot of the query t is, and its offset. A query that is one pair of
// parentheses as a whole is edited inside them: MariaDB turns (... LIMIT 5)
// LIMIT 3 into a derived table, which refuses duplicate column names.
func limitSlot(t lexer.Tokens, text string) (count slot, offset int) {
	from, to, end := 0, len(t), len(text)
	for {
		if t.Key(from) == "WITH" {
			from = t.WithEnd(from)
		} else if t.Key(from) == "(" && t[from].Mate == to-1 {
			from, to = from+1, to-1
			end = t[to].Start
		} else {
			break
		}
	}
	for i := from; i < to; i++ {
		switch t[i].Key {
		case "(":
			i = t[i].Mate
		case "LIMIT":
			return countSlot(t[i+1 : to])
		case "FETCH", "OFFSET":
			return slot{}, -1
		}
	}
	return slot{end, end}, 0
}

// countSlot returns the slot of the row count in t, the tokens behind LIMIT, and the offset:
// count, or offset, count, or count OFFSET offset, in plain digits.
func countSlot(t lexer.Tokens) (count slot, offset int) {
	at, skipped := 0, "0"
	switch {
	case len(t) == 1 && t[0].Digits:
	case len(t) == 3 && t[0].Digits && t[2].Digits && t[1].Key == ",":
		at, skipped = 2, t[0].Text
	case len(t) == 3 && t[0].Digits && t[2].Digits && t[1].Key == "OFFSET":
		skipped = t[2].Text
	default:
		return slot{}, -1
	}
	offset, err := strconv.Atoi(skipped)
	if err != nil {
		offset = -1
	}
	return slot{t[at].Start, t[at].End}, offset
}
