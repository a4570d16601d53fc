package payments

import (
	"context"
	"errors"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// Reconciliations keeps when orders are checked next with the provider, and what sweeps have found.
type Reconciliations interface {
	// CheckedSince tells whether an order was checked since a moment. If not, now is stored as its last check.
	CheckedSince(ctx context.Context, code string, since, now time.Time) (bool, error)
	// TakeCheck tells whether a check of an order is due. If so, the next one is scheduled for until: that is a lease, so that
	// of several jobs of the order one alone does the check.
	TakeCheck(ctx context.Context, code string, now, until time.Time) (bool, error)
	// ScheduleCheck schedules the next check of an order, by compare-and-set on its version; false when it has moved, because
	// the move has scheduled a check of its own.
	ScheduleCheck(ctx context.Context, code string, version int64, checks int, at time.Time) (bool, error)
	// Checks is how often an order was checked since it moved, and when it is checked next; nil for one that waits for nothing.
	Checks(ctx context.Context, code string) (checks int, next *time.Time, err error)
	// Unsettled returns orders after a code that wait for a deposit, or were paid since a moment.
	Unsettled(ctx context.Context, after string, since time.Time, limit int) ([]string, error)
	// LastSweep is when the last sweep ended, and when the last one that has compared did (SweepReport.Compared); zero without one.
	LastSweep(ctx context.Context) (ended, compared time.Time, err error)
	// AddSweep keeps the report of a sweep.
	AddSweep(ctx context.Context, r SweepReport) error
}

// errStale tells that an order has moved since the provider was asked: what it said may be older than that. No transaction is
// open during a call to the provider, so that this is found out by the version (optimistic concurrency control).
var errStale = errors.New("the order has moved since the provider was asked")

// maxPulls is how often the provider is asked while the order moves on.
const maxPulls = 5

// reconcileWithProvider asks the provider about an order, and brings the order to what the answer says. An order that has moved
// meanwhile is asked about again, maxPulls times at most, since an older answer must not undo what is newer. ref may name a
// payment of the order's that Hub does not know yet, such as one that a webhook tells of. A nil snapshot tells that the
// provider knows no payment. It returns E_DB when the provider does not answer, and E_CONFLICT for an order that does not
// come to rest.
func (s *Service) reconcileWithProvider(ctx context.Context, ref provider.PaymentRef, by Actor) (*order.Aggregate,
	*provider.Snapshot, error) {
	for range maxPulls {
		seen, snapshot, err := s.fetch(ctx, ref)
		if err != nil || snapshot == nil {
			return seen, nil, err
		}
		by.Now = s.now()
		a, err := s.c.Store.Change(ctx, ref.Code, by, func(a *order.Aggregate) error {
			if a.Order.Version != seen.Order.Version {
				return errStale
			}
			return a.ApplyFresh(*snapshot)
		}, nil)
		if errors.Is(err, errStale) {
			continue
		}
		if err == nil && a.CancelAtProvider {
			s.cancelUnwanted(ctx, a.Order)
		}
		return a, snapshot, err
	}
	return nil, nil, fault.New(fault.Conflict, "The order is changing right now. Try again in a second.").After(time.Second).Because(errStale)
}

// fetch asks the provider about an order, and returns it as it was before.
func (s *Service) fetch(ctx context.Context, ref provider.PaymentRef) (*order.Aggregate, *provider.Snapshot, error) {
	a, err := s.c.Store.Order(ctx, ref.Code)
	if err != nil {
		return nil, nil, err
	}
	cred, err := s.c.Credentials.ByID(ctx, a.Order.CredentialID)
	if err != nil {
		return a, nil, err
	}
	if ref.TID == "" {
		ref.TID = a.Order.TID
	}
	ref.CreatedAt = a.Order.CreatedAt
	snapshot, err := s.c.Provider.Get(ctx, cred, ref)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return a, nil, nil
	case err != nil:
		return a, nil, s.providerUnreachable().Because(err)
	case snapshot.Code != ref.Code:
		return a, nil, s.providerUnreachable().Because(errors.New("the provider answers about another order"))
	}
	return a, &snapshot, nil
}

