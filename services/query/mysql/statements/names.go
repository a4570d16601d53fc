package statements

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"time"

	"hub.internal/pkg/schema"
)

const (
	// namesAge is how long the names of tables and columns are good for: they serve messages.
	namesAge = time.Minute
	// namesRetry is how soon they are read again after a failure, which each message would wait for otherwise.
	namesRetry = 5 * time.Second
	// namesLimit bounds the wait for them.
	namesLimit = 2 * time.Second
	// maxNames bounds how many columns are read.
	maxNames = 20_000
)

// names are the tables of the source with their columns, as the server has them.
// They are read with the account's own rights, and so name nothing that it may not see.
type names struct {
	at      time.Time
	tables  []string
	columns map[string][]string // by table
}

// keptNames are read at most once a minute, by one caller for all. After a failure those from before are kept for 5 s, if there are any.
type keptNames struct {
	mu   sync.Mutex
	last *names
}

// selectNames reads what an account may see anyway.
const selectNames = `SELECT c.table_name, c.column_name FROM information_schema.columns c
WHERE c.table_schema = DATABASE() ORDER BY c.table_name, c.ordinal_position LIMIT ?`

// known are the names of the source; none when they cannot be read in time: a message is worth no more.
// The caller's end does not end the reading, since others wait for it behind the lock.
func (r *Reader) known(ctx context.Context) *names {
	r.names.mu.Lock()
	defer r.names.mu.Unlock()
	if r.names.last != nil && time.Since(r.names.last.at) < namesAge {
		return r.names.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), namesLimit)
	defer cancel()
	n := &names{at: time.Now(), columns: map[string][]string{}}
	if err := r.server.Query(ctx, selectNames, []any{maxNames}, func(rows *sql.Rows) error {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return err
		}
		if len(n.columns[table]) == 0 {
			n.tables = append(n.tables, table)
		}
		n.columns[table] = append(n.columns[table], column)
		return nil
	}); err != nil {
		n = &names{}
		if r.names.last != nil {
			*n = *r.names.last
		}
		n.at = time.Now().Add(namesRetry - namesAge)
	}
	r.names.last = n
	return n
}

// knownInTime is known, and none when ctx ends before they are there: the reading goes on for others.
func (r *Reader) knownInTime(ctx context.Context) *names {
	read := make(chan *names, 1)
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		read <- r.known(ctx)
	}()
	select {
	case n := <-read:
		return n
	case <-ctx.Done():
		return &names{}
	}
}

// table is the server's spelling of a table, or "".
// It compares without case: it serves messages, and the wrong case is often the mistake.
func (n *names) table(name string) string {
	for _, t := range n.tables {
		if strings.EqualFold(t, name) {
			return t
		}
	}
	return ""
}

// column is the server's spelling of a column of any table, or "".
func (n *names) column(name string) string {
	for _, t := range n.tables {
		for _, c := range n.columns[t] {
			if strings.EqualFold(c, name) {
				return c
			}
		}
	}
	return ""
}

// owners are the tables that have the column.
func (n *names) owners(column string) (tables []string) {
	for _, t := range n.tables {
		if slices.ContainsFunc(n.columns[t], func(c string) bool { return strings.EqualFold(c, column) }) {
			tables = append(tables, t)
		}
	}
	return tables
}

// nearest returns the column of the tables that was most likely meant, as table.column; "" when none is near.
// Nearest is by edit distance (package schema), and never a far guess.
func (n *names) nearest(name string, tables []string) string {
	var all, owners []string
	for _, t := range tables {
		for _, c := range n.columns[t] {
			all, owners = append(all, c), append(owners, t)
		}
	}
	if best := schema.Nearest(name, all); best != "" {
		return owners[slices.Index(all, best)] + "." + best
	}
	// name for brand_name: what people call a column without its table in front.
	for i, c := range all {
		if len(name) > 2 && strings.HasSuffix(strings.ToLower(c), "_"+strings.ToLower(name)) {
			return owners[i] + "." + c
		}
	}
	return ""
}
