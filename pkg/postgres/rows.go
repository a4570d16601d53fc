package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// One reads the only row of a query, and returns pgx.ErrNoRows without one. read is one of pgx's,
// such as pgx.RowToStructByNameLax, or the caller's own.
func One[T any](ctx context.Context, q Querier, read pgx.RowToFunc[T], sql string, args ...any) (row T, err error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return row, err
	}
	return pgx.CollectExactlyOneRow(rows, read)
}

// All reads every row of a query.
func All[T any](ctx context.Context, q Querier, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}
