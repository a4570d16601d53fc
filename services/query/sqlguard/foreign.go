package sqlguard

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed lists/foreign.txt
var foreignText string

// foreignFunctions are functions of other databases, in upper case, with what to write in their place.
func foreignFunctions() map[string]string {
	all := map[string]string{}
	for line := range dataLines(foreignText) {
		names, why, _ := strings.Cut(line, ": ")
		for name := range strings.FieldsSeq(names) {
			all[name] = why
		}
	}
	return all
}

// Foreign says of a function of another database what it is and what to write in its place; "" of any other.
func Foreign(function string) string { return foreignFunctions()[strings.ToUpper(function)] }

// Advice is for a text that the guard has accepted and the server does not understand: it names the first thing in it that
// other databases have and this one does not, and what to write in its place; "" when it finds none.
func Advice(text string) string {
	toks, err := lex(text)
	if err != nil || toks.pair() != nil {
		return ""
	}
	for i := range toks {
		if advice := toks.advice(i); advice != "" {
			return advice
		}
	}
	return ""
}

// foreignWords are single words that no query of MariaDB or MySQL has where they stand.
var foreignWords = map[string]string{
	"ILIKE":       "ILIKE is PostgreSQL's: write LIKE, which ignores case here",
	"QUALIFY":     "QUALIFY is not known here: number the rows in a WITH, and filter in the SELECT behind it",
	"TABLESAMPLE": "TABLESAMPLE is not known here: write ORDER BY RAND() LIMIT n on a narrow selection",
	"PIVOT":       "PIVOT is not known here: write SUM(IF(col = 'value', amount, 0)) for each column",
	"SIMILAR":     "SIMILAR TO is PostgreSQL's: write REGEXP 'pattern'",
	"ISNULL":      "ISNULL() takes one value here: write IFNULL(col, other), or col IS NULL",
	"MINUS":       "MINUS is Oracle's: write EXCEPT",
}

// foreignTypes are types of CAST that only others have.
var foreignTypes = map[string]string{
	"TEXT": "CHAR", "STRING": "CHAR", "VARCHAR2": "CHAR", "NVARCHAR": "CHAR", "BIGINT": "SIGNED", "SMALLINT": "SIGNED", "TINYINT": "SIGNED",
	"INT8": "SIGNED", "INT4": "SIGNED", "INT64": "SIGNED", "NUMBER": "DECIMAL(18,2)", "NUMERIC": "DECIMAL(18,2)", "FLOAT8": "DOUBLE",
	"FLOAT64": "DOUBLE", "REAL": "DOUBLE", "MONEY": "DECIMAL(18,2)", "TIMESTAMP": "DATETIME", "TIMESTAMPTZ": "DATETIME",
	"DATETIME2": "DATETIME",
	"BOOLEAN":   "UNSIGNED", "BOOL": "UNSIGNED", "JSONB": "CHAR",
}

