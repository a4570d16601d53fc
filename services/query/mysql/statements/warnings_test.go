package statements

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/tool"
	"hub.internal/services/query"
)

// heard is a RowWriter that keeps the warnings.
type heard struct {
	discarded
	warnings []tool.Warning
}

func (h *heard) Ended()                     {}
func (h *heard) Warned(list []tool.Warning) { h.warnings = append(h.warnings, list...) }

func (f *fixture) warnings(t testing.TB, text string) []tool.Warning {
	t.Helper()
	var h heard
	if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text}, &h); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return h.warnings
}

func TestTheServersWarningsAreTold(t *testing.T) {
	f := newMariaDBFixture(t, ReaderOptions{})
	f.exec(t, `INSERT INTO partner VALUES (1, 'a', NULL, 'KR', '2026-01-01'), (2, 'b', NULL, 'KR', '2026-01-01'), (3, '7', NULL, 'KR', `+
		`'2026-01-01')`)
	for text, want := range map[string]string{
		`SELECT name FROM partner WHERE created_at >= 'soon'`:                      "sql.date the text 'soon' is no date",
		`SELECT name FROM partner WHERE created_at >= '2026년 6월 1일'`:               "sql.date the text '2026년 6월 1일' is no date",
		`SELECT name FROM partner WHERE created_at >= '2026-06-01T00:00:00+09:00'`: "sql.date the zone of '2026-06-01T00:00:00+09",
		`SELECT name FROM partner WHERE name = 0`:                                  "sql.number the text 'a' was read as a number",
		`SELECT 1 / 0, 2 DIV 0`:                                                    "sql.division a division by 0",
		`SELECT STR_TO_DATE('x', '%d')`:                                            "sql.date the text 'x' is not of the format",
		`SELECT JSON_EXTRACT('{', '$.a')`:                                          "sql.json a text is no",
		`SELECT CAST('12x' AS SIGNED)`:                                             "sql.number the text '12x'",
		`SELECT TIMEDIFF(NOW(), '2026-01-01')`:                                     "sql.time the text '2026-01-01'",
		`SELECT TIME('2026-01-02')`:                                                "sql.time the text '2026-01-02'",
		`SELECT HOUR('2026-01-02')`:                                                "sql.time the text '2026-01-02'",
		`SELECT TIME('soon')`:                                                      "sql.time the text 'soon'",
		`SELECT ADDTIME('2026-01-02', '01:00:00')`:                                 "sql.time the text '2026-01-02'",
		`SELECT ADDTIME('01:00:00', 'x')`:                                          "sql.time the text 'x'",
		`SELECT ADDTIME(NOW(), '2026-01-02')`:                                      "sql.time the text '2026-01-02'",
		`SELECT TIME_TO_SEC('x')`:                                                  "sql.time the text 'x'",
		`SELECT HOUR(created_at) FROM partner WHERE created_at < '2026-13-45'`:     "sql.date the text '2026-13-45'",
		`SELECT TIMEDIFF(NOW(), '2000-01-01 00:00:00')`:                            "sql.time the time",
		`SELECT name FROM partner`:                                                 "",
		`EXPLAIN EXTENDED SELECT name FROM partner`:                                "", // a note
		`SHOW TABLES`:                      "",
		`SELECT name FROM partner LIMIT 0`: "",
	} {
		got := f.warnings(t, text)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].Rule+" "+got[0].Message, want)) {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	many := f.warnings(t, `SELECT 1/0, CAST('x' AS SIGNED), STR_TO_DATE('x', '%d'), JSON_EXTRACT('{', '$.a'), name + 0 FROM partner `+
		`WHERE created_at > 'x'`)
	if len(many) == 0 || len(many) > maxWarnings {
		t.Errorf("%d warnings: %v", len(many), many)
	}
	// A statement's warnings are its own.
	if got := f.warnings(t, `SELECT 1`); got != nil {
		t.Errorf("the next statement of the session has %v", got)
	}
}

// questions is how many statements the server has been sent by anybody.
func (f *fixture) questions(t testing.TB) (n int64) {
	t.Helper()
	var name string
	if err := f.admin.QueryRowContext(t.Context(), `SHOW GLOBAL STATUS LIKE 'Questions'`).Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWarningsCostOneRoundTripAtMost counts statements at the server: none more without warnings, SHOW WARNINGS with them. The
// names of columns are read once a minute.
func TestWarningsCostOneRoundTripAtMost(t *testing.T) {
	f := newMariaDBFixture(t, ReaderOptions{Sessions: 1})
	f.exec(t, `INSERT INTO partner VALUES (1, 'a', NULL, 'KR', '2026-01-01')`)
	cost := func(st query.Statement) int64 {
		const runs = 50
		for i := range 3 { // the session, the names, and what follows them
			if err := f.reader.ReadStatement(t.Context(), st, &heard{}); err != nil {
				t.Fatal(i, err)
			}
		}
		least := int64(1 << 62)
		for range 3 { // the server is others' too: the least is the statement's own
			before := f.questions(t)
			for range runs {
				if err := f.reader.ReadStatement(t.Context(), st, &heard{}); err != nil {
					t.Fatal(err)
				}
			}
			least = min(least, f.questions(t)-before-1)
		}
		return least / runs
	}
	plain := cost(query.Statement{Text: `SELECT name FROM partner WHERE created_at >= '2026-01-01'`})
	if plain != 2 { // the statement, and the end of its transaction
		t.Errorf("a statement without warnings takes %d, want 2", plain)
	}
	for _, st := range []query.Statement{
		{Text: `SELECT name FROM partner WHERE created_at >= 'soon'`},
		{Text: `SELECT "name" FROM partner WHERE created_at >= 'soon'`, Quoted: []string{"name"}},
	} {
		if got := cost(st); got != plain+1 {
			t.Errorf("%s takes %d, want %d", st.Text, got, plain+1)
		}
	}
	if got := cost(query.Statement{Text: `SELECT "name" FROM partner`, Quoted: []string{"name"}}); got != plain {
		t.Errorf("a text in double quotes takes %d, want %d", got, plain)
	}
}

// BenchmarkWarnings tells what warnings cost: the same statement without and with them, alternating.
func BenchmarkWarnings(b *testing.B) {
	f := newFixture(b, ReaderOptions{})
	f.exec(b, `INSERT INTO partner VALUES (1, 'a', NULL, 'KR', '2026-01-01')`)
	var with, without []time.Duration
	for b.Loop() {
		for _, v := range []struct {
			value string
			into  *[]time.Duration
		}{{"2020-01-01", &without}, {"soon", &with}} {
			start := time.Now()
			text := fmt.Sprintf("SELECT name FROM partner WHERE created_at >= '%s'", v.value)
			if err := f.reader.ReadStatement(b.Context(), query.Statement{Text: text}, &heard{}); err != nil {
				b.Fatal(err)
			}
			*v.into = append(*v.into, time.Since(start))
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	b.ReportMetric(float64(without[len(without)/2].Microseconds()), "without-µs")
	b.ReportMetric(float64(with[len(with)/2].Microseconds()), "with-µs")
	b.ReportMetric(0, "ns/op")
}
