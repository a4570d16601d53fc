// Package advice says what to write in place of what other databases have and MariaDB and MySQL do not: functions, types,
// forms of other SQL dialects. It judges nothing: what it has to say of a statement becomes part of a refusal's message.
package advice

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/list"
)

//go:embed foreign.txt
var foreignText string

// Functions are functions of other databases, in upper case, with what to write in their place.
func Functions() map[string]string { return list.Reasons(foreignText) }

// Foreign says of a function of another database what it is and what to write in its place; "" of any other.
func Foreign(function string) string { return Functions()[strings.ToUpper(function)] }

// Syntax is for a text that the guard has accepted and the server does not understand: it names the first thing in it that
// other databases have and this one does not, and what to write in its place; "" when it finds none. The server is mariadb,
// mysql or tidb.
func Syntax(text, server string) string {
	t, err := lexer.Lex(text)
	if err != nil || t.Pair() != nil {
		return ""
	}
	forms := slices.Concat(formsByServer[server], foreignForms)
	for i := range t {
		for _, f := range forms {
			if f.begins(t, i) {
				return f.say(t, i)
			}
		}
	}
	return ""
}

// foreignForm is a form of another SQL dialect, or a common slip, and what to write in its place.
type foreignForm struct {
	// keys are those of the tokens that the form begins with, one|of|several each.
	keys string
	// where says more of the place at which they stand; nil when they are foreign anywhere.
	where func(t lexer.Tokens, i int) bool
	// advice is the message: {0} stands for the form's first token, {1} for the one behind it and so on, {2-} for
	// such a token without its last letter, {type} for the type of MariaDB and MySQL in place of {1}.
	advice string
}

// begins reports whether the form begins at i.
func (f foreignForm) begins(t lexer.Tokens, i int) bool {
	n := i
	for alternatives := range strings.FieldsSeq(f.keys) {
		if !lexer.IsOneOf(t.Key(n), alternatives) {
			return false
		}
		n++
	}
	return f.where == nil || f.where(t, i)
}

// insert finds what stands for a token in an advice.
var insert = regexp.MustCompile(`\{(?:type|(\d)(-?))\}`)

// say is the advice about the form at i.
func (f foreignForm) say(t lexer.Tokens, i int) string {
	return insert.ReplaceAllStringFunc(f.advice, func(place string) string {
		m := insert.FindStringSubmatch(place)
		if m[1] == "" {
			return foreignTypes[t.Key(i+1)]
		}
		n, _ := strconv.Atoi(m[1])
		said := t.Key(i + n)
		if said == "" {
			said = t[i+n].Text
		}
		return said[:len(said)-len(m[2])]
	})
}

