package statements

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// said is what a statement gets: an error's message, or its warnings, each as "rule message".
func (f *fixture) said(t *testing.T, text string) string {
	t.Helper()
	var h heard
	if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text, Written: text}, &h); err != nil {
		return fault.From(err).Message
	}
	var all []string
	for _, w := range h.warnings {
		all = append(all, w.Rule+" "+w.Message)
	}
	return strings.Join(all, "\n")
}

// TestWordsOfEachServer: what a server refuses, or warns of, is told in words for that server.
func TestWordsOfEachServer(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		f := newFixtureOn(t, on, ReaderOptions{MaxRows: 5000})
		f.exec(t, `INSERT INTO partner VALUES (1, 'a', NULL, 'KR', '2026-01-01 10:00:00'), (2, 'b', NULL, 'KR', '2026-01-01')`)
		dialect, err := f.source.Dialect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Servers repeat 80 characters of what is behind the place of an error.
		behind := " WHERE name = 'a' AND country_code = 'KR' AND created_at >= '2026-01-01' AND created_at < '2026-02-01'"
		korean := " name = '" + strings.Repeat("한", 100) + "'"
		// One that is empty has nothing to say.
		for _, c := range []struct{ text, mariaDB, mySQL string }{
			{"SELECT MD5('a'), SHA('a'), SHA1('a')", "", "write SHA2(x, 256)"},
			{"SELECT NVL(NULL, 1)", "", "write IFNULL(col, other)"},
			{"SELECT MEDIAN(partner_id) OVER () FROM partner", "", "MEDIAN is MariaDB's: number the rows"},
			{"SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY partner_id) OVER () FROM partner", "", "PERCENTILE_CONT is MariaDB's"},
			{"SELECT ANY_VALUE(name) FROM partner", "is MySQL's: write MAX(col)", ""},
			{"SELECT REGEXP_LIKE('a', 'b')", "write text REGEXP 'pattern'", ""},
			{"SELECT TO_CHAR(NOW(), 'YYYY')", "", "write DATE_FORMAT"},
			{"SELECT MAX (partner_id) FROM partner", "write MAX(", "write MAX("},
			{"SELECT NOW ()", "write NOW(", "write NOW("},
			{"SELECT COUNT (*) FROM partner", "write COUNT(", "write COUNT("},
			{"SELECT partner_id FROM partner QUALIFY ROW_NUMBER() OVER () = 1", "QUALIFY is not known here", "QUALIFY is not known here"},
			{"SELECT CAST(1 AS INT)", "", "CAST has no type INT here: write SIGNED"},
			{"SELECT CAST(1 AS VARCHAR(10))", "", "CAST has no type VARCHAR here: write CHAR"},
			{"SELECT CAST(1 AS VARCHAR)", "CAST has no type VARCHAR here: write CHAR", "CAST has no type VARCHAR here: write CHAR"},
			{"SELECT name FROM partner FETCH FIRST 1 ROWS ONLY", "", "FETCH FIRST is not known here: write LIMIT n"},
			{"SELECT name FROM partner LIMIT ALL", "LIMIT ALL is", "LIMIT ALL is"},
			{"SELECT 1 == 1", "== is not known here", "== is not known here"},
			{"SELECT 2 ** 3", "write POW(a, b)", "write POW(a, b)"},
			{"SELECT EXTRACT(DOW FROM NOW())", "EXTRACT has no DOW here", "EXTRACT has no DOW here"},
			{"SELECT 1 IN ()", "has a value at least", "has a value at least"},
			{"SELECT 1 AS rank FROM partner groups 7", "at that place, or before it", "at that place, or before it"},
			{"SELECT LAG(name, 1, 'none') OVER (ORDER BY name) FROM partner", "write COALESCE(LAG(col, 1) OVER (…), 0)", ""},
			{"SELECT partner_id, LEAD(partner_id, 1, 0) OVER (ORDER BY name) FROM partner", "write COALESCE(LEAD(col, 1) OVER", ""},
			{"SELECT LAG(name, 1) OVER (ORDER BY name) FRM partner", "at that place, or before it", "at that place, or before it"},
			{"SELECT COUNT(*) OVER (ORDER BY created_at RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND CURRENT ROW) FROM partner",
				"RANGE with an INTERVAL is not known here", ""},
			{"SELECT COUNT(*) OVER (ORDER BY created_at RANGE INTERVAL 7 DAY PRECEDING) FROM partner", "RANGE with an INTERVAL", ""},
			{"SELECT COUNT(*) OVER (ORDER BY created_at RANGE BETWEEN CURRENT ROW AND INTERVAL 7 DAY FOLLOWING) FROM partner",
				"RANGE with an INTERVAL", ""},
			{"SELECT p.name, x.n FROM partner p JOIN LATERAL (SELECT COUNT(*) AS n FROM brand b WHERE b.partner_id = p.partner_id) x ON TRUE",
				"LATERAL is not known here", ""},
			{"SELECT p.name, x.n FROM partner p, LATERAL (SELECT COUNT(*) AS n FROM brand b WHERE b.partner_id = p.partner_id) x",
				"LATERAL is not known here", ""},
			{"SELECT LAST_VALUE(name) IGNORE NULLS OVER (ORDER BY name) FROM partner",
				"IGNORE NULLS is not known here", "IGNORE NULLS is not known here"},
			{"SELECT LAG(name) RESPECT NULLS OVER (ORDER BY name) FROM partner", "RESPECT NULLS is not known here", ""},
			{"SELECT name AS `이름🧴` FROM partner", `"이름🧴" has a character that names, and columns of utf8mb3, cannot have`,
				"sql.character '이름...' has a character that names,"},
			{"SELECT name AS '이름🧴' FROM partner", "", `"이름..." has a character that names,`},
			{"SELECT 1 FROM `partner🧴`", `"partner🧴" has a character`, "there is no table"},
			{"SELECT _utf8mb4 x'ff41' FROM partner", "Invalid utf8mb4 character string: 'FF41'", "Invalid utf8mb4 character string: 'FF41'"},
			{"SELECT name FRM partner" + behind, `near "partner WHERE name = 'a' AND country_c`, `near "partner WHERE name = 'a' AND country_c`},
			{"SELECT name FROM partner p CROS" + behind, `near "CROS WHERE name = 'a' AND`, `near "CROS WHERE name = 'a' AND`},
			{"SELECT name FROM partner p WHERE AND name = '🧴🧴' + 1", `near "AND name = '🧴🧴' + 1"`, `near "AND name = '🧴🧴' + 1"`},
			{"SELECT name FROM partner WHERE AND" + korean, `near "AND name`, `near "AND name`},
			{"SELECT name FROM partner WHERE AND -" + korean, `near "AND - name`, `near "AND - name`},
			{"SELECT name FROM partner WHERE", "syntax error at its end", "syntax error at its end"},
			{"SELECT ...", `near "..."`, `near "..."`},
			{"SELECT name FROM partner WHERE created_at > '01/31/2026'", "sql.date the text '01/31/2026' is no date",
				"the text is no date: write '2026-01-31'"},
			{"SELECT name FROM partner WHERE created_at > '2026-01-01T09:00:00Z'", "sql.date the Z of", "sql.date the Z of"},
			{"SELECT UNHEX('zz')", "", "sql.hex the text 'zz' is not hexadecimal"},
			{"SELECT STR_TO_DATE('x', '%d')", "sql.date the text 'x' is not of the format", "sql.date the text 'x' is not of the format"},
			{"SELECT CAST(300 AS CHAR(2))", "sql.cut the value '300' was cut", "sql.cut the value '300' was cut"},
			{"SELECT SEC_TO_TIME(99999999)", "sql.time the time '99999999' was cut", "sql.time the time '99999999' was cut"},
			{"SELECT TIME('2136:00:00')", "sql.time the time '2136:00:00' was cut", "sql.time the time '2136:00:00' was cut"},
			{"SELECT BINARY name, !1, 1 && 1, JSON_MERGE('1', '2') FROM partner", "", ""},
			{"SELECT CAST('12x' AS SIGNED)", "sql.number the text '12x'", "sql.number the text '12x'"},
		} {
			want := c.mySQL
			if dialect == server.MariaDB {
				want = c.mariaDB
			}
			if got := f.said(t, c.text); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", c.text, got, want)
			}
		}
		f.exec(t, `CREATE TABLE many (i INT)`, `INSERT INTO many WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 40) `+
			`SELECT a.i FROM n a, n b`)
		kept := map[server.Dialect]string{server.MariaDB: "(64 such warnings or more)", server.MySQL: "(1024 such warnings or more)"}[dialect]
		hubtest.Eventually(t, "1600 warnings are counted", func() bool { // a busy machine reads them for longer than it may
			return strings.Contains(f.said(t, `SELECT 1 / (i - i) FROM many`), kept)
		})
		if got := f.said(t, `SELECT 1 / (i - i) FROM many LIMIT 50`); !strings.Contains(got, "(50 such warnings)") {
			t.Errorf("of 50 warnings it says %q", got)
		}
	})
}

