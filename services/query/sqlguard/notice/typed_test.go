package notice_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/query/sqlguard"
	"hub.internal/services/query/sqlguard/list"
	"hub.internal/services/query/sqlguard/notice"
)

var (
	tableRE  = regexp.MustCompile(`^CREATE TABLE (\w+)`)
	columnRE = regexp.MustCompile(`^  ([a-z_]+) +([A-Z]+)(.*)`)
	keyRE    = regexp.MustCompile(`PRIMARY KEY \(([^)]*)\)`)
)

// marketplace is the catalog of the marketplace's schema, as a server would tell it.
func marketplace(t testing.TB) *notice.Catalog {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "source", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	c := &notice.Catalog{Tables: map[string]map[string]notice.Column{}}
	table := ""
	for line := range strings.Lines(string(text)) {
		if m := tableRE.FindStringSubmatch(line); m != nil {
			table = strings.ToUpper(m[1])
			c.Tables[table] = map[string]notice.Column{}
		} else if m := columnRE.FindStringSubmatch(line); m != nil {
			c.Tables[table][strings.ToUpper(m[1])] = notice.Column{Type: strings.ToLower(m[2]), Nullable: !strings.Contains(m[3], "NOT NULL")}
		} else if m := keyRE.FindStringSubmatch(line); m != nil {
			for _, name := range strings.Split(strings.ToUpper(m[1]), ", ") {
				column := c.Tables[table][name]
				column.Key = "PRI"
				c.Tables[table][name] = column
			}
		}
	}
	if c.Tables["CAMPAIGN"]["START_AT"].Type != "datetime" || c.Tables["CATEGORY_NAME"]["LANGUAGE"].Key != "PRI" || len(c.Tables) != 10 {
		t.Fatalf("the schema is not understood: %v", c.Tables)
	}
	return c
}

// TestCatalogNotices: what runs and answers something else than it seems to ask for is told where the types of columns show it, and
// what is written beside it is not.
func TestCatalogNotices(t *testing.T) {
	t.Parallel()
	catalog := marketplace(t)
	text, err := os.ReadFile(filepath.Join("testdata", "misleading.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range list.Lines(string(text)) {
		want, text, _ := strings.Cut(line, "\t")
		got := ""
		for _, n := range catalog.Notices(text) {
			if got += n.Rule; len(n.Message) > 300 || strings.Contains(n.Message, "%!") || strings.HasPrefix(n.Message, " ") {
				t.Errorf("%s: %q", text, n.Message)
			}
		}
		if cmp.Or(got, "-") != want {
			t.Errorf("%s: %v, want %q", text, catalog.Notices(text), want)
		}
	}
	catalog.Zones = true
	if told := catalog.Notices(`SELECT CONVERT_TZ(created_at, 'UTC', 'Asia/Seoul') FROM campaign`); len(told) > 0 {
		t.Errorf("where zones are known: %v", told)
	}
}

// TestDaysAsBounds: what is proposed in place of a day without a time answers what was asked, behind NOT as well.
func TestDaysAsBounds(t *testing.T) {
	t.Parallel()
	catalog := marketplace(t)
	for condition, want := range map[string]string{
		`start_at BETWEEN '2026-04-01' AND '2026-04-30'`:        "the rest of the day is left out: write start_at < '2026-05-01'",
		`start_at NOT BETWEEN '2026-04-01' AND '2026-04-30'`:    "stay: write (start_at < '2026-04-01' OR start_at >= '2026-05-01')",
		`c.start_at NOT BETWEEN NOW() AND DATE '2026-04-30'`:    "stay: write (c.start_at < NOW() OR c.start_at >= '2026-05-01')",
		`start_at NOT IN ('2026-04-30')`:                        "write (start_at < '2026-04-30' OR start_at >= '2026-05-01')",
		`start_at NOT IN ('2026-04-30', '2026-05-02')`:          "stay: write DATE(start_at) NOT IN (…)",
		`start_at IN ('2026-04-30')`:                            "write start_at >= '2026-04-30' AND start_at < '2026-05-01'",
		`start_at NOT BETWEEN '2026-04-01' AND LAST_DAY(NOW())`: "",
		`NOT start_at BETWEEN '2026-04-01' AND '2026-04-30'`:    "",
		`NOT (start_at <= '2026-04-30')`:                        "",
		`NOT (offer_count > 3 AND (start_at <= '2026-04-30'))`:  "",
	} {
		got := ""
		for _, n := range catalog.Notices("SELECT 1 FROM campaign c WHERE " + condition) {
			got += n.Rule + " " + n.Message
		}
		if want == "" && got != "" || want != "" && (!strings.HasPrefix(got, "sql.date_only ") || !strings.HasSuffix(got, want)) {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
}

// TestNamedZones: an offset is proposed for the very zone that has one, in the place where its name stands.
func TestNamedZones(t *testing.T) {
	t.Parallel()
	catalog := marketplace(t)
	const begins = "CONVERT_TZ answers NULL for "
	for zones, want := range map[string]string{
		`'Asia/Seoul', 'UTC'`:         "'Asia/Seoul'; write '+09:00' for 'Asia/Seoul', '+00:00' for 'UTC'",
		`'UTC', 'asia/seoul'`:         "'UTC'; write '+00:00' for 'UTC', '+09:00' for 'asia/seoul'",
		`'+00:00', "Asia/Tokyo"`:      `"Asia/Tokyo"; write '+09:00' for "Asia/Tokyo"`,
		`'+00:00', 'Etc/GMT-9'`:       "'Etc/GMT-9'; write its offset, such as '+09:00', for 'Etc/GMT-9'",
		`'America/New_York', 'GMT'`:   "'America/New_York'; write its offset, such as '+09:00', for 'America/New_York', '+00:00' for 'GMT'",
		`'+09:00', '+00:00'`:          "",
		`'SYSTEM', CONCAT('U', 'TC')`: "",
	} {
		got := ""
		for _, n := range catalog.Notices("SELECT CONVERT_TZ('2026-01-31 00:00:00', " + zones + ")") {
			got += strings.Replace(strings.TrimPrefix(n.Message, begins), ", since this server knows no zones by name: ", "; ", 1)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", zones, got, want)
		}
	}
}

// right are statements that answer what was asked, one a line.
func right(t testing.TB) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "right.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			list = append(list, line)
		}
	}
	return list
}

