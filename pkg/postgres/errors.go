package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsUnique tells whether err is a unique violation of the named constraint; an
// empty name matches any.
func IsUnique(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && (constraint == "" || pg.ConstraintName == constraint)
}

// alreadyThere tells whether err says that two sessions created the same object at
// once: IF NOT EXISTS does not save the slower one from that.
func alreadyThere(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "42P06" || pg.Code == "42P07")
}
