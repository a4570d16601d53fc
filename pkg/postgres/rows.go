package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// One reads the only row of a query, and returns pgx.ErrNoRows without one. read is one of pgx's,
// such as pgx.RowToStructByNameLax, or the caller's own.
func One[T any](ctx context.Context, q Querier, read pgx.RowToFunc[T], sql string, args ...any) (row T, err error) {
	list, err := All(ctx, q, read, sql, args...)
	switch {
	case err != nil:
		return row, err
	case len(list) == 0:
		return row, pgx.ErrNoRows
	case len(list) > 1:
		return row, pgx.ErrTooManyRows
	}
	return list[0], nil
}

// All reads every row of a query.
func All[T any](ctx context.Context, q Querier, read pgx.RowToFunc[T], sql string, args ...any) (list []T, err error) {
	if t, ok := q.(*Tx); ok {
		Collect(t.Queue(sql, args...), read, &list)
		return list, t.Send(ctx)
	}
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}

// Collect has every row of a queued query read into a list when it is sent.
func Collect[T any](q *pgx.QueuedQuery, read pgx.RowToFunc[T], into *[]T) {
	q.Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, read)
		return err
	})
}
