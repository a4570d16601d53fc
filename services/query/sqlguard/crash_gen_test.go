package sqlguard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"hub.internal/services/query/sqlguard"
)

// crashGen makes statements out of the functions on the list, with arguments that are
// extreme in size, depth, type or value. Statement n of a seed is always the same.
type crashGen struct {
	seed    uint64
	names   []string         // functions called as name(argument, ...)
	arities map[string][]int // numbers of arguments that the server takes
	cases   [][]string       // the tokens of the corpora's cases
}

func newCrashGen(seed uint64, arities map[string][]int, cases [][]string) *crashGen {
	g := &crashGen{seed: seed, arities: arities, cases: cases}
	for name := range arities {
		g.names = append(g.names, name)
	}
	slices.Sort(g.names)
	return g
}

// statement is the n-th text. Not all are accepted.
func (g *crashGen) statement(n uint64) string {
	w := &crashWriter{crashGen: g, Rand: rand.New(rand.NewPCG(g.seed, n))}
	switch w.IntN(6) {
	case 0:
		return (&memoryGen{w.Rand, 0}).statement()
	case 1:
		return splicer{rand: w.Rand, cases: g.cases}.next()
	}
	return w.top()
}

// crashWriter writes one statement.
type crashWriter struct {
	*crashGen
	*rand.Rand
	columns []string // that may stand in an expression, besides literals
	window  bool     // whether a window function may
	size    int      // of what has been written, roughly
}

func pick[T any](w *crashWriter, list ...T) T { return list[w.IntN(len(list))] }

// top is a statement.
func (w *crashWriter) top() string {
	switch w.IntN(20) {
	case 0:
		return w.show()
	case 1, 2:
		return pick(w, "EXPLAIN ", "EXPLAIN EXTENDED ", "EXPLAIN FORMAT=JSON ", "EXPLAIN PARTITIONS ", "DESC ") + w.query(3)
	case 3:
		return "SELECT " + w.deep()
	case 4, 5, 6, 7:
		return "SELECT " + w.call("", 3) // one function alone
	case 8, 9:
		return "SELECT " + w.call(w.names[w.IntN(len(w.names))], 2)
	}
	return w.query(3)
}

func (w *crashWriter) show() string {
	filter := func() string {
		switch w.IntN(4) {
		case 0:
			return ""
		case 1:
			return " LIKE " + w.text()
		}
		w.columns = []string{"Name", "Variable_name", "Value", "Field", "`Table`", "Key_name", "Charset", "`Database`", "Engine", "`Trigger`",
			"Tables_in_hub_src", "Collation"}
		column := pick(w, w.columns...)
		return " WHERE " + pick(w,
			column+pick(w, " = ", " < ", " LIKE ", " <=> ", " REGEXP ", " >= ")+w.literal(),
			column+" IN ("+w.literal()+", "+w.literal()+")",
			column+" BETWEEN "+w.literal()+" AND "+w.literal(),
			"NOT ("+column+" IS NULL OR "+column+" + "+w.literal()+" > "+column+")",
			"("+column+", 1) IN (("+w.literal()+", "+w.literal()+"))", w.literal())
	}
	table := pick(w, "zoo", "campaign", "parted", "totals", "nothing", "information_schema.TABLES", "seq1", "`회원`", "seq_1_to_10")
	return "SHOW " + pick(w, "TABLES", "FULL TABLES", "TABLES FROM hub_src", "TABLES IN information_schema", "TABLE STATUS",
		"TABLE STATUS FROM information_schema",
		"COLUMNS FROM "+table, "FULL FIELDS IN "+table, "INDEX FROM "+table, "KEYS IN "+table, "DATABASES", "SCHEMAS", "VARIABLES",
		"GLOBAL VARIABLES", "STATUS", "GLOBAL STATUS",
		"CHARACTER SET", "COLLATION", "TRIGGERS", "PROCEDURE STATUS", "FUNCTION STATUS", "ENGINES", "CREATE TABLE "+table, "CREATE VIEW "+
			table, "CREATE DATABASE hub_src",
		"COLUMNS FROM TABLES FROM information_schema", "FULL TRIGGERS") + filter()
}