// providerUnreachable is the E_DB of a provider that does not say, for a caller that may ask again.
func (s *Service) providerUnreachable() *fault.Error {
	return fault.New(fault.DB, "The payment provider does not answer right now. Try again in a moment.").After(2 * time.Second)
}

// cancelUnwanted cancels at the provider what must not be paid, best effort: the next check of the order tries again.
func (s *Service) cancelUnwanted(ctx context.Context, o order.Order) {
	cred, err := s.c.Credentials.ByID(ctx, o.CredentialID)
	if err == nil {
		_, err = s.c.Provider.Cancel(ctx, cred, provider.CancelRequest{Ref: provider.PaymentRef{TID: o.TID, Code: o.Code, CreatedAt: o.CreatedAt},
			RefundCode: o.Code + "-cancel", Reason: "another amount than ordered"})
	}
	if err != nil {
		s.c.Logger.WarnContext(ctx, "a payment that must not be made is not given up yet", "order", o.Code, "error", err)
	}
}

// cancelAtProvider gives an order up at the provider. What was paid meanwhile comes back as such; E_CONFLICT with
// ORDER_NOT_CANCELABLE for an order with a deposit that does not pay it and that nobody has decided about.
func (s *Service) cancelAtProvider(ctx context.Context, code string, by Actor) (*order.Aggregate, error) {
	a, _, err := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	if err != nil || a.Order.Status != order.Ready && a.Order.Status != order.AwaitingDeposit {
		return a, err
	}
	if err := a.DepositsDecided(); err != nil {
		return nil, err // before the provider closes what the order still holds
	}
	o := a.Order
	cred, err := s.c.Credentials.ByID(ctx, o.CredentialID)
	if err != nil {
		return nil, err
	}
	ref := provider.PaymentRef{TID: o.TID, Code: o.Code, CreatedAt: o.CreatedAt}
	var left provider.Snapshot
	if o.TID == "" {
		err = s.c.Provider.Expire(ctx, cred, ref)
	} else {
		left, err = s.c.Provider.Cancel(ctx, cred, provider.CancelRequest{Ref: ref, RefundCode: o.Code + "-cancel", Reason: "canceled"})
	}
	over := o.TID == "" || left.Status == provider.PaymentExpired || left.Status == provider.PaymentFailed
	paid := errors.Is(err, provider.ErrAlreadyPaid)
	switch {
	case err == nil && over || errors.Is(err, provider.ErrNotFound):
		// Nobody can begin to pay any more: the order ends, unless it has moved.
		if a, err = s.endUnpaid(ctx, o, by); !errors.Is(err, errStale) {
			return a, err
		}
	case err != nil && !paid && !errors.Is(err, provider.ErrAlreadyCanceled):
		return nil, s.providerUnreachable().Because(err)
	}
	a, _, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	if err != nil || !paid || cancelable(a.Order) != nil || len(a.Deposits) == 0 {
		return a, err
	}
	// What was paid is not what the order costs: it ends when that money is somebody's again.
	after, err := s.endUnpaid(ctx, a.Order, by)
	if errors.Is(err, errStale) {
		return s.c.Store.Order(ctx, code)
	}
	return after, err
}

// endUnpaid cancels an order that is as it was seen; errStale for one that has moved.
func (s *Service) endUnpaid(ctx context.Context, seen order.Order, by Actor) (*order.Aggregate, error) {
	by.Now = s.now()
	return s.c.Store.Change(ctx, seen.Code, by, func(a *order.Aggregate) error {
		if a.Order.Version != seen.Version {
			return errStale
		}
		return a.CancelUnpaid()
	}, nil)
}

const (
	// checkTimeout is the lease of a check, and more than one takes. After it another job may do the check.
	checkTimeout = 5 * time.Minute
	// clockSkew is how much too early a job may run: its clock is another one.
	clockSkew = 5 * time.Second
)