// TestExplainHasNoLimitOfHubs: the plan is that of the statement, and the session has its limit again.
func TestExplainHasNoLimitOfHubs(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		f := newFixtureOn(t, on, ReaderOptions{Sessions: 2, MaxRows: 3})
		f.exec(t, `INSERT INTO partner VALUES (1, 'a', NULL, 'KR', '2026-01-01'), (2, 'b', NULL, 'KR', '2026-01-01'), `+
			`(3, 'b', NULL, 'KR', '2026-01-01'), (4, 'b', NULL, 'KR', '2026-01-01'), (5, 'b', NULL, 'KR', '2026-01-01')`)
		id := f.value(t, "SELECT CONNECTION_ID()")
		c := &collected{limit: 100}
		text := "EXPLAIN FORMAT=JSON SELECT name FROM partner"
		if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text, Explain: true}, c); err != nil {
			t.Fatal(err)
		}
		if plan := fmt.Sprint(c.rows); strings.Contains(strings.ToLower(plan), "limit") || !strings.Contains(plan, "partner") {
			t.Errorf("the plan is %s", plan)
		}
		if got := f.value(t, "SELECT CONNECTION_ID()"); got != id {
			t.Errorf("the session was %s and is %s", id, got)
		}
		if _, rows := f.read(t, "SELECT partner_id FROM partner ORDER BY 1"); rows != "[[1],[2],[3],[4]]" {
			t.Errorf("behind an EXPLAIN the session answers %s", rows)
		}
	})
}

