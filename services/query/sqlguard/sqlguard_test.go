package sqlguard_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/query/sqlguard"
)

// guard is what the service has, with one stored function named.
var guard = func() *sqlguard.Guard {
	g, err := sqlguard.New(sqlguard.Options{Functions: []string{"f_named", "shop.f_named"}, MaxResultBytes: 16 << 20})
	if err != nil {
		panic(err)
	}
	return g
}()

// sample is one line of a case table.
type sample struct {
	id     string
	accept bool
	tags   string // the dialects it is legal or dangerous in: "both", "mariadb10.6", ...
	rule   string // that a reject of cases-more.tsv breaks
	harms  bool   // without the guard it brings the server down, or never ends
	sql    string
}

var whyRE = regexp.MustCompile(`^\[([^]]*)\] (?:(sql\.\w+): )?`)

var harmRE = regexp.MustCompile(`crashes (MariaDB )?10\.|outlives KILL|takes? all memory`)

// samples reads the case tables: cases-memory.tsv is what makes a server take memory, and what does not although it
// looks alike; cases-sql.tsv is the corpus that the guard was made for; cases-more.tsv, with what crashed a server, and
// cases-ordinary.tsv, what agents write, are this package's own.
func samples(t testing.TB) []sample {
	t.Helper()
	var all []sample
	for _, file := range []string{"testdata/cases-sql.tsv", "testdata/cases-more.tsv", "testdata/cases-ordinary.tsv",
		"testdata/cases-memory.tsv"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			cells := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
			if cells[0] == "id" {
				continue
			}
			why := whyRE.FindStringSubmatch(cells[2])
			if len(cells) != 4 || why == nil {
				t.Fatalf("%s: bad line %q", file, line)
			}
			s := sample{id: cells[0], accept: cells[1] == "accept", tags: why[1], rule: why[2], harms: harmRE.MatchString(cells[2]), sql: cells[3]}
			if text, ok := strings.CutPrefix(s.sql, "json:"); ok {
				if err := json.Unmarshal([]byte(text), &s.sql); err != nil {
					t.Fatalf("%s: %v", s.id, err)
				}
			}
			if text, ok := strings.CutPrefix(s.sql, "nest:"); ok {
				s.sql = "SELECT " + nest(t, text)
			}
			all = append(all, s)
		}
	}
	return all
}

// nest reads times:open...end, which stands for a 1 with open and end around it so many times.
func nest(t testing.TB, text string) string {
	times, form, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(times)
	if err != nil {
		t.Fatalf("nest:%s: %v", text, err)
	}
	open, end, _ := strings.Cut(form, "...")
	return strings.Repeat(open, n) + "1" + strings.Repeat(end, n)
}

// rules names the rule that cases of cases-sql.tsv break, where the
// family matters to the agent that repairs its statement.
var rules = map[string]string{
	"P003": "sql.semicolon", "P005": "sql.assignment", "P006": "sql.function", "P009": "sql.explain", "P010": "sql.explain",
	"P014": "sql.show", "P015": "sql.hint", "P017": "sql.hint", "P018": "sql.placeholder", "P020": "sql.head",
	"P021": "sql.function", "P023": "sql.head", "P024": "sql.comment", "P027": "sql.comment",
	"R001": "sql.semicolon", "R018": "sql.dollar", "R019": "sql.head", "R020": "sql.backslash", "R021": "sql.head",
	"R028": "sql.head", "R036": "sql.head", "R045": "sql.into", "R051": "sql.into", "R058": "sql.function",
	"R064": "sql.lock", "R067": "sql.lock", "R069": "sql.lock", "R071": "sql.function", "R080": "sql.comment",
	"R083": "sql.comment", "R152": "sql.explain", "R154": "sql.explain", "R156": "sql.sequence", "R157": "sql.function",
	"R159": "sql.function", "R175": "sql.write", "R178": "sql.into", "R180": "sql.empty", "R184": "sql.unterminated",
	"R187": "sql.control", "R188": "sql.semicolon", "R189": "sql.parentheses", "R190": "sql.parentheses", "R193": "sql.head",
	"R194": "sql.head",
	"R196": "sql.encoding", "R197": "sql.length",
}

