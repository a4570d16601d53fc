package paymentstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hub.internal/services/payments"
)

// Fake is a provider in memory. Webhooks wait until Flush hands them to OnWebhook.
type Fake struct {
	// AutoIssue gives virtual accounts at once.
	AutoIssue bool
	// OnWebhook takes what is told, and answers whether it was acknowledged; without it webhooks are kept. It is called by Flush.
	OnWebhook func(contentType string, body []byte) bool
	// OnCall, where set, is called with each call before anything is done: issue, cancel or get, and the code of the
	// order, or of the refund.
	OnCall func(on, code string)
	// Now is the provider's clock.
	Now func() time.Time

	mu      sync.Mutex
	orders  map[string]*order
	refunds map[string]string // code of a cancel → code of the order
	numbers int
	account string
	faults  []*Fault
	hooks   []Webhook
	secret  string
}

type order struct {
	payments.IssueRequest
	// closes is when the page takes no payer any more by itself.
	closes   time.Time
	closed   bool
	payments []*payment
}

type payment struct {
	payments.Snapshot
	cancels []payments.ProviderCancel
}

// NewFake returns a provider whose webhooks are signed with the secret of this credential.
func NewFake(c payments.Cred, now func() time.Time) *Fake {
	_, secret := c.Reveal()
	return &Fake{Now: now, secret: secret, orders: map[string]*order{}, refunds: map[string]string{}}
}

var (
	_ payments.Provider = (*Fake)(nil)
	_ Control           = (*Fake)(nil)
)

// Name implements payments.Provider.
func (f *Fake) Name() string { return "fake" }

// Caps implements payments.Provider.
func (f *Fake) Caps(m payments.PayMethod) payments.Caps {
	return payments.Caps{PartialRefund: true, NeedsRefundAccount: m == payments.VBank, MaxValidHours: 720}
}

// call does a call with the next fault on it: do tells what happened.
func (f *Fake) call(on, code string, do func() (payments.Snapshot, error)) (payments.Snapshot, error) {
	if f.OnCall != nil {
		f.OnCall(on, code)
	}
	f.mu.Lock()
	fault := f.next(on)
	defer func() {
		f.mu.Unlock()
		if fault.Kind == WebhookFirst {
			f.Flush()
		}
	}()
	switch fault.Kind {
	case NotSent:
		return payments.Snapshot{}, payments.ErrNotSent
	case TimeoutBefore, ServerError, Drop:
		return payments.Snapshot{}, payments.ErrUnknown
	case Decline:
		if on == OnGet {
			return payments.Snapshot{}, payments.ErrUnknown
		}
		return payments.Snapshot{}, &payments.DeclinedError{Code: fault.Code, Message: "declined"}
	case Duplicate:
		_, _ = do() // whatever it answers is lost
	}
	s, err := do()
	if fault.Kind == TimeoutAfter || fault.Kind == Garbage || fault.Kind == WrongOrder {
		return payments.Snapshot{}, payments.ErrUnknown
	}
	return s, err
}

// next is the fault to happen now; the lock is held.
func (f *Fake) next(on string) Fault {
	for i, fault := range f.faults {
		if fault.On == on {
			if fault.Times--; fault.Times <= 0 {
				f.faults = slices.Delete(f.faults, i, i+1)
			}
			return *fault
		}
	}
	return Fault{}
}

// Issue implements payments.Provider.
func (f *Fake) Issue(_ context.Context, _ payments.Cred, in payments.IssueRequest) (payments.Snapshot, error) {
	return f.call(OnIssue, in.Code, func() (payments.Snapshot, error) {
		o := f.orders[in.Code]
		switch {
		case o == nil:
			o = &order{IssueRequest: in, closes: f.Now().Add(24 * time.Hour)}
			f.orders[in.Code] = o
			if f.AutoIssue && in.PayMethod == payments.VBank {
				f.tell(o, f.issueAccount(o), "")
			}
		case o.Amount != in.Amount:
			return payments.Snapshot{}, payments.ErrUnknown
		}
		s := payments.Snapshot{Code: in.Code, Status: payments.PaymentIssued, Amount: in.Amount, Balance: in.Amount}
		if p := o.current(); p != nil {
			s = f.show(p)
		} else if f.isClosed(o) {
			s.Status = payments.PaymentExpired
		}
		s.CheckoutURL = "https://fake.example/pay/" + in.Code
		return s, nil
	})
}