// TestEveryServerStops: a statement ends at the server's limit, at a deadline of Hub's own with a KILL, and when its caller goes.
func TestEveryServerStops(t *testing.T) {
	const timeout = 300 * time.Millisecond
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		limited := newFixtureOn(t, on, ReaderOptions{Timeout: timeout})
		ours := newFixtureOn(t, on, ReaderOptions{Timeout: time.Hour})
		ours.value(t, "SELECT 1")
		left := newFixtureOn(t, on, ReaderOptions{})
		left.value(t, "SELECT 1")
		for name, text := range map[string]string{
			"sleep": "SELECT SLEEP(1000)",
			"cross join": "SELECT COUNT(*) FROM information_schema.collations a, information_schema.collations b, " +
				"information_schema.collations c",
			"many rows": "SELECT a.id FROM information_schema.collations a, information_schema.collations b, " +
				"information_schema.collations c LIMIT 1000000000000",
			"recursive CTE": "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE SLEEP(0.001) = 0) SELECT COUNT(*) FROM n",
		} {
			for _, c := range []struct {
				how   string
				f     *fixture
				after time.Duration // of the caller's patience
				want  fault.Code
			}{{"limit", limited, time.Hour, fault.DBTimeout}, {"deadline", ours, time.Hour, fault.DBTimeout}, {"caller", left, timeout, fault.DB}} {
				if c.how == "deadline" {
					c.f.reader.ordinary.timeout = timeout
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(c.after, cancel)
				start := time.Now()
				err := c.f.reader.ReadStatement(ctx, query.Statement{Text: text}, &collected{limit: -1})
				if took := time.Since(start); !fault.Is(err, c.want) || took < timeout || took > soon {
					t.Errorf("%s by its %s: %v after %s", name, c.how, err, took)
				}
				c.f.quiet(t)
				cancel()
			}
		}
	})
}
