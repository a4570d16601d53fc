package statements

import (
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/sqlguard"
)

// TestColumnsBesideGroups: what GROUP BY and aggregates do not determine is warned of, on MySQL by its own knowledge of keys, on
// MariaDB where the keys of the only table tell; what they determine never is.
func TestColumnsBesideGroups(t *testing.T) {
	const both, mysqlAlone, none = "both", "mysql", ""
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		_, dsn := hubtest.SourceDBOn(t, on)
		source, err := server.Open(dsn, server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		dialect, err := source.Dialect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reader := NewReader(source, ReaderOptions{})
		defer reader.Close()
		guard := sqlguard.Default(0)
		for text, want := range map[string]string{
			`SELECT brand_name, COUNT(*) FROM brand GROUP BY country_code`:                                                    both,
			`SELECT country_code, COUNT(*) FROM brand`:                                                                        both,
			`SELECT c.brand_id, MAX(c.start_at), c.name FROM campaign c GROUP BY c.brand_id`:                                  both,
			`SELECT brand_id, balance_liter FROM (SELECT * FROM deposit_transaction ORDER BY created_at) t GROUP BY brand_id`: mysqlAlone,
			`SELECT YEAR(created_at), MONTH(created_at), COUNT(*) FROM brand GROUP BY MONTH(created_at)`:                      mysqlAlone,
			`SELECT p.name, b.brand_name, COUNT(*) FROM brand b JOIN partner p USING (partner_id) GROUP BY p.partner_id`:      mysqlAlone,
			`SELECT country_code, COUNT(*) FROM brand GROUP BY country_code`:                                                  none,
			`SELECT brand_id, brand_name, COUNT(*) FROM brand GROUP BY brand_id`:                                              none,
			`SELECT p.partner_id, p.name, COUNT(*) FROM brand b JOIN partner p USING (partner_id) GROUP BY p.partner_id`:      none,
			`SELECT country_code AS c, COUNT(*) FROM brand GROUP BY c`:                                                        none,
			`SELECT country_code, COUNT(*) FROM brand GROUP BY 1 ORDER BY 2`:                                                  none,
			`SELECT MAX(country_code), COUNT(*) FROM brand GROUP BY partner_id`:                                               none,
			`SELECT brand_id, ROW_NUMBER() OVER (PARTITION BY partner_id ORDER BY brand_id) FROM brand`:                       none,
			`SELECT DATE_FORMAT(created_at, '%Y-%m') AS m, COUNT(*) AS n FROM brand GROUP BY m HAVING n > 1 ORDER BY m`:       none,
			`SELECT country_code, COUNT(*) FROM brand WHERE country_code = 'KR'`:                                              none,
			`SELECT (SELECT name FROM partner LIMIT 1) AS one, COUNT(*) FROM brand`:                                           none,
			`SELECT DISTINCT country_code FROM brand ORDER BY country_code`:                                                   none,
		} {
			st, err := guard.Parse(text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			var h heard
			if err := reader.ReadStatement(t.Context(), query.Statement{Text: text, Written: text, Grouping: st.Grouping()}, &h); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			told := len(h.warnings) == 1 && h.warnings[0].Rule == "sql.group" && strings.Contains(h.warnings[0].Message, "GROUP BY")
			if want := want == both || want == mysqlAlone && dialect == server.MySQL; told != want || !want && len(h.warnings) > 0 {
				t.Errorf("%s: %v", text, h.warnings)
			}
		}
	})
}