// ResolveDue is Resolve for the job of an order. Each move of an order leaves a job behind: the one that finds the check due
// does it, and the others have nothing to do.
func (s *Service) ResolveDue(ctx context.Context, code string) (again time.Duration, err error) {
	now := s.now()
	if due, err := s.c.Store.TakeCheck(ctx, code, now.Add(clockSkew), now.Add(checkTimeout)); err != nil || !due {
		return 0, err
	}
	return s.Resolve(ctx, code)
}

// Resolve finds out what became of an order whose outcome is not known, and of its refunds: it asks the provider by
// Hub's own codes first, asks for what the provider has not heard of, and ends what nobody pays any more. again is the
// wait after which to check once more; 0 when there is nothing to wait for.
func (s *Service) Resolve(ctx context.Context, code string) (again time.Duration, err error) {
	by := Actor{Name: "hub", Now: s.now()}
	_, err = s.resolveOutcome(ctx, code, by)
	if err != nil && !fault.Is(err, fault.DB) {
		return 0, err
	}
	if err != nil { // a provider that does not answer counts as a check, so that the waits grow
		s.c.Logger.WarnContext(ctx, "an order is not resolved yet", "order", code, "error", err)
	}
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return 0, err
	}
	checks, _, err := s.c.Store.Checks(ctx, code)
	if err != nil {
		return 0, err
	}
	a.Now = s.now()
	at, ok := a.NextCheck(checks)
	if !ok {
		return 0, nil
	}
	kept, err := s.c.Store.ScheduleCheck(ctx, code, a.Order.Version, checks+1, at)
	if err != nil || !kept {
		return 0, err
	}
	return max(at.Sub(a.Now), time.Second), nil
}

// resolveOutcome asks what became of everything about the order that is pending, in turn: the order itself, its
// refunds, the returns of deposits, and at last whether its time is over.
func (s *Service) resolveOutcome(ctx context.Context, code string, by Actor) (*order.Aggregate, error) {
	a, snapshot, err := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	if err != nil {
		return a, err
	}
	if snapshot == nil && a.Order.Status == order.Ready && a.Order.CheckoutURL == "" {
		if a, err = s.issueAgain(ctx, code, by); err != nil {
			return a, err
		}
	}
	for _, r := range a.PendingRefunds() {
		if err := s.refundAtProvider(ctx, code, r.Code, false, by); err != nil { // pull has just looked for it
			return a, err
		}
	}
	for _, d := range a.ReturningDeposits() {
		if err := s.returnAtProvider(ctx, code, d.ID, true, by); err != nil {
			return a, err
		}
	}
	return s.lapse(ctx, a, by)
}

// issueAgain asks for an order that the provider does not know, unless its day is over.
func (s *Service) issueAgain(ctx context.Context, code string, by Actor) (*order.Aggregate, error) {
	a, err := s.c.Store.Order(ctx, code)
	if err != nil || !by.Now.Before(a.Order.CreatedAt.Add(order.ReadyFor)) {
		return a, err
	}
	snapshot, declined, err := s.askToIssue(ctx, a.Order, credentials.Unsealed{})
	if err != nil {
		return a, err
	}
	if declined != nil {
		return s.c.Store.Change(ctx, code, by, func(a *order.Aggregate) error { return a.Decline(*declined) }, nil)
	}
	return s.apply(ctx, code, by, snapshot, nil)
}