// Get implements payments.Provider.
func (f *Fake) Get(_ context.Context, _ payments.Cred, ref payments.Ref) (payments.Snapshot, error) {
	return f.call(OnGet, ref.Code, func() (payments.Snapshot, error) {
		if _, p := f.find(ref); p != nil {
			return f.show(p), nil
		}
		return payments.Snapshot{}, payments.ErrNotFound
	})
}

// Cancel implements payments.Provider.
func (f *Fake) Cancel(_ context.Context, _ payments.Cred, in payments.CancelRequest) (payments.Snapshot, error) {
	return f.call(OnCancel, in.RefundCode, func() (payments.Snapshot, error) {
		o, p := f.find(in.Ref)
		if p == nil {
			return payments.Snapshot{}, payments.ErrNotFound
		}
		if in.RefundCode == in.Ref.Code+"-cancel" {
			return f.giveUp(o, p, in)
		}
		return f.payBack(o, p, in)
	})
}

func (f *Fake) giveUp(o *order, p *payment, in payments.CancelRequest) (payments.Snapshot, error) {
	_, used := f.refunds[in.RefundCode]
	switch s := f.show(p); {
	case !s.PaidAt.IsZero():
		return s, payments.ErrAlreadyPaid
	case s.Status == payments.PaymentIssued && used:
		return payments.Snapshot{}, payments.ErrUnknown
	case s.Status == payments.PaymentIssued:
		f.take(o, p, p.balance(), in.RefundCode, in.Reason)
	}
	return f.show(p), nil
}

func (f *Fake) payBack(o *order, p *payment, in payments.CancelRequest) (payments.Snapshot, error) {
	s := f.show(p)
	amount := s.Balance
	if in.Amount != nil {
		amount = *in.Amount
	}
	has := slices.ContainsFunc(s.Cancels, func(c payments.ProviderCancel) bool {
		return c.RefundCode == in.RefundCode && !c.Returned && (in.Amount == nil || c.Amount == amount)
	})
	cameBack := slices.ContainsFunc(s.Cancels, func(c payments.ProviderCancel) bool { return c.RefundCode == in.RefundCode && c.Returned })
	switch _, used := f.refunds[in.RefundCode]; {
	case in.Amount != nil && amount < 1:
		return s, &payments.DeclinedError{Code: "2010", Message: "the amount of a refund is at least 1"}
	case s.PaidAt.IsZero():
		return s, &payments.DeclinedError{Code: "NOT_PAID", Message: "there is nothing to pay back", Drift: true}
	case has:
		return s, nil
	case cameBack:
		return s, &payments.DeclinedError{Code: "RETURNED", Message: "the payout came back"}
	case s.Status == payments.PaymentCanceled:
		return s, payments.ErrAlreadyCanceled
	case used:
		return payments.Snapshot{}, payments.ErrUnknown
	case o.PayMethod == payments.VBank && in.Account == nil:
		return payments.Snapshot{}, &payments.DeclinedError{Code: "U100", Message: "the refund names no account"}
	case amount > s.Balance:
		return payments.Snapshot{}, &payments.DeclinedError{Code: "2032", Message: "more than is left", Drift: true}
	}
	f.take(o, p, amount, in.RefundCode, in.Reason)
	return f.show(p), nil
}

// Expire implements payments.Provider.
func (f *Fake) Expire(_ context.Context, _ payments.Cred, ref payments.Ref) error {
	_, err := f.call(OnCancel, ref.Code, func() (payments.Snapshot, error) {
		o := f.orders[ref.Code]
		if o == nil {
			return payments.Snapshot{}, payments.ErrNotFound
		}
		if o.closed {
			return payments.Snapshot{}, nil
		}
		o.closed = true
		switch p := o.current(); {
		case p != nil && f.show(p).Status == payments.PaymentPaid:
			return payments.Snapshot{}, payments.ErrAlreadyPaid
		case p != nil && f.show(p).Status == payments.PaymentIssued:
			return payments.Snapshot{}, payments.ErrUnknown
		}
		return payments.Snapshot{}, nil
	})
	return err
}

// NetCancel implements payments.Provider.
func (f *Fake) NetCancel(_ context.Context, _ payments.Cred, code string) error {
	_, err := f.call(OnCancel, code, func() (payments.Snapshot, error) {
		o, p := f.find(payments.Ref{Code: code})
		switch {
		case p == nil:
			return payments.Snapshot{}, payments.ErrNotFound
		case f.show(p).Status == payments.PaymentCanceled:
			return payments.Snapshot{}, nil
		case len(p.cancels) > 0 || p.Status == payments.PaymentFailed:
			return payments.Snapshot{}, &payments.DeclinedError{Code: "2014", Message: "it cannot be undone"}
		}
		f.take(o, p, p.Amount, "", "netcancel")
		return payments.Snapshot{}, nil
	})
	return err
}

