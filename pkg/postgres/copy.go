package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// insertsAtOnce is how many rows are on their way at a time where COPY cannot be used.
const insertsAtOnce = 500

// Copy loads rows into a table by COPY. Behind a pooler it inserts them, some hundreds in a round trip: the driver sends rows before
// the server has asked for them, PgBouncer 1.26 throws such rows away, and then the server waits for them for ever.
func Copy(ctx context.Context, tx pgx.Tx, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) error {
	if tx.Conn().PgConn().CustomData()[poolerParam] == nil {
		_, err := tx.CopyFrom(ctx, table, columns, rows)
		return err
	}
	quoted, places := make([]string, len(columns)), make([]string, len(columns))
	for i, column := range columns {
		quoted[i], places[i] = pgx.Identifier{column}.Sanitize(), fmt.Sprintf("$%d", i+1)
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table.Sanitize(), strings.Join(quoted, ", "), strings.Join(places, ", "))
	for more := true; more; {
		batch := &pgx.Batch{}
		for batch.Len() < insertsAtOnce {
			if more = rows.Next(); !more {
				break
			}
			values, err := rows.Values()
			if err != nil {
				return err
			}
			batch.Queue(insert, slices.Clone(values)...)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
	}
	return rows.Err()
}