func (t tokens) advice(i int) string {
	key, next := t.key(i), t.key(i+1)
	switch {
	case foreignWords[key] != "" && t.key(i-1) != "." && next != ".":
		return foreignWords[key]
	case key == "TOP" && (t.key(i-1) == "SELECT" || t.key(i-1) == "DISTINCT") && i+1 < len(t) && (t[i+1].digits || next == "("):
		return "TOP is SQL Server's: leave it out, and end the statement with LIMIT n"
	case key == "%" && t.placeholder(i):
		return "%" + strings.ToLower(t[i+1].text) + " is a placeholder of a program: write the value itself, text in single quotes"
	case key == "AT" && next == "TIME" && t.key(i+2) == "ZONE":
		return "AT TIME ZONE is not known here: times are UTC; write col + INTERVAL 9 HOUR for Korean time"
	case key == "INTERVAL" && i+1 < len(t) && t[i+1].quoted && strings.ContainsAny(t[i+1].text, " "):
		return "an interval is written without quotes here: INTERVAL 7 DAY"
	case key == "INTERVAL" && i+1 < len(t) && t[i+1].quoted:
		return "an interval is a number and a unit in the singular here: INTERVAL 7 DAY"
	case key == "INTERVAL" && i+2 < len(t) && t[i+1].digits && strings.HasSuffix(t.key(i+2), "S"):
		return "a unit of time is in the singular here: INTERVAL " + t[i+1].text + " " + strings.TrimSuffix(t.key(i+2), "S")
	case key == "DISTINCT" && next == "ON":
		return "DISTINCT ON is PostgreSQL's: number the rows with ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) in a WITH, and take number 1"
	case key == "NULLS" && (next == "LAST" || next == "FIRST"):
		return "NULLS " + next + " is not known here: write ORDER BY col IS NULL, col; NULL is the least, so DESC has it last"
	case key == "FULL" && (next == "OUTER" || next == "JOIN"):
		return "FULL JOIN is not known here: write a LEFT JOIN, UNION, and a RIGHT JOIN"
	case key == "EPOCH" && next == "FROM":
		return "EXTRACT(EPOCH FROM col) is PostgreSQL's: write UNIX_TIMESTAMP(col)"
	case key == "[" || key == "]":
		return "square brackets are SQL Server's or PostgreSQL's: write a name in `backquotes`, and a list as IN (1, 2)"
	case key == "~":
		return "~ is no comparison here: write REGEXP 'pattern'"
	case key == "-" && next == ">":
		return "-> is not known on every server: write JSON_VALUE(document, '$.key')"
	case key == "IS" && (next == "DISTINCT" || next == "NOT" && t.key(i+2) == "DISTINCT"):
		return "IS DISTINCT FROM is not known here: write NOT (a <=> b), and a <=> b for IS NOT DISTINCT FROM"
	case key == "," && (next == "FROM" || next == "WHERE" || next == ")" || next == "GROUP" || next == "ORDER"):
		return "there is a comma too many before " + next
	case key == "SELECT" && next == "FROM":
		return "there is nothing between SELECT and FROM: name columns, or write *"
	case (key == "FROM" || key == "JOIN") && next == "(" && t.isQuery(i+1) && t.nothingNamed(t[i+1].mate+1):
		return "a subquery behind " + key + " needs an alias: (SELECT …) AS t"
	case key == "AS" && foreignTypes[next] != "" && t.inCast(i):
		return "CAST has no type " + next + " here: write " + foreignTypes[next]
	case (key == "DATE_ADD" || key == "DATE_SUB") && next == "(" && !t[i+1:t[i+1].mate].find("INTERVAL"):
		return key + " takes an interval: " + key + "(col, INTERVAL 7 DAY)"
	case key == "SUBSTRING_INDEX" && next == "(" && len(t.arguments(i+1)) != 3:
		return usage[key]
	}
	return ""
}

// placeholder reports whether the % at i begins %s, %d or %(name)s: nothing stands before it that could be divided.
func (t tokens) placeholder(i int) bool {
	if i+1 >= len(t) || t[i+1].start != t[i].end {
		return false
	}
	switch t.key(i - 1) {
	case "=", "<", ">", "(", ",", "LIMIT", "OFFSET", "LIKE", "AND", "OR", "BETWEEN", "WHERE", "SELECT", "IN", "THEN", "ELSE":
		return t[i+1].key == "S" || t[i+1].key == "D" || t[i+1].key == "("
	}
	return false
}

// nothingNamed reports whether no alias stands at i.
func (t tokens) nothingNamed(i int) bool {
	switch t.key(i) {
	case "WHERE", "GROUP", "ORDER", "LIMIT", "JOIN", "LEFT", "INNER", "ON", "UNION", ")", ",":
		return true
	}
	return i >= len(t)
}

// inCast reports whether the AS at i is CAST's.
func (t tokens) inCast(i int) bool {
	depth := 0
	for j := i - 1; j > 0; j-- {
		switch t[j].key {
		case ")":
			depth++
		case "(":
			if depth == 0 {
				return t.key(j-1) == "CAST"
			}
			depth--
		}
	}
	return false
}

