// Package write does a keyed write once: the row of its Idempotency-Key, the effect, the audit
// row and the stored answer commit in one transaction of the owner's PostgreSQL, so that no
// crash loses or doubles a write (CONTRACT.md 5.2; draft-ietf-httpapi-idempotency-key-header).
// A write that calls a second system in the middle takes two transactions: Begin claims the key for
// a while, with a lease, and persists what the write is about, Finish stores the answer (SPEC.md 7.2). The
// package owns the table of keys in each service's schema. It refuses to call a second system
// itself, and to store a refusal: that frees the key.
package write

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
)

const (
	// Wait is how long a second caller with the same key waits for the first.
	Wait = 5 * time.Second
	// deadlineMargin is what a second caller keeps of its own deadline, to be told why.
	deadlineMargin = 500 * time.Millisecond
	// defaultRetention is how long a tool's key is kept.
	defaultRetention = 72 * time.Hour
	// derivedFor is how long a derived key holds, from the beginning of the transaction that wrote: as long as somebody tries again
	// who did not hear the answer. Later the same call means another write.
	derivedFor = 10 * time.Minute
	// derivedPrefix begins the keys that are derived, and none that a caller can send: those are printable.
	derivedPrefix = "derived\t"
)

// Key is the scope of an Idempotency-Key, and what it was first used for.
type Key struct {
	// Principal is whose key it is, such as the id of a credential.
	Principal string
	// Operation is part of the scope where it is not empty; a key is then another one for
	// each operation.
	Operation string
	// Key is what the caller sent.
	Key string
	// Fingerprint stands for the input: the same key with another one is refused.
	Fingerprint [sha256.Size]byte
}

// derived is the key of a call whose caller has sent none.
func derived(externalUser string, fingerprint [sha256.Size]byte) string {
	of := sha256.Sum256(append(fingerprint[:], externalUser...))
	return derivedPrefix + hex.EncodeToString(of[:])
}

// holds is how long the row of a key stands for it, in seconds; 0 for as long as it is there.
func (k Key) holds() float64 {
	if strings.HasPrefix(k.Key, derivedPrefix) {
		return derivedFor.Seconds()
	}
	return 0
}

// Same tells whether both are one key, whatever it was used for.
func (k Key) Same(other Key) bool {
	other.Fingerprint = k.Fingerprint
	return k == other
}

// Reused is the refusal of a tool's key that was used before for another input.
func Reused() error {
	return fault.New(fault.Idempotency, "This Idempotency-Key was used before with another input. Send a new key for a new call.")
}

// Options say how a service keeps its keys.
type Options struct {
	// Service is the discovery name of whose they are.
	Service string
	// Kept is how long a key is kept; 0 means 72 hours.
	Kept time.Duration
	// Reused makes the refusal of a key that was used for another input; nil is Reused.
	Reused func() error
}

// Keys are the keys of a service.
type Keys struct {
	pool    *pgxpool.Pool
	options Options
	table   string
}

// New prepares the keys of the service whose pool it is; it touches no database.
func New(pool *pgxpool.Pool, o Options) *Keys {
	if o.Kept == 0 {
		o.Kept = defaultRetention
	}
	if o.Reused == nil {
		o.Reused = Reused
	}
	return &Keys{pool, o, pgx.Identifier{postgres.Schema(o.Service), "idempotency_keys"}.Sanitize()}
}

// Effect changes the service's tables within the key's transaction, and returns the answer that
// is stored with the row of the audit log. The key is claimed with its first statement: up to there, and to that statement, it runs
// also where another call has the key, and is rolled back.
type Effect func(context.Context, pgx.Tx) (tool.Result, audit.Entry, error)

// Once runs effect at most once for a key: the key's row, the effect, the audit row and the stored
// answer commit together. A second caller waits on the unique index, at most Wait and not until its
// own deadline, and gets the stored answer, marked as replayed. An error of effect rolls everything
// back and frees the key.
//
// Besides effect's own errors it returns E_IDEMPOTENCY (or what Options.Reused makes) when the key
// was used for another input, E_CONFLICT with details.code REQUEST_IN_PROGRESS when the first
// call still runs, and E_DB when the store cannot be reached.
func (k *Keys) Once(ctx context.Context, key Key, effect Effect) (answer tool.Result, err error) {
	err = postgres.Atomically(ctx, k.pool, pgx.TxOptions{}, func(tx *postgres.Tx) error {
		boundWaits(tx, lockWait(ctx))
		looked := false
		// It goes with the first statement of effect, which is in vain where another has the key.
		claim := tx.Check(`INSERT INTO `+k.table+` AS old (credential_id, tool, key, fingerprint) VALUES ($1, $2, $3, $4)
			ON CONFLICT `+k.onConflict(key), key.Principal, key.Operation, key.Key, key.Fingerprint[:])
		claim.Fn = func(r pgx.BatchResults) error {
			tag, err := r.Exec()
			if looked = true; err != nil {
				tx.Fail(claimError(err))
			} else if tag.RowsAffected() == 0 {
				tx.Fail(errTaken)
			}
			return err
		}
		var entry audit.Entry
		if answer, entry, err = effect(ctx, tx); err != nil {
			if !looked {
				err = cmp.Or(tx.Send(ctx), err) // an earlier answer comes before what is refused now
			}
			return err
		}
		if err := audit.Append(ctx, tx, entry); err != nil {
			return err
		}
		tx.Queue(`UPDATE `+k.table+` SET data = $4, count = $5, status = $6 WHERE credential_id = $1 AND tool = $2 AND key = $3`,
			key.Principal, key.Operation, key.Key, answer.Data, answer.Count, max(answer.Status, http.StatusOK))
		return nil
	})
	if errors.Is(err, errTaken) {
		answer, err = k.replay(ctx, k.pool, key)
	}
	if err != nil {
		return tool.Result{}, postgres.Explain(err, k.options.Service)
	}
	return answer, nil
}

