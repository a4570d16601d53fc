package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/auth"
)

// sessionColumns are what is read of a session; the hash of its secret is looked for and never read.
const sessionColumns = `s.id, s.user_id, s.method, s.address, s.agent,
	s.created_at, s.last_seen_at AS last_seen, s.expires_at, s.revoked_at`

// AddSession commits a new session of u, the end of the one that it replaces, if any, and that its browser is known.
func (s *Store) AddSession(ctx context.Context, n auth.Session, h auth.Hash, u auth.User, replaces string, k auth.Known,
	e audit.Entry) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		// The user's lock settles the race with a change that ends all sessions: it finds this
		// The password's hash is compared (optimistic locking), because the password was checked outside of this transaction.
		// one, or this one finds the change.
		tag, err := tx.Exec(ctx, `UPDATE auth.users SET last_login_at = $2 WHERE id = $1 AND password_hash = $3 AND disabled_at IS NULL`,
			n.UserID, n.CreatedAt, u.PasswordHash)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.AuthInvalid, "Your account was changed at this very moment. Sign in again.")
		}
		// The browser has one session at a time. One that was ended by somebody keeps the moment of that.
		if replaces != "" {
			_, err := tx.Exec(ctx, `UPDATE auth.sessions SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL`, replaces, n.CreatedAt)
			if err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO auth.sessions (id, hash, user_id, method, address, agent, created_at, last_seen_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			n.ID, h[:], n.UserID, n.Method, n.Address, n.Agent, n.CreatedAt, n.LastSeen, n.ExpiresAt)
		if err != nil {
			return err
		}
		if err := addBrowser(ctx, tx, n, k); err != nil {
			return err
		}
		return audit.Append(ctx, tx, e)
	})
}

// addBrowser makes the browser of a session known, in the place of what it was known by, and forgets those of the user
// that are one too many. The user is locked.
// A user has auth.KnownBrowsers of them at most, the latest, this one included.
func addBrowser(ctx context.Context, tx pgx.Tx, n auth.Session, k auth.Known) error {
	if _, err := tx.Exec(ctx, `DELETE FROM auth.browsers WHERE user_id = $1 AND hash IN (
		(SELECT hash FROM auth.browsers WHERE user_id = $1 AND hash <> $2 ORDER BY created_at DESC, hash OFFSET $3 - 1)
		UNION ALL SELECT $2::bytea)`, n.UserID, k.Replaces[:], auth.KnownBrowsers); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO auth.browsers (hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)`,
		k.Hash[:], n.UserID, n.CreatedAt, k.ExpiresAt)
	return err
}

// KnownBrowser returns the address of the user whose browser it is known to be.
// known is false for a secret that nobody was given, and for one that has expired.
func (s *Store) KnownBrowser(ctx context.Context, h auth.Hash, now time.Time) (email string, known bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT u.email FROM auth.browsers b JOIN auth.users u ON u.id = b.user_id
		WHERE b.hash = $1 AND b.expires_at > $2`, h[:], now).Scan(&email)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	return email, err == nil, explain(err)
}

// sessionUserRow is a row of sessionColumns with its user.
type sessionUserRow struct {
	auth.Session
	Email, Name             string
	Roles                   []string
	PasswordHash, CreatedBy string
	UserCreatedAt           time.Time
	DisabledAt, LastLogin   *time.Time
}

// user is the user of the row.
func (r sessionUserRow) user() auth.User {
	return auth.User{ID: r.UserID, Email: r.Email, Name: r.Name, Roles: r.Roles, PasswordHash: r.PasswordHash,
		CreatedBy: r.CreatedBy, CreatedAt: r.UserCreatedAt, DisabledAt: r.DisabledAt, LastLogin: r.LastLogin}
}

// FindSession returns a session with its user.
// It is one read by the unique index sessions_hash, which a request of a browser costs. Whether the session holds is
// for the caller to say.
func (s *Store) FindSession(ctx context.Context, h auth.Hash) (found auth.Session, u auth.User, ok bool, err error) {
	row, err := postgres.One(ctx, s.pool, pgx.RowToStructByName[sessionUserRow], `SELECT `+sessionColumns+`,
		u.email, u.name, u.roles, u.password_hash, u.created_by, u.created_at AS user_created_at, u.disabled_at, u.last_login_at AS last_login
		FROM auth.sessions s JOIN auth.users u ON u.id = s.user_id WHERE s.hash = $1`, h[:])
	if errors.Is(err, pgx.ErrNoRows) {
		return found, u, false, nil
	}
	return row.Session, row.user(), err == nil, explain(err)
}

// SeeSession sets LastSeen, never backwards. Whoever finds the row locked leaves it to the other.
// So the requests of one page, which come at once, do not queue for the row.
func (s *Store) SeeSession(ctx context.Context, id string, at time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE auth.sessions SET last_seen_at = $2 WHERE id = (SELECT id FROM auth.sessions
		WHERE id = $1 AND last_seen_at < $2 FOR NO KEY UPDATE SKIP LOCKED)`, id, at)
	return explain(err)
}

// EndSession ends a session of a user, or all but the one kept when id is empty.
// A session that has ended counts for nothing, and the audit entry is written in any case.
func (s *Store) EndSession(ctx context.Context, userID, id, keep string, at time.Time, e audit.Entry) (ended int, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE auth.sessions SET revoked_at = $4 WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $4
			AND CASE WHEN $2::text <> '' THEN id = $2::text ELSE id <> $3::text END`, userID, id, keep, at)
		if err != nil {
			return err
		}
		ended = int(tag.RowsAffected())
		e.Count = ended
		return audit.Append(ctx, tx, e)
	})
	return ended, err
}

