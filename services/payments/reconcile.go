package payments

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// Schedule keeps when orders are looked at next, and what a sweep has found.
type Reconciliations interface {
	// LookedAt tells whether somebody has looked at an order since a moment; if not, now is kept as the last look.
	CheckedSince(ctx context.Context, code string, since, now time.Time) (bool, error)
	// TakeLook tells whether an order is to be looked at by now; if so, the next look is at until, for whoever asks meanwhile.
	TakeCheck(ctx context.Context, code string, now, until time.Time) (bool, error)
	// Postpone keeps when an order is looked at next; false when it has moved since version, and a look of its own follows.
	ScheduleCheck(ctx context.Context, code string, version int64, looks int, at time.Time) (bool, error)
	// Looks is how often an order has been looked at since it moved.
	Checks(ctx context.Context, code string) (int, error)
	// Unsettled returns orders after a code that wait for a deposit, or were paid since a moment.
	Unsettled(ctx context.Context, after string, since time.Time, limit int) ([]string, error)
	// LastSweep is when the last sweep ended that did; zero without one.
	LastSweep(ctx context.Context) (time.Time, error)
	// AddSweep keeps the report of a sweep.
	AddSweep(ctx context.Context, r SweepReport) error
}

const (
	// lookTakes is more than one look takes; after that somebody else may look.
	checkTimeout = 5 * time.Minute
	// earlyLook is how much too early a job may run: its clock is another one.
	clockSkew = 5 * time.Second
)

// Look is Resolve for the job of an order, of which each of its moves leaves one behind: the one that comes when the order is to be
// looked at does it, and the others have nothing to do.
func (s *Service) ResolveDue(ctx context.Context, code string) (again time.Duration, err error) {
	now := s.now()
	if due, err := s.c.Store.TakeCheck(ctx, code, now.Add(clockSkew), now.Add(checkTimeout)); err != nil || !due {
		return 0, err
	}
	return s.Resolve(ctx, code)
}

// Resolve finds out what became of an order whose outcome is not known, and of its refunds: it asks the provider by
// Hub's own codes first, asks for what the provider has not heard of, and ends what nobody pays any more. again is the
// wait after which to look once more; 0 when there is nothing to wait for.
func (s *Service) Resolve(ctx context.Context, code string) (again time.Duration, err error) {
	by := Actor{Name: "hub", Now: s.now()}
	_, err = s.resolveOutcome(ctx, code, by)
	if err != nil && !fault.Is(err, fault.DB) {
		return 0, err
	}
	if err != nil { // the provider does not answer: that is a look, too
		s.c.Logger.WarnContext(ctx, "an order is not resolved yet", "order", code, "error", err)
	}
	b, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return 0, err
	}
	looks, err := s.c.Store.Checks(ctx, code)
	if err != nil {
		return 0, err
	}
	b.Now = s.now()
	at, ok := b.NextCheck(looks)
	if !ok {
		return 0, nil
	}
	kept, err := s.c.Store.ScheduleCheck(ctx, code, b.Order.Version, looks+1, at)
	if err != nil || !kept {
		return 0, err
	}
	return max(at.Sub(b.Now), time.Second), nil
}

func (s *Service) resolveOutcome(ctx context.Context, code string, by Actor) (*order.Aggregate, error) {
	b, snapshot, err := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	if err != nil {
		return b, err
	}
	if snapshot == nil && b.Order.Status == order.Ready && b.Order.CheckoutURL == "" {
		if b, err = s.issueAgain(ctx, code, by); err != nil {
			return b, err
		}
	}
	for _, r := range b.PendingRefunds() {
		if err := s.refundAtProvider(ctx, code, r.Code, false, by); err != nil { // pull has just looked for it
			return b, err
		}
	}
	for _, d := range b.ReturningDeposits() {
		if err := s.returnAtProvider(ctx, code, d.ID, true, by); err != nil {
			return b, err
		}
	}
	return s.lapse(ctx, b, by)
}

// issueAgain asks for an order that the provider does not know, unless its day is over.
func (s *Service) issueAgain(ctx context.Context, code string, by Actor) (*order.Aggregate, error) {
	b, err := s.c.Store.Order(ctx, code)
	if err != nil || !by.Now.Before(b.Order.CreatedAt.Add(order.ReadyFor)) {
		return b, err
	}
	snapshot, declined, err := s.askToIssue(ctx, code)
	if err != nil {
		return b, err
	}
	if declined != nil {
		return s.c.Store.Change(ctx, code, by, func(b *order.Aggregate) error { return b.Decline(*declined) }, nil)
	}
	return s.apply(ctx, code, by, snapshot, nil)
}

