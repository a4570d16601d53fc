package paymentstest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"hub.internal/services/payments"
)

// Begin implements Control.
func (f *Fake) Begin(code string) error {
	return f.play(code, 1, func(o *order) *payment {
		if o.PayMethod != payments.VBank || o.current() != nil || f.isClosed(o) {
			return nil
		}
		return f.issueAccount(o)
	})
}

// Pay implements Control.
func (f *Fake) Pay(code string) error {
	return f.play(code, 1, func(o *order) *payment {
		if p := o.current(); f.isClosed(o) || o.PayMethod != payments.Card || p != nil && p.Status != payments.PaymentFailed {
			return nil
		}
		p := f.begin(o)
		p.Status, p.PaidAt = payments.PaymentPaid, f.Now()
		return p
	})
}

// Fail implements Control.
func (f *Fake) Fail(code string) error {
	return f.play(code, 1, func(o *order) *payment {
		if p := o.current(); f.isClosed(o) || p != nil && p.Status != payments.PaymentFailed {
			return nil
		}
		p := f.begin(o)
		p.Status = payments.PaymentFailed
		return p
	})
}

// Deposit implements Control. An order that is paid, cancelled, failed, or reversed after a refund gets a second payment.
func (f *Fake) Deposit(code string, amount int64, at time.Time, times int) error {
	return f.play(code, max(times, 1), func(o *order) *payment {
		p := o.current()
		if p == nil || p.Status != payments.PaymentIssued || len(p.cancels) > 0 {
			before := p
			if p = f.begin(o); before != nil {
				p.Account = before.Account
			}
		}
		p.ReversedAt = time.Time{}
		if p.Status, p.Amount, p.PaidAt = payments.PaymentPaid, amount, at; at.IsZero() {
			p.PaidAt = f.Now()
		}
		return p
	})
}

// Reverse implements Control.
func (f *Fake) Reverse(code string) error {
	return f.play(code, 1, func(o *order) *payment {
		p := o.current()
		if p == nil || p.Status != payments.PaymentPaid || p.balance() == 0 {
			return nil
		}
		p.Status, p.Amount, p.PaidAt, p.ReversedAt = payments.PaymentIssued, o.Amount, time.Time{}, f.Now()
		return p
	})
}

// ConsoleCancel implements Control; an amount of 0 is all that is left.
func (f *Fake) ConsoleCancel(code string, amount int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, p := f.find(payments.Ref{Code: code})
	if p == nil || p.Status != payments.PaymentPaid && p.Status != payments.PaymentIssued {
		return errNotPossible
	}
	if amount == 0 {
		amount = p.balance()
	}
	if amount < 1 || amount > p.balance() || p.Status == payments.PaymentIssued && amount != p.balance() {
		return errNotPossible
	}
	f.take(o, p, amount, "", "console")
	return nil
}

// FailRefundLater implements Control.
func (f *Fake) FailRefundLater(refundCode string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.orders[f.refunds[refundCode]]
	if o == nil {
		return errNotPossible
	}
	for _, p := range o.payments {
		for i := range p.cancels {
			if c := &p.cancels[i]; c.RefundCode == refundCode && !c.Returned && p.Status == payments.PaymentPaid {
				c.Returned = true
				f.tell(o, p, c.TID)
				return nil
			}
		}
	}
	return errNotPossible
}

// SameAccount implements Control.
func (f *Fake) SameAccount(code string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, p := f.find(payments.Ref{Code: code})
	if p == nil || p.Account == nil {
		return errNotPossible
	}
	f.account = p.Account.Number
	return nil
}

// Arm implements Control.
func (f *Fake) Arm(fault Fault) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault.Times = max(fault.Times, 1)
	f.faults = append(f.faults, &fault)
	return nil
}

// Heal implements Control.
func (f *Fake) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Truth implements Control.
func (f *Fake) Truth(code string) (Truth, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.orders[code]
	if o == nil {
		return Truth{}, false
	}
	t := Truth{Payments: len(o.payments)}
	if p := o.current(); p != nil {
		s := f.show(p)
		if t.TID, t.Status = s.TID, s.Status; s.Account != nil {
			t.Account = s.Account.Number
		}
	}
	for _, p := range o.payments {
		paid := p.Status == payments.PaymentPaid
		if paid {
			t.Paid += p.Amount
			t.Cancelled += p.Amount - p.balance()
		}
		for _, c := range p.cancels {
			t.Cancels = append(t.Cancels, Return{Code: c.RefundCode, Amount: c.Amount, Failed: c.Returned, Unpaid: !paid})
		}
	}
	return t, true
}