// foreignForms are in the order in which they are looked for at a token.
var foreignForms = []foreignForm{
	{"ILIKE", isUnqualified, "ILIKE is PostgreSQL's: write LIKE, which ignores case here"},
	{"QUALIFY", isUnqualified, "QUALIFY is not known here: number the rows in a WITH, and filter in the SELECT behind it"},
	{"TABLESAMPLE", isUnqualified, "TABLESAMPLE is not known here: write ORDER BY RAND() LIMIT n on a narrow selection"},
	{"PIVOT", isUnqualified, "PIVOT is not known here: write SUM(IF(col = 'value', amount, 0)) for each column"},
	{"SIMILAR", isUnqualified, "SIMILAR TO is PostgreSQL's: write REGEXP 'pattern'"},
	{"ISNULL", isUnqualified, "ISNULL() takes one value here: write IFNULL(col, other), or col IS NULL"},
	{"MINUS", isUnqualified, "MINUS is Oracle's: write EXCEPT"},
	{"TOP", isTop, "TOP is SQL Server's: leave it out, and end the statement with LIMIT n"},
	{"% S", isPlaceholder, "%s is a placeholder of a program: write the value itself, text in single quotes"},
	{"% D", isPlaceholder, "%d is a placeholder of a program: write the value itself, text in single quotes"},
	{"% (", isPlaceholder, "%( is a placeholder of a program: write the value itself, text in single quotes"},
	{"AT TIME ZONE", nil, "AT TIME ZONE is not known here: times are UTC; write col + INTERVAL 9 HOUR for Korean time"},
	{"INTERVAL", isQuotedInterval, "an interval is written without quotes here: INTERVAL 7 DAY"},
	{"INTERVAL", isQuotedNumber, "an interval is a number and a unit in the singular here: INTERVAL 7 DAY"},
	{"INTERVAL", isPluralUnit, "a unit of time is in the singular here: INTERVAL {1} {2-}"},
	{"DISTINCT ON", nil,
		"DISTINCT ON is PostgreSQL's: number the rows with ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) in a WITH, and take number 1"},
	{"NULLS LAST|FIRST", nil, "NULLS {1} is not known here: write ORDER BY col IS NULL, col; NULL is the least, so DESC has it last"},
	{"IGNORE NULLS", nil, nullsAdvice},
	{"FULL OUTER|JOIN", nil, "FULL JOIN is not known here: write a LEFT JOIN, UNION, and a RIGHT JOIN"},
	{"EPOCH FROM", nil, "EXTRACT(EPOCH FROM col) is PostgreSQL's: write UNIX_TIMESTAMP(col)"},
	{"[|]", nil, "square brackets are SQL Server's or PostgreSQL's: write a name in `backquotes`, and a list as IN (1, 2)"},
	{"~", nil, "~ is no comparison here: write REGEXP 'pattern'"},
	{"IS DISTINCT", nil, distinctFromAdvice},
	{"IS NOT DISTINCT", nil, distinctFromAdvice},
	{", FROM|WHERE|)|GROUP|ORDER", nil, "there is a comma too many before {1}"},
	{"SELECT FROM", nil, "there is nothing between SELECT and FROM: name columns, or write *"},
	{"FROM|JOIN (", isUnnamedSubquery, "a subquery behind {0} needs an alias: (SELECT …) AS t"},
	{"AS", isForeignCast, "CAST has no type {1} here: write {type}"},
	{"DATE_ADD|DATE_SUB (", hasNoInterval, "{0} takes an interval: {0}(col, INTERVAL 7 DAY)"},
	{"SUBSTRING_INDEX (", hasNotThreeArguments, substringIndexUsage},
	{"AS VARCHAR )", inCast, varcharAdvice},
	{"LIMIT ALL", isUnqualified, "LIMIT ALL is PostgreSQL's: leave it out"},
	{"= =", isDoubled, "== is not known here: write ="},
	{"* *", isDoubled, "** is not known here: write POW(a, b)"},
	{"EXTRACT ( DOW|ISODOW|DOY|CENTURY|DECADE", nil,
		"EXTRACT has no {2} here: write DAYOFWEEK(col), WEEKDAY(col), DAYOFYEAR(col) or YEAR(col)"},
	{"IN ( )", nil, "a list behind IN has a value at least: write IN (NULL) where there is none"},
	{"FROM|JOIN", isQuotedTable, "a table's name is written without quotes here, or in `backquotes`"},
	{"GROUP BY ALL", nil, "GROUP BY ALL is not known here: name the columns that are no aggregates"},
	{"* EXCEPT|EXCLUDE (", nil, "* {1} is BigQuery's or Snowflake's: name the columns that you need"},
	{"OFFSET", isEarlyOffset, "OFFSET stands behind LIMIT: write LIMIT 10 OFFSET 20"},
	{"DAY|DAYS|WEEK|WEEKS|MONTH|MONTHS|YEAR|YEARS|HOUR|HOURS|MINUTE|MINUTES", isBareInterval,
		"a span of time is written as an interval: CURDATE() - INTERVAL 180 DAY"},
	{"DATE|DATETIME (", isSQLiteDate,
		"{0}('now', '-6 months') is SQLite's: write CURDATE() - INTERVAL 6 MONTH, and DATE(col) for the day of a time"},
	{"IF (", hasNotThreeArguments, "IF takes a condition and two values: IF(condition, a, b)"},
	{"CONTAINS", isQuotedNumber, "CONTAINS is no operator here: write col LIKE '%text%'"},
	{"{ {", isDoubled, "{{ is a placeholder of a template: write the value itself, text in single quotes"},
	{"$ {", isDoubled, "${ is a placeholder of a program: write the value itself, text in single quotes"},
	{"COUNT (", isSpaced, "COUNT is built in only where its parenthesis follows at once: write COUNT("},
}

