package statements

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/errno"
	"hub.internal/services/query/mysql/server"
)

// groupsLimit bounds the wait for what a server says of a statement's groups: without an answer there is no warning.
const groupsLimit = 250 * time.Millisecond

// whileItRuns looks at the groups of a doubtful statement beside the statement itself, and tells once.
// The channel holds one value, so that whoever sends it does not wait; the statement's answer does.
func (r *Reader) whileItRuns(ctx context.Context, st query.Statement) <-chan []tool.Warning {
	told := make(chan []tool.Warning, 1)
	if !st.Grouping.Doubtful {
		told <- nil
		return told
	}
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		told <- r.ungrouped(ctx, st)
	}()
	return told
}

// ungrouped warns of a selected column that the groups of a doubtful statement do not determine. A session with ONLY_FULL_GROUP_BY
// prepares the statement, which neither plans nor runs it, while the statement itself runs. MySQL knows which columns a key
// determines; MariaDB does not, so that its refusal counts for a statement of one table alone that groups by none of its keys.
func (r *Reader) ungrouped(ctx context.Context, st query.Statement) []tool.Warning {
	ctx, cancel := context.WithTimeout(ctx, groupsLimit)
	defer cancel()
	dialect, err := r.server.Dialect(ctx)
	if err != nil || dialect == server.TiDB || dialect == server.MariaDB && st.Grouping.Table == "" {
		return nil
	}
	refused := r.prepared(ctx, st.Written)
	if refused == nil {
		return nil
	}
	column, known := undetermined(refused)
	if !known || dialect == server.MariaDB && r.determined(ctx, st.Grouping.Table, st.Grouping.By) {
		return nil
	}
	if column != "" {
		column = " " + column
	}
	return []tool.Warning{{Rule: "sql.group", Message: "a selected column" + column + " is neither in GROUP BY nor in an aggregate, nor " +
		"determined by what is: each group answers the value of any of its rows; add it to GROUP BY, take MAX() of it, or number the rows " +
		"with ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) in a derived table and keep those of number 1"}}
}

// prepared has a session with ONLY_FULL_GROUP_BY prepare a text; nil where it does, or where nobody answers in time.
// The text is the caller's own, without Hub's LIMIT. PREPARE resolves names and checks groups, and touches no row.
func (r *Reader) prepared(ctx context.Context, written string) (refused *mysqldriver.MySQLError) {
	conn, err := r.groups.db.Conn(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.Raw(func(c any) error {
		prepared, err := c.(*session).Conn.(driver.ConnPrepareContext).PrepareContext(ctx, written)
		if err == nil {
			return prepared.Close()
		}
		if !errors.As(err, &refused) {
			return driver.ErrBadConn
		}
		return nil
	})
	return refused
}

// ungroupedColumn is the column that MySQL or MariaDB names.
var ungroupedColumn = regexp.MustCompile(`(?:nonaggregated column '|^')([^']+)'`)

// undetermined reports whether a server refuses columns beside groups, and the first of them where it tells: table.column.
// The two numbers are those of ONLY_FULL_GROUP_BY with and without GROUP BY (1055 and 1140).
func undetermined(refused *mysqldriver.MySQLError) (column string, known bool) {
	if refused.Number != errno.WrongFieldWithGroup && refused.Number != errno.MixOfGroupFunctions {
		return "", false
	}
	if m := ungroupedColumn.FindStringSubmatch(refused.Message); m != nil {
		parts := strings.Split(m[1], ".")
		column = text.Shorten(strings.Join(parts[max(0, len(parts)-2):], "."), 80)
	}
	return column, true
}

// selectKeys reads the columns of a table's unique keys.
const selectKeys = `SELECT index_name, column_name FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name = ? AND non_unique = 0 ORDER BY index_name, seq_in_index LIMIT 100`

// determined reports whether columns of a table include one of its unique keys, which determine all others, or whether nobody can say.
// A key with a NULL column counts as one, and so does an error: the doubt is in favour of the statement.
func (r *Reader) determined(ctx context.Context, table string, by []string) bool {
	n := r.knownInTime(ctx)
	keys := map[string]bool{} // whether all columns of a key are among them
	err := r.server.Query(ctx, selectKeys, []any{n.table(table)}, func(rows *sql.Rows) error {
		var key string
		var column sql.NullString
		if err := rows.Scan(&key, &column); err != nil {
			return err
		}
		whole, seen := keys[key]
		keys[key] = (whole || !seen) && slices.ContainsFunc(by, func(c string) bool { return strings.EqualFold(c, column.String) })
		return nil
	})
	if err != nil || n.table(table) == "" {
		return true
	}
	for _, whole := range keys {
		if whole {
			return true
		}
	}
	return false
}