func TestParseCases(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.id, func(t *testing.T) {
			st, err := guard.Parse(s.sql)
			if s.accept {
				if err != nil {
					t.Fatalf("refused %.200q: %v", s.sql, err)
				}
				if st.Text() != s.sql {
					t.Errorf("Text() = %.200q, want the text as given", st.Text())
				}
				return
			}
			var r *sqlguard.Refusal
			if !errors.As(err, &r) {
				t.Fatalf("accepted %.200q (error %v)", s.sql, err)
			}
			if want := s.rule + rules[s.id]; want != "" && r.Rule != want {
				t.Errorf("%.200q: rule %s, want %s (%s)", s.sql, r.Rule, want, r.Message)
			}
			if st != (sqlguard.Statement{}) {
				t.Errorf("a refused text came with the statement %+v", st)
			}
			if r.Message == "" || len(r.Message) > 250 || strings.Contains(r.Message, "%!") {
				t.Errorf("bad message %q", r.Message)
			}
		})
	}
}

func TestParseKind(t *testing.T) {
	for text, want := range map[string]sqlguard.Kind{
		"select 1":                      sqlguard.Select,
		"((SELECT 1))":                  sqlguard.Select,
		"WITH x AS (SELECT 1) SELECT 1": sqlguard.Select,
		"/* a */ show tables":           sqlguard.Show,
		"EXPLAIN SELECT 1":              sqlguard.Explain,
		"desc partner":                  sqlguard.Explain,
		"Describe partner id":           sqlguard.Explain,
	} {
		if s := mustParse(t, text); s.Kind() != want {
			t.Errorf("Kind of %q is %v, want %v", text, s.Kind(), want)
		}
	}
}

func TestParseInvalidUTF8(t *testing.T) {
	for _, text := range []string{"SELECT '\xff'", "SELECT \xc0\xa7", "SELECT '\xe2\x28\xa1'", "SELECT '\xed\xa0\x80'", "\xbf"} {
		var r *sqlguard.Refusal
		if _, err := guard.Parse(text); !errors.As(err, &r) || r.Rule != "sql.encoding" {
			t.Errorf("Parse(%q): %v, want sql.encoding", text, err)
		}
	}
}

// A message must not grow with the text.
func TestRefusalIsShort(t *testing.T) {
	long := strings.Repeat("x", 7000)
	for _, text := range []string{long, "SELECT $" + long + "$", "SELECT " + long + "_POS_WAIT(1)", "SELECT spider_" + long + "(1)",
		"SELECT é" + long + "(1)"} {
		if _, err := guard.Parse(text); err == nil || len(err.Error()) > 250 {
			t.Errorf("Parse(%.20q...): %.300v", text, err)
		}
	}
}

