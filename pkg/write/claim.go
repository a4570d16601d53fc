package write

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
)

// ErrTakenOver tells that a claim is no longer its holder's: the lease was over, and somebody else goes on, has finished
// or has freed the key. What the holder knows is old: it reads again.
var ErrTakenOver = errors.New("the claim of this Idempotency-Key was taken over")

// Claim is a key whose work goes on after the transaction that claimed it: a second system is called in the middle. Who
// claims persists in that transaction what the work is about, so that whoever takes it over can ask the second system
// for it.
type Claim struct {
	Key Key
	// Resource is what persist has named, such as the code of an order.
	Resource string
	// Resumed tells that somebody else began, and did not finish before the lease was over: the second system may
	// have been called.
	Resumed bool
	// Done tells that there is nothing left to do but to answer Answer.
	Done   bool
	Answer tool.Result

	lease string
}

// Persist stores what a claim is about, within the transaction that claims the key, and names it. As with an Effect, the key is claimed
// with its first statement.
type Persist func(context.Context, *postgres.Tx) (resource string, err error)

// Begin claims a key for as long as lease, and persists what the work is about in the same transaction. What it returns
// is the caller's to do, to Finish or to Release, unless it is Done: then an earlier call has done it, and Answer is the
// stored one, marked as replayed. A claim whose lease is over is taken over, by one caller alone, without persist. While
// it is another's, Begin waits for its answer, at most Wait and not until its own deadline. An error of persist rolls
// back and frees the key.
//
// Without a key there is nothing to be found again: persist runs in a transaction, and Finish and Release do nothing.
//
// Besides persist's own errors it returns what Options.Reused makes when the key was used for another input, E_CONFLICT
// with details.code REQUEST_IN_PROGRESS when another still works, and E_DB when the store cannot be reached.
func (k *Keys) Begin(ctx context.Context, key Key, lease time.Duration, persist Persist) (Claim, error) {
	until, pause := time.Now().Add(lockWait(ctx)), shortestPause
	for {
		claim, found, err := k.begin(ctx, key, lease, until, persist)
		for err == nil && found == heldByOther {
			if time.Until(until) < pause {
				return Claim{}, inProgress(nil)
			}
			select {
			case <-ctx.Done():
				return Claim{}, ctx.Err()
			case <-time.After(pause):
			}
			pause = min(2*pause, longestPause)
			claim, found, err = k.lookAt(ctx, k.pool, key)
		}
		switch {
		case err != nil:
			return Claim{}, postgres.Explain(err, k.options.Service)
		case found == held:
			return claim, nil
		case time.Now().After(until): // others were faster, again and again
			return Claim{}, inProgress(nil)
		}
	}
}

// How often who waits for another looks whether that one is done.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = 200 * time.Millisecond
)

// keyState is how a key stands for who wants it.
type keyState int

const (
	// held: there is a claim, of one's own or done.
	held keyState = iota
	// heldByOther: another works on it, and the lease runs.
	heldByOther
	// free: there is no row, or its lease is over.
	free
)

// begin is one try: what is free after it was so for a moment only.
func (k *Keys) begin(ctx context.Context, key Key, lease time.Duration, until time.Time, persist Persist) (
	claim Claim, found keyState, err error,
) {
	patience := max(time.Until(until), time.Millisecond) // 0 would wait for ever
	err = postgres.Atomically(ctx, k.pool, pgx.TxOptions{}, func(tx *postgres.Tx) (err error) {
		boundWaits(tx, patience)
		claim = Claim{Key: key}
		if key.Key == "" {
			claim.Resource, err = persist(ctx, tx)
			return err
		}
		looked := false
		// It goes with the first statement of persist, which is in vain where another has the key.
		tx.Check(`INSERT INTO `+k.table+` (credential_id, tool, key, fingerprint, state, lease, lease_until)
			VALUES ($1, $2, $3, $4, 'running', gen_random_uuid(), clock_timestamp() + $5) ON CONFLICT DO NOTHING RETURNING lease::text`,
			key.Principal, key.Operation, key.Key, key.Fingerprint[:], lease).QueryRow(func(row pgx.Row) error {
			looked = true
			if err := row.Scan(&claim.lease); errors.Is(err, pgx.ErrNoRows) {
				tx.Fail(errTaken)
			} else if err != nil {
				tx.Fail(claimError(err))
			}
			return nil
		})
		if claim.Resource, err = persist(ctx, tx); err != nil {
			if !looked {
				err = cmp.Or(tx.Send(ctx), err) // what an earlier call has begun comes before what is refused now
			}
			return err
		}
		tx.Queue(`UPDATE `+k.table+` SET resource = $4 WHERE credential_id = $1 AND tool = $2 AND key = $3`,
			key.Principal, key.Operation, key.Key, claim.Resource)
		return nil
	})
	if errors.Is(err, errTaken) {
		err = postgres.Atomically(ctx, k.pool, pgx.TxOptions{}, func(tx *postgres.Tx) (err error) {
			boundWaits(tx, patience)
			claim, found, err = k.takeOrLook(ctx, tx, key, lease)
			return err
		})
	}
	return claim, found, err
}