// formsByServer are of one server alone, looked for before the others: what it lacks, and another has.
var formsByServer = map[string][]foreignForm{
	"mariadb": {
		{"- >", nil, "-> is not known here: write JSON_VALUE(document, '$.key')"},
		{"MEDIAN (", hasNoWindow, "MEDIAN needs a window here: write SELECT DISTINCT MEDIAN(col) OVER (), or OVER (PARTITION BY group)"},
		{"PERCENTILE_CONT|PERCENTILE_DISC (", hasNoWindow,
			"{0} needs a window here: write SELECT DISTINCT {0}(0.5) WITHIN GROUP (ORDER BY col) OVER (PARTITION BY group)"},
		{"LAG|LEAD (", hasDefault, "{0} takes no value for where there is no row here: write COALESCE({0}(col, 1) OVER (…), 0)"},
		{"RESPECT NULLS", nil, nullsAdvice},
		{"RANGE INTERVAL", nil, rangeAdvice},
		{"RANGE BETWEEN INTERVAL", nil, rangeAdvice},
		{"RANGE BETWEEN", endsAtInterval, rangeAdvice},
		{"LATERAL (", nil, "LATERAL is not known here: group in a derived table, or number its rows with ROW_NUMBER() OVER (PARTITION BY key " +
			"ORDER BY …) AS n, and join that ON key AND n <= 3"},
		{"EXPLAIN|DESCRIBE|DESC ANALYZE", isFirst, "{0} ANALYZE is not known here: write EXPLAIN SELECT …, which tells the plan"},
	},
	"mysql": {
		{"MEDIAN|PERCENTILE_CONT|PERCENTILE_DISC (", isUnqualified, "{0} " + list.Reasons(foreignText)["MEDIAN"]},
		{"FETCH FIRST|NEXT", isUnqualified, "FETCH {1} is not known here: write LIMIT n"},
		{"AS VARCHAR", inCast, varcharAdvice},
		{"AS INT|INTEGER", inCast, "CAST has no type {1} here: write SIGNED"},
	},
}

const (
	distinctFromAdvice = "IS DISTINCT FROM is not known here: write NOT (a <=> b), and a <=> b for IS NOT DISTINCT FROM"
	rangeAdvice        = "RANGE with an INTERVAL is not known here: write ROWS over one row a day, or a subquery with WHERE b.day BETWEEN " +
		"a.day - INTERVAL 6 DAY AND a.day"
	nullsAdvice         = "{0} NULLS is not known here: leave rows with NULL out in a WITH, and compute the window function over that"
	varcharAdvice       = "CAST has no type VARCHAR here: write CHAR"
	substringIndexUsage = "SUBSTRING_INDEX takes a text, a delimiter and a number: SUBSTRING_INDEX(email, '@', -1)"
)

// isUnqualified reports whether the word at i is no part of a dotted name.
func isUnqualified(t lexer.Tokens, i int) bool { return t.Key(i-1) != "." && t.Key(i+1) != "." }

// isDoubled reports whether the second of two marks follows at once.
func isDoubled(t lexer.Tokens, i int) bool { return t[i].End == t[i+1].Start }

// isSpaced reports whether there is something between the word at i and the parenthesis behind it.
func isSpaced(t lexer.Tokens, i int) bool { return t[i].End != t[i+1].Start }

// isFirst reports whether the statement begins at i.
func isFirst(_ lexer.Tokens, i int) bool { return i == 0 }

// isQuotedTable reports whether a text stands behind i where a table belongs: not in EXTRACT, TRIM or SUBSTRING, whose FROM takes one.
func isQuotedTable(t lexer.Tokens, i int) bool {
	return isQuotedNumber(t, i) && (t.Key(i) == "JOIN" || t.Selects(i))
}

// isEarlyOffset reports whether a LIMIT follows the number behind i.
func isEarlyOffset(t lexer.Tokens, i int) bool { return i > 0 && t.Key(i+2) == "LIMIT" }

// isBareInterval reports whether the unit at i has a number that is added or taken, and no INTERVAL, before it.
func isBareInterval(t lexer.Tokens, i int) bool {
	return i > 1 && t[i-1].Digits && lexer.IsOneOf(t.Key(i-2), "+|-")
}

// isSQLiteDate reports whether the call at i has modifiers, or 'now'.
func isSQLiteDate(t lexer.Tokens, i int) bool {
	return len(t.Arguments(i+1)) > 1 || strings.EqualFold(t[i+2].Text, "'now'")
}

// hasNoWindow reports whether no OVER follows the call at i, nor the WITHIN GROUP behind it.
func hasNoWindow(t lexer.Tokens, i int) bool {
	behind := t[i+1].Mate + 1
	if t.Key(behind) == "WITHIN" && t.Key(behind+2) == "(" {
		behind = t[behind+2].Mate + 1
	}
	return t.Key(behind) != "OVER"
}

// hasDefault reports whether the call at i has a value for where there is no row before or behind.
func hasDefault(t lexer.Tokens, i int) bool { return len(t.Arguments(i+1)) == 3 }

