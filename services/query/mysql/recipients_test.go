package mysql

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/query/mysql/server"
)

// TestRecipientsUseTheIndexes explains each statement as it is sent for as many targets as it takes.
func TestRecipientsUseTheIndexes(t *testing.T) {
	adminDSN, readerDSN := hubtest.SourceDB(t)
	hubtest.Sequences(t, adminDSN, 100_000)
	admin, err := sql.Open("mysql", adminDSN+"?multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.ExecContext(t.Context(), `
		INSERT INTO partner SELECT seq, CONCAT('p', seq), NULL, 'KR', NOW() FROM seq_1_to_100000;
		INSERT INTO partner_admin SELECT seq, seq, 'n', CONCAT('c', seq, '@p.example'), 1, 'READY', NULL, NULL, NOW() FROM seq_1_to_100000;
		INSERT INTO member SELECT seq, 'n', CONCAT('m', seq, '@b2c.example'), 'KR', NULL, NOW() FROM seq_1_to_100000;
		INSERT INTO brand SELECT seq, seq, 'b', 'x', 12, 'KR', NULL, NOW() FROM seq_1_to_100000;
		INSERT INTO campaign SELECT seq, seq, seq, 'c', '1206', NOW(), NULL, 1, 1, 1, NOW() FROM seq_1_to_100000;
		ANALYZE TABLE partner, brand, campaign, partner_admin, member`); err != nil {
		t.Fatal(err)
	}
	s, err := Open(readerDSN, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids, emails := make([]int64, listed), make([]string, listed)
	for i := range ids {
		ids[i], emails[i] = int64(i*97+1), fmt.Sprintf("m%d@b2c.example", i*97+1)
	}
	explain := func(statement, index, list string, args []any) {
		t.Helper()
		rows, err := s.DB().QueryContext(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+statement+list, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i, c := range columns {
				plan = append(plan, c+"="+values[i].String)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, " "); !strings.Contains(text, "key="+index) || !strings.Contains(text, "type=range") {
			t.Errorf("%s…\n%s", statement, text)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(inLists(ids, func(list string, args []any) error {
		for _, statement := range selectOwners {
			explain(statement, "PRIMARY", list, args)
		}
		explain(selectContactAddresses, "ix_partner_admin_partner", list, args)
		return nil
	}))
	check(inLists(emails, func(list string, args []any) error {
		statement := selectMemberAddresses + strings.Repeat(` OR m.email`+like, len(args)-1)
		for i := range args {
			args[i] = fmt.Sprint(args[i], "%")
		}
		explain(statement, "ix_member_email", "", args)
		return nil
	}))
}

func TestListsAreCut(t *testing.T) {
	for n, want := range map[int]string{0: "[]", 1: "[1]", listed: "[500]", listed + 1: "[500 1]", 2*listed + 7: "[500 500 7]"} {
		var sizes []int
		if err := inLists(make([]int, n), func(list string, args []any) error {
			sizes = append(sizes, len(args))
			if strings.Count(list, "?") != len(args) {
				t.Errorf("%d: %s", n, list)
			}
			return nil
		}); err != nil || fmt.Sprint(sizes) != want && n > 0 || n == 0 && sizes != nil {
			t.Errorf("%d: %v, %v", n, sizes, err)
		}
	}
}