// play does something to an order, and tells of it.
func (f *Fake) play(code string, times int, act func(*order) *payment) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.orders[code]
	if o == nil {
		return errNotPossible
	}
	p := act(o)
	if p == nil {
		return errNotPossible
	}
	for range times {
		f.tell(o, p, "")
	}
	return nil
}

// told is the body of a webhook. Its signature covers tid and amount alone, as that of a real provider.
type told struct {
	TID       string    `json:"tid"`
	OrderID   string    `json:"orderId"`
	Status    string    `json:"status"`
	Amount    int64     `json:"amount"`
	Cancelled string    `json:"cancelledTid"`
	Moment    time.Time `json:"moment"`
	Signature string    `json:"signature"`
}

func signed(tid string, amount int64, secret string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d|%s", tid, amount, secret))
	return hex.EncodeToString(sum[:])
}

// tell puts a webhook among those that Flush delivers; the lock is held.
func (f *Fake) tell(o *order, p *payment, cancelled string) {
	fault, s := f.next(OnWebhook), f.show(p)
	if fault.Kind == Drop {
		return
	}
	moment := p.PaidAt
	if moment.IsZero() {
		moment = p.ReversedAt
	}
	w := told{s.TID, o.Code, string(s.Status), s.Amount, cancelled, moment, signed(s.TID, s.Amount, f.secret)}
	if fault.Kind == WrongOrder {
		w.OrderID = "po_00000000000000000000000000"
	}
	body, err := json.Marshal(w)
	if err != nil {
		panic(err) // the type can always be written
	}
	if fault.Kind == Garbage {
		body = body[:len(body)/2]
	}
	h := Webhook{"application/json", body}
	switch f.hooks = append(f.hooks, h); fault.Kind {
	case Duplicate:
		f.hooks = append(f.hooks, h)
	case Reorder:
		if n := len(f.hooks); n > 1 {
			f.hooks[n-2], f.hooks[n-1] = f.hooks[n-1], f.hooks[n-2]
		}
	}
}

// Flush delivers the webhooks that wait, in their order, and again those that are not acknowledged, once. It answers
// all that were delivered.
func (f *Fake) Flush() []Webhook {
	f.mu.Lock()
	waiting := f.hooks
	f.hooks = nil
	f.mu.Unlock()
	if f.OnWebhook == nil {
		return waiting
	}
	again := slices.DeleteFunc(slices.Clone(waiting), func(w Webhook) bool { return f.OnWebhook(w.ContentType, w.Body) })
	for _, w := range again {
		f.OnWebhook(w.ContentType, w.Body)
	}
	return waiting
}

// VerifyWebhook implements payments.Provider.
func (f *Fake) VerifyWebhook(_ string, raw []byte, creds []payments.Cred) (payments.Event, error) {
	var w told
	if json.Unmarshal(raw, &w) != nil {
		return payments.Event{}, payments.ErrUnverified
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%d|%s|%s", w.TID, w.Status, w.Amount, w.Cancelled, w.Moment))
	e := payments.Event{Key: hex.EncodeToString(sum[:]), TID: w.TID, Code: w.OrderID, Kind: payments.EventPayment, Status: w.Status}
	if w.Status == "" {
		return payments.Event{Key: e.Key, Kind: payments.EventTest}, nil
	}
	for _, c := range creds {
		if _, secret := c.Reveal(); secret != "" && w.Signature == signed(w.TID, w.Amount, secret) {
			e.Cred = c
			return e, nil
		}
	}
	return payments.Event{}, payments.ErrUnverified
}

// Ack implements payments.Provider.
func (f *Fake) Ack(ok bool) (status int, contentType, body string) {
	if ok {
		return http.StatusOK, "text/html;charset=utf-8", "OK"
	}
	return http.StatusInternalServerError, "text/html;charset=utf-8", "FAIL"
}
