package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/admin/auditlog"
)

// Reader reads the audit log, and rolls it up, as the role hub_audit: no service's own role may.
type Reader struct {
	pool   *pgxpool.Pool
	forget func() // ends the pool's gauges
	now    func() time.Time
	// budget is how long a search looks for the rest of its page.
	budget time.Duration
}

// searchBudget leaves the page the rest of 200 ms.
const searchBudget = 120 * time.Millisecond

// OpenReader returns a reader that logs in as url says (HUB_AUDIT_URL). It waits for no database; Close it.
func OpenReader(url string, now func() time.Time) (*Reader, error) {
	// Pages take a connection or two, the jobs one each.
	pool, err := postgres.Open(postgres.Config{URL: url, MaxConns: postgres.AuditConnections, StatementTimeout: postgres.AuditTimeout,
		ReadOnly: true})
	if err != nil {
		return nil, errors.New("HUB_AUDIT_URL is not a PostgreSQL URL")
	}
	return &Reader{pool: pool, forget: postgres.Observe("audit reader", pool), now: now, budget: searchBudget}, nil
}

// Close closes the connections.
func (r *Reader) Close() {
	r.forget()
	r.pool.Close()
}

// callColumns are the columns of auditlog.Call.
const callColumns = `id::text AS id, at, request_id, trace_id, service, external_user_id, credential_id, tool, outcome, count, took_ms,
	input_hash, coalesce(detail::text, '') AS detail, writer`

// Call returns a row by its id and time; E_NOT_FOUND when there is none, or none any more.
// The time is asked for as well, because it says in which partition the row is.
func (r *Reader) Call(ctx context.Context, p auditlog.Position) (auditlog.Call, error) {
	missing := fault.New(fault.NotFound, "The audit log has no such row. Rows are kept for a time only.")
	if !p.IsRow() {
		return auditlog.Call{}, missing
	}
	row, err := postgres.One(ctx, r.pool, pgx.RowToStructByName[auditlog.Call],
		`SELECT `+callColumns+` FROM audit.calls WHERE id = $1::uuid AND at = $2`, p.ID, p.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return auditlog.Call{}, missing
	}
	return row, explainReader(err)
}

// Retention is how long rows are kept, in days.
func (r *Reader) Retention(ctx context.Context) (days int, err error) {
	err = r.pool.QueryRow(ctx, `SELECT days FROM audit.policy`).Scan(&days)
	return days, explainReader(err)
}

// explainReader makes a fault of what the driver says, and names the setting where the trouble is the set-up.
// It is no fault then, so readers of pages get E_INTERNAL and the log gets the setting's name.
func explainReader(err error) error {
	var pg *pgconn.PgError
	// Invalid authorization, wrong password, no such database, insufficient privilege.
	if errors.As(err, &pg) && slices.Contains([]string{"28000", "28P01", "3D000", "42501"}, pg.Code) {
		return fmt.Errorf("HUB_AUDIT_URL has to name the role %s and its password: %w", postgres.AuditReader, err)
	}
	return postgres.Fault(err)
}
