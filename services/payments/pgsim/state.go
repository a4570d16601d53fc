package pgsim

import (
	"fmt"
	"slices"
	"time"
)

// The statuses of the wire. A payment is kept as ready, paid, failed or cancelled; partialCancelled and expired are told of it, as its
// cancels and its due date say.
const (
	ready            = "ready"
	paid             = "paid"
	failed           = "failed"
	cancelled        = "cancelled"
	partialCancelled = "partialCancelled"
	expired          = "expired"
)

const (
	// The pay methods of the wire.
	methodCard  = "card"
	methodVBank = "vbank"
)

// order is a checkout and the payments that were made for it.
// It is written to the journal as it is. ClosesAt is when the page closes by itself, Expired when it was closed by a call.
type order struct {
	OrderID, SessionID   string
	Method               string
	Amount, TaxFreeAmt   int64
	GoodsName, ReturnURL string
	BuyerName, BuyerTel  string
	BuyerEmail           string
	VBankHolder          string
	ValidHours           int
	ClosesAt, Expired    time.Time
	Payments             []*payment
}

// payment is one attempt to pay an order. Status is ready, paid, failed or cancelled; the others are told of these.
// Amount is what was or has to be paid, in won; Due is zero for a card.
type payment struct {
	TID, OrderID, Method              string
	Status                            string
	Amount                            int64
	CreatedAt, PaidAt                 time.Time
	FailedAt, CancelledAt             time.Time
	Due                               time.Time
	BankCode, BankName, Number, Owner string
	Cancels                           []*cancel
}

// cancel is money that went back. Code is the orderId that asked for it; Returned is when it came back, if it did.
type cancel struct {
	TID, Code, Reason  string
	Amount, TaxFreeAmt int64
	At, Returned       time.Time
}

// cancelled is the sum of what went back.
// A refund that came back counts no more.
func (p *payment) cancelled() (sum int64) {
	for _, c := range p.Cancels {
		if c.Returned.IsZero() {
			sum += c.Amount
		}
	}
	return sum
}

// taxFree is how much of what went back held no tax.
func (p *payment) taxFree() (sum int64) {
	for _, c := range p.Cancels {
		if c.Returned.IsZero() {
			sum += c.TaxFreeAmt
		}
	}
	return sum
}

// status is what the wire says of the payment at a time.
// Due counts to the second, and a payment that is paid never expires.
func (p *payment) status(now time.Time) string {
	switch {
	case p.Status == paid && p.cancelled() == p.Amount:
		return cancelled
	case p.Status == paid && p.cancelled() > 0:
		return partialCancelled
	case p.Status == ready && !p.Due.IsZero() && now.After(p.Due):
		return expired
	}
	return p.Status
}

// holdsMoney tells whether it was paid, and not all of it has gone back.
func (p *payment) holdsMoney() bool { return p.Status == paid && p.cancelled() < p.Amount }

// payment is the one that counts for the order: the first with money in it, or the last one. The wire's find knows one payment
// of an order, and the others are found by their tids alone, as at the vendor.
func (o *order) payment() *payment {
	if i := slices.IndexFunc(o.Payments, (*payment).holdsMoney); i >= 0 {
		return o.Payments[i]
	}
	if i := slices.IndexFunc(o.Payments, func(p *payment) bool { return p.Status == paid }); i >= 0 {
		return o.Payments[i]
	}
	if n := len(o.Payments); n > 0 {
		return o.Payments[n-1]
	}
	return nil
}

// number counts everything that needs a number of its own.
// The lock is held, as by everything that changes what the simulator knows.
func (s *Sim) number() int {
	s.numbers++
	return s.numbers
}

// newTID makes an id of 30 characters, as the vendor's are.
// 01 is a card, 03 a virtual account; the time is Korea's, to the second, with a counter behind it.
func (s *Sim) newTID(method string) string {
	kind := "01"
	if method == methodVBank {
		kind = "03"
	}
	return fmt.Sprintf("simhub001m%s01%s%04d", kind, s.c.Now().In(kst).Format("060102150405"), s.number()%10_000)
}