// find is a payment by its tid, or by the code of its order; nil when there is none. The lock is held.
func (f *Fake) find(ref payments.Ref) (*order, *payment) {
	o := f.orders[ref.Code]
	if o == nil && ref.Code == "" {
		o = f.holder(ref.TID)
	}
	if o == nil {
		return nil, nil
	}
	if ref.TID == "" {
		return o, o.current()
	}
	if i := slices.IndexFunc(o.payments, func(p *payment) bool { return p.TID == ref.TID }); i >= 0 {
		return o, o.payments[i]
	}
	return o, nil
}

// holder is the order that has a payment, when its code is not told.
func (f *Fake) holder(tid string) *order {
	for _, o := range f.orders {
		if slices.ContainsFunc(o.payments, func(p *payment) bool { return p.TID == tid }) {
			return o
		}
	}
	return nil
}

// current is the payment that counts: the first one with money in it, or that was paid, or the last one.
func (o *order) current() *payment {
	for _, good := range []func(*payment) bool{
		func(p *payment) bool { return p.Status == payments.PaymentPaid && p.balance() > 0 },
		func(p *payment) bool { return p.Status == payments.PaymentPaid },
	} {
		if i := slices.IndexFunc(o.payments, good); i >= 0 {
			return o.payments[i]
		}
	}
	if n := len(o.payments); n > 0 {
		return o.payments[n-1]
	}
	return nil
}

func (p *payment) balance() int64 {
	left := p.Amount
	for _, c := range p.cancels {
		if !c.Returned {
			left -= c.Amount
		}
	}
	return left
}

// show is a payment as the provider tells it now; the lock is held.
func (f *Fake) show(p *payment) payments.Snapshot {
	s := p.Snapshot
	s.Balance, s.Cancels = p.balance(), slices.Clone(p.cancels)
	switch {
	case s.Status == payments.PaymentPaid && s.Balance == 0:
		s.Status = payments.PaymentCanceled
	case s.Status == payments.PaymentIssued && s.Account != nil && f.Now().After(s.Account.ExpiresAt):
		s.Status = payments.PaymentExpired
	}
	if s.Account != nil {
		s.Account = new(*s.Account)
	}
	s.Raw = fmt.Appendf(nil, `{"tid":%q,"status":%q}`, s.TID, s.Status)
	return s
}

// isClosed tells whether the page of an order takes no payer any more.
func (f *Fake) isClosed(o *order) bool { return o.closed || f.Now().After(o.closes) }

// begin makes a payment of an order; the lock is held.
func (f *Fake) begin(o *order) *payment {
	f.numbers++
	p := &payment{Snapshot: payments.Snapshot{TID: fmt.Sprintf("fake%08d", f.numbers), Code: o.Code, Amount: o.Amount,
		Status: payments.PaymentIssued}}
	o.payments = append(o.payments, p)
	return p
}

func (f *Fake) issueAccount(o *order) *payment {
	p := f.begin(o)
	number := f.account
	if f.account = ""; number == "" {
		number = fmt.Sprintf("9500%010d", f.numbers)
	}
	p.Account = &payments.VBankAccount{BankCode: "004", BankName: "국민은행", Number: number, Holder: o.Holder,
		ExpiresAt: f.Now().Add(time.Duration(o.ValidHours) * time.Hour).Truncate(time.Second)}
	return p
}

// take gives back an amount of a payment, or gives up one that is not paid; the lock is held.
func (f *Fake) take(o *order, p *payment, amount int64, code, reason string) {
	f.numbers++
	c := payments.ProviderCancel{TID: fmt.Sprintf("fakec%07d", f.numbers), RefundCode: code, Amount: amount, Reason: reason, At: f.Now()}
	p.cancels = append(p.cancels, c)
	if p.Status == payments.PaymentIssued {
		p.Status, p.ReversedAt = payments.PaymentCanceled, time.Time{}
	}
	if code != "" {
		f.refunds[code] = o.Code
	}
	f.tell(o, p, c.TID)
}

var errNotPossible = errors.New("nobody could do that to the order as it is")