// endsAtInterval reports whether the frame at i ends with an interval.
func endsAtInterval(t lexer.Tokens, i int) bool {
	for j := i; j < len(t) && t.Key(j) != ")"; j++ {
		if t.Key(j) == "AND" && t.Key(j+1) == "INTERVAL" {
			return true
		}
	}
	return false
}

// isTop reports whether the TOP at i stands as SQL Server has it, before a number.
func isTop(t lexer.Tokens, i int) bool {
	return lexer.IsOneOf(t.Key(i-1), "SELECT|DISTINCT") && i+1 < len(t) && (t[i+1].Digits || t.Key(i+1) == "(")
}

// isQuotedInterval reports whether a text of several words, such as '7 days', is behind i.
func isQuotedInterval(t lexer.Tokens, i int) bool {
	return isQuotedNumber(t, i) && strings.Contains(t[i+1].Text, " ")
}

// isQuotedNumber reports whether a text is behind i.
func isQuotedNumber(t lexer.Tokens, i int) bool { return i+1 < len(t) && t[i+1].Quoted }

// isPluralUnit reports whether a number and a unit such as DAYS are behind i.
func isPluralUnit(t lexer.Tokens, i int) bool {
	return i+2 < len(t) && t[i+1].Digits && strings.HasSuffix(t.Key(i+2), "S")
}

// isUnnamedSubquery reports whether a query in parentheses is behind i, and no alias behind that.
func isUnnamedSubquery(t lexer.Tokens, i int) bool {
	behind := t[i+1].Mate + 1
	return t.IsQuery(i+1) && (behind >= len(t) || lexer.IsOneOf(t.Key(behind), "WHERE|GROUP|ORDER|LIMIT|JOIN|LEFT|INNER|ON|UNION|)|,"))
}

// isForeignCast reports whether the AS at i is CAST's, before a type that only other databases have.
func isForeignCast(t lexer.Tokens, i int) bool { return foreignTypes[t.Key(i+1)] != "" && inCast(t, i) }

// hasNoInterval reports whether the call at i has no INTERVAL among its arguments.
func hasNoInterval(t lexer.Tokens, i int) bool { return !t[i+1 : t[i+1].Mate].Find("INTERVAL") }

// hasNotThreeArguments reports whether the call at i has more or fewer.
func hasNotThreeArguments(t lexer.Tokens, i int) bool { return len(t.Arguments(i+1)) != 3 }

// isPlaceholder reports whether the % at i begins %s, %d or %(name)s: nothing stands before it that could be divided.
func isPlaceholder(t lexer.Tokens, i int) bool {
	return t[i+1].Start == t[i].End && lexer.IsOneOf(t.Key(i-1), "=|<|>|(|,|LIMIT|OFFSET|LIKE|AND|OR|BETWEEN|WHERE|SELECT|IN|THEN|ELSE")
}

// inCast reports whether the AS at i is CAST's.
func inCast(t lexer.Tokens, i int) bool {
	depth := 0
	for j := i - 1; j > 0; j-- {
		switch t[j].Key {
		case ")":
			depth++
		case "(":
			if depth == 0 {
				return t.Key(j-1) == "CAST"
			}
			depth--
		}
	}
	return false
}

// foreignTypes are types of CAST that only others have.
var foreignTypes = map[string]string{
	"TEXT": "CHAR", "STRING": "CHAR", "VARCHAR2": "CHAR", "NVARCHAR": "CHAR", "BIGINT": "SIGNED", "SMALLINT": "SIGNED", "TINYINT": "SIGNED",
	"INT8": "SIGNED", "INT4": "SIGNED", "INT64": "SIGNED", "NUMBER": "DECIMAL(18,2)", "NUMERIC": "DECIMAL(18,2)", "FLOAT8": "DOUBLE",
	"FLOAT64": "DOUBLE", "REAL": "DOUBLE", "MONEY": "DECIMAL(18,2)", "TIMESTAMP": "DATETIME", "TIMESTAMPTZ": "DATETIME",
	"DATETIME2": "DATETIME",
	"BOOLEAN":   "UNSIGNED", "BOOL": "UNSIGNED", "JSONB": "CHAR",
}