// TestRightStatementsAreSilent: three hundred questions of marketing, as a good analyst writes them, have no warning.
func TestRightStatementsAreSilent(t *testing.T) {
	t.Parallel()
	catalog, guard := marketplace(t), sqlguard.Default(0)
	all := right(t)
	if len(all) < 300 {
		t.Errorf("there are %d", len(all))
	}
	for _, text := range all {
		s, err := guard.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		notices, quoted := s.Noticed()
		if notices = append(notices, catalog.Notices(text)...); len(notices)+len(quoted) > 0 {
			t.Errorf("%s: %v %v", text, notices, quoted)
		}
	}
}

// TestCorpusIsSilent: nor have the accepted statements of the guard's corpora.
func TestCorpusIsSilent(t *testing.T) {
	t.Parallel()
	catalog := marketplace(t)
	files, err := filepath.Glob(filepath.Join("..", "testdata", "cases-*.tsv"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			cells := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
			if len(cells) != 4 || cells[1] != "accept" {
				continue
			}
			if told := catalog.Notices(cells[3]); len(told) > 0 {
				t.Errorf("%s: %v\n%s", cells[0], told, cells[3])
			}
		}
	}
}

func TestCompared(t *testing.T) {
	t.Parallel()
	catalog := marketplace(t)
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		`campaign c WHERE c.status_code = 'closed'`:                                "campaign.status_code closed",
		`campaign WHERE status_code IN ('CLOSED', 1209)`:                           "campaign.status_code CLOSED 1209",
		`review WHERE created_at >= '2026-07-01'`:                                  "review.created_at since 2026-07-01 00:00:00",
		`review WHERE created_at > '2026-07-01 10:00:00'`:                          "review.created_at since 2026-07-01 10:00:00",
		`review WHERE created_at BETWEEN '2026-07-01' AND '2026-07-02 10:00:00'`:   "review.created_at since 2026-07-01 00:00:00",
		`review WHERE created_at >= CURDATE() - INTERVAL 3 MONTH`:                  "review.created_at since 2026-08-23 00:00:00",
		`review WHERE created_at >= DATE_SUB(NOW(), INTERVAL 7 DAY) LIMIT 3`:       "review.created_at since 2026-11-16 10:00:00",
		`review WHERE created_at >= DATE('2026-03-31') - INTERVAL 1 MONTH`:         "review.created_at since 2026-02-28 00:00:00",
		`campaign c WHERE NOT c.status_code = 'x' OR NOT (status_code = 'y')`:      "",
		`review WHERE YEAR(created_at) = 2027`:                                     "review.created_at since 2027-01-01 00:00:00",
		`review WHERE created_at < '2026-07-01' AND rating <> 5`:                   "",
		`review WHERE created_at >= (SELECT MAX(created_at) FROM review)`:          "",
		`review WHERE created_at >= CURDATE() - INTERVAL 3 MONTH + INTERVAL 1 DAY`: "",
		`campaign WHERE status_code IN ('CLOSED', LEFT(name, 4))`:                  "",
	} {
		got := ""
		for _, c := range catalog.Compared("SELECT 1 FROM "+text, now) {
			got += c.Table + "." + c.Column
			if len(c.Texts) > 0 {
				got += " " + strings.Join(c.Texts, " ")
			}
			if !c.Since.IsZero() {
				got += " since " + c.Since.Format(time.DateTime)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestSince: from when on rows are looked for is read in each way to ask by Korean time, by day, month or year.
func TestSince(t *testing.T) {
	t.Parallel()
	catalog := marketplace(t)
	now := time.Date(2026, 11, 23, 16, 0, 0, 0, time.UTC)
	for condition, want := range map[string]string{
		`created_at + INTERVAL 9 HOUR >= '2026-10-01'`:                                                     "2026-09-30 15",
		`created_at - INTERVAL 9 HOUR >= '2026-10-01'`:                                                     "2026-10-01 09",
		`DATE_ADD(created_at, INTERVAL 9 HOUR) >= '2026-10-01'`:                                            "2026-09-30 15",
		`DATE_SUB(created_at, INTERVAL 1 HOUR) BETWEEN '2026-10-01' AND '2026-10-31 23:59:59'`:             "2026-10-01 01",
		`CONVERT_TZ(created_at, '+00:00', '+09:00') >= '2026-10-01' AND kind = 'x'`:                        "2026-09-30 15",
		`CONVERT_TZ(created_at, 'UTC', 'Asia/Seoul') >= '2026-10-01'`:                                      "2026-09-30 15",
		`CONVERT_TZ(created_at, 'UTC', 'America/New_York') >= '2026-10-01'`:                                "",
		`created_at >= '2026-10-01' - INTERVAL 9 HOUR`:                                                     "2026-09-30 15",
		`created_at >= DATE_SUB('2026-10-01 00:00:00', INTERVAL 9 HOUR)`:                                   "2026-09-30 15",
		`created_at >= CONVERT_TZ('2026-10-01 00:00:00', '+09:00', '+00:00')`:                              "2026-09-30 15",
		`DATE(created_at) BETWEEN '2026-10-01' AND '2026-10-31'`:                                           "2026-10-01 00",
		`DATE(created_at) = CURDATE()`:                                                                     "2026-11-23 00",
		`DATE(created_at) > '2026-09-30'`:                                                                  "2026-10-01 00",
		`DATE(created_at) > '2026-09-30 12:00:00' AND created_at > '2026-09-30 12:00:00'`:                  "2026-10-01 002026-09-30 12",
		`DATE_FORMAT(created_at, '%Y-%m-%d %H') > '2026-09-30 10'`:                                         "2026-09-30 10",
		`DATE(created_at) IN ('2026-10-02', '2026-10-01')`:                                                 "2026-10-01 00",
		`DATE(created_at) IN ('2026-10-02', DATE(created_at))`:                                             "",
		`DATE(created_at) = DATE(NOW())`:                                                                   "2026-11-23 00",
		`CAST(created_at AS DATE) = '2026-10-05'`:                                                          "2026-10-05 00",
		`DATE(created_at + INTERVAL 9 HOUR) = DATE(NOW() + INTERVAL 9 HOUR)`:                               "2026-11-23 15",
		`DATE(CONVERT_TZ(d.created_at, '+00:00', '+09:00')) = '2026-10-01'`:                                "2026-09-30 15",
		`DATE(created_at) <= '2026-10-01' OR NOT DATE(created_at) = '2026-10-01'`:                          "",
		`DATE(created_at) NOT BETWEEN '2026-10-01' AND '2026-10-31'`:                                       "",
		`DATE_FORMAT(created_at, '%Y-%m') = '2026-10'`:                                                     "2026-10-01 00",
		`DATE_FORMAT(created_at, '%Y-%m') > '2026-09'`:                                                     "2026-10-01 00",
		`DATE_FORMAT(created_at, '%Y-%m-%d') >= '2026-10-05'`:                                              "2026-10-05 00",
		`DATE_FORMAT(created_at + INTERVAL 9 HOUR, '%Y%m') IN ('202611', '202610')`:                        "2026-09-30 15",
		`DATE_FORMAT(created_at, '%Y-%m') = DATE_FORMAT(NOW() - INTERVAL 1 MONTH, '%Y-%m')`:                "2026-10-01 00",
		`DATE_FORMAT(created_at, '%Y') > '2025'`:                                                           "2026-01-01 00",
		`DATE_FORMAT(created_at, '%Y-%m') = '2026-10-01' OR DATE_FORMAT(created_at, '%Y-%d') >= '2026-10'`: "",
		`NOT (kind = 'SPEND' AND created_at >= '2026-10-01')`:                                              "",
		`NOT (kind = 'SPEND' AND YEAR(created_at) = 2026)`:                                                 "",
		`DATE(created_at) IN ('2026-10-01') = 0`:                                                           "",
		`YEAR(created_at) = 2026 AND 12 - MONTH(created_at) = 2`:                                           "2026-01-01 00",
		`DATE_FORMAT(created_at, '%Y-%m-01') = '2026-10-01'`:                                               "2026-10-01 00",
		`DATE_FORMAT(created_at, '%m') = '10' OR DATE_FORMAT(created_at, '%Y-%b') >= '2026-Oct'`:           "",
		`DATE_FORMAT(created_at, '%Y-%m') = 'October' OR DATE_FORMAT(created_at, '%Y-%m') = '2026-1'`:      "",
		`YEAR(created_at) = 2026 AND MONTH(created_at) = 10`:                                               "2026-10-01 00",
		`MONTH(created_at) = 10 AND YEAR(created_at) = '2026'`:                                             "2026-10-01 00",
		`YEAR(created_at) = 2026 AND d.kind IN ('SPEND', 'x') AND MONTH(created_at) BETWEEN 10 AND 12`:     "2026-10-01 00",
		`QUARTER(created_at + INTERVAL 9 HOUR) = 4 AND YEAR(created_at + INTERVAL 9 HOUR) = 2026`:          "2026-09-30 15",
		`YEAR(created_at) = 2026 AND MONTH(created_at) > 9`:                                                "2026-10-01 00",
		`YEAR(created_at) = 2026 AND MONTH(created_at) IN (11, 10)`:                                        "2026-10-01 00",
		`YEAR(created_at) = 2026 OR MONTH(created_at) = 10`:                                                "2026-01-01 00",
		`YEAR(created_at) = 2026 AND NOT MONTH(created_at) = 10`:                                           "2026-01-01 00",
		`YEAR(created_at) = 2026 AND (MONTH(created_at) = 10 OR kind = 'x')`:                               "2026-01-01 00",
		`YEAR(created_at) IN (2027, 2026)`:                                                                 "2026-01-01 00",
		`YEAR(created_at) > 2025 AND MONTH(created_at) < 4`:                                                "2026-01-01 00",
		`YEAR(created_at) = YEAR(NOW()) OR MONTH(created_at) = 10 OR NOT YEAR(created_at) = 2026`:          "",
		`created_at >= DATE_FORMAT(NOW(), '%Y-%m-01')`:                                                     "2026-11-01 00",
		`created_at >= DATE_FORMAT(CURDATE() - INTERVAL 1 MONTH, '%Y-%m-01 00:00:00')`:                     "2026-10-01 00",
		`created_at >= 20261001`:                                                                           "2026-10-01 00",
		`created_at >= CAST(NOW() AS DATE) AND created_at < '2027-01-01'`:                                  "2026-11-23 00",
		`created_at >= DATE_FORMAT(DATE_FORMAT(NOW(), '%Y'), '%Y-%m-01')`:                                  "",
		`created_at >= DATE_FORMAT(NOW(), '%Y-%c-01') OR created_at >= DATE(RAND())`:                       "",
	} {
		got := ""
		for _, c := range catalog.Compared("SELECT SUM(amount_liter) FROM deposit_transaction d WHERE "+condition, now) {
			if !c.Since.IsZero() {
				got += c.Since.Format("2006-01-02 15")
			}
			if c.Table != "deposit_transaction" || c.Column != "created_at" && c.Column != "kind" {
				t.Errorf("%s: %v", condition, c)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
}

// TestMonthsEndAsServersHaveThem: a month that is too short takes its last day.
func TestMonthsEndAsServersHaveThem(t *testing.T) {
	t.Parallel()
	catalog := marketplace(t)
	for now, want := range map[string]string{"2026-03-31": "2026-02-28", "2028-03-30": "2028-02-29", "2026-03-01": "2026-02-01"} {
		at, err := time.Parse(time.DateOnly, now)
		if err != nil {
			t.Fatal(err)
		}
		found := catalog.Compared("SELECT 1 FROM review WHERE created_at >= CURDATE() - INTERVAL 1 MONTH", at)
		if len(found) != 1 || found[0].Since.Format(time.DateOnly) != want {
			t.Errorf("a month before %s: %v, want %s", now, found, want)
		}
	}
}

// TestCatalogIsQuick: the longest statements are looked through in no time.
func TestCatalogIsQuick(t *testing.T) {
	catalog := marketplace(t)
	join := " FROM campaign c"
	for i := range 60 {
		join += " JOIN campaign_application a" + strconv.Itoa(i) + " ON 1"
	}
	for _, text := range []string{
		"SELECT " + strings.Repeat("SUM(c.offer_count), ", 250) + "1" + join,
		"SELECT " + strings.Repeat("(SELECT email FROM member WHERE email = (SELECT c.name)), ", 130) + "1 FROM campaign c",
		"SELECT 1 FROM campaign WHERE 1" + strings.Repeat(" AND YEAR(created_at) = 2026", 280),
		"SELECT 1 FROM campaign WHERE created_at >= " + strings.Repeat("DATE_FORMAT(CAST(", 24) + "NOW()" +
			strings.Repeat(" AS DATE), '%Y-%m-01')", 24),
		strings.Repeat("SELECT * FROM (", 49) + "SELECT " + strings.Repeat("start_at - 7, ", 400) + "1 FROM campaign" + strings.Repeat(") t", 49),
	} {
		hubtest.Within(t, time.Second, "a statement of "+strconv.Itoa(len(text)), func() {
			catalog.Notices(text)
			catalog.Compared(text, time.Unix(0, 0))
		})
	}
}

// BenchmarkCatalog looks through the right statements, one after another.
func BenchmarkCatalog(b *testing.B) {
	catalog, all := marketplace(b), right(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		catalog.Notices(all[i%len(all)])
	}
}

// FuzzCatalog: no text brings down who looks for what may be meant.
func FuzzCatalog(f *testing.F) {
	for _, text := range []string{`SELECT * FROM campaign c LEFT JOIN`, `SELECT a FROM (SELECT`, `SELECT SUM(`, `SELECT created_at BETWEEN 'a`,
		`SELECT created_at FROM campaign WHERE created_at >= DATE_SUB(NOW(), INTERVAL`, `SELECT 1 FROM a WHERE b NOT IN (SELECT`,
		`SELECT CONVERT_TZ(a,`, `SELECT MAX(created_at) - FROM campaign`, `WITH a AS (SELECT email FROM member) SELECT * FROM a`} {
		f.Add(text)
	}
	for _, text := range right(f) {
		f.Add(text)
	}
	catalog := marketplace(f)
	f.Fuzz(func(_ *testing.T, text string) {
		catalog.Notices(text)
		catalog.Compared(text, time.Unix(0, 0))
	})
}
