package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"hub.internal/services/query"
	"hub.internal/services/query/marketplace"
	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice"
)

const (
	// mostCodes is how many codes are read for a message, mostCounted for the description of a column.
	mostCodes, mostCounted = 200, 50
	// countedRows is how many of a table's newest rows are counted: a second's work where no index helps.
	countedRows = 200_000
)

// Codes implements query.Source. Both statements hop through an index, from one value to the next: ix_campaign_status, and
// ix_brand_category, whose countries are within their category.
// It is a loose index scan: the server reads one entry for each value and not one for each row. Other columns than these
// two are not asked for.
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
// The first column of codes has the signs of the amounts beside it, since whoever sums has to know which kinds are
// negative. Its caller gives it two seconds, and keeps what came for ten minutes.
func (s *Source) Facts(ctx context.Context, table string, shape marketplace.Shape) (query.TableFacts, error) {
	facts := query.TableFacts{Codes: map[string][]query.Code{}, More: map[string]bool{}}
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
		facts.Codes[column], facts.More[column], facts.Counted = codes.most, codes.more, codes.rows
	}
	if shape.Date != "" {
		facts.Freshest, err = s.freshest(ctx, table, shape.Date, shape.Key)
	}
	return facts, err
}

// selectForeignKeys reads the references of a table within the schema: another schema's are nothing that a caller may read.
const selectForeignKeys = `SELECT k.column_name, k.referenced_table_name, k.referenced_column_name
FROM information_schema.key_column_usage k
WHERE k.table_schema = DATABASE() AND k.table_name = ? AND k.referenced_table_schema = DATABASE()`

// foreignKeys are the references that the source declares, by column; the marketplace's own schema declares none.
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

// counted are the most frequent codes of a column, and of how many rows they were counted; NULL counts as a row and is no
// code.
type counted struct {
	most []query.Code
	more bool // than the most frequent
	rows int64
}

// countCodes counts the values of a column in the newest rows. Names are the shape's, never a caller's.
// The derived table takes the newest rows by the primary key, backwards: the cost is bounded, however large the table is.
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
	all.more = len(all.most) > mostCounted
	all.most = all.most[:min(len(all.most), mostCounted)]
	return all, err
}

// freshestRows is how many of the newest rows have the greatest date among them: rows come nearly in order.
const freshestRows = 10_000

// freshest looks up to now, by the server's clock in UTC: rows that are dated wrongly, or ahead, say nothing of how fresh a table is.
func (s *Source) freshest(ctx context.Context, table, column, key string) (*query.Freshness, error) {
	var at *query.DateTime
	out := &query.Freshness{Column: column}
	statement := `SELECT MAX(IF(n.at <= UTC_TIMESTAMP(), n.at, NULL)), COALESCE(SUM(n.at > UTC_TIMESTAMP()), 0)
FROM (SELECT ` + column + ` AS at FROM ` + table + ` ORDER BY ` + key + ` DESC LIMIT ` + strconv.Itoa(freshestRows) + `) n`
	err := s.Query(ctx, statement, nil, func(r *sql.Rows) error { return r.Scan(nullDateTime(&at), &out.InFuture) })
	if err != nil || at == nil {
		return nil, err
	}
	// The scale of the column is no precision of the value.
	out.At = query.DateTime(strings.TrimSuffix(string(*at), ".000000"))
	return out, nil
}

// maxColumns bounds how many columns a catalog has.
const maxColumns = 20_000

// selectCatalog reads what information_schema shows the account, which is what it may read.
const selectCatalog = `SELECT c.table_name, c.column_name, c.data_type, c.is_nullable = 'YES', c.column_key
FROM information_schema.columns c WHERE c.table_schema = DATABASE() ORDER BY c.table_name, c.ordinal_position LIMIT ?`

// Catalog implements query.Source.
// Names are put into upper case, as the tokens of the guard have them. Whether the server knows named time zones is tried
// with one conversion, which answers NULL where the tables of zones are empty.
func (s *Source) Catalog(ctx context.Context) (*notice.Catalog, error) {
	upper := func(name string) string { return strings.Map(lexer.UpperASCII, name) }
	c := &notice.Catalog{Tables: map[string]map[string]notice.Column{}}
	columns, last := 0, ""
	err := s.Query(ctx, selectCatalog, []any{maxColumns}, func(r *sql.Rows) error {
		var table, name string
		var column notice.Column
		if err := r.Scan(&table, &name, &column.Type, &column.Nullable, &column.Key); err != nil {
			return err
		}
		if last = upper(table); c.Tables[last] == nil {
			c.Tables[last] = map[string]notice.Column{}
		}
		c.Tables[last][upper(name)] = column
		columns++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if columns == maxColumns {
		delete(c.Tables, last) // which may not be whole
	}
	err = s.Query(ctx, `SELECT CONVERT_TZ('2026-01-31 00:00:00', 'UTC', 'Asia/Seoul') IS NOT NULL`, nil, func(r *sql.Rows) error {
		return r.Scan(&c.Zones)
	})
	return c, err
}
