package notice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice/dates"
)

// Notices returns what in an accepted SELECT runs and answers something else than was asked, as far as the catalog shows it. What
// a name stands for has to be sure: nothing is said of a column that may be another.
// It touches no server, and a statement of 8,000 characters takes it far less than a second (TestCatalogIsQuick). Examples
// of each rule, and of what has to stay silent beside it, are in testdata/misleading.tsv and testdata/right.sql.
func (c *Catalog) Notices(text string) (notices []Notice) {
	r, isSelect := c.read(text)
	if !isSelect {
		return nil
	}
	add := func(rule, message string) {
		n := Notice{rule, message}
		if message != "" && !slices.Contains(notices, n) {
			notices = append(notices, n)
		}
	}
	for i := range r.Tokens {
		if message := r.dayAsBound(i); message != "" && !r.negated(i) {
			add("sql.date_only", message)
		}
		add("sql.date_number", r.digitsOfDates(i))
		add("sql.null", r.inNullable(i))
		add("sql.correlated", r.inOuter(i))
		add("sql.named_zone", r.namedZone(i))
		add("sql.date", r.fromKorea(i))
		add("sql.date", r.koreanBound(i))
		add("sql.balance", r.sumOfBalances(i))
		add("sql.fan_out", r.repeated(i))
		add("sql.join", r.keysOfOthers(i))
		add("sql.correlated", r.comparedWithItself(i))
		add("sql.correlated", r.existsForAll(i))
	}
	for n := range r.scopes {
		add("sql.outer", r.dropsOuter(n))
		add("sql.outer", r.joinsBehindOuter(n))
		add("sql.never", r.emptyGroups(n))
		add("sql.sign", r.spendingIsBelowZero(n))
	}
	add("sql.personal", r.personal())
	return notices
}

// isMoment reports whether a column has a date and a time.
func (c Column) isMoment() bool { return c.Type == "datetime" || c.Type == "timestamp" }

// isDate reports whether a column has a date.
func (c Column) isDate() bool { return c.isMoment() || c.Type == "date" }

// dayAsBound finds a date without a time as the upper end of a column that has times, or as what it equals or is later than.
// It is told of created_at BETWEEN '2026-06-01' AND '2026-06-30', of <=, =, > and IN with such a day, and not of created_at
// < '2026-07-01' (a half-open interval, which is what the message proposes), nor of a column of type date.
func (r *reading) dayAsBound(i int) string {
	if !r.beginsValue(i) {
		return ""
	}
	if day, end := dates.Day(r.Tokens, i); end > 0 { // 'day' >= column
		op, behind := r.operator(end)
		if v, end := r.momentValue(behind); op != "" && end > 0 && r.EndsValue(end) {
			turned := map[string]string{">=": "<=", "=": "=", "<": ">"}[op]
			return dayMessage(turned, v.name, day)
		}
		return ""
	}
	v, at := r.momentValue(i)
	if at == 0 {
		return ""
	}
	name := v.name
	without := r.Key(at) == "NOT"
	if without {
		at++
	}
	switch op, behind := r.operator(at); {
	case r.Key(at) == "BETWEEN":
		upper := r.and(at) + 1
		if day, end := dates.Day(r.Tokens, upper); end > 0 && r.EndsValue(end) {
			if without {
				return withoutMessage(name, r.asWritten(at+1, upper-1), day)
			}
			return dayMessage("<=", name, day)
		}
		if end := dates.LastDay(r.Tokens, upper); end > 0 && !without && r.EndsValue(end) {
			return lastDayMessage(name)
		}
	case r.Key(at) == "IN" && r.Key(at+1) == "(":
		for _, one := range r.Arguments(at + 1) {
			if day, end := dates.Day(r.Tokens, one.From); end == one.To {
				switch {
				case without && len(r.Arguments(at+1)) > 1:
					return fmt.Sprintf("%s has a time, and '%s' is that day's midnight, so that later times of the day stay: write "+
						"DATE(%[1]s) NOT IN (…)", name, day.Format(time.DateOnly))
				case without:
					return withoutMessage(name, day.Format("'2006-01-02'"), day)
				}
				return dayMessage("=", name, day)
			}
		}
	case op != "":
		if day, end := dates.Day(r.Tokens, behind); end > 0 && r.EndsValue(end) {
			return dayMessage(op, name, day)
		}
		if end := dates.LastDay(r.Tokens, behind); op == "<=" && end > 0 && r.EndsValue(end) {
			return lastDayMessage(name)
		}
		if end := dates.Today(r.Tokens, behind); op == "=" && end > 0 && r.EndsValue(end) {
			return fmt.Sprintf("%s has a time, and equals CURDATE() at midnight alone: write %[1]s >= CURDATE() AND %[1]s < CURDATE() + "+
				"INTERVAL 1 DAY", name)
		}
	}
	return ""
}

