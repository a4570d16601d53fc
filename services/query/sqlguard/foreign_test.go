package sqlguard_test

import (
	"fmt"
	"strings"
	"testing"

	"hub.internal/services/query/sqlguard"
	"hub.internal/services/query/sqlguard/advice"
)

func TestNoticed(t *testing.T) {
	t.Parallel()
	guard := sqlguard.Default(0)
	for text, want := range map[string]string{
		`SELECT a || ' ' || b FROM t`:                                                      "sql.concat",
		`SELECT a || b FROM t`:                                                             "sql.concat",
		`SELECT t.a || t.b FROM t`:                                                         "sql.concat",
		`SELECT 1 FROM t WHERE a = 1 || b = 2`:                                             "",
		`SELECT 1 FROM t WHERE a = 'x' || b = 'y'`:                                         "",
		`SELECT 1 FROM t WHERE a IS NULL || b LIKE 'x'`:                                    "",
		`SELECT 1 FROM t WHERE a || NOT b`:                                                 "",
		`SELECT '||' FROM t -- a || b`:                                                     "",
		`SELECT 1 FROM t WHERE a = NULL`:                                                   "sql.null",
		`SELECT 1 FROM t WHERE a <> NULL`:                                                  "sql.null",
		`SELECT 1 FROM t WHERE a <=> NULL`:                                                 "",
		`SELECT 1 FROM t WHERE a IS NULL`:                                                  "",
		`SELECT 1 FROM a FULL JOIN b`:                                                      "sql.full_join",
		`SELECT 1 FROM a "full" JOIN b`:                                                    "",
		`SELECT "name" FROM t`:                                                             "[name]",
		`SELECT 1 FROM t WHERE "t.name" = 'x'`:                                             "[t.name]",
		`SELECT 1 FROM t ORDER BY "name"`:                                                  "[name]",
		`SELECT a AS "name", b "other", COUNT(*) "n" FROM t`:                               "",
		`SELECT 1 FROM t WHERE a = "two words" OR b = "1st"`:                               "",
		`SELECT 1 FROM t WHERE a = 'name'`:                                                 "",
		`SHOW TRIGGERS`:                                                                    "sql.hidden",
		`SHOW FULL TRIGGERS LIKE 'a'`:                                                      "sql.hidden",
		`SELECT * FROM information_schema.TRIGGERS`:                                        "sql.hidden",
		`SELECT * FROM information_schema.ROUTINES`:                                        "sql.schema",
		`SELECT * FROM INFORMATION_SCHEMA . parameters p WHERE p.SPECIFIC_SCHEMA <> 'sys'`: "",
		`SELECT 1 FROM t WHERE a IN ("KR", "JP")`:                                          "[KR JP]",
		`SELECT a || 'x', b = NULL FROM t WHERE c || 'y' = 'z'`:                            "sql.concat sql.null",
	} {
		s, err := guard.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		notices, quoted := s.Noticed()
		var got []string
		for _, n := range notices {
			got = append(got, n.Rule)
		}
		if len(quoted) > 0 {
			got = append(got, fmt.Sprint(quoted))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`SELECT a FROM t WHERE b ILIKE 'x'`:                    "ILIKE is",
		`SELECT TOP (5) a FROM t`:                              "TOP is",
		`SELECT a FROM t WHERE b IN (%s)`:                      "%s is a placeholder",
		`SELECT a FROM t WHERE b = %(name)s`:                   "%( is a placeholder",
		`SELECT a FROM t LIMIT %d`:                             "%d is a placeholder",
		`SELECT 7 % s FROM t`:                                  "",
		`SELECT a AT TIME ZONE 'UTC' FROM t`:                   "AT TIME ZONE",
		`SELECT NOW() - INTERVAL '7 days'`:                     "an interval is written without quotes",
		`SELECT NOW() - INTERVAL 7 DAYS`:                       "a unit of time is in the singular here: INTERVAL 7 DAY",
		`SELECT DISTINCT ON (a) b FROM t`:                      "DISTINCT ON",
		`SELECT a FROM t ORDER BY a NULLS FIRST`:               "NULLS FIRST",
		`SELECT a FROM t FULL OUTER JOIN u ON 1`:               "FULL JOIN",
		`SELECT EXTRACT(EPOCH FROM a) FROM t`:                  "EXTRACT(EPOCH",
		`SELECT [a] FROM t`:                                    "square brackets",
		`SELECT a FROM t WHERE b ~ 'x'`:                        "~ is no comparison",
		`SELECT a->'$.b' FROM t`:                               "->",
		`SELECT a FROM t WHERE b IS DISTINCT FROM c`:           "IS DISTINCT FROM",
		`SELECT a, FROM t`:                                     "there is a comma too many before FROM",
		`SELECT CAST(a AS TEXT) FROM t`:                        "CAST has no type TEXT here: write CHAR",
		`SELECT a AS text FROM t`:                              "",
		`SELECT DATE_ADD(a, 7) FROM t`:                         "DATE_ADD takes an interval",
		`SELECT DATE_ADD(a, INTERVAL 7 DAY) FROM t`:            "",
		`SELECT SUBSTRING_INDEX(a, ',') FROM t`:                "SUBSTRING_INDEX takes",
		`SELECT * FROM (SELECT 1) WHERE TRUE`:                  "a subquery behind FROM",
		`SELECT * FROM (SELECT 1) t`:                           "",
		`SELECT FROM t`:                                        "there is nothing between",
		`SELECT a FROM t QUALIFY n = 1`:                        "QUALIFY",
		`SELECT`:                                               "",
		`%`:                                                    "",
		`SELECT (`:                                             "",
		`INTERVAL`:                                             "",
		`SELECT a FROM t WHERE b = 'ILIKE ~ [x] AT TIME ZONE'`: "",
	} {
		if got := advice.Syntax(text, "mariadb"); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		`SELECT MEDIAN(a) OVER () FROM t`: "MEDIAN is MariaDB's", `SELECT a FROM t FETCH NEXT 1 ROWS ONLY`: "FETCH NEXT is not known here",
		`SELECT CAST(a AS INTEGER) FROM t`: "CAST has no type INTEGER here: write SIGNED", `SELECT a->'$.b' FROM t WERE 1`: "",
	} {
		if got := advice.Syntax(text, "mysql"); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s on MySQL: %q, want %q", text, got, want)
		}
	}
	if advice.Foreign("date_trunc") == "" || advice.Foreign("COUNT") != "" || advice.Usage("datediff") == "" {
		t.Error("functions of other databases are not known by any case")
	}
}

// FuzzAdvice: no text brings down who looks for what may be meant.
func FuzzAdvice(f *testing.F) {
	for _, text := range []string{`SELECT TOP`, `SELECT a FROM t WHERE b = %`, `INTERVAL '`, `DATE_ADD(`, `CAST(AS TEXT)`, `FROM (SELECT`,
		`a || `, `"`, `= NULL`} {
		f.Add(text)
	}
	guard := sqlguard.Default(0)
	f.Fuzz(func(_ *testing.T, text string) {
		advice.Syntax(text, "mysql")
		advice.Words(text)
		if s, err := guard.Parse(text); err == nil {
			s.Noticed()
		}
	})
}
