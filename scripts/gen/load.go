package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// loader fills one database.
type loader struct {
	db         *sql.DB
	config     *mysql.Config
	batchBytes int
}

// open connects, over one connection, and sets up what it needs: exact literals and strict
// values. The usual advice to switch unique_checks and foreign_key_checks off is not
// followed: there is neither a foreign key nor a second unique key, so it saves nothing.
func open(ctx context.Context, dsn string) (*loader, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("--dsn: %w; want user:password@tcp(host:port)/database", err)
	}
	if cfg.DBName == "" {
		return nil, errors.New("--dsn names no database; want user:password@tcp(host:port)/database")
	}
	if err := cfg.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	maps.Copy(cfg.Params, map[string]string{"autocommit": "1", "sql_mode": "'STRICT_ALL_TABLES'", "time_zone": "'+00:00'"})
	l := &loader{config: cfg, batchBytes: 1 << 20}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("--dsn: %w", err)
	}
	l.db = sql.OpenDB(connector)
	l.db.SetMaxOpenConns(1)
	// A statement that is longer than the server takes would break the connection.
	var packet int
	if err := l.db.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&packet); err != nil {
		l.db.Close()
		return nil, fmt.Errorf("connect to %s: %w", cfg.Addr, err)
	}
	l.batchBytes = min(l.batchBytes, packet/2)
	return l, nil
}

// close ends the connections.
func (l *loader) close() { l.db.Close() }

// prepare leaves all tables there and empty, or says why not.
// It changes nothing unless all is well: no table is emptied before each is known to be there.
func (l *loader) prepare(ctx context.Context, tables []table, force bool) error {
	there, err := l.strings(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()")
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, name := range there {
		has[strings.ToLower(name)] = true
	}
	var missing, filled []string
	for _, t := range tables {
		if !has[t.name] {
			missing = append(missing, t.name)
			continue
		}
		rows, err := l.strings(ctx, "SELECT 1 FROM "+t.name+" LIMIT 1")
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			filled = append(filled, t.name)
		}
	}
	if len(filled) > 0 && !force {
		return fmt.Errorf("database %s already holds rows in %s; --force empties all ten tables first", l.config.DBName,
			strings.Join(filled, ", "))
	}
	if len(missing) > 0 {
		return fmt.Errorf("database %s lacks %s: run deploy/source/schema.sql there first", l.config.DBName, strings.Join(missing, ", "))
	}
	narrow, err := l.strings(ctx, `SELECT DISTINCT CONCAT(table_name, ' in ', character_set_name) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND character_set_name NOT IN ('utf8mb4', 'ascii', 'binary') AND table_name IN (`+quoted(tables)+`)`)
	if err != nil {
		return err
	}
	if len(narrow) > 0 {
		return fmt.Errorf("database %s stores text of %s: names need utf8mb4", l.config.DBName, strings.Join(narrow, ", "))
	}
	for _, name := range filled {
		if _, err := l.db.ExecContext(ctx, "TRUNCATE TABLE "+name); err != nil {
			return fmt.Errorf("empty %s: %w", name, err)
		}
	}
	return nil
}

// load fills one table, in key order, with one INSERT statement after the other.
func (l *loader) load(ctx context.Context, t table) error {
	return t.statements(l.batchBytes, func(b *batch) error {
		if _, err := l.db.ExecContext(ctx, string(b.buf)); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		return nil
	})
}

// statements makes the table's INSERT statements of about size bytes each, and hands each to send, which must not keep it.
// A statement has one row at least, and none is split.
func (t table) statements(size int, send func(*batch) error) error {
	var b batch
	row := t.make()
	b.begin(t.head())
	for id := int64(1); id <= t.rows; id++ {
		b.row(row(id)...)
		if len(b.buf) >= size || id == t.rows {
			if err := send(&b); err != nil {
				return err
			}
			b.begin(t.head())
		}
	}
	return nil
}

// analyze gives the optimizer and approx_rows fresh statistics.
func (l *loader) analyze(ctx context.Context, tables []table) error {
	for _, t := range tables {
		if _, err := l.db.ExecContext(ctx, "ANALYZE TABLE "+t.name); err != nil {
			return fmt.Errorf("analyze %s: %w", t.name, err)
		}
	}
	return nil
}

// strings answers the first column of a query.
func (l *loader) strings(ctx context.Context, query string) ([]string, error) {
	rows, err := l.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// quoted lists the tables' names as SQL literals.
func quoted(tables []table) string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = "'" + t.name + "'"
	}
	return strings.Join(names, ",")
}
