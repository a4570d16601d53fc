package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
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

// Login is what a role logs in with.
type Login struct {
	Password string
	// Connections bounds those that the role has at a time, over all its processes; 0 for as many as there are.
	Connections int
}

// AuditConnections bounds the pool of the audit log's reader, in each process that has one.
const AuditConnections = 6

// Bootstrap creates what no service may create for itself: the owner role, the
// group role, the audit log's reader, one log-in role per service and the database, in which no role but the
// owner may make anything, not even temporarily. It needs a superuser, is safe to
// repeat, and gives the roles named their passwords, so that repeating it also rotates them.
func Bootstrap(ctx context.Context, superuserURL, database string, logins map[string]Login) error {
	conn, err := pgx.Connect(ctx, superuserURL)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// Two sessions that change a role or make a database at once fail; the lock ends with the connection. It is one of the
	// superuser's database, which no service's role may enter.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext('hub bootstrap'))"); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if _, err := conn.Exec(ctx, bootstrapSQL); err != nil {
		return fmt.Errorf("bootstrap roles: %w", err)
	}
	for _, role := range slices.Sorted(maps.Keys(logins)) {
		if _, err := conn.Exec(ctx, `SELECT pg_temp.hub_login($1, $2, $3)`, role, logins[role].Password, logins[role].Connections); err != nil {
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
	if err := revokePublic(ctx, conn.Config(), database); err != nil {
		return fmt.Errorf("bootstrap database %s: %w", database, err)
	}
	return nil
}

// revokePublic takes the functions and the schema of a database from PUBLIC.
func revokePublic(ctx context.Context, config *pgx.ConnConfig, database string) error {
	config.Database = database
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, bootstrapSQL+"; SELECT pg_temp.hub_seal()")
	return err
}
