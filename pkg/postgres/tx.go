package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Tx is a transaction whose statements travel together, since each round trip to a store that is far away costs as much as
// a hundred statements: what is queued is sent ahead of the next statement whose outcome is asked for, BEGIN with the first of them and
// COMMIT with the last. It is a pgx.Tx beside that, but Atomically alone ends it.
type Tx struct {
	pgx.Tx // nil until something was sent
	conn   *pgx.Conn
	unsent *pgx.Batch
	// checked tells that COMMIT waits for the outcome of something unsent.
	checked bool
	// failed is what Fail was told, broken what has ended the transaction at the server, or kept it from beginning.
	failed, broken error
}

// Atomically runs do in a transaction. An error of do, or what Fail was told, rolls back and is returned.
func Atomically(ctx context.Context, pool *Pool, o pgx.TxOptions, do func(*Tx) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes it within a transaction, such as after a panic
	t := &Tx{conn: conn.Conn(), unsent: &pgx.Batch{}}
	t.unsent.BeginTx(o)
	if err = do(t); err == nil {
		err = t.commit(ctx)
	}
	if t.failed != nil {
		err = t.failed
	}
	if err != nil && t.Tx != nil && t.conn.PgConn().TxStatus() != 'I' {
		_ = t.Tx.Rollback(ctx) // there is an error already
	}
	return err
}

// commit sends what is left, with COMMIT where nothing of that can forbid it.
func (t *Tx) commit(ctx context.Context) error {
	if t.checked {
		if err := t.Send(ctx); err != nil {
			return err
		}
	}
	tag, err := t.Exec(ctx, `COMMIT`)
	if err == nil && tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return err
}

// Queue adds a statement to what is sent next. Its error is that of whatever sends it; what a function of the QueuedQuery reads of the
// answer is there after that.
func (t *Tx) Queue(sql string, args ...any) *pgx.QueuedQuery { return t.unsent.Queue(sql, args...) }

// Check is Queue for a statement whose function may call Fail: nothing is committed before its outcome is known.
func (t *Tx) Check(sql string, args ...any) *pgx.QueuedQuery {
	t.checked = true
	return t.Queue(sql, args...)
}

// Fail makes err the end of the transaction, whatever else becomes of it.
func (t *Tx) Fail(err error) { t.failed = err }

// Send sends what is queued, and returns what it has failed with; so does whatever is sent after that.
func (t *Tx) Send(ctx context.Context) error {
	if t.failed != nil || t.broken != nil || t.unsent.Len() == 0 {
		return cmp.Or(t.failed, t.broken)
	}
	batch := t.unsent
	t.unsent, t.checked = &pgx.Batch{}, false
	results := t.conn.SendBatch(ctx, batch)
	if tx := results.Tx(); tx != nil {
		t.Tx = tx
	}
	t.broken = results.Close()
	return cmp.Or(t.failed, t.broken)
}

// Conn implements pgx.Tx.
func (t *Tx) Conn() *pgx.Conn { return t.conn }

// Exec implements pgx.Tx.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	t.Queue(sql, args...).Exec(func(said pgconn.CommandTag) error {
		tag = said
		return nil
	})
	return tag, t.Send(ctx)
}

// QueryRow implements pgx.Tx: Scan sends it.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return queuedRow{ctx, t, t.Queue(sql, args...)}
}

// queuedRow is a row that is asked for when it is read.
type queuedRow struct {
	ctx context.Context
	t   *Tx
	*pgx.QueuedQuery
}

// Scan implements pgx.Row.
func (r queuedRow) Scan(dest ...any) (err error) {
	r.QueuedQuery.QueryRow(func(row pgx.Row) error {
		err = row.Scan(dest...)
		return nil // no row is no failure of the transaction
	})
	if failed := r.t.Send(r.ctx); failed != nil {
		return failed
	}
	return err
}

// Query implements pgx.Tx. Its rows may be many, and are read as they come: so it goes by itself.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.Send(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Query(ctx, sql, args...)
}

// SendBatch implements pgx.Tx.
func (t *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.Send(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return t.Tx.SendBatch(ctx, b)
}

// CopyFrom implements pgx.Tx.
func (t *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.Send(ctx); err != nil {
		return 0, err
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

// Later runs a statement of whose outcome nothing but its error matters: in a Tx it is queued.
func Later(ctx context.Context, q Querier, sql string, args ...any) error {
	if t, ok := q.(*Tx); ok {
		t.Queue(sql, args...)
		return nil
	}
	_, err := q.Exec(ctx, sql, args...)
	return err
}