// negated reports whether NOT stands before what begins at i, or before parentheses around it: there a day that is left out stays, and what
// stays is left out.
func (r *reading) negated(i int) bool {
	for j := i - 1; j >= 0; j-- {
		switch {
		case r.Key(j) == ")":
			j = r.Tokens[j].Mate
		case r.Key(j) == "NOT" && j == i-1, r.Key(j) == "(" && r.Key(j-1) == "NOT":
			return true
		}
	}
	return false
}

// fromKorea finds CONVERT_TZ of a column of times, which are UTC, as if they were Korean ones.
// It is not told of a text, nor of what a derived table has computed.
func (r *reading) fromKorea(i int) string {
	if r.Key(i) != "CONVERT_TZ" || r.Key(i+1) != "(" {
		return ""
	}
	list := r.Arguments(i + 1)
	if len(list) != 3 || r.Tokens[list[1].From].Text != "'+09:00'" || !lexer.IsOneOf(r.Tokens[list[2].From].Text, "'+00:00'|'UTC'") {
		return ""
	}
	c, known := r.of(list[0])
	if !known || !c.isMoment() {
		return ""
	}
	return fmt.Sprintf("%s is UTC, and CONVERT_TZ from '+09:00' takes 9 hours from it: write CONVERT_TZ(%[1]s, '+00:00', '+09:00') for "+
		"Korean time", r.written(list[0].From, c))
}

// koreanBound finds a text that a column of times, which are UTC, is compared with, and that has 9 hours added: of a Korean time 9 hours
// have to be taken. It is not told where hours are added to the column as well.
func (r *reading) koreanBound(i int) string {
	c, known := r.column(i)
	if !known || !c.isMoment() || !r.beginsValue(i) {
		return ""
	}
	at := c.end
	if r.Key(at) == "NOT" {
		at++
	}
	var ends []int
	if op, behind := r.operator(at); op != "" {
		ends = []int{behind}
	} else if r.Key(at) == "BETWEEN" {
		ends = []int{at + 1, r.and(at) + 1}
	}
	if slices.ContainsFunc(ends, r.isMadeKorean) {
		return r.written(i, c) + " is UTC, which is 9 hours behind Korean time, so that a bound with 9 hours added is 18 hours too late for a " +
			"time in Korea: write '2026-01-31' - INTERVAL 9 HOUR for a midnight there"
	}
	return ""
}

// isMadeKorean reports whether the bound at i is a text with 9 hours added for Korean time. Where the same text stands elsewhere without
// them they are a length of time.
func (r *reading) isMadeKorean(i int) bool {
	text := dates.MadeKorean(r.Tokens, i)
	if text == 0 {
		return false
	}
	for j := range r.Tokens {
		if r.Tokens[j].Text != r.Tokens[text].Text {
			continue
		}
		// The value begins at its text, or with a word or a call in front of it.
		if !slices.ContainsFunc([]int{j, j - 1, j - 2, j - 3}, func(from int) bool {
			return from >= 0 && dates.MadeKorean(r.Tokens, from) == j
		}) {
			return false
		}
	}
	return true
}

