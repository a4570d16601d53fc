package notice

import "strings"

// ofSpending says what the amounts of SPEND are like.
const ofSpending = "amount_liter is below 0 where kind is SPEND, so that the most spent is the least amount: write " +
	"-SUM(amount_liter) AS spent, and sort and compare that"

// spendingIsBelowZero finds amounts of SPEND that are sorted or compared as if they were above 0, in a query of such rows alone, or in a
// sum of such rows.
// It is told of WHERE kind = 'SPEND' … ORDER BY SUM(amount_liter) DESC, of its alias there, of amount_liter > 1000 and of MAX(amount_liter)
// beside that condition, and not of -SUM(amount_liter), ABS(amount_liter), ASC, nor of rows of other kinds.
func (r *reading) spendingIsBelowZero(n int) string {
	s := r.scopes[n]
	spends := r.spendsAlone(n)
	for i := s.at + 1; i < s.end; i++ {
		end, function := r.amount(n, i, spends)
		if end == 0 || !r.beginsValue(i) {
			continue
		}
		op, behind := r.operator(end)
		switch {
		case function == "MAX", r.Key(end) == "DESC":
			return ofSpending
		case strings.HasPrefix(op, ">") && behind < len(r.Tokens) && r.Tokens[behind].Digits:
			return ofSpending
		}
	}
	from, to := r.Clause(s.at, "ORDER")
	for _, item := range r.Selected(s.at) {
		end, _ := r.amount(n, item.From, spends)
		if r.Key(end) == "AS" {
			end++
		}
		if end == 0 || end != item.To-1 {
			continue
		}
		for j := from; j < to; j++ {
			if r.Name(j) == r.Name(end) && r.beginsValue(j) && r.Key(j+1) == "DESC" {
				return ofSpending
			}
		}
	}
	return ""
}

// spendsAlone reports whether the WHERE of a scope leaves deposits of the kind SPEND alone.
func (r *reading) spendsAlone(n int) (alone bool) {
	where := r.scopes[n].where
	for i := where.From; i < where.To; i++ {
		switch {
		case r.Key(i) == "OR" || r.Key(i) == "XOR":
			return false
		case r.Key(i) == "(":
			i = r.Tokens[i].Mate
		case r.Key(i-1) != "NOT" && r.isSpend(n, i) > 0:
			alone = true
		}
	}
	return alone
}

// isSpend is behind kind = 'SPEND' at i; 0 for anything else.
func (r *reading) isSpend(n, i int) (end int) {
	c, known := r.column(i)
	if !known || c.scope != n || c.table != "DEPOSIT_TRANSACTION" || c.name != "KIND" || r.Key(c.end) != "=" || c.end+1 >= len(r.Tokens) ||
		!strings.EqualFold(r.Tokens[c.end+1].Text, "'SPEND'") {
		return 0
	}
	return c.end + 2
}

// amount is behind the amount of SPEND at i, by itself or in the function that it returns: the column where a query has such rows
// alone, or the column behind kind = 'SPEND' in CASE or IF; 0 for anything else.
func (r *reading) amount(n, i int, spends bool) (end int, function string) {
	at := i
	if isAggregate := aggregates[r.Key(i)] && r.Key(i) != "COUNT" && r.Key(i+1) == "("; isAggregate {
		function, at = r.Key(i), i+2
	}
	sure := spends
	switch {
	case function == "":
	case r.Key(at) == "CASE" && r.Key(at+1) == "WHEN":
		at = r.isSpend(n, at+2)
		sure = r.Key(at) == "THEN"
		at++
	case r.Key(at) == "IF" && r.Key(at+1) == "(":
		at = r.isSpend(n, at+2)
		sure = r.Key(at) == ","
		at++
	}
	c, known := r.column(at)
	if !sure || !known || c.scope != n || c.table != "DEPOSIT_TRANSACTION" || c.name != "AMOUNT_LITER" {
		return 0, ""
	}
	if function == "" {
		return c.end, ""
	}
	return r.Tokens[i+1].Mate + 1, function
}
