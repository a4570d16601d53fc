package service

import (
	"context"
	"errors"
	"fmt"
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

// ProofFailed is the error of a proof that has failed: the setting's value is not the one that the store's rows were made with. Any other
// error means that it is not known yet.
func ProofFailed(format string, args ...any) error { return &proofFailure{fmt.Errorf(format, args...)} }

// Prove adds a question that has to be answered before the service takes calls: whether what a secret setting holds opens what the
// store has. Where ask returns ProofFailed, serve ends with one line that names the setting, so that a rollout with a wrong secret
// stops at its first replica. A store that is away, or has no tables yet, is readiness's to report: it is asked again, each second.
// The doctor asks, too.
func (h *Host) Prove(name, setting string, ask func(context.Context) error) {
	named := func(ctx context.Context) error {
		err := ask(ctx)
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