func TestCapped(t *testing.T) {
	long := "SELECT '" + strings.Repeat("x", 8000-9) + "'"
	for _, c := range []struct{ text, want string }{
		{"SELECT 1", "SELECT 1\nLIMIT 3"},
		{"SELECT 1 -- x", "SELECT 1 -- x\nLIMIT 3"},
		{"SELECT 1 #x", "SELECT 1 #x\nLIMIT 3"},
		{"SELECT 1 --", "SELECT 1 --\nLIMIT 3"},
		{"SELECT id FROM t LIMIT 2", "SELECT id FROM t LIMIT 2"},
		{"SELECT id FROM t LIMIT 3", "SELECT id FROM t LIMIT 3"},
		{"SELECT id FROM t LIMIT 4", "SELECT id FROM t LIMIT 3"},
		{"SELECT id FROM t LIMIT 0", "SELECT id FROM t LIMIT 0"},
		{"SELECT id FROM t LIMIT 0002", "SELECT id FROM t LIMIT 0002"},
		{"SELECT id FROM t LIMIT 0003", "SELECT id FROM t LIMIT 0003"},
		{"SELECT id FROM t LIMIT 18446744073709551615", "SELECT id FROM t LIMIT 3"},
		{"SELECT id FROM t LIMIT 9,4", "SELECT id FROM t LIMIT 9,3"},
		{"SELECT id FROM t LIMIT/*a*/9/*b*/,/*c*/4-- d", "SELECT id FROM t LIMIT/*a*/9/*b*/,/*c*/3-- d"},
		{"SELECT id FROM t limit 4 offset 99", "SELECT id FROM t limit 3 offset 99"},
		{"SELECT id FROM t LIMIT 9 ROWS EXAMINED 9", "SELECT id FROM t LIMIT 9 ROWS EXAMINED 9"},
		{"SELECT id FROM t LIMIT ROWS EXAMINED 9", "SELECT id FROM t LIMIT ROWS EXAMINED 9"},
		{"SELECT id FROM t LIMIT @x", "SELECT id FROM t LIMIT @x"},
		{"SELECT id FROM t LIMIT 1e9", "SELECT id FROM t LIMIT 1e9"},
		{"SELECT id FROM t LIMIT '9'", "SELECT id FROM t LIMIT '9'"},
		{"SELECT id FROM t LIMIT 0x9", "SELECT id FROM t LIMIT 0x9"},
		{"SELECT id FROM t LIMIT", "SELECT id FROM t LIMIT"},
		{"SELECT id FROM t FETCH FIRST 9 ROWS ONLY", "SELECT id FROM t FETCH FIRST 9 ROWS ONLY"},
		{"SELECT id FROM t OFFSET 9 ROWS", "SELECT id FROM t OFFSET 9 ROWS"},
		{"SELECT t.limit FROM t", "SELECT t.limit FROM t\nLIMIT 3"},
		{"SELECT `limit` FROM t", "SELECT `limit` FROM t\nLIMIT 3"},
		{"SELECT (SELECT 1 LIMIT 9)", "SELECT (SELECT 1 LIMIT 9)\nLIMIT 3"},
		{"SELECT 1 UNION (SELECT 2 LIMIT 9)", "SELECT 1 UNION (SELECT 2 LIMIT 9)\nLIMIT 3"},
		{"(SELECT 1 LIMIT 9) UNION SELECT 2", "(SELECT 1 LIMIT 9) UNION SELECT 2\nLIMIT 3"},
		{"(SELECT 1 LIMIT 9) UNION (SELECT 2)", "(SELECT 1 LIMIT 9) UNION (SELECT 2)\nLIMIT 3"},
		{"(SELECT 1) LIMIT 9", "(SELECT 1) LIMIT 3"},
		{"(SELECT 1)", "(SELECT 1\nLIMIT 3)"},
		{"(SELECT 1 LIMIT 9) -- x", "(SELECT 1 LIMIT 3) -- x"},
		{"(SELECT 1 LIMIT 9) --", "(SELECT 1 LIMIT 3) --"},
		{"((SELECT 1 -- x\n))", "((SELECT 1 -- x\n\nLIMIT 3))"},
		{"((SELECT 1) UNION (SELECT 2))", "((SELECT 1) UNION (SELECT 2)\nLIMIT 3)"},
		{"WITH x AS (SELECT 1 LIMIT 9) SELECT 1", "WITH x AS (SELECT 1 LIMIT 9) SELECT 1\nLIMIT 3"},
		{"WITH x AS (SELECT 1) (SELECT 1 LIMIT 9)", "WITH x AS (SELECT 1) (SELECT 1 LIMIT 3)"},
		{"(WITH x(a) AS (SELECT 1), y AS (SELECT 1) SELECT 1)", "(WITH x(a) AS (SELECT 1), y AS (SELECT 1) SELECT 1\nLIMIT 3)"},
		{"SHOW TABLES", "SHOW TABLES"},
		{"EXPLAIN SELECT 1", "EXPLAIN SELECT 1"},
		{"DESC t", "DESC t"},
		{long, long},
	} {
		if got, edited := mustParse(t, c.text).Capped(3); got != c.want || edited != (got != c.text) {
			t.Errorf("%.80q capped is %.80q, want %.80q", c.text, got, c.want)
		}
	}
	for n, want := range map[int]string{0: "SELECT 1\nLIMIT 0", -1: "SELECT 1\nLIMIT 0", 1 << 40: "SELECT 1\nLIMIT 1099511627776"} {
		if got, _ := mustParse(t, "SELECT 1").Capped(n); got != want {
			t.Errorf("capped to %d is %q, want %q", n, got, want)
		}
	}
}