// lapse ends an order whose time is over, after the provider has closed its page.
func (s *Service) lapse(ctx context.Context, a *order.Aggregate, by Actor) (*order.Aggregate, error) {
	seen := a.Order
	trial := order.Aggregate{Order: seen, Now: by.Now}
	if over, err := trial.Expire(); err != nil || !over {
		return a, err
	}
	cred, err := s.c.Credentials.ByID(ctx, seen.CredentialID)
	if err != nil {
		return a, err
	}
	if seen.Status == order.Ready {
		err := s.c.Provider.Expire(ctx, cred, provider.PaymentRef{TID: seen.TID, Code: seen.Code, CreatedAt: seen.CreatedAt})
		if errors.Is(err, provider.ErrAlreadyPaid) {
			// It stays READY when what was paid is not what it costs: then the money is an operator's, or back, and the order is over.
			if a, _, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: seen.Code}, by); err != nil ||
				a.Order.Status != order.Ready || len(a.Deposits) == 0 {
				return a, err
			}
			seen = a.Order
		} else if err != nil && !errors.Is(err, provider.ErrNotFound) {
			return a, s.providerUnreachable().Because(err)
		}
	}
	after, err := s.c.Store.Change(ctx, seen.Code, by, func(a *order.Aggregate) error {
		if a.Order.Version != seen.Version {
			return errStale
		}
		_, err := a.Expire()
		return err
	}, nil)
	if errors.Is(err, errStale) {
		return a, nil // whoever moved it knows better
	}
	return after, err
}

// SweepReport is what a nightly sweep has found. The console shows the last ones.
type SweepReport struct {
	StartedAt, EndedAt time.Time
	// Checked orders were compared with the provider, Moved ones were brought to what it says, Drifted ones have another
	// balance there, and Failed ones could not be compared.
	Checked, Moved, Drifted, Failed int
}

// Compared tells whether the sweep counts as the night's comparison: an order that can never be compared must not bring all others
// up again each hour, and a provider that was away for most of it has compared nothing that anybody could rely on.
func (r SweepReport) Compared() bool { return r.Failed <= r.Checked/2 }

const (
	// sweepPage is how many orders a sweep reads at once.
	sweepPage = 200
	// sweepWindow is how long after its payment an order is compared. What comes later than that is told by webhooks alone.
	sweepWindow = 7 * 24 * time.Hour
	// sweepEvery is the least time from one sweep to the next, and sweepAgain that after one which has not compared: less than the hour
	// after which the job comes again, so that it is made then.
	sweepEvery = 20 * time.Hour
	sweepAgain = 30 * time.Minute
	// sweepGivesUp is how many orders a sweep asks about that all fail: the provider is away then, and the next sweep asks again.
	sweepGivesUp = sweepPage
)

// Sweep compares the orders that wait for a deposit, and those paid within seven days, with what the provider says,
// unless that was done within 20 hours, or tried within half an hour.
func (s *Service) Sweep(ctx context.Context) error {
	ended, compared, err := s.c.Store.LastSweep(ctx)
	if now := s.now(); err != nil || now.Before(compared.Add(sweepEvery)) || now.Before(ended.Add(sweepAgain)) {
		return err
	}
	r, err := s.sweep(ctx)
	if err != nil {
		return err
	}
	return s.c.Store.AddSweep(ctx, r)
}

// sweep compares page after page. An order that fails is counted and does not end it.
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
		if len(codes) < sweepPage || r.Failed == r.Checked && r.Checked >= sweepGivesUp {
			r.EndedAt = s.now()
			return r, nil
		}
	}
}

// compare brings one order up to date first and audits its balance second: what a reconciliation explains is no drift.
func (s *Service) compare(ctx context.Context, code string, r *SweepReport) {
	r.Checked++
	before, err := s.c.Store.Order(ctx, code)
	var a *order.Aggregate
	var snapshot *provider.Snapshot
	by := Actor{Name: "hub", Now: s.now()}
	if err == nil {
		a, snapshot, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	}
	if err == nil && snapshot != nil {
		a, err = s.c.Store.Change(ctx, code, by, func(now *order.Aggregate) error {
			if now.Order.Version != a.Order.Version {
				return nil
			}
			return now.CheckBalance(*snapshot)
		}, nil)
	}
	switch {
	case err != nil:
		r.Failed++
		s.c.Logger.WarnContext(ctx, "an order is not compared with the provider", "order", code, "error", err)
	case a.Order.Attention == order.BalanceDrift && before.Order.Attention != order.BalanceDrift:
		r.Drifted++
	case a.Order.Version != before.Order.Version:
		r.Moved++
	}
}