// query is a SELECT, a union, a common table expression.
func (w *crashWriter) query(depth int) string {
	if depth <= 0 || w.size > 5000 {
		return "SELECT " + w.literal()
	}
	switch w.IntN(14) {
	case 0:
		return "(" + w.query(depth-1) + ") " + pick(w, "UNION ", "UNION ALL ", "EXCEPT ", "INTERSECT ", "EXCEPT ALL ") + "(" +
			w.query(depth-1) + ")" + pick(w, "", " ORDER BY 1", " LIMIT 3")
	case 1:
		return "WITH c AS (" + w.query(depth-1) + "), point (a, b) AS (SELECT " + w.expr(2) + ", " + w.expr(2) + ") SELECT * FROM c" +
			pick(w, "", ", point", " JOIN point ON a = b", ", c c2")
	case 2:
		return "WITH RECURSIVE r AS (SELECT " + pick(w, "1", w.literal(), "CAST('' AS CHAR(9000))") + " AS n UNION " + pick(w, "", "ALL ") +
			"SELECT " +
			pick(w, "n + 1", "CONCAT(n, n)", "n * 2", w.over("n")) + " FROM r WHERE " + pick(w, "n < 50", "LENGTH(n) < 1000", w.over("n")) +
			") SELECT " + pick(w, "*", "COUNT(*)", w.over("n")) + " FROM r" + pick(w, "", " LIMIT 5", ", r r2 LIMIT 9")
	}
	return w.selects(depth)
}

// over is an expression over columns.
func (w *crashWriter) over(columns ...string) string {
	before := w.columns
	w.columns = columns
	defer func() { w.columns = before }()
	return w.expr(2)
}

var tables = map[string][]string{
	"zoo": {"id", "t1", "u8", "i8", "dc", "f4", "d8", "bt", "dt", "tm", "dtm", "ts", "yr", "ch", "vc", "latin", "u2", "bin", "tx", "lb",
		"js", "en", "st", "ip", "ui", "gen"},
	"brand":    {"brand.id", "brand.partner_id", "president", "meta"},
	"campaign": {"campaign.id", "campaign.partner_id", "campaign.name", "status_code", "start_at", "apply_count"},
	"parted":   {"parted.id", "k", "v"}, "aria": {"a", "b"}, "totals": {"totals.partner_id", "n", "top"},
	"merged": {"merged.id", "merged.name"}, "price_hist": {"price"}, "seq_1_to_20": {"seq"},
	"information_schema.COLUMNS": {"COLUMN_NAME", "ORDINAL_POSITION", "CHARACTER_MAXIMUM_LENGTH"}, "my_isam": {"my_isam.id"},
}

var tableNames = []string{"zoo", "zoo", "zoo", "zoo", "brand", "campaign", "parted", "aria", "totals", "merged", "price_hist",
	"seq_1_to_20", "information_schema.COLUMNS", "my_isam"}

func (w *crashWriter) selects(depth int) string {
	before, window := w.columns, w.window
	defer func() { w.columns, w.window = before, window }()
	from, columns := w.from(depth)
	w.columns, w.window = append(slices.Clone(columns), before...), true
	var b strings.Builder
	b.WriteString("SELECT " + pick(w, "", "", "", "", "DISTINCT ", "SQL_BIG_RESULT ", "SQL_BUFFER_RESULT ", "STRAIGHT_JOIN "))
	for i := range 1 + w.IntN(3) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w.expr(depth) + " AS e" + strconv.Itoa(i))
	}
	if from != "" {
		b.WriteString(" FROM " + from)
		w.window = false
		if w.IntN(2) == 0 {
			b.WriteString(" WHERE " + w.expr(depth-1))
		}
		w.window = true
		if w.IntN(3) == 0 {
			b.WriteString(" GROUP BY " + pick(w, "1", w.expr(1), pick(w, w.columns...)) + pick(w, "", "", " WITH ROLLUP"))
			if w.IntN(3) == 0 {
				b.WriteString(" HAVING " + w.expr(depth-1))
			}
		}
		if w.IntN(3) == 0 {
			b.WriteString(" ORDER BY " + pick(w, "1", "e0 DESC", w.expr(depth-1)))
		}
		if w.IntN(4) == 0 {
			b.WriteString(pick(w, " LIMIT 0", " LIMIT 3", " LIMIT 1 OFFSET 2", " LIMIT 18446744073709551615", " FETCH FIRST 2 ROWS WITH TIES",
				" LIMIT 5 ROWS EXAMINED 10"))
		}
	}
	return b.String()
}

