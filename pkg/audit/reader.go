package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
)

// Reader reads the log, and rolls it up, as the role hub_audit: no service's own role may.
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
	pool, err := postgres.Open(postgres.Config{URL: url, MaxConns: postgres.AuditConnections, StatementTimeout: postgres.AuditTimeout})
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

// Call is a row of the log.
type Call struct {
	ID             string    `db:"id"`
	At             time.Time `db:"at"`
	RequestID      string    `db:"request_id"`
	TraceID        string    `db:"trace_id"`
	Service        string    `db:"service"`
	ExternalUserID string    `db:"external_user_id"`
	CredentialID   string    `db:"credential_id"`
	Tool           string    `db:"tool"`
	Outcome        string    `db:"outcome"`
	Count          int       `db:"count"`
	TookMS         int       `db:"took_ms"`
	InputHash      []byte    `db:"input_hash"`
	// Detail is JSON, or empty.
	Detail string `db:"detail"`
	// Writer is the database role that wrote the row, whatever service the row names.
	Writer string `db:"writer"`
}

const callColumns = `id::text AS id, at, request_id, trace_id, service, external_user_id, credential_id, tool, outcome, count, took_ms,
	input_hash, coalesce(detail::text, '') AS detail, writer`

// Call returns a row by its id and time; E_NOT_FOUND when there is none, or none any more.
func (r *Reader) Call(ctx context.Context, p Position) (Call, error) {
	missing := fault.New(fault.NotFound, "The audit log has no such row. Rows are kept for a time only.")
	if !isUUID(p.ID) {
		return Call{}, missing
	}
	row, err := postgres.One(ctx, r.pool, pgx.RowToStructByName[Call],
		`SELECT `+callColumns+` FROM audit.calls WHERE id = $1::uuid AND at = $2`, p.ID, p.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return Call{}, missing
	}
	return row, explain(err)
}

// Retention is how long rows are kept, in days.
func (r *Reader) Retention(ctx context.Context) (days int, err error) {
	err = r.pool.QueryRow(ctx, `SELECT days FROM audit.policy`).Scan(&days)
	return days, explain(err)
}

// Position is where a row is in the log. Its ID is empty for a moment without a row.
type Position struct {
	At time.Time
	ID string
}

// Position is the row's.
func (c Call) Position() Position { return Position{c.At, c.ID} }

// String is the form of a position in addresses: microseconds since 1970, and the id.
func (p Position) String() string {
	if p.At.IsZero() {
		return ""
	}
	if p.ID == "" {
		return fmt.Sprint(p.At.UnixMicro())
	}
	return fmt.Sprintf("%d-%s", p.At.UnixMicro(), p.ID)
}

// ParsePosition reads what String has written; false for anything else.
func ParsePosition(text string) (Position, bool) {
	micros, id, of := strings.Cut(text, "-")
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || n <= 0 || n > farthest || of && !isUUID(id) {
		return Position{}, false
	}
	return Position{time.UnixMicro(n).UTC(), id}, true
}

// farthest is a moment of the year 9999, in microseconds.
const farthest = 253_000_000_000_000_000

func isUUID(text string) bool {
	var u pgtype.UUID
	return len(text) == 36 && u.Scan(text) == nil
}

// explain makes a fault of what the driver says, and names the setting where the trouble is the set-up.
func explain(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && slices.Contains([]string{"28000", "28P01", "3D000", "42501"}, pg.Code) {
		return fmt.Errorf("HUB_AUDIT_URL has to name the role %s and its password: %w", postgres.AuditReader, err)
	}
	return postgres.Fault(err)
}
