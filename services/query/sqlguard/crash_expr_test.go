package sqlguard_test

import (
	"fmt"
	"strconv"
	"strings"
)

// expr is an expression of a depth.
func (w *crashWriter) expr(depth int) string {
	s := w.expression(depth)
	w.size += len(s)
	return s
}

func (w *crashWriter) expression(depth int) string {
	if depth <= 0 || w.size > 6000 {
		return w.leaf()
	}
	d := depth - 1
	switch w.IntN(22) {
	case 0, 1:
		return w.leaf()
	case 2:
		return "(" + w.expr(d) + pick(w, " + ", " - ", " * ", " / ", " DIV ", " % ", " MOD ", " & ", " | ", " ^ ", " << ", " >> ", " || ",
			" && ", " XOR ", " AND ", " OR ") + w.expr(d) + ")"
	case 3:
		return "(" + w.expr(d) + pick(w, " = ", " <=> ", " < ", " >= ", " <> ", " LIKE ", " NOT LIKE ", " REGEXP ", " SOUNDS LIKE ",
			" = BINARY ") + w.expr(d) + ")"
	case 4:
		return pick(w, "-", "~", "!", "NOT ", "BINARY ") + "(" + w.expr(d) + ")"
	case 5:
		return "CASE " + pick(w, "", w.expr(d)) + " WHEN " + w.expr(d) + " THEN " + w.expr(d) + pick(w, "", " ELSE "+w.expr(d)) + " END"
	case 6:
		return "(" + w.expr(d) + pick(w, " IN (", " NOT IN (") + w.expr(d) + ", " + w.expr(d) + ", " + w.leaf() + "))"
	case 7:
		return "(" + w.expr(d) + " BETWEEN " + w.expr(d) + " AND " + w.expr(d) + ")"
	case 8:
		return "((" + w.expr(d) + ", " + w.leaf() + ")" + pick(w, " = ", " <=> ", " < ", " <> ") + pick(w, "", "ROW") + "(" + w.expr(d) +
			", " + w.leaf() + "))"
	case 9:
		return "((" + w.expr(d) + ", " + w.leaf() + ") IN ((" + w.leaf() + ", " + w.leaf() + "), (" + w.expr(d) + ", " + w.leaf() + ")))"
	case 10:
		return pick(w, "(", "EXISTS (", w.leaf()+" IN (", w.leaf()+" = ANY (", w.leaf()+" > ALL (", w.leaf()+" NOT IN (") + w.query(d) + ")"
	case 11:
		return "(" + w.expr(d) + pick(w, " IS NULL", " IS NOT NULL", " IS TRUE", " IS UNKNOWN", " COLLATE utf8mb4_bin",
			" COLLATE utf8mb4_unicode_520_nopad_ci", " COLLATE latin1_german2_ci", " COLLATE utf8mb3_czech_ci") + ")"
	case 12:
		return "(" + w.expr(d) + pick(w, " + ", " - ") + w.interval(d) + ")"
	}
	return w.call("", depth)
}

func (w *crashWriter) interval(d int) string {
	return "INTERVAL " + pick(w, w.leaf(), w.expr(d), "-1", "'1:1'", "99999999999") + " " + w.unit()
}

func (w *crashWriter) unit() string {
	return pick(w, "DAY", "MONTH", "YEAR", "SECOND", "MICROSECOND", "QUARTER", "WEEK", "DAY_MICROSECOND", "YEAR_MONTH", "HOUR_SECOND",
		"DAY_HOUR")
}

var aggregates = []string{"AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "COUNT", "MAX", "MIN", "STD", "STDDEV_SAMP", "SUM", "VAR_POP",
	"VAR_SAMP", "JSON_ARRAYAGG"}

// call is a call of a function, "" a random one.
func (w *crashWriter) call(name string, depth int) string {
	d := depth - 1
	if name == "" {
		if special := w.special(d); special != "" {
			return special
		}
		name = w.names[w.IntN(len(w.names))]
	}
	var b strings.Builder
	b.WriteString(name + "(")
	for i := range pick(w, w.arities[name]...) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w.expr(w.IntN(d + 1)))
	}
	return b.String() + ")"
}