// errTaken says that there is a row of the key.
var errTaken = errors.New("the key is taken")

// boundWaits bounds each wait for a lock in a transaction.
func boundWaits(tx *postgres.Tx, wait time.Duration) {
	tx.Queue(`SELECT set_config('lock_timeout', $1, true)`, strconv.FormatInt(wait.Milliseconds(), 10))
}

// onConflict is what becomes of the row of a key that is there already: nothing, unless it holds no longer; then it is as if there were
// none. Of several who find it so at once one has it, and the others wait for that one and find the row anew.
func (k *Keys) onConflict(key Key) string {
	if key.holds() == 0 {
		return `DO NOTHING`
	}
	return fmt.Sprintf(`(credential_id, tool, key) DO UPDATE SET fingerprint = excluded.fingerprint, data = NULL, count = 0,
		created_at = excluded.created_at WHERE old.state = 'done' AND old.created_at < now() - make_interval(secs => %g)`, key.holds())
}

// lockWait is how long a caller waits for the row of a key: Wait, and so that something of its own deadline is left.
func lockWait(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return Wait
	}
	return max(min(Wait, time.Until(deadline)-deadlineMargin), time.Millisecond) // 0 would wait for ever
}

// Stored returns the answer of an earlier call with the key, if one was stored: a look
// before the checks that a replay must not fail on, such as asking a neighbour. The
// decision stays with Once or Begin: a claim that is not finished has no answer. It
// returns E_IDEMPOTENCY as Once does.
func (k *Keys) Stored(ctx context.Context, key Key) (answer tool.Result, found bool, err error) {
	return k.StoredIn(ctx, k.pool, key)
}

// StoredIn is Stored within a transaction.
func (k *Keys) StoredIn(ctx context.Context, q postgres.Querier, key Key) (answer tool.Result, found bool, err error) {
	r, err := k.read(ctx, q, key)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && r.running {
		return tool.Result{}, false, nil
	}
	return r.answer, err == nil, postgres.Explain(err, k.options.Service)
}

// replay is the answer of the call that had the key first.
func (k *Keys) replay(ctx context.Context, q postgres.Querier, key Key) (tool.Result, error) {
	r, err := k.read(ctx, q, key)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		// The first call was refused, or the row was reaped, between our two statements.
		return tool.Result{}, inProgress(err)
	case err != nil:
		return tool.Result{}, err
	case r.running:
		return tool.Result{}, inProgress(nil)
	}
	return r.answer, nil
}

// keyRow is what is stored of a key: an answer, or a claim that is running, whose lease may be over.
type keyRow struct {
	answer        tool.Result
	resource      string
	running, over bool
}

// read reads the row of a key. It returns pgx.ErrNoRows without one, and what Options.Reused makes for another input's.
func (k *Keys) read(ctx context.Context, q postgres.Querier, key Key) (keyRow, error) {
	r := keyRow{answer: tool.Result{Head: tool.Head{Replayed: true}}}
	var fingerprint []byte
	var age float64
	err := q.QueryRow(ctx, `SELECT fingerprint, data, count, status, resource, state = 'running',
			coalesce(lease_until < clock_timestamp(), false), extract(epoch FROM clock_timestamp() - created_at)::float8
			FROM `+k.table+` WHERE credential_id = $1 AND tool = $2 AND key = $3
			AND ($4 = 0 OR created_at >= now() - make_interval(secs => $4))`, key.Principal, key.Operation, key.Key, key.holds()).
		Scan(&fingerprint, &r.answer.Data, &r.answer.Count, &r.answer.Status, &r.resource, &r.running, &r.over, &age)
	switch {
	case err != nil:
		return keyRow{}, err
	case string(fingerprint) != string(key.Fingerprint[:]):
		return keyRow{}, k.options.Reused()
	}
	r.answer.Age = time.Duration(age * float64(time.Second))
	return r, nil
}

// claimError tells a wait for a row that took too long from other failures.
func claimError(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" { // lock_not_available
		return inProgress(err)
	}
	return err
}

// inProgress is the refusal of a key whose first call has not ended.
func inProgress(cause error) error {
	return fault.New(fault.Conflict, "A call with this Idempotency-Key is still running. Send it again in a second.").
		With(map[string]string{"code": fault.RequestInProgress}).After(time.Second).Because(cause)
}
