package nicepay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

// TestRandomOrders: whatever is done to an order, an answer of the adapter is what it answers when it is asked afterwards, that
// agrees with what the simulator holds, and no more goes back than came.
func TestRandomOrders(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newSim(r, rapid.Bool().Draw(r, "auto"))
		created := s.clock.Now()
		method := rapid.SampledFrom([]provider.PayMethod{provider.Card, provider.VBank}).Draw(r, "method")
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			step := drawStep(r, created, method)
			if step.advance > 0 {
				s.clock.Advance(step.advance)
				continue
			}
			said, sayErr := step.do(t.Context(), s)
			has, err := s.provider.Get(t.Context(), cred(), provider.PaymentRef{Code: code, CreatedAt: created})
			truth, _ := s.Payment(code)
			switch {
			case len(truth.Payments) == 0:
				if !errors.Is(err, provider.ErrNotFound) {
					r.Fatalf("%s: nobody has paid, and the adapter says %s", step.name, tellOf(has, err))
				}
			case err != nil || has.Status != statusOf[truth.Status] || has.TID != truth.TID:
				r.Fatalf("%s: the adapter says %s, the simulator holds %+v", step.name, tellOf(has, err), truth)
			case len(truth.Payments) == 1 && has.Status == provider.PaymentPaid && has.Balance != truth.Paid-truth.Cancelled:
				r.Fatalf("%s: the adapter says %s, the simulator holds %+v", step.name, tellOf(has, err), truth)
			}
			if !step.lost && sayErr == nil && said.TID != "" {
				// By its TID: once it went back, the order's code finds what a second payer has paid.
				same, err := s.provider.Get(t.Context(), cred(), provider.PaymentRef{Code: code, CreatedAt: created, TID: said.TID})
				if now := tellOf(same, err); tellOf(said, nil) != now {
					r.Fatalf("%s: the adapter says %s, and then %s", step.name, tellOf(said, nil), now)
				}
			}
			if truth.Cancelled > truth.Paid {
				r.Fatalf("%s: more went back than came: %+v", step.name, truth)
			}
		}
	})
}

// statusOf is what the simulator's words mean.
var statusOf = map[string]provider.PaymentStatus{"ready": provider.PaymentIssued, "paid": provider.PaymentPaid,
	"partialCancelled": provider.PaymentPaid, "cancelled": provider.PaymentCanceled, "failed": provider.PaymentFailed,
	"expired": provider.PaymentExpired}

type step struct {
	name    string
	advance time.Duration
	// lost tells that something goes wrong, and what is said depends on where.
	lost bool
	do   func(context.Context, *sim) (provider.Snapshot, error)
}

// drawStep chooses what happens next.
func drawStep(r *rapid.T, created time.Time, method provider.PayMethod) step {
	ref := provider.PaymentRef{Code: code, CreatedAt: created}
	amount := rapid.SampledFrom([]int64{0, 1, 4_000, 7_000, 11_000, 11_001}).Draw(r, "amount")
	refundCode := fmt.Sprint("rf_", rapid.IntRange(1, 4).Draw(r, "refund"))
	control := func(act func(*sim) error) func(context.Context, *sim) (provider.Snapshot, error) {
		return func(_ context.Context, s *sim) (provider.Snapshot, error) {
			if act(s) != nil {
				return provider.Snapshot{}, errors.New("not possible")
			}
			return provider.Snapshot{}, nil
		}
	}
	cancel := provider.CancelRequest{Ref: ref, RefundCode: refundCode, Reason: "requested",
		Account: &provider.RefundAccount{BankCode: "004", AccountNumber: "123", Holder: "H"}}
	if amount > 0 {
		cancel.Amount = &amount
	}
	steps := []step{
		{name: "issue", do: func(ctx context.Context, s *sim) (provider.Snapshot, error) {
			return s.provider.Issue(ctx, cred(), provider.IssueRequest{Code: code, CreatedAt: created, Amount: 11_000, PayMethod: method,
				Name: "Liter", ReturnURL: "https://hub.example/r", ValidHours: 24, Holder: "Hub"})
		}},
		{name: "get", do: func(ctx context.Context, s *sim) (provider.Snapshot, error) { return s.provider.Get(ctx, cred(), ref) }},
		{name: "refund", do: func(ctx context.Context, s *sim) (provider.Snapshot, error) {
			return s.provider.Cancel(ctx, cred(), cancel)
		}},
		{name: "give up", do: func(ctx context.Context, s *sim) (provider.Snapshot, error) {
			return s.provider.Cancel(ctx, cred(), provider.CancelRequest{Ref: ref, RefundCode: code + "-cancel", Reason: "canceled"})
		}},
		{name: "expire", do: func(ctx context.Context, s *sim) (provider.Snapshot, error) {
			return provider.Snapshot{}, s.provider.Expire(ctx, cred(), ref)
		}},
		{name: "begin", do: control(func(c *sim) error { return c.Issue(code) })},
		{name: "pay", do: control(func(c *sim) error { return c.Pay(code) })},
		{name: "fail", do: control(func(c *sim) error { return c.Fail(code) })},
		{name: "deposit", do: control(func(c *sim) error {
			if method != provider.VBank {
				return errors.New("a card has no account to deposit to")
			}
			return c.Deposit(code, max(amount, 1), time.Time{}, 1)
		})},
		{name: "reverse", do: control(func(c *sim) error { return c.Reverse(code) })},
		{name: "console cancel", do: control(func(c *sim) error { return c.ConsoleCancel(code, amount) })},
		{name: "refund fails later", do: control(func(c *sim) error { return c.FailRefundLater(refundCode) })},
		{name: "time passes", advance: rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 25 * time.Hour}).Draw(r, "time")},
	}
	cancels := "cancel"
	for i, on := range []string{"issue", "get", cancels, cancels, cancels} {
		for _, kind := range []string{pgsim.TimeoutBefore, pgsim.TimeoutAfter, pgsim.Garbage, pgsim.Decline} {
			do := steps[i].do
			steps = append(steps, step{name: "lost " + steps[i].name, lost: true, do: func(ctx context.Context, s *sim) (provider.Snapshot, error) {
				if err := s.Arm(pgsim.Fault{Kind: kind, On: on}); err != nil {
					return provider.Snapshot{}, err
				}
				defer s.Heal()
				return do(ctx, s)
			}})
		}
	}
	return rapid.SampledFrom(steps).Draw(r, "step")
}

// String names a step where rapid shows it.
func (s step) String() string { return s.name }

// tellOf is what a provider has said, without what may differ.
func tellOf(s provider.Snapshot, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d of %d, paid %s, reversed %s, tid %t, account %t;", s.Status, s.Balance, s.Amount,
		s.PaidAt.Truncate(time.Millisecond), s.ReversedAt.Truncate(time.Millisecond), s.TID != "", s.Account != nil)
	for _, c := range s.Cancellations {
		fmt.Fprintf(&b, " %q %d %t", c.RefundCode, c.Amount, c.Returned)
	}
	var declined *provider.DeclinedError
	switch {
	case err == nil:
	case errors.As(err, &declined):
		return "declined" // what comes with a refusal is not promised
	default:
		for _, kind := range []error{provider.ErrNotSent, provider.ErrUnknown, provider.ErrNotFound, provider.ErrAlreadyPaid,
			provider.ErrAlreadyCanceled} {
			if errors.Is(err, kind) {
				return kind.Error()
			}
		}
		return err.Error()
	}
	return b.String()
}
