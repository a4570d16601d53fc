package mysql_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/marketplace"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
)

// unrecorded is an audit log for tests of something else.
type unrecorded struct{}

func (unrecorded) Away(context.Context, query.ReadSQLIn) error { return nil }
func (unrecorded) Record(context.Context, query.SQLRecord) audit.Committed {
	return func(context.Context) error { return nil }
}

// asked is execute_read_sql on a source of the test's own.
type asked struct {
	*query.Service
	admin  *sql.DB
	source *mysql.Source
}

func newAsked(t testing.TB, adminDSN, readerDSN string) *asked {
	t.Helper()
	admin, err := sql.Open("mysql", adminDSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	source, err := mysql.Open(readerDSN, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	reader := statements.NewReader(source.Server, statements.ReaderOptions{})
	t.Cleanup(func() { reader.Close() })
	return &asked{query.New(query.Config{Source: source, Reader: reader, Audit: unrecorded{}}), admin, source}
}

func (a *asked) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := a.admin.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func (a *asked) warnings(t testing.TB, text string) []tool.Warning {
	t.Helper()
	out, err := a.ExecuteReadSQL(t.Context(), query.ReadSQLIn{SQL: text, Limit: 1000})
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return nil
	}
	defer out.Release()
	var answer struct{ Warnings []tool.Warning }
	if err := json.Unmarshal(out.JSON(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Warnings
}

// TestRightStatementsHaveNoWarning runs what a good analyst writes: the server has nothing to say of it either.
func TestRightStatementsHaveNoWarning(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "sqlguard", "notice", "testdata", "right.sql"))
	if err != nil {
		t.Fatal(err)
	}
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		adminDSN, readerDSN := hubtest.SourceDBOn(t, on)
		a := newAsked(t, adminDSN, readerDSN)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "--") {
				continue
			}
			if told := a.warnings(t, line); len(told) > 0 {
				t.Errorf("%s: %v", line, told)
			}
		}
	})
}

// TestNothingFoundIsExplained: an answer with nothing in it says which code or time there is none of, where that is so.
func TestNothingFoundIsExplained(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		adminDSN, readerDSN := hubtest.SourceDBOn(t, on)
		a := newAsked(t, adminDSN, readerDSN)
		a.exec(t, `INSERT INTO campaign VALUES (1, 1, 1, 'a', '1209', '2026-01-01', NULL, 1, 1, 1, '2026-01-01 10:00:00'), `+
			`(2, 1, 1, 'b', '1206', '2026-01-01', NULL, 1, 1, 1, '2026-02-01 10:00:00'), `+
			`(3, 1, 1, 'c', '1206', '2999-01-01', NULL, 1, 1, 1, '2999-01-01')`,
			`INSERT INTO deposit_transaction VALUES (1, 1, 'CHARGE', 5, 5, '2026-06-30 23:32:00')`)
		for text, want := range map[string]string{
			`SELECT name FROM campaign WHERE status_code = 'closed'`:                                        "closed is 1209",
			`SELECT COUNT(*) FROM campaign WHERE status_code IN ('CLOSED')`:                                 "1206 (accepting), 1209 (closed)",
			`SELECT SUM(amount_liter) FROM deposit_transaction WHERE kind = 'CHARGED'`:                      "did you mean CHARGE?",
			`SELECT SUM(amount_liter) FROM deposit_transaction WHERE created_at >= '2026-07-01'`:            "2026-06-30T23:32:00",
			`SELECT brand_id FROM deposit_transaction WHERE created_at >= '2026-07-01' GROUP BY brand_id`:   "2026-06-30T23:32:00",
			`SELECT COUNT(*) FROM campaign WHERE created_at BETWEEN '2026-03-01' AND '2026-03-31 23:59:59'`: "2026-02-01T10:00:00",
			`SELECT name FROM campaign WHERE status_code = '1206' AND campaign_id = 9`:                      "",
			`SELECT name FROM campaign WHERE status_code IN ('1206', 'x') AND campaign_id = 9`:              "",
			`SELECT COUNT(*) FROM campaign WHERE created_at >= '2026-01-15' AND campaign_id = 9`:            "",
			`SELECT name FROM campaign WHERE status_code <> 'closed' AND campaign_id = 9`:                   "",
			`SELECT COUNT(*) FROM campaign WHERE status_code = 'closed' OR campaign_id = 1`:                 "",
		} {
			told := a.warnings(t, text)
			if want == "" && len(told) > 0 || want != "" && (len(told) != 1 || !strings.Contains(told[0].Message, want)) {
				t.Errorf("%s: %v, want %q", text, told, want)
			}
		}
		for condition, is := range map[string]bool{
			`created_at + INTERVAL 9 HOUR >= '2026-10-01'`:                           true,
			`CONVERT_TZ(created_at, '+00:00', '+09:00') >= '2026-10-01'`:             true,
			`DATE(created_at) BETWEEN '2026-10-01' AND '2026-10-31'`:                 true,
			`DATE_FORMAT(created_at, '%Y-%m') = '2026-10'`:                           true,
			`YEAR(created_at) = 2026 AND MONTH(created_at) = 10`:                     true,
			`created_at >= DATE_FORMAT('2026-10-20', '%Y-%m-01')`:                    true,
			`DATE(created_at + INTERVAL 9 HOUR) = '2026-07-01' AND amount_liter > 9`: false, // the newest is of that day in Korea
		} {
			told := a.warnings(t, `SELECT SUM(amount_liter) FROM deposit_transaction WHERE `+condition)
			if len(told) > 1 || len(told) == 1 != is || is && !strings.Contains(told[0].Message, "is of 2026-06-30T23:32:00") {
				t.Errorf("%s: %v", condition, told)
			}
		}
	})
}