// usage is how functions are called that are often called otherwise.
var usage = map[string]string{
	"SUBSTRING_INDEX": substringIndexUsage,
	"DATEDIFF":        "DATEDIFF takes two dates and tells days: DATEDIFF(later, earlier); TIMESTAMPDIFF(MONTH, from, to) counts other units",
	"ISNULL":          "ISNULL takes one value: write IFNULL(col, other)",
	"IF":              "IF takes a condition and two values: IF(condition, a, b)",
	"IFNULL":          "IFNULL takes two values: IFNULL(col, other); COALESCE takes more",
	"NVL":             "NVL takes two values: NVL(col, other); COALESCE takes more",
	"DATE_FORMAT":     "DATE_FORMAT takes a date and a format: DATE_FORMAT(col, '%Y-%m')",
	"STR_TO_DATE":     "STR_TO_DATE takes a text and a format: STR_TO_DATE(text, '%d.%m.%Y')",
	"TIMESTAMPDIFF":   "TIMESTAMPDIFF takes a unit and two times: TIMESTAMPDIFF(MONTH, from, to)",
	"ROUND":           "ROUND takes a number and how many digits: ROUND(col, 2)",
	"CONCAT_WS":       "CONCAT_WS takes a separator and texts: CONCAT_WS(', ', a, b)",
	"LPAD":            "LPAD takes a text, a length and what to fill with: LPAD(text, 5, '0')",
	"LEFT":            "LEFT takes a text and a number: LEFT(text, 10)",
	"RIGHT":           "RIGHT takes a text and a number: RIGHT(text, 10)",
	"JSON_VALUE":      "JSON_VALUE takes a document and a path: JSON_VALUE(document, '$.key')",
	"UNIX_TIMESTAMP":  "UNIX_TIMESTAMP takes one time: UNIX_TIMESTAMP(col)",
	"FROM_UNIXTIME":   "FROM_UNIXTIME takes a number, and a format: FROM_UNIXTIME(n, '%Y-%m-%d')",
}

// pseudo are columns that other databases have in every statement, and names of theirs that stand without a parenthesis.
var pseudo = map[string]string{
	"ROWNUM": "ROWNUM is Oracle's: end the statement with LIMIT n, or number rows with ROW_NUMBER() OVER (ORDER BY col)",
	"ROWID":  "ROWID is another database's: name the table's own key", "_ROWID_": "_ROWID_ is SQLite's: name the table's own key",
	"LEVEL":   "LEVEL is Oracle's: count the steps of a WITH RECURSIVE",
	"SYSDATE": "SYSDATE is Oracle's: write NOW(), in UTC", "SYSTIMESTAMP": "SYSTIMESTAMP is Oracle's: write NOW(), in UTC",
	"TODAY": "TODAY is no word here: write CURDATE(), in UTC", "GETDATE": "GETDATE is SQL Server's: write NOW(), in UTC",
	"CURRENT_DATETIME": "CURRENT_DATETIME is BigQuery's: write NOW(), in UTC",
}

// Pseudo says what to write in place of a name that is a column to other databases, or a placeholder; "" of any other.
func Pseudo(column string) string {
	if len(column) > 1 && column[0] == '$' && strings.Trim(column[1:], "0123456789") == "" {
		return column + " is a placeholder of a program: write the value itself, text in single quotes"
	}
	return pseudo[strings.ToUpper(column)]
}

// Usage is how a built-in function is called; "" when it is not one that is often called otherwise.
func Usage(function string) string { return usage[strings.ToUpper(function)] }

// unspaced are built-in functions only where the parenthesis follows at once, on MariaDB, MySQL or both: with anything
// between, a server looks for a stored function of that name.
var unspaced = lexer.WordSet(`ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CUME_DIST CURDATE CURTIME DATE_ADD DATE_SUB DENSE_RANK
	EXTRACT FIRST_VALUE GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG LAG LEAD MAX MEDIAN MID MIN NOW NTH_VALUE NTILE PERCENTILE_CONT
	PERCENTILE_DISC PERCENT_RANK POSITION RANK STD STDDEV STDDEV_POP STDDEV_SAMP SUBDATE SUBSTR SUBSTRING SUM SYSDATE TRIM
	VARIANCE VAR_POP VAR_SAMP`)

// Spaced says how a built-in function is written that a text calls with something before its parenthesis, so that the server
// did not find it; "" of any other.
func Spaced(text, function string) string {
	name := strings.ToUpper(function)
	t, err := lexer.Lex(text)
	if err != nil || !unspaced[name] {
		return ""
	}
	for i := range t {
		if t[i].Key == name && t.Key(i+1) == "(" && isSpaced(t, i) {
			return name + " is built in only where its parenthesis follows at once: write " + name + "("
		}
	}
	return ""
}

// Words are the names in a text, as they are written but for quotes: those of tables and aliases among them.
func Words(text string) []string {
	toks, err := lexer.Lex(text)
	if err != nil {
		return nil
	}
	var words []string
	for _, t := range toks {
		if t.Name != "" {
			words = append(words, strings.Trim(t.Text, "`"))
		}
	}
	return words
}
