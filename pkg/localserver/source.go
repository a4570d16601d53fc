package localserver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Names of the source database and its users in the local stack. Tests give each database
// users of its own name's making.
const (
	SourceOwner    = "hub_source_owner" // loads the sample data
	SourceReadOnly = "hub_ro"           // what the query service connects as
)

// Source is a database of the source server with its two users.
// The rights are those of production: Hub never gets more than SELECT on the marketplace's data.
type Source struct {
	// A name may hold any character: it is quoted.
	Database string
	Schema   string // SQL that makes the tables; empty makes none
	// The owner may do anything in the database; the reader may SELECT and SHOW VIEW.
	Owner, OwnerPassword   string
	Reader, ReaderPassword string
}

// Create makes the database and its users, as the administrator; it runs Schema only when
// it made the database, so that it can be called at every start.
func (s Source) Create(ctx context.Context, adminDSN string) error {
	db, err := open(adminDSN)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, u := range []struct{ name, password, rights string }{
		{s.Owner, s.OwnerPassword, "ALL PRIVILEGES"},
		{s.Reader, s.ReaderPassword, "SELECT, SHOW VIEW"},
	} {
		for _, q := range []string{
			fmt.Sprintf("CREATE USER IF NOT EXISTS %s@'%%'", literal(u.name)),
			fmt.Sprintf("ALTER USER %s@'%%' IDENTIFIED BY %s", literal(u.name), literal(u.password)),
			// The database part of a grant is a pattern: _ would match any character.
			fmt.Sprintf("GRANT %s ON %s.* TO %s@'%%'", u.rights, identifier(strings.ReplaceAll(s.Database, "_", `\_`)), literal(u.name)),
		} {
			if _, err := db.ExecContext(ctx, q); err != nil {
				return fmt.Errorf("user %s: %w", u.name, err)
			}
		}
	}
	var there int
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", s.Database).Scan(&there)
	if err != nil || there > 0 {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+identifier(s.Database)); err != nil {
		return err
	}
	if s.Schema == "" {
		return nil
	}
	if err := execScript(ctx, adminDSN, s.Database, s.Schema); err != nil {
		// Half a schema must not look like a whole one at the next start.
		_, dropErr := db.ExecContext(ctx, "DROP DATABASE "+identifier(s.Database))
		return fmt.Errorf("schema of %s: %w (database dropped again: %v)", s.Database, err, dropErr == nil)
	}
	return nil
}

// Drop removes the database and its users.
// What is not there is no error.
func (s Source) Drop(ctx context.Context, adminDSN string) error {
	db, err := open(adminDSN)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, q := range []string{
		"DROP DATABASE IF EXISTS " + identifier(s.Database),
		fmt.Sprintf("DROP USER IF EXISTS %s@'%%', %s@'%%'", literal(s.Owner), literal(s.Reader)),
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// execScript runs SQL statements separated by semicolons.
func execScript(ctx context.Context, adminDSN, database, script string) error {
	c, err := mysql.ParseDSN(adminDSN)
	if err != nil {
		return err
	}
	c.DBName, c.MultiStatements = database, true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	_, err = db.ExecContext(ctx, script)
	return err
}

// identifier quotes a name for SQL.
func identifier(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// literal quotes a text for SQL; the servers read backslashes as escapes.
func literal(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
