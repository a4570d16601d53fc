package postgres

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsUnique tells whether err is a unique violation of the named constraint; an
// empty name matches any.
func IsUnique(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && (constraint == "" || pg.ConstraintName == constraint)
}

// isDuplicateObject tells whether err says that two sessions created the same object at
// once: IF NOT EXISTS does not save the slower one from that. A table is a type of the same
// name, too, and which of the two the server finds first depends on the moment.
func isDuplicateObject(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains([]string{"23505", "42P06", "42P07", "42710"}, pg.Code)
}

// isLockTimeout tells whether err says that a lock was not had in time, or never could be (a deadlock).
func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01")
}

// Explain is Fault for a service's own store: where the trouble is the set-up, the error names
// what to do about it. service is the discovery name.
func Explain(err error, service string) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "28000", "28P01", "3D000": // no such log-in, wrong password, no such database
			err = fmt.Errorf("HUB_WRITE_STORE_URL does not let %s in: %w", service, err)
		case "42P01", "42703", "3F000": // undefined table, column, schema
			return fmt.Errorf("the store lacks tables of %[1]s; run `%[1]s migrate`: %[2]w", service, err)
		case "42501": // insufficient privilege
			return fmt.Errorf("HUB_WRITE_STORE_URL has to name the role %s: %w", ServiceRole(service), err)
		}
	}
	return Fault(err)
}