// and is the AND of the BETWEEN at i.
// Parentheses before it are skipped. Without an AND it is the closing parenthesis, or the end.
func (r *reading) and(i int) int {
	for i++; i < len(r.Tokens) && r.Key(i) != "AND" && r.Key(i) != ")"; i++ {
		if r.Key(i) == "(" {
			i = r.Tokens[i].Mate
		}
	}
	return i
}

// dayMessage is what to write in place of a comparison with a day; "" for < and >=, which a midnight is right for.
func dayMessage(op, name string, day time.Time) string {
	this, next := day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly)
	switch op {
	case "<=":
		return fmt.Sprintf("%s has a time, and '%s' is that day's midnight, so that the rest of the day is left out: write %[1]s < '%[3]s'",
			name, this, next)
	case "=":
		return fmt.Sprintf("%s has a time, and equals '%s' at midnight alone: write %[1]s >= '%[2]s' AND %[1]s < '%[3]s'", name, this, next)
	case ">":
		return fmt.Sprintf("%s has a time, and is later than '%s' from that day's midnight on: write %[1]s >= '%[3]s' for later days, or "+
			"%[1]s >= '%[2]s' for that day too", name, this, next)
	}
	return ""
}

// withoutMessage is the same behind NOT BETWEEN from a value, and NOT IN.
func withoutMessage(name, from string, day time.Time) string {
	if len(from) > 60 {
		from = "…"
	}
	return fmt.Sprintf("%s has a time, and '%s' is that day's midnight, so that later times of the day stay: write (%[1]s < %[3]s OR "+
		"%[1]s >= '%[4]s')", name, day.Format(time.DateOnly), from, day.AddDate(0, 0, 1).Format(time.DateOnly))
}

// lastDayMessage is the same for LAST_DAY, whose day the text does not tell.
func lastDayMessage(name string) string {
	return name + " has a time, and LAST_DAY() is that day's midnight, so that the rest of the day is left out: write " + name +
		" < LAST_DAY(…) + INTERVAL 1 DAY"
}

// dateValue is behind the date at i: a column, a function that answers one, or the least, greatest or neighbouring of a column's.
// plain says that the text alone tells so, which is told elsewhere.
func (r *reading) dateValue(i int) (end int, plain bool) {
	if r.Name(i) == "" {
		return 0, false
	}
	if end := dates.End(r.Tokens, i); end > 0 {
		return end, true
	}
	if c, known := r.column(i); known && c.isDate() {
		return c.end, false
	}
	if !lexer.IsOneOf(r.Key(i), "MIN|MAX|LAG|LEAD|FIRST_VALUE|LAST_VALUE") || r.Key(i+1) != "(" {
		return 0, false
	}
	if c, known := r.column(i + 2); !known || !c.isDate() || !lexer.IsOneOf(r.Key(c.end), ")|,") {
		return 0, false
	}
	end = r.Tokens[i+1].Mate + 1
	if r.Key(end) == "OVER" && r.Key(end+1) == "(" {
		end = r.Tokens[end+1].Mate + 1
	}
	return end, false
}

// digitsOfDates finds a column of dates in a sum: the number is made of the date's digits.
// It is told of AVG(created_at), end_at - start_at and start_at + 7, and not of start_at + INTERVAL 7 DAY, DATEDIFF(a, b)
// or start_at + 0. Where the text alone shows it, as in NOW() - 7, dateAndNumber has told of it.
func (r *reading) digitsOfDates(i int) string {
	if lexer.IsOneOf(r.Key(i), "SUM|AVG") && r.Key(i+1) == "(" {
		inner := r.Arguments(i + 1)[0]
		if r.Key(inner.From) == "DISTINCT" {
			inner.From++
		}
		if c, known := r.of(inner); known && c.isDate() {
			return fmt.Sprintf("%s of %s is that of its digits, and no date: write FROM_UNIXTIME(AVG(UNIX_TIMESTAMP(%[2]s))), or MIN and MAX",
				r.Key(i), r.written(inner.From, c))
		}
		return ""
	}
	end, plain := r.dateValue(i)
	sign := r.Key(end)
	if end == 0 || sign != "+" && sign != "-" || end+1 >= len(r.Tokens) || r.Key(i-1) == "INTERVAL" {
		return ""
	}
	if other, alsoPlain := r.dateValue(end + 1); sign == "-" && other > 0 && !(plain && alsoPlain) {
		return "a date less a date is the difference of their digits, and no time: write DATEDIFF(a, b) or TIMESTAMPDIFF(DAY, b, a)"
	}
	if plain || !r.Tokens[end+1].Digits || r.Tokens[end+1].Text == "0" {
		return ""
	}
	return fmt.Sprintf("a date %s %s is a sum of its digits, and no date: write %[1]s INTERVAL %[2]s DAY", sign, r.Tokens[end+1].Text)
}