// special is a call with a syntax of its own; "" mostly.
func (w *crashWriter) special(d int) string {
	e := func() string { return w.expr(d) }
	switch w.IntN(60) {
	case 0, 1, 2, 3:
		if w.window {
			return w.aggregate(d)
		}
	case 4, 5, 6:
		if w.window {
			return w.windowed(d)
		}
	case 7, 8:
		return "CAST(" + e() + " AS " + w.castType() + ")"
	case 9:
		return pick(w, "CONVERT("+e()+", "+w.castType()+")", "CONVERT("+e()+" USING "+w.charset()+")")
	case 10:
		return "EXTRACT(" + w.unit() + " FROM " + e() + ")"
	case 11:
		return "TRIM(" + pick(w, "LEADING ", "TRAILING ", "BOTH ") + pick(w, e(), "") + " FROM " + e() + ")"
	case 12:
		return "POSITION(" + w.leaf() + " IN " + e() + ")"
	case 13:
		return "SUBSTRING(" + e() + " FROM " + e() + pick(w, "", " FOR "+e()) + ")"
	case 14:
		return pick(w, "TIMESTAMPADD(", "TIMESTAMPDIFF(") + pick(w, "DAY", "MONTH", "MICROSECOND", "QUARTER", "SECOND") + ", " + e() + ", " +
			e() + ")"
	case 15:
		return pick(w, "DATE_ADD(", "DATE_SUB(", "ADDDATE(", "SUBDATE(") + e() + ", " + w.interval(d) + ")"
	case 16:
		return "WEIGHT_STRING(" + e() + pick(w, "", " AS CHAR(3)", " AS CHAR(70000)", " AS BINARY(9)", " LEVEL 1", " LEVEL 1-3",
			" LEVEL 1 DESC REVERSE") + ")"
	case 17:
		return "CHAR(" + e() + ", " + e() + pick(w, "", " USING "+w.charset()) + ")"
	case 18:
		return "GET_FORMAT(" + pick(w, "DATE", "TIME", "DATETIME") + ", " + e() + ")"
	case 19:
		return "DATE_FORMAT(" + e() + ", " + pick(w, "'%Y-%m-%d %H:%i:%s.%f'", "'%a%b%c%D%e%h%I%j%k%l%M%p%r%S%T%U%u%V%v%W%w%X%x%y%%%z'",
			"REPEAT('%W', 3000)", e()) + pick(w, "", ", 'de_DE'", ", "+w.leaf()) + ")"
	case 20:
		return "STR_TO_DATE(" + e() + ", " + pick(w, "'%Y-%m-%d'", "'%j %U %W %v %x'", "'%f'", e()) + ")"
	case 21:
		return pick(w, "REGEXP_REPLACE(", "REGEXP_SUBSTR(", "REGEXP_INSTR(") + e() + ", " + w.regexp() + ")"
	case 22:
		return "REGEXP_REPLACE(" + e() + ", " + w.regexp() + ", " + pick(w, `'\\1'`, `'\\9\\0'`, "'$1'", e()) + ")"
	case 23, 24:
		return "JSON_EXTRACT(" + pick(w, w.json(), e()) + ", " + w.path() + pick(w, "", ", "+w.path()) + ")"
	case 25, 26:
		return pick(w, "JSON_SET(", "JSON_INSERT(", "JSON_REPLACE(", "JSON_ARRAY_APPEND(", "JSON_ARRAY_INSERT(") + pick(w, w.json(), e()) +
			", " + w.path() + ", " + pick(w, e(), w.json()) + ")"
	case 27:
		return "JSON_REMOVE(" + w.json() + ", " + w.path() + ")"
	case 28:
		return "JSON_SEARCH(" + w.json() + ", " + pick(w, "'one'", "'all'", w.leaf()) + ", " + e() + pick(w, "", ", NULL, "+w.path()) + ")"
	case 29:
		return "JSON_CONTAINS_PATH(" + w.json() + ", " + pick(w, "'one'", "'all'") + ", " + w.path() + ", " + w.path() + ")"
	case 30, 31, 32:
		name := pick(w, "JSON_MERGE_PATCH", "JSON_MERGE_PRESERVE", "JSON_CONTAINS", "JSON_OVERLAPS", "JSON_EQUALS")
		return name + "(" + w.json() + ", " + w.json() + ")"
	case 33, 34:
		name := pick(w, "JSON_VALID", "JSON_DEPTH", "JSON_LENGTH", "JSON_KEYS", "JSON_TYPE", "JSON_UNQUOTE", "JSON_DETAILED", "JSON_COMPACT",
			"JSON_LOOSE", "JSON_NORMALIZE", "JSON_QUOTE", "JSON_PRETTY")
		return name + "(" + w.json() + ")"
	case 35:
		return pick(w, "JSON_VALUE(", "JSON_QUERY(", "JSON_EXISTS(", "JSON_LENGTH(") + w.json() + ", " + w.path() + ")"
	case 36:
		return "JSON_OBJECT(" + e() + ", " + e() + ", " + e() + ", " + w.json() + ")"
	case 37:
		return "MATCH(" + pick(w, "tx", "b", "president") + ") AGAINST (" +
			pick(w, "'a'", "'"+strings.Repeat("+a ", 300)+"'", "x'00'", "'+(a b) -c* \"d e\"@3'") +
			pick(w, "", " IN BOOLEAN MODE", " WITH QUERY EXPANSION", " IN NATURAL LANGUAGE MODE") + ")"
	case 38:
		return "(" + e() + " LIKE " + e() + " ESCAPE " + w.literal() + ")"
	case 39:
		return "DEFAULT(" + pick(w, "id", "vc", "dtm", "apply_count", "gen") + ")"
	case 40:
		return pick(w, "CONVERT_TZ("+e()+", '+00:00', "+pick(w, "'+13:00'", "'SYSTEM'", "'Europe/Paris'", e())+")", "FROM_UNIXTIME("+e()+", "+
			e()+")", "UNIX_TIMESTAMP("+e()+")")
	case 41:
		return pick(w, "CURRENT_USER", "CURRENT_TIMESTAMP", "UTC_DATE", "LOCALTIME(6)", "CURRENT_DATE", "NOW(3)", "SYSDATE(6)", "@@sql_mode",
			"@@version", "@x", "VALUES(id)")
	case 43:
		return "TO_CHAR(" + e() + ", " + pick(w, "'YYYY-MM-DD HH24:MI:SS'", "'AD MONTH DAY CC'", "REPEAT('MONTH', 900)", e()) + ")"
	case 44:
		return "NATURAL_SORT_KEY(" + pick(w, e(), "REPEAT('9', 70000)", "REPEAT('a1', 40000)") + ")"
	case 45:
		return "(" + w.expr(d) + pick(w, " = ", " LIKE ", " IN (", " < ") + "(" + w.literal() + ")" // often refused: a parenthesis may be missing
	}
	return ""
}

