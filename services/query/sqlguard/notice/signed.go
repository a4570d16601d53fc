package notice

import (
	"strconv"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// ofSpending says what the amounts of SPEND are like.
const ofSpending = "amount_liter is below 0 where kind is SPEND, so that the most spent is the least amount: write " +
	"-SUM(amount_liter) AS spent, and sort and compare that"

// spendingIsBelowZero finds amounts of SPEND that are sorted or compared as if they were above 0, in a query of such rows alone, or in a
// sum of such rows.
// It is told of WHERE kind = 'SPEND' … ORDER BY SUM(amount_liter) DESC, of its alias or its place there, of amount_liter > 1000 and of
// MAX(amount_liter) beside that condition, and not of -SUM(amount_liter), SUM(amount_liter * -1), ABS(amount_liter), ASC, > 0, which asks
// whether there are any, MAX beside MIN, which shows the range, nor of rows of other kinds.
func (r *reading) spendingIsBelowZero(n int) string {
	s := r.scopes[n]
	spends := r.spendsAlone(n)
	greatest, least := false, false
	for i := s.at + 1; i < s.end; i++ {
		end, function := r.amount(n, i, spends)
		if end == 0 || !r.beginsValue(i) {
			continue
		}
		op, behind := r.operator(end)
		switch {
		case r.Key(end) == "DESC":
			return ofSpending
		case strings.HasPrefix(op, ">") && behind < len(r.Tokens) && r.Tokens[behind].Digits && strings.Trim(r.Tokens[behind].Text, "0.") != "":
			return ofSpending
		}
		greatest, least = greatest || function == "MAX", least || function == "MIN"
	}
	if greatest && !least {
		return ofSpending
	}
	amounts := map[string]bool{} // by their aliases, and their places in the list
	placed := true               // none of the list before is a *, which stands for some columns
	for place, item := range r.Selected(s.at) {
		end, _ := r.amount(n, item.From, spends)
		placed = placed && r.Key(item.To-1) != "*"
		if r.Key(end) == "AS" {
			end++
		}
		if end > 0 && end == item.To-1 {
			amounts[r.Name(end)] = true
		}
		if placed && end > 0 && (end == item.To || end == item.To-1) {
			amounts[strconv.Itoa(place+1)] = true
		}
	}
	before := s.at - 1
	if lexer.IsOneOf(r.Key(before), "ALL|DISTINCT") {
		before--
	}
	if lexer.IsOneOf(r.Key(before), "UNION|EXCEPT|INTERSECT") {
		return "" // the order is that of all branches
	}
	from, to := r.Clause(s.at, "ORDER")
	for j := from; j < to; j++ {
		name := r.Name(j)
		if r.Tokens[j].Digits {
			name = r.Tokens[j].Text
		}
		if amounts[name] && r.beginsValue(j) && r.Key(j+1) == "DESC" {
			return ofSpending
		}
	}
	return ""
}

// spendsAlone is the table of a scope of which its WHERE leaves deposits of the kind SPEND alone, as its place in FROM; -1 for none.
func (r *reading) spendsAlone(n int) (table int) {
	where := r.scopes[n].where
	table = -1
	for i := where.From; i < where.To; i++ {
		switch {
		case r.Key(i) == "OR" || r.Key(i) == "XOR":
			return -1
		case r.Key(i) == "(":
			i = r.Tokens[i].Mate
		case r.Key(i-1) == "NOT":
		default:
			if end, of := r.isSpend(n, i); end > 0 {
				table = of
			}
		}
	}
	return table
}

// isSpend is behind kind = 'SPEND' at i, and the place of its table in FROM; 0 for anything else.
func (r *reading) isSpend(n, i int) (end, table int) {
	c, known := r.column(i)
	if !known || c.scope != n || c.table != "DEPOSIT_TRANSACTION" || c.name != "KIND" || r.Key(c.end) != "=" || c.end+1 >= len(r.Tokens) ||
		!strings.EqualFold(r.Tokens[c.end+1].Text, "'SPEND'") {
		return 0, -1
	}
	return c.end + 2, c.source
}

// amount is behind the amount of SPEND at i, by itself or alone in the function that it returns: the column where a query has such rows
// of its table alone, or the column behind kind = 'SPEND' in CASE or IF; 0 for anything else, such as a sum of what is computed from it.
func (r *reading) amount(n, i, table int) (end int, function string) {
	at, behind := i, []string(nil)
	if lexer.IsOneOf(r.Key(i), "SUM|AVG|MIN|MAX") && r.Key(i+1) == "(" {
		function, at, behind = r.Key(i), i+2, []string{")"}
	}
	switch {
	case function == "":
	case r.Key(at) == "CASE" && r.Key(at+1) == "WHEN":
		if at, table = r.isSpend(n, at+2); r.Key(at) != "THEN" {
			return 0, ""
		}
		at, behind = at+1, []string{"END", ")"}
	case r.Key(at) == "IF" && r.Key(at+1) == "(":
		if at, table = r.isSpend(n, at+2); r.Key(at) != "," {
			return 0, ""
		}
		at, behind = at+1, []string{")", ")"}
	}
	c, known := r.column(at)
	if !known || c.scope != n || c.source != table || c.table != "DEPOSIT_TRANSACTION" || c.name != "AMOUNT_LITER" {
		return 0, ""
	}
	end = c.end
	if len(behind) == 2 && lexer.IsOneOf(r.Key(end), "ELSE|,") && end+1 < len(r.Tokens) &&
		(r.Key(end+1) == "NULL" || r.Tokens[end+1].Text == "0") {
		end += 2
	}
	for _, mark := range behind {
		if r.Key(end) != mark {
			return 0, ""
		}
		end++
	}
	return end, function
}