// subquery is the only thing that the query behind the IN at i selects, where that is a name.
func (r *reading) subquery(i int) (inner int, item lexer.Argument, ok bool) {
	if r.Key(i) != "IN" || r.Key(i+1) != "(" || r.Key(i+2) != "SELECT" {
		return 0, item, false
	}
	items := r.Selected(i + 2)
	if inner = r.enclosing(i + 2); len(items) != 1 || inner < 0 || r.scopes[inner].at != i+2 {
		return 0, item, false
	}
	item = items[0]
	if r.Key(item.From) == "DISTINCT" {
		item.From++
	}
	return inner, item, true
}

// inNullable finds NOT IN of a query for a column that may be NULL, and that nothing else in the query names.
// It is told of business_no NOT IN (SELECT business_no FROM partner): one NULL among the values and no row is answered. A
// second mention of the column, such as WHERE business_no IS NOT NULL, silences it, whatever it says.
func (r *reading) inNullable(i int) string {
	inner, item, ok := r.subquery(i)
	if !ok || r.Key(i-1) != "NOT" {
		return ""
	}
	c, known := r.of(item)
	if !known || c.scope != inner {
		return ""
	}
	if table := r.scopes[inner].from[c.source]; table.optional && !r.isConditioned(c) && r.dropsOuter(inner)+r.joinsBehindOuter(inner) == "" {
		return fmt.Sprintf("NOT IN is never true where the query answers NULL, which %s is where the outer join finds no row: write JOIN "+
			"in the query, or NOT EXISTS", r.written(item.From, c))
	}
	if !c.Nullable {
		return ""
	}
	for j := item.To; j < r.scopes[inner].end; j++ {
		if r.Name(j) == c.name {
			return ""
		}
	}
	return fmt.Sprintf("NOT IN is never true where the query answers NULL, which %s.%s may be: add WHERE %[2]s IS NOT NULL to it, or write "+
		"NOT EXISTS", strings.ToLower(c.table), strings.ToLower(c.name))
}

// inOuter finds IN of a query for a column that only the query around it has.
// It is told of brand_id IN (SELECT brand_id FROM partner), where partner has no brand_id: SQL takes it for the outer
// table's, and each row matches itself.
func (r *reading) inOuter(i int) string {
	inner, item, ok := r.subquery(i)
	if !ok || item.To-item.From != 1 {
		return ""
	}
	c, known := r.column(item.From)
	if !known || c.scope == inner || len(r.scopes[inner].from) == 0 {
		return ""
	}
	return fmt.Sprintf("%s in the subquery is that of the query around it, since %s has no such column: it is compared with itself; "+
		"name a column of the subquery's table", strings.ToLower(c.name), strings.ToLower(r.scopes[inner].from[0].table))
}