func (w *crashWriter) aggregate(d int) string {
	w.window = false // no aggregate in an aggregate
	defer func() { w.window = true }()
	e := w.expr(d)
	switch w.IntN(6) {
	case 0:
		return "GROUP_CONCAT(" + pick(w, "", "DISTINCT ") + e + pick(w, "", ", "+w.leaf()) +
			pick(w, "", " ORDER BY "+w.expr(d), " ORDER BY 1 DESC") + pick(w, "", " SEPARATOR ''", " SEPARATOR 'xx'") +
			pick(w, "", " LIMIT 1", " LIMIT 2 OFFSET 1") + ")"
	case 1:
		return "COUNT(DISTINCT " + e + ", " + w.leaf() + ")"
	case 2:
		return "JSON_OBJECTAGG(" + e + ", " + w.expr(d) + ")"
	case 3:
		return pick(w, aggregates...) + "(DISTINCT " + e + ")"
	}
	return pick(w, aggregates...) + "(" + e + ")"
}

func (w *crashWriter) windowed(d int) string {
	w.window = false
	defer func() { w.window = true }()
	e := w.expr(d)
	call := pick(w, "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "CUME_DIST()", "PERCENT_RANK()", "NTILE("+w.leaf()+")", "NTILE(3)", "LAG("+e+
		")", "LEAD("+e+", "+w.leaf()+")",
		"FIRST_VALUE("+e+")", "LAST_VALUE("+e+")", "NTH_VALUE("+e+", "+pick(w, "1", w.leaf())+")", pick(w, aggregates...)+"("+e+")",
		"MEDIAN("+e+")", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "+e+")",
		"PERCENTILE_DISC("+w.leaf()+") WITHIN GROUP (ORDER BY "+e+")", "GROUP_CONCAT("+e+")")
	bound := func() string {
		return pick(w, "UNBOUNDED PRECEDING", "CURRENT ROW", "1 PRECEDING", "2 FOLLOWING", "UNBOUNDED FOLLOWING",
			"18446744073709551615 FOLLOWING", "0 PRECEDING", "1e308 PRECEDING", "'a' FOLLOWING")
	}
	over := pick(w, "", "PARTITION BY "+w.expr(1)+" ") + pick(w, "", "ORDER BY "+w.expr(1)+pick(w, "", " DESC"))
	if w.IntN(3) == 0 && strings.Contains(over, "ORDER") {
		over += " " + pick(w, "ROWS", "RANGE") + " " + pick(w, bound(), "BETWEEN "+bound()+" AND "+bound()) + pick(w, "", "", " EXCLUDE TIES")
	}
	return call + " OVER (" + over + ")"
}