// TestRewritten writes the tokens of a case anew, with other letter case, white
// space and comments, and expects the same verdict.
func TestRewritten(t *testing.T) {
	all := samples(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "case")
		pieces, err := sqlguard.Tokens(s.sql)
		if err != nil || len(s.sql) > 4000 {
			t.Skip("not a list of tokens, or too long to grow")
		}
		text := rewrite(t, pieces)
		if _, err := guard.Parse(text); (err == nil) != s.accept {
			t.Fatalf("%s as %q: error %v, want accept=%v", s.id, text, err, s.accept)
		}
	})
}

var (
	wordRE = regexp.MustCompile(`^[A-Za-z_]+$`)
	gaps   = []string{" ", "\n", "\t", "\r\n", "\v", "\f", "/**/", "/* ; INTO */", "-- it's\n", "--\n", "#)\n", " /* ' */ "}
)

// rewrite keeps a gap between words a gap, and none beside dots, @ and the
// prefix of a string, where it decides the meaning.
func rewrite(t *rapid.T, pieces []string) string {
	var b strings.Builder
	for i, piece := range pieces {
		if i%2 == 1 {
			if wordRE.MatchString(piece) {
				piece = rapid.SampledFrom([]string{piece, strings.ToLower(piece), strings.ToUpper(piece), piece[:1] +
					strings.ToLower(piece[1:])}).Draw(t, "case")
			}
			b.WriteString(piece)
			continue
		}
		before, after := "", ""
		if i > 0 {
			before = pieces[i-1]
		}
		if i+1 < len(pieces) {
			after = pieces[i+1]
		}
		stuck := before == "." || after == "." || before == "@" || before == "@@" || wordRE.MatchString(before) && strings.HasPrefix(after, "'")
		dashes := before == "-" && after == "-" // apart, lest the next gap makes them a comment
		if piece != "" || dashes || !stuck && rapid.Bool().Draw(t, "gap") {
			piece = strings.Join(rapid.SliceOfN(rapid.SampledFrom(gaps), 1, 3).Draw(t, "gaps"), "")
			if before == "/" || before == "-" {
				piece = " " + piece // not a comment's opener
			}
		}
		b.WriteString(piece)
	}
	return b.String()
}

func mustParse(t testing.TB, text string) sqlguard.Statement {
	t.Helper()
	s, err := guard.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%.200q): %v", text, err)
	}
	return s
}

// TestCharactersAreNamed: what looks like a blank, a quote or a parenthesis is named by its number and place, with what to write.
func TestCharactersAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1 AS 한, 2\u3000AS 글": "U+3000 at byte 18 is a letter of a name to servers: write a blank in its place",
		"SELECT COUNT（*) FROM t":     "U+FF08 (（) at byte 12 is a letter of a name to servers: write ( in its place",
		"SELECT ‘x’":                 "U+2018 (‘) at byte 7 is a letter of a name to servers: write ' in its place",
		"SELECT a\u200b FROM t":      "U+200B at byte 8 is a letter of a name to servers: leave it out; within",
		"SELECT\u31641 FROM t":       "U+3164 (\u3164) at byte 6 is a letter of a name to servers: write a blank in its place",
		"SELECT a ≠ 3":               "U+2260 (≠) at byte 9 is a letter of a name to servers: write <> in its place",
	} {
		if _, err := guard.Parse(text); err == nil || !strings.Contains(err.Error(), "sql.character: the character "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := guard.Parse("SELECT a AS 나이_10〜20대 FROM t"); err != nil {
		t.Errorf("a range: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.sql)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := guard.Parse(text)
		again, err2 := guard.Parse(text)
		if s != again || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("%q: %v %v, then %v %v", text, s, err, again, err2)
		}
	})
}