// lapse ends an order whose time is over, after the provider has closed its page.
func (s *Service) lapse(ctx context.Context, b *order.Aggregate, by Actor) (*order.Aggregate, error) {
	seen := b.Order
	trial := order.Aggregate{Order: seen, Now: by.Now}
	if over, err := trial.Expire(); err != nil || !over {
		return b, err
	}
	cred, err := s.c.Credentials.ByID(ctx, seen.CredentialID)
	if err != nil {
		return b, err
	}
	if seen.Status == order.Ready {
		err := s.c.Provider.Expire(ctx, cred, provider.PaymentRef{TID: seen.TID, Code: seen.Code, CreatedAt: seen.CreatedAt})
		if errors.Is(err, provider.ErrAlreadyPaid) {
			// It stays READY when what was paid is not what it costs: then the money is an operator's, and the order is over.
			if b, _, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: seen.Code}, by); err != nil || !slices.ContainsFunc(b.Deposits, order.Deposit.NeedsDecision) {
				return b, err
			}
			seen = b.Order
		} else if err != nil && !errors.Is(err, provider.ErrNotFound) {
			return b, s.providerUnreachable().Because(err)
		}
	}
	after, err := s.c.Store.Change(ctx, seen.Code, by, func(b *order.Aggregate) error {
		if b.Order.Version != seen.Version {
			return errStale
		}
		_, err := b.Expire()
		return err
	}, nil)
	if errors.Is(err, errStale) {
		return b, nil // whoever moved it knows better
	}
	return after, err
}

// SweepReport is what a nightly sweep has found.
type SweepReport struct {
	StartedAt, EndedAt time.Time
	// Checked orders were compared with the provider, Moved ones were brought to what it says, Drifted ones have another
	// balance there, and Failed ones could not be compared.
	Checked, Moved, Drifted, Failed int
}

const (
	sweepPage   = 200
	sweepWindow = 7 * 24 * time.Hour
	// sweepEvery is the least time from one sweep to the next.
	sweepEvery = 20 * time.Hour
)

// Sweep compares the orders that wait for a deposit, and those paid within seven days, with what the provider says,
// unless that was done within 20 hours.
func (s *Service) Sweep(ctx context.Context) error {
	last, err := s.c.Store.LastSweep(ctx)
	if err != nil || s.now().Before(last.Add(sweepEvery)) {
		return err
	}
	r, err := s.sweep(ctx)
	if err != nil {
		return err
	}
	return s.c.Store.AddSweep(ctx, r)
}

func (s *Service) sweep(ctx context.Context) (SweepReport, error) {
	r := SweepReport{StartedAt: s.now()}
	for after := ""; ; {
		codes, err := s.c.Store.Unsettled(ctx, after, r.StartedAt.Add(-sweepWindow), sweepPage)
		if err != nil {
			return r, err
		}
		for _, code := range codes {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			s.compare(ctx, code, &r)
			after = code
		}
		if len(codes) < sweepPage {
			r.EndedAt = s.now()
			return r, nil
		}
	}
}

func (s *Service) compare(ctx context.Context, code string, r *SweepReport) {
	r.Checked++
	before, err := s.c.Store.Order(ctx, code)
	var b *order.Aggregate
	var snapshot *provider.Snapshot
	by := Actor{Name: "hub", Now: s.now()}
	if err == nil {
		b, snapshot, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	}
	if err == nil && snapshot != nil {
		b, err = s.c.Store.Change(ctx, code, by, func(now *order.Aggregate) error {
			if now.Order.Version != b.Order.Version {
				return nil
			}
			return now.CheckBalance(*snapshot)
		}, nil)
	}
	switch {
	case err != nil:
		r.Failed++
		s.c.Logger.WarnContext(ctx, "an order is not compared with the provider", "order", code, "error", err)
	case b.Order.Attention == order.BalanceDrift && before.Order.Attention != order.BalanceDrift:
		r.Drifted++
	case b.Order.Version != before.Order.Version:
		r.Moved++
	}
}

// sealAccount seals an account under a name that binds it to its row, and masks it for people.
func (s *Service) sealAccount(name string, a provider.RefundAccount) ([]byte, *provider.RefundAccount, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := s.c.Sealer.Seal(string(text), name)
	masked := provider.RefundAccount{BankCode: a.BankCode, AccountNumber: "****" + a.AccountNumber[max(len(a.AccountNumber)-4,
		(len(a.AccountNumber)+1)/2):],
		Holder: maskName(a.Holder)}
	return sealed, &masked, err
}

func (s *Service) openAccount(name string, sealed []byte) (*provider.RefundAccount, error) {
	text, err := s.c.Sealer.Open(sealed, name)
	if err != nil {
		return nil, err
	}
	var a provider.RefundAccount
	return &a, json.Unmarshal([]byte(text), &a)
}

// accountName binds the sealed account of a refund to its row.
func refundAccountName(refund string) string { return "payments.refunds|account|" + refund }

// mask leaves the first character.
func maskName(name string) string {
	for _, first := range name {
		return string(first) + "**"
	}
	return ""
}
