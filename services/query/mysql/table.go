package mysql

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
	"strings"

	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// A base table is what SHOW CREATE TABLE answers as a table: no view, no sequence.
const baseTable = `t.table_schema = DATABASE() AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')`

// selectTables reads names, comments and the server's estimate of the rows: InnoDB's statistics, which may be off by half.
const selectTables = `SELECT t.table_name, t.table_comment, COALESCE(t.table_rows, 0)
FROM information_schema.tables t
WHERE ` + baseTable

// Tables implements query.Source.
// They are those of the connection's database alone, in the order of their names.
func (s *Source) Tables(ctx context.Context) ([]query.Table, error) {
	return s.tables(ctx, selectTables+` ORDER BY t.table_name`)
}

// tables runs a statement that begins with selectTables.
func (s *Source) tables(ctx context.Context, statement string, args ...any) ([]query.Table, error) {
	tables := []query.Table{}
	err := s.Query(ctx, statement, args, func(r *sql.Rows) error {
		var t query.Table
		if err := r.Scan(&t.Name, &t.Comment, &t.ApproxRows); err != nil {
			return err
		}
		tables = append(tables, t)
		return nil
	})
	return tables, err
}

// table finds a base table by the name that a caller gave, or nil. The server says
// whether the case of a name matters; that its collation also takes "é" for "e" and
// ignores trailing spaces is not followed.
func (s *Source) table(ctx context.Context, name string) (*query.Table, error) {
	if isNoName(name) {
		return nil, nil
	}
	tables, err := s.tables(ctx, selectTables+` AND t.table_name = ?`, name)
	if err != nil {
		return nil, err
	}
	var alike *query.Table
	for i, t := range tables {
		switch {
		case t.Name == name:
			return &tables[i], nil
		case strings.EqualFold(t.Name, name):
			alike = &tables[i]
		}
	}
	return alike, nil
}

// isNoName tells of a character that no table's name holds, and that some servers refuse to compare.
func isNoName(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r > 0xFFFF })
}