// usage is how functions are called that are often called otherwise.
var usage = map[string]string{
	"SUBSTRING_INDEX": "SUBSTRING_INDEX takes a text, a delimiter and a number: SUBSTRING_INDEX(email, '@', -1)",
	"DATEDIFF":        "DATEDIFF takes two dates and tells days: DATEDIFF(later, earlier); TIMESTAMPDIFF(MONTH, from, to) counts other units",
	"ISNULL":          "ISNULL takes one value: write IFNULL(col, other)",
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

// Usage is how a built-in function is called; "" when it is not one that is often called otherwise.
func Usage(function string) string { return usage[strings.ToUpper(function)] }

// Words are the names in a text, as they are written but for quotes: those of tables and aliases among them.
func Words(text string) []string {
	toks, err := lex(text)
	if err != nil {
		return nil
	}
	var words []string
	for _, t := range toks {
		if t.name != "" {
			words = append(words, strings.Trim(t.text, "`"))
		}
	}
	return words
}

// A Notice says that an accepted statement may mean something else than it looks like.
type Notice struct{ Rule, Message string }

// Noticed returns what in the statement reads otherwise here than on other databases, and the texts in double quotes that look
// like names and do not stand where an alias may: a text is what they are here, a name to others.
func (s Statement) Noticed() (notices []Notice, quoted []string) {
	t, err := lex(s.text)
	if err != nil {
		return nil, nil
	}
	add := func(rule, message string) {
		if !slices.ContainsFunc(notices, func(n Notice) bool { return n.Rule == rule }) {
			notices = append(notices, Notice{rule, message})
		}
	}
	for i := range t {
		switch key, next := t[i].key, t.key(i+1); {
		case key == "|" && next == "|" && t[i].end == t[i+1].start && t.concatenates(i):
			add("sql.concat", "|| is OR here and answers 0 or 1: write CONCAT(a, b) to join texts")
		case key == "NULL" && (t.key(i-1) == "=" || t.key(i-1) == ">" && t.key(i-2) == "<") && s.kind == Select:
			add("sql.null", "a comparison with = NULL or <> NULL is never true: write IS NULL or IS NOT NULL")
		case key == "FULL" && next == "JOIN":
			add("sql.full_join", "FULL is taken for an alias before JOIN, so this is an inner join: write a LEFT JOIN, UNION, and a RIGHT JOIN")
		case t[i].quoted && t[i].text[0] == '"' && looksLikeName(t[i].text[1:len(t[i].text)-1]) && !t.aliased(i):
			quoted = append(quoted, t[i].text[1:len(t[i].text)-1])
		}
	}
	return notices, quoted
}

// concatenates reports whether the || at i looks as if it joined texts: one beside it, or two names that nothing compares.
func (t tokens) concatenates(i int) bool {
	if i == 0 || i+2 >= len(t) {
		return false
	}
	left, right := t[i-1], t[i+2]
	if left.quoted && (i < 2 || !t.compares(i-2)) || right.quoted && !t.compares(i+3) {
		return true
	}
	behind := i + 3
	if t.key(behind) == "." {
		behind += 2
	}
	before := i - 2
	if t.key(before) == "." {
		before -= 2
	}
	return left.name != "" && right.name != "" && right.key != "NOT" && right.key != "EXISTS" && t.key(behind) != "(" && !t.compares(behind) &&
		!t.compares(before)
}

func (t tokens) compares(i int) bool {
	switch t.key(i) {
	case "=", "<", ">", "!", "IS", "IN", "LIKE", "NOT", "BETWEEN", "REGEXP", "RLIKE":
		return true
	}
	return false
}

// aliased reports whether the text at i is an alias: it stands behind AS, a name, a parenthesis or a literal.
func (t tokens) aliased(i int) bool {
	if i == 0 {
		return false
	}
	switch before := t[i-1]; {
	case before.key == "AS", before.key == ")", before.quoted, before.digits:
		return true
	case before.name != "":
		return before.key == "" || !nameless[before.key]
	}
	return false
}

// nameless are words behind which no alias stands.
var nameless = wordSet(`SELECT DISTINCT ALL WHERE AND OR XOR NOT ON HAVING BY LIKE IN BETWEEN WHEN THEN ELSE CASE REGEXP RLIKE DIV MOD IS
	ANY SOME LIMIT FROM JOIN INTERVAL BINARY SEPARATOR ESCAPE COLLATE`)

func looksLikeName(text string) bool {
	if text == "" || len(text) > 64 || isDigit(text[0]) {
		return false
	}
	for i := range len(text) {
		if !isIdent(text[i]) && text[i] != '.' {
			return false
		}
	}
	return true
}
