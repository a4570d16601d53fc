package query_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/statements"
)

// TestWhatIsThereIsNotDenied: an answer without rows is not explained by a code that a column has after all, be it rare among many,
// or by how new the rows were minutes ago.
func TestWhatIsThereIsNotDenied(t *testing.T) {
	t.Parallel()
	x := serve(t)
	clock := hubtest.NewClock(time.Now())
	reader := statements.NewReader(x.source.Server, statements.ReaderOptions{})
	t.Cleanup(func() { reader.Close() })
	x.use(query.New(query.Config{Source: x.source, Reader: reader, Audit: unrecorded{}, Now: clock.Now}))
	var countries []string
	for i := range 60 {
		countries = append(countries, fmt.Sprintf(`(%d, 'm', 'm%[1]d@b2c.example', '%c%c', NULL, '2026-01-31')`, i+1, 'A'+i/26, 'A'+i%26))
	}
	x.exec(`INSERT INTO member VALUES `+strings.Join(countries, ","),
		`INSERT INTO campaign_application VALUES (1, 1, 1, 'APPLIED', '2025-01-02')`)
	warned := func(statement string) string {
		t.Helper()
		result, err := x.raw(t.Context(), "execute_read_sql", map[string]string{"sql": statement})
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		var answer struct{ Warnings []tool.Warning }
		if err := json.Unmarshal(result.Data, &answer); err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, w := range answer.Warnings {
			rules = append(rules, w.Rule)
		}
		return strings.Join(rules, " ")
	}
	for _, country := range []string{"CH", "AA", "ZZ"} { // the 60th code, the first, and none
		got := warned(`SELECT member_id FROM member WHERE country_code = '` + country + `' AND created_at > '2026-05-01 10:00:00'`)
		if strings.Contains(got, "codes") {
			t.Errorf("%s: %s", country, got)
		}
	}
	const shipped = `SELECT campaign_application_id FROM campaign_application WHERE campaign_id = 2 AND status = 'SHIPPED'`
	const since = `SELECT campaign_application_id FROM campaign_application WHERE campaign_id = 2 AND applied_at >= CURDATE()`
	if a, b := warned(shipped), warned(since); a != "sql.codes" || b != "sql.stale" {
		t.Errorf("without such rows: %q, %q", a, b)
	}
	x.exec(`INSERT INTO campaign_application VALUES (2, 1, 1, 'SHIPPED', UTC_TIMESTAMP())`)
	clock.Advance(2 * time.Minute)
	if a, b := warned(shipped), warned(since); a+b != "" {
		t.Errorf("with such rows of another campaign: %q, %q", a, b)
	}
}