func (w *crashWriter) castType() string {
	return pick(w, "SIGNED", "UNSIGNED", "CHAR", "CHAR(0)", "CHAR(10)", "CHAR(4294967295)", "CHAR(10) CHARACTER SET "+w.charset(),
		"BINARY(3)", "BINARY", "DATE", "DATETIME", "DATETIME(6)", "TIME(6)",
		"DECIMAL(65,30)", "DECIMAL(1,1)", "DECIMAL", "DOUBLE", "FLOAT", "INTEGER", "INET6", "UUID", "YEAR", "NCHAR(3)", "VARCHAR(30)",
		"INTERVAL DAY_SECOND(6)", "TIMESTAMP", "JSON")
}

func (w *crashWriter) charset() string {
	return pick(w, "utf8mb4", "latin1", "ucs2", "utf16", "utf32", "binary", "sjis", "big5", "gbk", "eucjpms", "ascii", "utf16le", "koi8r",
		"euckr", "filename", "swe7", "nosuch")
}

// leaf is a column or a literal.
func (w *crashWriter) leaf() string {
	if len(w.columns) > 0 && w.IntN(3) > 0 {
		return pick(w, w.columns...)
	}
	return w.literal()
}

// short is a literal of few characters.
func (w *crashWriter) short() string {
	return pick(w, "1", "0", "-1", "NULL", "'a'", "'{}'", "'$'", "''", "2", "'2026-01-31'", "1.5", "x'FF'", "18446744073709551615", "9e9")
}

func (w *crashWriter) literal() string {
	switch w.IntN(10) {
	case 0, 1:
		return w.short()
	case 2, 3, 4:
		return pick(w, "2147483648", "-2147483649", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
			"18446744073709551616", "1e308", "-1e308", "1e-308", "1.7976931348623157e308", "0e0", "-0.0",
			"99999999999999999999999999999999999999999999999999999999999999999", "0."+strings.Repeat("9", 38), "1"+strings.Repeat("0", 81),
			strings.Repeat("9", 65)+".5", "0x"+strings.Repeat("FF", 100), "0xFFFFFFFFFFFFFFFFFF",
			"b'"+strings.Repeat("1", 64)+"'", "0b"+strings.Repeat("10", 100), "TRUE", "FALSE", "10000000", "350000", "65536", "70000", "255",
			"256", "1000", ".5", "1e100", "3.4e38")
	case 5:
		return pick(w, "DATE'2026-02-28'", "DATE'9999-12-31'", "DATE'0000-01-01'", "TIMESTAMP'9999-12-31 23:59:59.999999'",
			"TIMESTAMP'0001-01-01 00:00:00'", "TIME'838:59:59.999999'", "TIME'-838:59:59'", "'0000-00-00'",
			"'0000-00-00 00:00:00'", "'2026-00-00'", "'10000-01-01'", "20260131", "'2026-01-31T09:00:00Z'", "{d '2026-01-01'}",
			"{ts '2026-01-01 00:00:00'}", "'23:59:60'", "'-1 1:1:1.1'", "'2024-02-29 24:00:00'", "366", "3652424", "253402300800", "-62167219200")
	case 6:
		return pick(w, w.json(), w.path(), w.regexp())
	}
	return w.text()
}