// TableColumns implements query.Source.
// nil says that there is no base table of that name: the service makes E_NOT_FOUND of it.
func (s *Source) TableColumns(ctx context.Context, name string) (*query.TableColumns, error) {
	t, err := s.table(ctx, name)
	if t == nil || err != nil {
		return nil, err
	}
	columns, err := s.columns(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	return &query.TableColumns{Table: t.Name, Comment: t.Comment, ApproxRows: t.ApproxRows, Columns: columns}, nil
}

// selectColumns reads columns in the order in which the table has them.
const selectColumns = `SELECT c.column_name, c.column_type, c.is_nullable = 'YES', c.column_key, c.column_default, c.extra, c.column_comment
FROM information_schema.columns c
WHERE c.table_schema = DATABASE() AND c.table_name = ?
ORDER BY c.ordinal_position`

// columns are those of a table in one form for both kinds of server, as MySQL 8 writes it.
func (s *Source) columns(ctx context.Context, table string) ([]query.Column, error) {
	dialect, err := s.Dialect(ctx)
	if err != nil {
		return nil, err
	}
	columns := []query.Column{}
	err = s.Query(ctx, selectColumns, []any{table}, func(r *sql.Rows) error {
		var c query.Column
		if err := r.Scan(&c.Name, &c.Type, &c.Nullable, &c.Key, &c.Default, &c.Extra, &c.Comment); err != nil {
			return err
		}
		c.Type = plainType(c.Type)
		if dialect == server.MariaDB {
			c.Default = plainDefault(c.Default)
		} else if c.Default != nil && strings.Contains(c.Extra, "DEFAULT_GENERATED") {
			*c.Default = plainExpression.Replace(*c.Default)
		}
		columns = append(columns, c)
		return nil
	})
	return columns, err
}

// widths are display widths of integers, which MySQL 8 no longer prints. It does for
// tinyint(1), which says boolean, and where zerofill needs one.
var widths = regexp.MustCompile(`^((?:small|medium|big|tiny)?int|year)\(\d+\)( unsigned)?$`)

// plainType is a column's type without a display width: bigint(20) unsigned is bigint unsigned.
func plainType(t string) string {
	if strings.HasPrefix(t, "tinyint(1)") {
		return t
	}
	return widths.ReplaceAllString(t, "$1$2")
}

// unescape undoes what MariaDB does to a literal in column_default.
var unescape = strings.NewReplacer(`''`, `'`, `\'`, `'`, `\\`, `\`, `\n`, "\n", `\r`, "\r", `\0`, "\x00")

// plainDefault reads MariaDB's column_default, which is SQL text: a literal in
// quotes, NULL as a word, or an expression, which stays as it is.
func plainDefault(d *string) *string {
	if d == nil || *d == "NULL" {
		return nil
	}
	if t := *d; len(t) >= 2 && t[0] == '\'' && t[len(t)-1] == '\'' {
		plain := unescape.Replace(t[1 : len(t)-1])
		return &plain
	}
	return d
}

// IsView implements query.Source.
// The service asks it where a name is no base table, so that the refusal can say what to do with a view.
func (s *Source) IsView(ctx context.Context, name string) (is bool, err error) {
	if isNoName(name) {
		return false, nil
	}
	err = s.Query(ctx, `SELECT COUNT(*) > 0 FROM information_schema.views v WHERE v.table_schema = DATABASE() AND v.table_name = ?`,
		[]any{name}, func(r *sql.Rows) error { return r.Scan(&is) })
	return is, err
}

// plainExpression undoes what MySQL does to the texts in an expression of information_schema.
var plainExpression = strings.NewReplacer(`\'`, `'`, `\\`, `\`)

// TableDDL implements query.Source.
// DDL is the server's own text, comments of the schema included. nil says that there is no base table of that name.
func (s *Source) TableDDL(ctx context.Context, name string, indexes bool) (*query.TableDDL, error) {
	t, err := s.table(ctx, name)
	if t == nil || err != nil {
		return nil, err
	}
	out := &query.TableDDL{Table: t.Name}
	if out.Columns, err = s.columns(ctx, t.Name); err != nil {
		return nil, err
	}
	// The name is the server's own spelling; quoted, it can be nothing but a name.
	show := "SHOW CREATE TABLE `" + strings.ReplaceAll(t.Name, "`", "``") + "`"
	err = s.Query(ctx, show, nil, func(r *sql.Rows) error {
		var name string
		return r.Scan(&name, &out.DDL)
	})
	if err != nil || !indexes {
		return out, err
	}
	out.Indexes, err = s.indexes(ctx, t.Name)
	return out, err
}

const (
	selectIndexes = `SELECT i.index_name, i.non_unique = 0, i.index_type, COALESCE(i.column_name, ''), NULL, i.sub_part,
i.collation = 'D', i.ignored = 'YES'
FROM information_schema.statistics i
WHERE i.table_schema = DATABASE() AND i.table_name = ?
ORDER BY i.index_name <> 'PRIMARY', i.index_name, i.seq_in_index`
	// MySQL 8 has indexes on expressions.
	selectIndexesMySQL = `SELECT i.index_name, i.non_unique = 0, i.index_type, COALESCE(i.column_name, ''), i.expression, i.sub_part,
i.collation = 'D', i.is_visible = 'NO'
FROM information_schema.statistics i
WHERE i.table_schema = DATABASE() AND i.table_name = ?
ORDER BY i.index_name <> 'PRIMARY', i.index_name, i.seq_in_index`
)

// indexes are those of a table, the primary key first. A column is told as it was declared: name(10) of a prefix, and DESC.
func (s *Source) indexes(ctx context.Context, table string) ([]query.Index, error) {
	dialect, err := s.Dialect(ctx)
	if err != nil {
		return nil, err
	}
	statement := selectIndexes
	if dialect != server.MariaDB {
		statement = selectIndexesMySQL
	}
	indexes := []query.Index{}
	err = s.Query(ctx, statement, []any{table}, func(r *sql.Rows) error {
		var i query.Index
		var column string
		var expression sql.NullString
		var prefix sql.NullInt64 // in characters
		var descending sql.NullBool
		if err := r.Scan(&i.Name, &i.Unique, &i.Type, &column, &expression, &prefix, &descending, &i.Unused); err != nil {
			return err
		}
		if expression.Valid {
			column = plainExpression.Replace(expression.String)
		}
		if prefix.Valid && i.Type != "SPATIAL" { // of which it is no length that anybody wrote
			column += "(" + strconv.FormatInt(prefix.Int64, 10) + ")"
		}
		if descending.Bool {
			column += " DESC"
		}
		if n := len(indexes); n > 0 && indexes[n-1].Name == i.Name {
			indexes[n-1].Columns = append(indexes[n-1].Columns, column)
			return nil
		}
		i.Columns = []string{column}
		indexes = append(indexes, i)
		return nil
	})
	return indexes, err
}