// Sessions lists those of a user that have not been ended and are not over, last seen first.
// At most 100, by the index sessions_user.
func (s *Store) Sessions(ctx context.Context, userID string, now time.Time) ([]auth.Session, error) {
	all, err := postgres.All(ctx, s.pool, pgx.RowToStructByName[auth.Session], `SELECT `+sessionColumns+` FROM auth.sessions s
		WHERE s.user_id = $1 AND s.revoked_at IS NULL AND s.expires_at > $2 ORDER BY s.last_seen_at DESC, s.id DESC LIMIT 100`, userID, now)
	return all, explain(err)
}

// Reap deletes sessions that were over before a moment, and what means nothing any more by now.
// Each statement stands alone: what one of them has deleted stays deleted when the next one fails.
func (s *Store) Reap(ctx context.Context, before, now time.Time) error {
	for sql, at := range map[string]time.Time{
		`DELETE FROM auth.sessions WHERE expires_at < $1`:  before,
		`DELETE FROM auth.browsers WHERE expires_at <= $1`: now,
		`DELETE FROM auth.throttles WHERE full_at <= $1`:   now,
		// What has expired signs nothing any more.
		`UPDATE auth.app_secrets SET sealed = NULL, revoked_at = expires_at WHERE expires_at <= $1 AND revoked_at IS NULL`:         now,
		`UPDATE auth.app_webhook_secrets SET sealed = NULL, revoked_at = expires_at WHERE expires_at <= $1 AND revoked_at IS NULL`: now,
		// What is over for a while is still shown to administrators.
		`DELETE FROM auth.invitations WHERE expires_at < $1`: before,
	} {
		if _, err := s.pool.Exec(ctx, sql, at); err != nil {
			return explain(err)
		}
	}
	return nil
}

// errThrottled leaves Take's transaction without a trace: whoever types names at random must
// not fill the table with them.
var errThrottled = errors.New("throttled")

// Take takes a token of each bucket, or of none. Buckets are locked in one order, so that two
// takers never wait for each other in a circle.
// This is GCRA: a bucket is one time, at which it is full again. A token moves it ahead by Every; the bucket is empty when it lies
// more than Burst of these ahead of now. empty names the bucket that has to be waited for longest.
func (s *Store) Take(ctx context.Context, now time.Time, buckets []auth.Bucket) (wait time.Duration, empty string, err error) {
	buckets = byName(buckets)
	names := make([]string, len(buckets))
	for i, b := range buckets {
		names[i] = b.Name
	}
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		wait, empty = 0, ""
		// A row is made, or locked as it is, so that two first takers meet on its lock.
		rows, err := postgres.All(ctx, tx, pgx.RowToStructByName[throttleRow], `INSERT INTO auth.throttles (bucket, full_at)
			SELECT unnest($1::text[]), $2 ON CONFLICT (bucket) DO UPDATE SET full_at = greatest(throttles.full_at, excluded.full_at)
			RETURNING bucket, full_at`, names, now)
		if err != nil {
			return err
		}
		full := make([]time.Time, len(rows))
		for i, b := range buckets {
			row := slices.IndexFunc(rows, func(r throttleRow) bool { return r.Bucket == b.Name })
			full[i] = rows[row].FullAt.Add(b.Every)
			if w := full[i].Sub(now) - time.Duration(b.Burst)*b.Every; w > wait {
				wait, empty = w, b.Name
			}
		}
		if wait > 0 {
			return errThrottled
		}
		_, err = tx.Exec(ctx, `UPDATE auth.throttles t SET full_at = n.full_at
			FROM unnest($1::text[], $2::timestamptz[]) AS n (bucket, full_at) WHERE t.bucket = n.bucket`, names, full)
		return err
	})
	if errors.Is(err, errThrottled) {
		err = nil
	}
	return wait, empty, err
}

// throttleRow is a bucket: when it is full again.
type throttleRow struct {
	Bucket string
	FullAt time.Time
}

// byName sorts buckets by name: the order in which they are locked.
func byName(buckets []auth.Bucket) []auth.Bucket {
	return slices.SortedFunc(slices.Values(buckets), func(a, b auth.Bucket) int { return strings.Compare(a.Name, b.Name) })
}

// Return gives the tokens back.
// A bucket that was reaped or refilled since then has no row, and is full without it.
func (s *Store) Return(ctx context.Context, buckets []auth.Bucket) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		for _, b := range byName(buckets) {
			_, err := tx.Exec(ctx, `UPDATE auth.throttles SET full_at = full_at - make_interval(secs => $2) WHERE bucket = $1`,
				b.Name, b.Every.Seconds())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Refill makes a bucket full, and those whose name begins with its name and a space.
// In "C" order '!' follows the space, so the range is all names with that beginning, and the primary key finds them.
func (s *Store) Refill(ctx context.Context, b auth.Bucket) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM auth.throttles WHERE bucket = $1 OR bucket > $1 || ' ' AND bucket < $1 || '!'`, b.Name)
	return explain(err)
}

// Record commits an audit entry alone.
func (s *Store) Record(ctx context.Context, e audit.Entry) error {
	return explain(audit.Append(ctx, s.pool, e))
}