// begin makes a payment for the order. A second one of an order has a tid of its own, such as for a second deposit.
func (s *Sim) begin(o *order) *payment {
	p := &payment{TID: s.newTID(o.Method), OrderID: o.OrderID, Method: o.Method, Status: ready, Amount: o.Amount, CreatedAt: s.c.Now()}
	o.Payments = append(o.Payments, p)
	s.payments[p.TID] = p
	return p
}

// issueAccount gives the order a virtual account that waits for a deposit.
// All accounts are of one bank (004), and numbered in turn unless SameAccount has asked for a number.
func (s *Sim) issueAccount(o *order) *payment {
	p := s.begin(o)
	p.Due = s.c.Now().Add(time.Duration(o.ValidHours) * time.Hour).Truncate(time.Second)
	p.BankCode, p.BankName, p.Owner = "004", "국민은행", o.VBankHolder
	if p.Number, s.account = s.account, ""; p.Number == "" {
		p.Number = fmt.Sprintf("9500%010d", s.number())
	}
	return p
}

// tell is what the wire says of a payment now.
// It is the same form in an answer, in a webhook and, in parts, on the way back of the browser.
func (s *Sim) tell(o *order, p *payment) *answer {
	a := &answer{ResultCode: "0000", ResultMsg: "정상 처리되었습니다.", TID: p.TID, OrderID: o.OrderID, EdiDate: wireTime(s.c.Now()),
		Status: p.status(s.c.Now()), PaidAt: wireTime(p.PaidAt), FailedAt: wireTime(p.FailedAt), CancelledAt: wireTime(p.CancelledAt),
		PayMethod: p.Method, Amount: p.Amount, BalanceAmt: p.Amount - p.cancelled(), GoodsName: o.GoodsName, Currency: "KRW", Channel: "pc",
		BuyerName: optional(o.BuyerName), BuyerTel: optional(o.BuyerTel),
		BuyerEmail: optional(o.BuyerEmail)}
	if p.Status == cancelled {
		a.BalanceAmt = 0
	}
	if p.Method == methodCard {
		a.Card = &wireCard{Code: "04", Name: "삼성", Number: "123412******1234", Type: "credit", PartCancel: true}
	} else if p.Number != "" {
		a.VBank = &account{Code: p.BankCode, Name: p.BankName, Number: p.Number, ExpDate: wireTime(p.Due), Holder: p.Owner}
	}
	for _, c := range p.Cancels {
		w := wireCancel{TID: c.TID, Amount: c.Amount, CancelledAt: wireTime(c.At), Reason: c.Reason}
		if !c.Returned.IsZero() {
			w.ReturnedAt = wireTime(c.Returned)
		}
		a.Cancels = append(a.Cancels, w)
	}
	s.sign(a)
	return a
}

// tellCancel is what the wire says of a payment right after a cancel.
func (s *Sim) tellCancel(o *order, p *payment, c *cancel) *answer {
	a := s.tell(o, p)
	a.CancelledTID = &c.TID
	return a
}

// takeBack cancels an amount of a payment: what was paid goes back, what was not paid is given up.
// The amount has been checked by then. A paid payment stays paid: how much of it is left is told by its cancels.
func (s *Sim) takeBack(p *payment, amount int64, code, reason string) *cancel {
	c := &cancel{TID: s.newTID(p.Method), Code: code, Reason: reason, Amount: amount, At: s.c.Now()}
	if len(p.Cancels) == 0 && amount == p.Amount {
		c.TID = p.TID // as the vendor names a cancel of all
	}
	p.Cancels = append(p.Cancels, c)
	p.CancelledAt = c.At
	if p.Status == ready {
		p.Status = cancelled
	}
	if code != "" {
		s.refunds[code] = p
	}
	return c
}