// TestCatalogIsReadOnceAMinute: what a statement's columns are costs no round trip a call.
func TestCatalogIsReadOnceAMinute(t *testing.T) {
	adminDSN, readerDSN := hubtest.SourceDB(t)
	a := newAsked(t, adminDSN, readerDSN)
	questions := func() (n int64) {
		var name string
		if err := a.admin.QueryRow(`SHOW GLOBAL STATUS LIKE 'Questions'`).Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const text, runs = `SELECT COUNT(*) FROM campaign WHERE created_at = '2026-06-15'`, 30
	a.exec(t, `INSERT INTO campaign VALUES (1, 1, 1, 'a', '1209', '2026-01-01', NULL, 1, 1, 1, '2026-06-15')`)
	for range 3 {
		if told := a.warnings(t, text); len(told) != 1 || told[0].Rule != "sql.date_only" {
			t.Fatal(told)
		}
	}
	least := int64(1 << 62)
	for range 3 { // the server is others' too: the least is the statement's own
		before := questions()
		for range runs {
			a.warnings(t, text)
		}
		least = min(least, questions()-before-1)
	}
	if least/runs != 2 { // the statement, and the end of its transaction
		t.Errorf("%d statements for %d calls", least, runs)
	}
}

func TestFreshestIsNotInTheFuture(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		adminDSN, readerDSN := hubtest.SourceDBOn(t, on)
		a := newAsked(t, adminDSN, readerDSN)
		a.exec(t, `INSERT INTO brand VALUES (1, 1, 'a', '', 1, 'KR', NULL, '2026-01-31 09:00:00'), `+
			`(2, 1, 'b', '', 1, 'KR', NULL, '2999-01-31 09:00:00')`)
		facts, err := a.source.Facts(t.Context(), "brand", marketplace.Shape{Key: "brand_id", Date: "created_at"})
		if want := "{created_at 2026-01-31T09:00:00 1}"; err != nil || facts.Freshest == nil || fmt.Sprint(*facts.Freshest) != want {
			t.Errorf("%v, %v, want %s", facts.Freshest, err, want)
		}
	})
}

// TestBrandsLike: blanks and forms of a company do not keep a brand from being found by any of its three names.
func TestBrandsLike(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		adminDSN, readerDSN := hubtest.SourceDBOn(t, on)
		a := newAsked(t, adminDSN, readerDSN)
		a.exec(t, `INSERT INTO partner VALUES (1, '㈜이음솜 코퍼레이션', NULL, 'KR', '2026-01-31'), (2, '라온 주식회사', NULL, 'KR', '2026-01-31')`,
			`INSERT INTO brand VALUES (1, 1, '라온담에센셜', '김 하늘', 1, 'KR', NULL, '2026-01-31'), (2, 2, '바다 나무', '', 1, 'KR', NULL, '2026-01-31'), `+
				`(3, 9, '100% Soap', '', 1, 'KR', NULL, '2026-01-31')`)
		for plain, want := range map[string][]string{"라온담": {"brand 1 (라온담에센셜, of ㈜이음솜 코퍼레이션)"},
			"이음솜코퍼레이션": {"brand 1 (라온담에센셜, of ㈜이음솜 코퍼레이션)"}, "김하늘": {"brand 1 (라온담에센셜, of ㈜이음솜 코퍼레이션)"},
			"라온": {"brand 1 (라온담에센셜, of ㈜이음솜 코퍼레이션)", "brand 2 (바다 나무, of 라온 주식회사)"}, "바다나무": {"brand 2 (바다 나무, of 라온 주식회사)"},
			"100%soap": {"brand 3 (100% Soap, of no partner)"}, "nothing": nil} {
			got, err := a.source.BrandsLike(t.Context(), plain)
			if slices.Sort(got); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v, want %q", plain, got, err, want)
			}
		}
	})
}
