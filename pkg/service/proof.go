package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// proofTimeout bounds a proof before the service begins.
	proofTimeout = 2 * time.Second
	// proofAgain is what lies between two tries to reach the store.
	proofAgain = time.Second
)

// proofFailure says that a setting does not open what the store has.
type proofFailure struct{ error }

// Proof is a question about a secret setting: whether it opens what the store has.
type Proof struct {
	// Try returns how many rows of the store the setting does not open, of how many that were tried.
	Try func(ctx context.Context) (failed, tried int, err error)
	// What names the rows in the log, such as "keys".
	What string
	// None says of a setting that opens none of them what it is not, with %d for how many were tried. Some is what the log warns of
	// where it opens some of them and not all.
	None, Some string
}

// ask is nil when the setting opens one row at least, or when there are none; a proofFailure when it opens none. Any other error
// means that it is not known yet.
func (p Proof) ask(ctx context.Context, logger *slog.Logger) error {
	failed, tried, err := p.Try(ctx)
	switch {
	case err != nil:
		return err
	case failed > 0 && failed == tried:
		return &proofFailure{fmt.Errorf(p.None, tried)}
	case failed > 0:
		logger.WarnContext(ctx, p.Some, p.What, failed, "tried", tried)
	}
	return nil
}

// Prove adds a proof that has to be given before the service takes calls. Where the setting opens nothing, serve ends with one
// line that names it, so that a rollout with a wrong secret stops at its first replica. A store that is away, or has no tables
// yet, is readiness's to report: it is asked again, each second. The doctor asks, too.
func (h *Host) Prove(name, setting string, p Proof) {
	named := func(ctx context.Context) error {
		err := p.ask(ctx, h.Logger())
		var l *proofFailure
		if errors.As(err, &l) {
			return &proofFailure{fmt.Errorf("%s: %w", setting, l.error)}
		}
		return err
	}
	h.process.proofs = append(h.process.proofs, check{name, named})
	h.Check(name, setting, named)
}

// prove asks all, for two seconds, and leaves those that nobody could answer to a task.
func (h *Host) prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	rest, err := proveAll(ctx, h.process.proofs)
	if err != nil || len(rest) == 0 {
		return err
	}
	h.Go("proof", func(ctx context.Context) (err error) {
		for err == nil && len(rest) > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(proofAgain):
			}
			rest, err = proveAll(ctx, rest)
		}
		return err
	})
	return nil
}

// proveAll asks one after the other, and returns those that are left from the first on that nobody could answer. Its error is that of
// a proof that has failed.
func proveAll(ctx context.Context, proofs []check) (rest []check, err error) {
	for i, c := range proofs {
		err := c.ask(ctx)
		var failed *proofFailure
		switch {
		case errors.As(err, &failed):
			return nil, fmt.Errorf("configuration: %w", err)
		case err != nil:
			return proofs[i:], nil //nolint:nilerr // nobody could answer: it is asked again
		}
	}
	return nil, nil
}