// namedZone finds a conversion from or to a zone by its name on a server that knows none.
// A server knows 'Asia/Seoul' when mysql.time_zone_name has been loaded. Offsets ('+09:00') and SYSTEM are known to each.
func (r *reading) namedZone(i int) string {
	if r.Key(i) != "CONVERT_TZ" || r.Key(i+1) != "(" || r.catalog.Zones {
		return ""
	}
	first := ""
	var instead []string
	list := r.Arguments(i + 1)
	for _, zone := range list[min(1, len(list)):min(3, len(list))] {
		text := r.Tokens[zone.From].Text
		if zone.To-zone.From != 1 || !r.Tokens[zone.From].Quoted || text[1] == '+' || text[1] == '-' ||
			strings.EqualFold(text[1:len(text)-1], "SYSTEM") {
			continue
		}
		offset := cmp.Or(dates.Offsets[strings.ToUpper(text[1:len(text)-1])], "its offset, such as '+09:00',")
		instead = append(instead, fmt.Sprintf("%s for %.40s", offset, text))
		first = cmp.Or(first, text)
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("CONVERT_TZ answers NULL for %.40s, since this server knows no zones by name: write %s", first,
		strings.Join(instead, ", "))
}

// Columns of the CRM's tables that say something else than their type: addresses of B2C members, and balances after each row.
var (
	addresses = lexer.WordSet(`MEMBER.EMAIL`)
	balances  = lexer.WordSet(`DEPOSIT_TRANSACTION.BALANCE_LITER`)
)

// personal finds addresses of members among what the statement answers.
// Only what is answered counts: COUNT(email) and WHERE email LIKE … are fine, as is SUBSTRING_INDEX(email, '@', -1). What a query
// within selects, such as a derived table, is told of where the outermost list has email or * as well.
func (r *reading) personal() string {
	const words = "member.email has addresses of B2C members, who are never written to: leave it out of lists, pages and mails, and " +
		"count by member_id"
	handed := false // by a query within
	for n, s := range r.scopes {
		for _, item := range r.Selected(s.at) {
			if r.Key(item.From) == "DISTINCT" {
				item.From++
			}
			if item.From >= item.To || !r.answersAddress(n, item) {
				continue
			}
			if r.isOutermost(n) {
				return words
			}
			handed = true
		}
	}
	for n, s := range r.scopes {
		if !handed || !r.isOutermost(n) {
			continue
		}
		for _, item := range r.Selected(s.at) {
			plain := item.To-item.From == 1 || item.To-item.From == 3 && r.Key(item.From+1) == "."
			if last := item.To - 1; last >= 0 && (r.Key(last) == "*" || plain && r.Name(last) == "EMAIL") {
				return words
			}
		}
	}
	return ""
}

// addressesWithin are functions that answer all of a text that they are given.
var addressesWithin = lexer.WordSet(`LOWER LCASE UPPER UCASE TRIM CONCAT CONCAT_WS GROUP_CONCAT MIN MAX ANY_VALUE COALESCE IFNULL`)

// answersAddress reports whether an item of a scope's list is a column with addresses of members, within such a function or not, or *
// with it.
func (r *reading) answersAddress(n int, item lexer.Argument) bool {
	if addressesWithin[r.Key(item.From)] && r.Key(item.From+1) == "(" {
		return slices.ContainsFunc(r.Arguments(item.From+1), func(a lexer.Argument) bool {
			if r.Key(a.From) == "DISTINCT" {
				a.From++
			}
			return a.From < a.To && r.answersAddress(n, a)
		})
	}
	if c, known := r.column(item.From); known {
		return addresses[c.table+"."+c.name] && (c.end == item.To || r.Key(c.end) == "AS" || c.end == item.To-1)
	}
	alias := ""
	if r.Key(item.From+1) == "." {
		alias = r.Name(item.From)
	}
	if r.Key(item.To-1) != "*" || item.To-item.From != 1 && alias == "" {
		return false
	}
	return slices.ContainsFunc(r.scopes[n].from, func(s source) bool {
		_, has := r.catalog.Tables[s.table]["EMAIL"]
		return has && addresses[s.table+".EMAIL"] && (alias == "" || alias == s.alias)
	})
}

// isOutermost reports whether what a scope selects is answered.
// The branches of a UNION are answered; what stands in the parentheses of FROM, IN, EXISTS or of a WITH list is not.
func (r *reading) isOutermost(n int) bool {
	at := r.scopes[n].at
	for i := range at {
		if r.Key(i) == "(" && r.Tokens[i].Mate > at && i > 0 && !lexer.IsOneOf(r.Key(i-1), "(|UNION|ALL|DISTINCT|EXCEPT|INTERSECT") {
			return false
		}
	}
	return true
}
