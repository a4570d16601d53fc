package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"hub.internal/services/query"
)

const (
	// mostCodes is how many codes are read for a message, mostCounted for the description of a column.
	mostCodes, mostCounted = 200, 50
	// countedRows is how many of a table's newest rows are counted: a second's work where no index helps.
	countedRows = 200_000
)

// Codes implements query.Source. Both statements hop through an index, from one value to the next: ix_campaign_status, and
// ix_brand_category, whose countries are within their category.
func (s *Source) Codes(ctx context.Context, table, column string) ([]string, error) {
	statement := `SELECT status_code FROM campaign GROUP BY status_code ORDER BY 1 LIMIT ?`
	if table == "brand" && column == "country_code" {
		statement = `SELECT DISTINCT g.country_code FROM (SELECT country_code FROM brand GROUP BY category_id, country_code) g ORDER BY 1 LIMIT ?`
	}
	codes := []string{}
	err := s.Query(ctx, statement, []any{mostCodes}, func(r *sql.Rows) error {
		var code string
		err := r.Scan(&code)
		codes = append(codes, code)
		return err
	})
	return codes, err
}

// Facts implements query.Source. It reads the newest rows by the primary key.
func (s *Source) Facts(ctx context.Context, table string, shape query.TableShape) (query.TableFacts, error) {
	facts := query.TableFacts{Codes: map[string][]query.Code{}}
	var err error
	if facts.Declared, err = s.foreignKeys(ctx, table); err != nil || shape.Key == "" {
		return facts, err
	}
	for i, column := range shape.Codes {
		amount := ""
		if i == 0 {
			amount = shape.Amount
		}
		codes, err := s.countCodes(ctx, table, column, amount, shape.Key)
		if err != nil {
			return facts, err
		}
		facts.Codes[column], facts.Counted = codes.most, codes.rows
	}
	if shape.Date != "" {
		facts.Freshest, err = s.freshest(ctx, table, shape.Date, shape.Key)
	}
	return facts, err
}

const selectForeignKeys = `SELECT k.column_name, k.referenced_table_name, k.referenced_column_name
FROM information_schema.key_column_usage k
WHERE k.table_schema = DATABASE() AND k.table_name = ? AND k.referenced_table_schema = DATABASE()`

func (s *Source) foreignKeys(ctx context.Context, table string) (map[string]query.Reference, error) {
	keys := map[string]query.Reference{}
	err := s.Query(ctx, selectForeignKeys, []any{table}, func(r *sql.Rows) error {
		to := query.Reference{Declared: true}
		var column string
		err := r.Scan(&column, &to.Table, &to.Column)
		keys[column] = to
		return err
	})
	return keys, err
}

type counted struct {
	most []query.Code
	rows int64
}

// countCodes counts the values of a column in the newest rows. Names are the shape's, never a caller's.
func (s *Source) countCodes(ctx context.Context, table, column, amount, key string) (counted, error) {
	signs, inner := `NULL, NULL`, ``
	if amount != "" {
		signs, inner = `SUM(n.amount < 0), SUM(n.amount > 0)`, `, `+amount+` AS amount`
	}
	statement := `SELECT n.code, COUNT(*), ` + signs + `
FROM (SELECT ` + column + ` AS code` + inner + ` FROM ` + table + ` ORDER BY ` + key + ` DESC LIMIT ` + strconv.Itoa(countedRows) + `) n
GROUP BY n.code`
	var all counted
	err := s.Query(ctx, statement, nil, func(r *sql.Rows) error {
		var c query.Code
		var value sql.NullString
		if err := r.Scan(&value, &c.Rows, &c.Negative, &c.Positive); err != nil {
			return err
		}
		all.rows += c.Rows
		if c.Value = value.String; value.Valid {
			all.most = append(all.most, c)
		}
		return nil
	})
	slices.SortFunc(all.most, func(a, b query.Code) int { return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Value, b.Value)) })
	all.most = all.most[:min(len(all.most), mostCounted)]
	return all, err
}

// freshestRows is how many of the newest rows have the greatest date among them: rows come nearly in order.
const freshestRows = 10_000

func (s *Source) freshest(ctx context.Context, table, column, key string) (*query.Freshness, error) {
	var at *query.DateTime
	statement := `SELECT MAX(n.at) FROM (SELECT ` + column + ` AS at FROM ` + table + ` ORDER BY ` + key + ` DESC LIMIT ` +
		strconv.Itoa(freshestRows) + `) n`
	err := s.Query(ctx, statement, nil, func(r *sql.Rows) error { return r.Scan(nullDateTime(&at)) })
	if err != nil || at == nil {
		return nil, err
	}
	// The scale of the column is no precision of the value.
	return &query.Freshness{Column: column, At: query.DateTime(strings.TrimSuffix(string(*at), ".000000"))}, nil
}