func (w *crashWriter) text() string {
	long := strconv.Itoa(pick(w, 100, 1000, 5000, 65535, 65536, 70000, 350000, 1<<20))
	return pick(w, "''", "' '", "'a'", "'%'", "'_%'", "'nan'", "'inf'", "'-Infinity'", "'1e999'", "'0x10'", "'  12abc'", "'가나다'",
		"'😀'", `'\0'`, `'\\'`, `'\%'`, "'e\u0301'", "'ß'", "'İ'", "N'x'", "_utf8mb4 x'F09F9880'",
		"_ucs2 x'D83D'", "_utf32 x'0010FFFF'", "_utf16 x'D800'", "_binary'abc'", "_latin1 x'FF'", "_sjis x'81'", "_big5 x'A1'", "x''",
		"x'00'", "x'FF'", "X'"+strings.Repeat("00", 40)+"'", "'1.2.3.4'", "'::ffff:1.2.3.4'", "'2001:db8::1'",
		"'255.255.255.256'", "'de_DE'", "'a,b,c'", "'%Y-%m-%d'", "'utf8mb4'", "'+14:00'", "'SYSTEM'", "'one'", "REPEAT('a', "+long+")",
		"REPEAT('가', "+long+")", "REPEAT('(', "+long+")", "REPEAT('[', "+long+")",
		"REPEAT('9', "+long+")", "REPEAT('%', "+long+")", "SPACE("+long+")", "REPEAT(x'00', "+long+")", "REPEAT(x'FF', "+long+")",
		"LPAD('', "+long+", 'ab')", "'"+strings.Repeat("x", w.IntN(300))+"'", fmt.Sprintf("CHAR(%d)", w.IntN(1<<20)))
}

func (w *crashWriter) json() string {
	n := strconv.Itoa(pick(w, 3, 20, 31, 32, 33, 100, 1000, 5000, 20000))
	return pick(w, "'{}'", "'[]'", "'null'", "'1'", "'\"a\"'", "'[1,[2,[3]]]'", `'{"a":1,"b":[1,2,{"c":null}],"a":2}'`, "'['", `'{"a":'`,
		"'[1e999]'", `'"\\ud800"'`, `'{"":""}'`, "'{\"가\":\"\\u0000\"}'",
		"CONCAT(REPEAT('[', "+n+"), REPEAT(']', "+n+"))", "CONCAT(REPEAT('{\"a\":', "+n+"), '1', REPEAT('}', "+n+"))",
		"CONCAT('[', REPEAT('1,', "+n+"), '1]')", "CONCAT('{', REPEAT('\"a\":[1],', "+n+"), '\"b\":2}')",
		"REPEAT('[', "+n+")", "CONCAT('\"', REPEAT('\\\\\\\\u0041', "+n+"), '\"')", "CONCAT(REPEAT('[1,', "+n+"), '2', REPEAT(',3]', "+n+"))",
		"_ucs2 x'005B005D'", "js", "meta", "'[1,2'", "'[true,false,nil]'", "x'5B00'")
}

func (w *crashWriter) path() string {
	return pick(w, "'$'", "'$.a'", "'$[0]'", "'$[last]'", "'$[last-1]'", "'$[1 to 3]'", "'$**.a'", "'$.*'", "'$[*]'", "'$.\"a b\"'",
		"'$.a.b[1].c'", "'$**'", "'$.'", "'$['", "''", "'a'", "'$[99999999999]'", "'$[-1]'", "'strict $.a'", "'lax $'",
		"CONCAT('$', REPEAT('.a', "+strconv.Itoa(pick(w, 31, 32, 33, 64, 5000))+"))", "CONCAT('$', REPEAT('[0]', "+
			strconv.Itoa(pick(w, 31, 32, 33, 64, 5000))+"))", "CONCAT('$', REPEAT('**', 40), '.a')", "CONCAT('$.', REPEAT('x', 70000))", w.short())
}

func (w *crashWriter) regexp() string {
	n := strconv.Itoa(pick(w, 10, 100, 250, 251, 1000, 20000))
	return pick(w, "'a'", "'(a+)+$'", "'(?R)'", "'^(a|(?1)b)*$'", "'['", "'[[:alpha:]]+'", `'\\b.\\B'`, "'a{1000}'", "'(a{1,100}){1,100}'",
		"'(?i)É'", "'.*.*.*.*.*x'", "'(?=a)(?<!b)'", `'(\\w+)\\s\\1'`, "'(*UTF8)a'", "'(*NO_AUTO_POSSESS)(a*)*b'",
		"'\\\\p{L}+'", "'(?<n>a)(?P=n)'", "'(?C)a'", "'(?(DEFINE)(?<x>a(?&x)?))(?&x)'", "REPEAT('(', "+n+")", "CONCAT(REPEAT('(', "+n+
			"), 'a', REPEAT(')', "+n+"))", "CONCAT(REPEAT('(a|', "+n+"), 'b', REPEAT(')*', "+n+"))", "REPEAT('a?', "+n+")",
		"CONCAT('[', REPEAT('a', "+n+"), ']')", "REPEAT('[[:alpha:]]', "+n+")", "'(?s).{65535}'", "x'FF'", "''")
}