func FuzzCapped(f *testing.F) {
	for _, s := range samples(f) {
		if s.accept {
			f.Add(s.sql, len(s.sql)%5)
		}
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		s, err := guard.Parse(text)
		if err != nil {
			return
		}
		capped, _ := s.Capped(n)
		again, err := guard.Parse(capped)
		if err != nil {
			t.Fatalf("%q capped to %d is %q: %v", text, n, capped, err)
		}
		// What a SHOW gets is no cap: it is had twice.
		if twice, _ := again.Capped(n); again.Kind() != s.Kind() || twice != capped && s.Kind() == sqlguard.Select {
			t.Fatalf("%q capped to %d is %q, then %v %q", text, n, capped, again.Kind(), twice)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	const text = "SELECT p.id, p.name, COUNT(*) AS campaigns FROM partner p JOIN campaign c ON c.partner_id = p.id " +
		"WHERE c.status_code IN ('1206', '1208') AND c.start_at >= '2026-01-01' GROUP BY p.id, p.name ORDER BY campaigns DESC LIMIT 50"
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := guard.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWeightIsQuick: recursions in one another are estimated in no time.
func TestWeightIsQuick(t *testing.T) {
	text := "SELECT 1 AS x"
	for range 45 {
		text = "WITH RECURSIVE a AS (" + text + " UNION ALL SELECT x FROM a) SELECT x FROM a"
	}
	hubtest.Within(t, time.Second, "a statement of 45 recursions", func() { _, _ = guard.Parse(text) })
}

// TestHeavy: what may take much memory runs alone, and what people write otherwise does not wait for it.
func TestHeavy(t *testing.T) {
	for text, heavy := range map[string]bool{
		"SELECT JSON_ARRAYAGG(name) FROM partner":                                                                                        true,
		"SELECT id FROM campaign WHERE 1 = (SELECT JSON_LENGTH(JSON_OBJECTAGG(id, name)) FROM partner)":                                  true,
		"SELECT REPEAT('-', id) FROM campaign":                                                                                           true,
		"SELECT LENGTH(HEX(REPEAT('a', 9000000))) FROM campaign":                                                                         true,
		"WITH RECURSIVE r AS (SELECT JSON_ARRAY(1) x UNION ALL SELECT JSON_ARRAY(x, SPACE(9000)) FROM r) SELECT x FROM r":                true,
		"WITH RECURSIVE r AS (SELECT CAST('a' AS CHAR(99)) x UNION ALL SELECT CONCAT(x, 'b') FROM r LIMIT 9) SELECT CONCAT(x, x) FROM r": false,
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 31) SELECT n, LPAD(n, 2, '0') FROM r":                false,
		"SELECT p.*, GROUP_CONCAT(c.name), HEX(p.name) FROM partner p JOIN campaign c ON c.partner_id = p.id GROUP BY p.id":              false,
		"SELECT REPEAT('*', LEAST(id, 80)), JSON_OBJECT('a', name) FROM campaign":                                                        false,
		"SHOW TABLES": false,
	} {
		st, err := guard.Parse(text)
		if err != nil {
			t.Errorf("%v: %s", err, text)
		} else if st.Heavy() != heavy {
			t.Errorf("heavy is %v: %s", st.Heavy(), text)
		}
	}
}