// from is a table expression with its columns.
func (w *crashWriter) from(depth int) (string, []string) {
	if w.IntN(6) == 0 {
		return "", nil
	}
	name := pick(w, tableNames...)
	columns := tables[name]
	switch w.IntN(9) {
	case 0:
		return "(" + w.query(depth-1) + ") d", []string{"e0"}
	case 1:
		other := pick(w, tableNames...)
		if other == name {
			break
		}
		columns := append(slices.Clone(columns), tables[other]...)
		before := w.columns
		w.columns = columns
		on := w.expr(1)
		w.columns = before
		return name + pick(w, " JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " STRAIGHT_JOIN ") + other + " ON " + on, columns
	case 2:
		return name + " NATURAL JOIN zoo z", []string{"z.vc", "z.id"}
	case 3:
		return "JSON_TABLE(" + pick(w, w.json(), w.expr(1)) + ", " + pick(w, "'$[*]'", "'$'", "'$**.a'", "'$.a[*]'", w.path()) +
			" COLUMNS (o FOR ORDINALITY, v " +
			pick(w, "INT", "VARCHAR(20)", "DECIMAL(5,2)", "DATETIME", "DOUBLE", "TEXT", "CHAR(0)", "JSON") + " PATH " +
			pick(w, "'$'", "'$.a'", "'$[0]'", w.path()) +
			pick(w, "", " NULL ON EMPTY", " DEFAULT '1' ON EMPTY ERROR ON ERROR", " DEFAULT 'x' ON ERROR") +
			pick(w, "", ", NESTED PATH '$.a[*]' COLUMNS (x INT EXISTS PATH '$.b')",
				", NESTED PATH '$[*]' COLUMNS (x TEXT PATH '$', NESTED PATH '$[*]' COLUMNS (y INT PATH '$'))") + ")) jt", []string{"o", "v"}
	case 4:
		return "(VALUES (" + w.literal() + ", " + w.literal() + "), (" + w.literal() + ", " + w.literal() + ")) tv", []string{"tv.`1`"}
	case 5:
		return name + pick(w, "", " USE INDEX ()", " FORCE INDEX (PRIMARY)", " PARTITION (p0)", " FOR SYSTEM_TIME ALL",
			" FOR SYSTEM_TIME AS OF "+w.literal()), columns
	}
	return name, columns
}

// deep nests as deep as the guard lets it, in one thing or in many.
func (w *crashWriter) deep() string {
	s := pick(w, w.literal(), "1", "NULL", "'a'", "'{}'", w.json())
	open, end := w.wrapper()
	mixed := w.IntN(2) == 0
	for range pick(w, 10, 30, 45, 49, 49, 60) {
		if mixed {
			open, end = w.wrapper()
		}
		if len(s)+len(open)+len(end) > 7500 {
			break
		}
		s = open + s + end
	}
	return s
}

// wrapper is what stands before and behind an expression to make a deeper one.
func (w *crashWriter) wrapper() (open, end string) {
	switch w.IntN(8) {
	case 0:
		return pick(w, "!", "- ", "~", "NOT ", "BINARY ", "(SELECT 1 IN (SELECT 2)) + "), ""
	case 1:
		return pick(w, "(", "(SELECT ", "EXISTS(SELECT ", "1 IN (SELECT ", "1 = ANY (SELECT ", "(1,1) = (1,",
			"(SELECT MAX(id) FROM zoo WHERE id = ", "(SELECT id FROM (SELECT 1 AS id) d WHERE id IN (SELECT 1) OR ",
			"(SELECT COUNT(*) FROM zoo z1 WHERE z1.id > ", "(WITH c AS (SELECT 1 AS a) SELECT a FROM c WHERE a = ",
			"(SELECT SUM(1) OVER (ORDER BY 1) + ", "(SELECT 1 UNION SELECT ",
			"(SELECT JSON_ARRAYAGG(1) FROM zoo HAVING 1 = "), ")"
	case 2:
		return "", pick(w, " + 1", " AND 1", " OR 0", " DIV 1", " XOR 1", " = 1", " LIKE 'a'", " IS NULL", " COLLATE utf8mb4_bin",
			" <=> NULL", " BETWEEN 0 AND 1", " - INTERVAL 1 DAY", " IN (1)", " REGEXP 'a'", " % 3", " NOT IN (1,NULL)")
	case 3:
		return pick(w, "CASE WHEN ", "CASE 1 WHEN "), " THEN 1 END"
	case 4:
		return pick(w, "CASE 1 WHEN 1 THEN ", "CASE WHEN NULL THEN 2 ELSE "), " END"
	}
	name := w.names[w.IntN(len(w.names))]
	if w.IntN(3) == 0 {
		name = pick(w, "JSON_SEARCH", "ADDTIME", "SUBTIME", "MAKETIME", "JSON_EXTRACT", "REGEXP_REPLACE", "UNIX_TIMESTAMP", "STR_TO_DATE",
			"JSON_CONTAINS_PATH", "FORMAT")
	}
	arity := pick(w, w.arities[name]...)
	if arity == 0 {
		return "(", ")"
	}
	at := w.IntN(arity)
	open, end = name+"(", ")"
	for i := range arity {
		if i < at {
			open += w.short() + ","
		} else if i > at {
			end = "," + w.short() + end
		}
	}
	return open, end
}

// nestable are what else can stand in itself, at the three dots.
var nestable = []string{
	"(...)", "!...", "- ...", "~...", "NOT ...", "BINARY ...", "(SELECT ...)", "EXISTS(SELECT ...)", "1 IN (SELECT ...)", "1 IN (1, ...)",
	"(1, ...) = (1, 1)", "1 + (...)", "1 AND (...)",
	"1 OR (...)", "CASE 1 WHEN 1 THEN ... END", "CASE WHEN ... THEN 1 END", "CASE ... WHEN 1 THEN 1 END",
	"CASE WHEN 0 THEN 1 ELSE ... END", "... + 1", "... AND 1", "... || 1", "... XOR 1", "... = 1",
	"... IS NULL", "... COLLATE utf8mb4_bin", "... - INTERVAL 1 DAY", "... UNION SELECT 1", "... LIKE 'a'", "... BETWEEN 0 AND 1",
	"... IN (1)", "... IN (1, 2)", "... DIV 1", "... & 1", "1 BETWEEN 0 AND (...)",
	"1 BETWEEN (...) AND 1", "COUNT(*) + (...)", "(SELECT 1 FROM brand WHERE ...)", "(SELECT * FROM (SELECT ...) x)", "CAST(... AS CHAR)",
	"CONVERT(... USING utf8mb4)", "DATE_ADD(..., INTERVAL 1 DAY)",
	"TRIM(LEADING 'x' FROM ...)", "EXTRACT(YEAR FROM ...)", "(SELECT 1 UNION SELECT ...)", "1 = ANY (SELECT ...)", "1 > ALL (SELECT ...)",
	"'a' LIKE (...)", "'a' REGEXP (...)", "((...) + 1)", "... <=> NULL",
	"... NOT IN (1, NULL)", "(... , 1) IN ((1, 1), (2, 2))", "(..., 1) < (2, 2)", "POSITION('a' IN ...)",
	"(WITH c AS (SELECT ... AS a) SELECT a FROM c)", "(SELECT MAX(id) FROM zoo WHERE id < ...)",
	"(SELECT COUNT(*) OVER () + ...)", "(SELECT id FROM zoo WHERE id IN (SELECT ...) LIMIT 1)", "WEIGHT_STRING(... AS CHAR(9))",
	"... MOD 3", "... ^ 3", "... REGEXP 'a'",
}

// tokensOf are the cases of the corpora as lists of tokens.
func tokensOf(cases []sample) [][]string {
	var list [][]string
	for _, c := range cases {
		pieces, err := sqlguard.Tokens(c.sql)
		if err != nil || len(pieces) > 300 {
			continue
		}
		var toks []string
		for i := 1; i < len(pieces); i += 2 {
			toks = append(toks, pieces[i])
		}
		if len(toks) > 0 {
			list = append(list, toks)
		}
	}
	return list
}

// describe names a statement for a report.
func describe(seed, n uint64, text string) string {
	return fmt.Sprintf("statement %d of seed %d: %s", n, seed, strconv.Quote(text))
}
