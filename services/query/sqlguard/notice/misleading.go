package notice

import (
	"fmt"
	"slices"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice/calls"
	"hub.internal/services/query/sqlguard/notice/conditions"
	"hub.internal/services/query/sqlguard/notice/dates"
)

// misleading are statements that run and answer something else than what was asked, as far as their text alone shows it. Each
// looks at one token, and says what is wrong there; "" for nothing. None may speak without cause: what only a column's type
// would tell is not here.
// Notices asks all of them at each token of a SELECT. Several may have one rule: the
// message says which mistake it is.
var misleading = []struct {
	Rule string
	At   func(t lexer.Tokens, i int) string
}{
	{"sql.date_number", dateAndNumber},
	{"sql.join", joinsAll},
	{"sql.join", joinsItself},
	{"sql.never", behindTheOnlyRow},
	{"sql.never", emptyGroups},
	{"sql.order", anyRowOfAnOrder},
}

// ofText are all that the text alone shows.
var ofText = slices.Concat(conditions.Misleading, misleading, calls.Misleading)

// dateAndNumber finds a date with a number added to it, or another date taken from it: both are sums of their digits.
// It is told of NOW() - 7 and CURDATE() - DATE(x), and not of NOW() - INTERVAL 7 DAY, nor of NOW() + 0, which is the idiom
// for the digits as a number. That a column is a date only the catalog knows (digitsOfDates).
func dateAndNumber(t lexer.Tokens, i int) string {
	end := dates.End(t, i)
	sign := t.Key(end)
	if end == 0 || sign != "+" && sign != "-" || end+1 >= len(t) {
		return ""
	}
	if sign == "-" && dates.End(t, end+1) > 0 {
		return "a date less a date is the difference of their digits, and no time: write DATEDIFF(a, b) or TIMESTAMPDIFF(DAY, b, a)"
	}
	if !t[end+1].Digits || t[end+1].Text == "0" {
		return ""
	}
	return fmt.Sprintf("a date %s %s is a sum of its digits, and no date: write %[1]s INTERVAL %[2]s DAY", sign, t[end+1].Text)
}
