package advice_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/query/sqlguard"
	"hub.internal/services/query/sqlguard/advice"
)

var (
	tableRE  = regexp.MustCompile(`^CREATE TABLE (\w+)`)
	columnRE = regexp.MustCompile(`^  ([a-z_]+) +([A-Z]+)(.*)`)
	keyRE    = regexp.MustCompile(`PRIMARY KEY \(([^)]*)\)`)
)

// marketplace is the catalog of the marketplace's schema, as a server would tell it.
func marketplace(t testing.TB) *advice.Catalog {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "source", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	c := &advice.Catalog{Tables: map[string]map[string]advice.Column{}}
	table := ""
	for line := range strings.Lines(string(text)) {
		if m := tableRE.FindStringSubmatch(line); m != nil {
			table = strings.ToUpper(m[1])
			c.Tables[table] = map[string]advice.Column{}
		} else if m := columnRE.FindStringSubmatch(line); m != nil {
			c.Tables[table][strings.ToUpper(m[1])] = advice.Column{Type: strings.ToLower(m[2]), Nullable: !strings.Contains(m[3], "NOT NULL")}
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
	for text, want := range map[string]string{
		`SELECT COUNT(*) FROM campaign WHERE created_at BETWEEN '2026-06-01' AND '2026-06-30'`:                                         "sql.date_only",
		`SELECT COUNT(*) FROM campaign c WHERE c.start_at <= '2026-06-30' AND c.offer_count > 1`:                                       "sql.date_only",
		`SELECT COUNT(*) FROM campaign WHERE '2026-06-30' >= start_at`:                                                                 "sql.date_only",
		`SELECT COUNT(*) FROM campaign WHERE created_at = '2026-06-15'`:                                                                "sql.date_only",
		`SELECT COUNT(*) FROM campaign WHERE created_at IN ('2026-06-15', '2026-06-16')`:                                               "sql.date_only",
		`SELECT COUNT(*) FROM campaign WHERE created_at > '2026-06-30'`:                                                                "sql.date_only",
		`SELECT SUM(created_at <= DATE '2026-06-30') FROM campaign`:                                                                    "sql.date_only",
		`SELECT COUNT(*) FROM campaign WHERE created_at = CURDATE()`:                                                                   "sql.date_only",
		`SELECT COUNT(*) FROM campaign WHERE created_at = CURRENT_DATE`:                                                                "sql.date_only",
		`SELECT 1 FROM campaign WHERE created_at BETWEEN '2026-06-01' AND LAST_DAY('2026-06-01')`:                                      "sql.date_only",
		`SELECT 1 FROM campaign WHERE created_at <= LAST_DAY('2026-06-01')`:                                                            "sql.date_only",
		`SELECT b.brand_id FROM brand b JOIN campaign c ON c.brand_id = b.brand_id AND c.start_at <= '2026-06-30'`:                     "sql.date_only",
		`SELECT 1 FROM brand b WHERE EXISTS (SELECT 1 FROM campaign c WHERE c.brand_id = b.brand_id AND b.created_at <= '2026-06-30')`: "sql.date_only",
		`SELECT COUNT(*) FROM campaign WHERE created_at >= '2026-06-01' AND created_at < '2026-07-01'`:                                 "",
		`SELECT COUNT(*) FROM campaign WHERE DATE(created_at) BETWEEN '2026-06-01' AND '2026-06-30'`:                                   "",
		`SELECT COUNT(*) FROM campaign WHERE DATE(created_at) = '2026-06-15' OR DATE(created_at) = CURDATE()`:                          "",
		`SELECT COUNT(*) FROM campaign WHERE created_at <= '2026-06-30' + INTERVAL 1 DAY`:                                              "",
		`SELECT COUNT(*) FROM campaign WHERE created_at + INTERVAL 9 HOUR >= '2026-06-30'`:                                             "",
		`SELECT COUNT(*) FROM campaign WHERE created_at BETWEEN '2026-06-01' AND '2026-06-30 23:59:59'`:                                "",
		`SELECT created_at FROM (SELECT DATE(created_at) AS created_at FROM campaign) d WHERE created_at = '2026-06-30'`:               "",
		`SELECT DATE(created_at) AS created_at, COUNT(*) FROM campaign GROUP BY 1 HAVING created_at <= '2026-06-30'`:                   "",
		`WITH campaign AS (SELECT DATE(NOW()) AS created_at) SELECT 1 FROM campaign WHERE created_at = '2026-06-30'`:                   "",
		`SELECT 1 FROM other WHERE created_at = '2026-06-30'`:                                                                          "",
		`SELECT AVG(end_at - start_at) FROM campaign`:                                                                                  "sql.date_number",
		`SELECT campaign_id FROM campaign WHERE end_at - start_at > 30`:                                                                "sql.date_number",
		`SELECT start_at + 7 FROM campaign`:                                                                                            "sql.date_number",
		`SELECT MAX(created_at) - MIN(created_at) FROM campaign`:                                                                       "sql.date_number",
		`SELECT NOW() - created_at FROM campaign`:                                                                                      "sql.date_number",
		`SELECT AVG(created_at) FROM campaign`:                                                                                         "sql.date_number",
		`SELECT SUM(c.end_at) FROM campaign c`:                                                                                         "sql.date_number",
		`SELECT created_at - LAG(created_at) OVER (ORDER BY created_at) FROM campaign`:                                                 "sql.date_number",
		`SELECT DATEDIFF(end_at, start_at), start_at - INTERVAL 7 DAY, YEAR(start_at) - 1, start_at + 0 FROM campaign`:                 "",
		`SELECT UNIX_TIMESTAMP(end_at) - UNIX_TIMESTAMP(start_at), apply_count - offer_count FROM campaign`:                            "",
		`SELECT 1 FROM partner WHERE business_no NOT IN (SELECT business_no FROM partner)`:                                             "sql.null",
		`SELECT 1 FROM partner WHERE business_no NOT IN (SELECT p.business_no FROM partner p WHERE p.country_code = 'KR')`:             "sql.null",
		`SELECT 1 FROM partner WHERE business_no NOT IN (SELECT business_no FROM partner WHERE business_no IS NOT NULL)`:               "",
		`SELECT 1 FROM brand WHERE brand_id NOT IN (SELECT brand_id FROM campaign)`:                                                    "",
		`SELECT 1 FROM partner WHERE business_no IN (SELECT business_no FROM partner)`:                                                 "",
		`SELECT 1 FROM campaign WHERE brand_id IN (SELECT brand_id FROM partner)`:                                                      "sql.correlated",
		`SELECT 1 FROM campaign WHERE brand_id IN (SELECT brand_id FROM brand)`:                                                        "",
		`SELECT 1 FROM campaign WHERE brand_id IN (SELECT x FROM (SELECT brand_id AS x FROM brand) t)`:                                 "",
		`SELECT CONVERT_TZ(created_at, 'UTC', 'Asia/Seoul') FROM campaign`:                                                             "sql.named_zone",
		`SELECT CONVERT_TZ(created_at, '+00:00', '+09:00'), CONVERT_TZ(created_at, 'SYSTEM', '+09:00') FROM campaign`:                  "",
		`SELECT SUM(balance_liter) FROM deposit_transaction`:                                                                           "sql.balance",
		`SELECT brand_id, SUM(d.balance_liter) FROM deposit_transaction d GROUP BY brand_id`:                                           "sql.balance",
		`SELECT SUM(amount_liter), MAX(balance_liter) FROM deposit_transaction`:                                                        "",
		`SELECT SUM(d.balance_liter) FROM deposit_transaction d LEFT JOIN deposit_transaction e ON e.brand_id = d.brand_id AND ` +
			`e.deposit_transaction_id > d.deposit_transaction_id WHERE e.deposit_transaction_id IS NULL`: "",
		`SELECT SUM(c.offer_count) FROM campaign c JOIN campaign_application a ON a.campaign_id = c.campaign_id`:                                                      "sql.fan_out",
		`SELECT SUM(offer_count), COUNT(*) FROM campaign c LEFT JOIN review r ON c.campaign_id = r.campaign_id`:                                                       "sql.fan_out",
		`SELECT SUM(c.offer_count) FROM campaign c JOIN brand b ON b.brand_id = c.brand_id GROUP BY b.country_code`:                                                   "",
		`SELECT SUM(c.offer_count) FROM campaign c JOIN campaign_application a ON a.campaign_id = c.campaign_id WHERE a.member_id = 7`:                                "",
		`SELECT SUM(d.amount_liter) FROM brand b JOIN deposit_transaction d ON d.brand_id = b.brand_id`:                                                               "",
		`SELECT b.brand_id FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id WHERE c.start_at >= '2026-01-01'`:                                             "sql.outer",
		`SELECT b.brand_id FROM brand b LEFT OUTER JOIN campaign c ON c.brand_id = b.brand_id WHERE b.country_code = 'KR' AND status_code NOT IN ('1210')`:            "sql.outer",
		`SELECT b.brand_id FROM campaign c RIGHT JOIN brand b ON c.brand_id = b.brand_id WHERE c.name LIKE '%a%'`:                                                     "sql.outer",
		`SELECT b.brand_id FROM brand b LEFT JOIN (SELECT brand_id, COUNT(*) AS n FROM campaign GROUP BY brand_id) c ON c.brand_id = b.brand_id WHERE c.n > 3`:        "sql.outer",
		`SELECT b.brand_id FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id WHERE c.campaign_id IS NULL`:                                                  "",
		`SELECT b.brand_id FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id WHERE c.start_at < '2026-01-01' OR c.campaign_id IS NULL`:                     "",
		`SELECT b.brand_id FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id AND c.offer_count > 1 WHERE COALESCE(c.view_count, 0) = 0 AND b.brand_id > 3`: "",
		`SELECT email FROM member LIMIT 3`: "sql.personal",
		`SELECT m.nickname, m.email AS mail FROM member m JOIN review r ON r.member_id = m.member_id`: "sql.personal",
		`SELECT * FROM member`:                                               "sql.personal",
		`SELECT m.* FROM member m`:                                           "sql.personal",
		`SELECT x.email FROM (SELECT email FROM member) x`:                   "sql.personal",
		`(SELECT email FROM member) UNION (SELECT email FROM partner_admin)`: "sql.personal",
		`SELECT SUBSTRING_INDEX(email, '@', -1) AS host, COUNT(DISTINCT email) FROM member GROUP BY host`: "",
		`SELECT COUNT(*) FROM (SELECT DISTINCT email FROM member) x`:                                      "",
		`SELECT a.email, c.* FROM partner_admin a JOIN campaign c USING (partner_id)`:                     "",
		`SELECT member_id FROM member WHERE email LIKE '%@example.com'`:                                   "",
		`SHOW TABLES`: "",
	} {
		got := ""
		for _, n := range catalog.Notices(text) {
			if got += n.Rule; len(n.Message) > 300 || strings.Contains(n.Message, "%!") || strings.HasPrefix(n.Message, " ") {
				t.Errorf("%s: %q", text, n.Message)
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %q", text, catalog.Notices(text), want)
		}
	}
	catalog.Zones = true
	if told := catalog.Notices(`SELECT CONVERT_TZ(created_at, 'UTC', 'Asia/Seoul') FROM campaign`); len(told) > 0 {
		t.Errorf("where zones are known: %v", told)
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
	for text, want := range map[string]advice.Comparison{
		`SELECT 1 FROM campaign c WHERE c.status_code = 'closed'`:                                {Table: "campaign", Column: "status_code", Texts: []string{"closed"}},
		`SELECT 1 FROM campaign WHERE status_code IN ('CLOSED', 1209)`:                           {Table: "campaign", Column: "status_code", Texts: []string{"CLOSED", "1209"}},
		`SELECT 1 FROM review WHERE created_at >= '2026-07-01'`:                                  {Table: "review", Column: "created_at", Since: at("2026-07-01 00:00:00")},
		`SELECT 1 FROM review WHERE created_at > '2026-07-01 10:00:00'`:                          {Table: "review", Column: "created_at", Since: at("2026-07-01 10:00:00")},
		`SELECT 1 FROM review WHERE created_at BETWEEN '2026-07-01' AND '2026-07-02 10:00:00'`:   {Table: "review", Column: "created_at", Since: at("2026-07-01 00:00:00")},
		`SELECT 1 FROM review WHERE created_at >= CURDATE() - INTERVAL 3 MONTH`:                  {Table: "review", Column: "created_at", Since: at("2026-08-23 00:00:00")},
		`SELECT 1 FROM review WHERE created_at >= DATE_SUB(NOW(), INTERVAL 7 DAY) LIMIT 3`:       {Table: "review", Column: "created_at", Since: at("2026-11-16 10:00:00")},
		`SELECT 1 FROM review WHERE YEAR(created_at) = 2027`:                                     {Table: "review", Column: "created_at", Since: at("2027-01-01 00:00:00")},
		`SELECT 1 FROM review WHERE created_at < '2026-07-01' AND rating <> 5`:                   {},
		`SELECT 1 FROM review WHERE created_at >= (SELECT MAX(created_at) FROM review)`:          {},
		`SELECT 1 FROM review WHERE created_at >= CURDATE() - INTERVAL 3 MONTH + INTERVAL 1 DAY`: {},
		`SELECT 1 FROM campaign WHERE status_code IN ('CLOSED', LEFT(name, 4))`:                  {},
	} {
		got := catalog.Compared(text, now)
		if want.Table == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0].Table != want.Table || got[0].Column != want.Column || !got[0].Since.Equal(want.Since) ||
			strings.Join(got[0].Texts, " ") != strings.Join(want.Texts, " ") {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
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