// takeOrLook is what begin does with a key that is there: it takes a claim over whose lease has ended, and looks at any other.
func (k *Keys) takeOrLook(ctx context.Context, tx pgx.Tx, key Key, lease time.Duration) (claim Claim, found keyState, err error) {
	if claim, found, err = k.lookAt(ctx, tx, key); err != nil || found != free {
		return claim, found, err
	}
	if claim, err = k.takeOver(ctx, tx, key, lease); errors.Is(err, pgx.ErrNoRows) {
		return Claim{}, free, nil
	}
	return claim, held, err
}

// lookAt reads the row of a key that somebody has.
func (k *Keys) lookAt(ctx context.Context, q postgres.Querier, key Key) (Claim, keyState, error) {
	r, err := k.read(ctx, q, key)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && r.running && r.over:
		return Claim{}, free, nil
	case err == nil && r.running:
		return Claim{}, heldByOther, nil
	}
	return Claim{Key: key, Resource: r.resource, Done: true, Answer: r.answer}, held, err
}

// takeOver takes a claim over whose lease is over; pgx.ErrNoRows when there is none, or somebody else was faster.
func (k *Keys) takeOver(ctx context.Context, q postgres.Querier, key Key, lease time.Duration) (Claim, error) {
	claim := Claim{Key: key, Resumed: true}
	err := q.QueryRow(ctx, `UPDATE `+k.table+` SET lease = gen_random_uuid(), lease_until = clock_timestamp() + $5
		WHERE credential_id = $1 AND tool = $2 AND key = $3 AND fingerprint = $4 AND state = 'running' AND lease_until < clock_timestamp()
		RETURNING resource, lease::text`, key.Principal, key.Operation, key.Key, key.Fingerprint[:], lease).Scan(&claim.Resource, &claim.lease)
	return claim, claimError(err)
}

// TakeOver takes over a claim that ExpiredClaims has returned, for as long as lease; ok is false when it is no longer left.
func (k *Keys) TakeOver(ctx context.Context, left Claim, lease time.Duration) (claim Claim, ok bool, err error) {
	claim, err = k.takeOver(ctx, k.pool, left.Key, lease)
	if errors.Is(err, pgx.ErrNoRows) {
		return Claim{}, false, nil
	}
	return claim, err == nil, postgres.Explain(err, k.options.Service)
}

// Finish stores the answer of a claim in the caller's transaction, beside what the work has changed: from its commit on the
// key is answered with it. It returns ErrTakenOver when the claim is no longer the caller's; the transaction is to be
// rolled back then.
func (k *Keys) Finish(ctx context.Context, tx pgx.Tx, claim Claim, answer tool.Result) error {
	return k.end(ctx, tx, claim, `UPDATE `+k.table+` SET state = 'done', lease = NULL, lease_until = NULL, data = $5, count = $6, status = $7
		WHERE credential_id = $1 AND tool = $2 AND key = $3 AND state = 'running' AND lease = $4`,
		answer.Data, answer.Count, max(answer.Status, http.StatusOK))
}

// Release frees the key of a claim, in the caller's transaction or by itself: the work was refused, and the same key may try
// again. It returns ErrTakenOver when the claim is no longer the caller's.
func (k *Keys) Release(ctx context.Context, q postgres.Querier, claim Claim) error {
	return k.end(ctx, q, claim, `DELETE FROM `+k.table+`
		WHERE credential_id = $1 AND tool = $2 AND key = $3 AND state = 'running' AND lease = $4`)
}

// end runs the statement that ends a claim, if it is still the caller's.
func (k *Keys) end(ctx context.Context, q postgres.Querier, claim Claim, sql string, more ...any) error {
	if claim.Key.Key == "" {
		return nil
	}
	if claim.lease == "" { // Done, or as ExpiredClaims returned it
		return ErrTakenOver
	}
	args := append([]any{claim.Key.Principal, claim.Key.Operation, claim.Key.Key, claim.lease}, more...)
	tag, err := q.Exec(ctx, sql, args...)
	if err != nil {
		return postgres.Explain(err, k.options.Service)
	}
	if tag.RowsAffected() == 0 {
		return ErrTakenOver
	}
	return nil
}

// ExpiredClaims returns at most limit claims whose lease is over, the oldest first: for a job that completes what nobody sends again. Each
// is to be had by TakeOver.
func (k *Keys) ExpiredClaims(ctx context.Context, limit int) ([]Claim, error) {
	left, err := postgres.All(ctx, k.pool, func(row pgx.CollectableRow) (Claim, error) {
		c, fingerprint := Claim{Resumed: true}, []byte(nil)
		err := row.Scan(&c.Key.Principal, &c.Key.Operation, &c.Key.Key, &fingerprint, &c.Resource)
		copy(c.Key.Fingerprint[:], fingerprint)
		return c, err
	}, `SELECT credential_id, tool, key, fingerprint, resource FROM `+k.table+`
		WHERE state = 'running' AND lease_until < clock_timestamp() ORDER BY lease_until LIMIT $1`, limit)
	return left, postgres.Explain(err, k.options.Service)
}
