package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Roles that every write store has.
const (
	// Owner owns the database, runs migrations, and is no service's log-in.
	Owner = "hub"
	// Group is what each service's role is a member of; it may append to the audit
	// log and no more.
	Group = "hub_service"
	// AuditReader reads the audit log, rolls it up and lets what is too old go. It is no member of the
	// group, and a log-in only where it has a password.
	AuditReader = "hub_audit"
)

// AuditTimeout is the server's limit for a statement of the audit log's reader.
const AuditTimeout = 30 * time.Second

// ServiceRole is the log-in role of a service: hub_auth, hub_review_control.
func ServiceRole(service string) string { return "hub_" + Schema(service) }

// Schema is a service's own part of the write store: auth, review_control.
func Schema(service string) string { return strings.ReplaceAll(service, "-", "_") }

//go:embed bootstrap.sql
var bootstrapSQL string

// Bootstrap creates what no service may create for itself: the owner role, the
// group role, the audit log's reader, one log-in role per service and the database, in which no role but the
// owner may make anything, not even temporarily. It needs a superuser, is safe to
// repeat, and sets the passwords given (role name → password), so that repeating it
// also rotates them.
func Bootstrap(ctx context.Context, superuserURL, database string, passwords map[string]string) error {
	conn, err := pgx.Connect(ctx, superuserURL)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// Two sessions that change a role or make a database at once fail; the lock ends with the connection.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext('hub bootstrap'))"); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if _, err := conn.Exec(ctx, bootstrapSQL); err != nil {
		return fmt.Errorf("bootstrap roles: %w", err)
	}
	roles := make([]string, 0, len(passwords))
	for role := range passwords {
		roles = append(roles, role)
	}
	sort.Strings(roles)
	for _, role := range roles {
		if err := login(ctx, conn, role, passwords[role]); err != nil {
			return fmt.Errorf("bootstrap role %s: %w", role, err)
		}
	}
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&exists); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()+" OWNER "+Owner); err != nil {
			return fmt.Errorf("bootstrap database %s: %w", database, err)
		}
	}
	if err := seal(ctx, conn.Config(), database); err != nil {
		return fmt.Errorf("bootstrap database %s: %w", database, err)
	}
	return nil
}

// seal takes from PUBLIC what PostgreSQL gives it in a new database: temporary objects, which
// shadow those that the owner's functions mean, and before PostgreSQL 15 the schema public. The
// schema belongs to the database, so that one is entered.
func seal(ctx context.Context, config *pgx.ConnConfig, database string) error {
	config.Database = database
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "REVOKE TEMPORARY ON DATABASE "+pgx.Identifier{database}.Sanitize()+" FROM PUBLIC; "+
		"DO $$ BEGIN IF to_regnamespace('public') IS NOT NULL THEN REVOKE CREATE ON SCHEMA public FROM PUBLIC; END IF; END $$")
	return err
}

// login creates a role that may log in, or changes its password. DDL takes no
// parameters, so format() quotes on the server.
func login(ctx context.Context, conn *pgx.Conn, role, password string) error {
	const statement = `SELECT format(CASE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = $1)
		THEN 'ALTER ROLE %I LOGIN PASSWORD %L' ELSE 'CREATE ROLE %I LOGIN PASSWORD %L' END, $1::text, $2::text)`
	var ddl string
	if err := conn.QueryRow(ctx, statement, role, password).Scan(&ddl); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, ddl); err != nil {
		return err
	}
	if role == Owner {
		return nil
	}
	name := pgx.Identifier{role}.Sanitize()
	// What a connection sets by itself, unless a pooler is in between.
	limits := fmt.Sprintf("ALTER ROLE %[1]s SET statement_timeout = '%[2]ds'; "+
		"ALTER ROLE %[1]s SET idle_in_transaction_session_timeout = '%[3]ds'",
		name, int(timeoutOf(role).Seconds()), int(idleInTransaction.Seconds()))
	if _, err := conn.Exec(ctx, limits); err != nil || role == AuditReader {
		return err
	}
	_, err := conn.Exec(ctx, "GRANT "+Group+" TO "+name)
	return err
}

// timeoutOf is the limit for a statement of a role's.
func timeoutOf(role string) time.Duration {
	if role == AuditReader { // reads months
		return AuditTimeout
	}
	return defaultTimeout
}

// As returns storeURL with another user and password.
func As(storeURL, user, password string) (string, error) {
	u, err := url.Parse(storeURL)
	if err != nil {
		return "", fmt.Errorf("postgres URL: %w", err)
	}
	u.User = url.UserPassword(user, password)
	return u.String(), nil
}
