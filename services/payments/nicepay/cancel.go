package nicepay

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// cancelRequest pays back, or gives up what is not paid.
type cancelRequest struct {
	Reason    string `json:"reason"`
	OrderID   string `json:"orderId"`
	CancelAmt *int64 `json:"cancelAmt,omitzero"`
	Account   string `json:"refundAccount,omitzero"`
	BankCode  string `json:"refundBankCode,omitzero"`
	Holder    string `json:"refundHolder,omitzero"`
	// TaxFreeAmt is what of the amount holds no tax.
	TaxFreeAmt *int64 `json:"taxFreeAmt,omitzero"`
}

// Cancel implements provider.Port. It asks for the payment first, since a cancel of what is not paid any more would give up
// its account instead. The refund's code is the orderId of the cancel, which the vendor takes once, and stands in its
// reason, which is all that the vendor tells of a cancel later. It has succeeded when the payment tells of a cancel with
// that code and amount. To give up an order that turns out to be paid is ErrAlreadyPaid; to pay back what went back
// otherwise is ErrAlreadyCanceled, with the payment as it is.
func (p *Provider) Cancel(ctx context.Context, c credentials.Unsealed, in provider.CancelRequest) (provider.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if in.Amount != nil && (*in.Amount < 1 || *in.Amount > maxWireAmount) {
		return provider.Snapshot{}, &provider.DeclinedError{Code: "2010", Message: "the amount of a refund is at least 1"}
	}
	before, err := p.get(ctx, c, in.Ref)
	if err != nil {
		return provider.Snapshot{}, err
	}
	if in.Unless != nil && in.Unless(before) {
		return before, provider.ErrUnless
	}
	if done, err := cancelOutcome(before, in); done {
		return before, err
	}
	in.Ref.TID = before.TID
	raw, err := p.call(ctx, c, "POST", "/v1/payments/"+url.PathEscape(in.Ref.TID)+"/cancel", cancelOf(in))
	if err != nil {
		return provider.Snapshot{}, err
	}
	a, err := readAnswer(raw)
	if err != nil {
		return provider.Snapshot{}, err
	}
	switch cancelKind(a.ResultCode) {
	case kindDone:
		return p.cancelled(ctx, c, in, a, raw)
	case kindDuplicate:
		return p.cancelledBefore(ctx, c, in, a)
	case kindNotFound:
		return provider.Snapshot{}, provider.ErrNotFound
	case kindUnknown:
		return provider.Snapshot{}, unknown("the provider answers %s", printable(a.ResultCode))
	}
	declined := declinedAs(a)
	declined.Drift = cancelKind(a.ResultCode) == kindDrift
	if unpaid(in) {
		// A deposit may have come between the question and the cancel.
		if s, err := p.get(ctx, c, in.Ref); err == nil && s.Status == provider.PaymentPaid {
			return s, provider.ErrAlreadyPaid
		}
	}
	return provider.Snapshot{}, declined
}

// unpaid tells whether an order is to be given up that nobody has paid.
func unpaid(in provider.CancelRequest) bool { return in.RefundCode == in.Ref.Code+"-cancel" }

// cancelOutcome tells whether a payment is as it is to be already, or can never be: then a cancel would do harm, or nothing.
func cancelOutcome(s provider.Snapshot, in provider.CancelRequest) (done bool, err error) {
	switch {
	case unpaid(in) && (s.Status == provider.PaymentPaid || !s.PaidAt.IsZero()):
		return true, provider.ErrAlreadyPaid // also where all of it went back since
	case unpaid(in):
		return s.Status != provider.PaymentIssued, nil // it is given up: cancelled, expired or failed
	case s.PaidAt.IsZero():
		return true, &provider.DeclinedError{Code: codeNotPaid, Message: "there is nothing to pay back", Drift: true}
	case showsCancel(s, in):
		return true, nil
	case slices.ContainsFunc(s.Cancellations, func(c provider.Cancellation) bool { return c.Returned && c.RefundCode == in.RefundCode }):
		return true, &provider.DeclinedError{Code: codeReturned, Message: "the payout came back; another refund can be made"}
	case s.Status == provider.PaymentCanceled:
		return true, provider.ErrAlreadyCanceled
	}
	return false, nil
}

// cancelOf is a cancel as the wire has it. Texts are cut to the vendor's bounds, which count bytes.
func cancelOf(in provider.CancelRequest) cancelRequest {
	code := " [" + in.RefundCode + "]"
	said := strings.NewReplacer("[", "(", "]", ")").Replace(in.Reason) // the code in brackets is Hub's alone
	out := cancelRequest{OrderID: in.RefundCode, CancelAmt: in.Amount, Reason: strings.TrimSpace(trimmed(said, maxReason-len(code)) + code)}
	if in.TaxFree {
		out.TaxFreeAmt = in.Amount
	}
	if in.Account != nil {
		out.Account, out.BankCode, out.Holder = in.Account.AccountNumber, in.Account.BankCode, in.Account.Holder
	}
	return out
}

// cancelled reads the answer of a cancel that the vendor says is done; where it does not show the cancel, the payment is
// asked for.
func (p *Provider) cancelled(
	ctx context.Context, c credentials.Unsealed, in provider.CancelRequest, a answer, raw []byte,
) (provider.Snapshot, error) {
	_, secret := c.Reveal()
	s, err := a.snapshot(expectation{tid: in.Ref.TID, codes: []string{in.Ref.Code, in.RefundCode}, secret: secret}, raw)
	if err != nil {
		return provider.Snapshot{}, err
	}
	if done, err := cancelOutcome(s, in); done {
		return s, err
	}
	if s, err = p.get(ctx, c, in.Ref); err != nil {
		return provider.Snapshot{}, unknown("the cancel was accepted: %s", err)
	}
	if done, err := cancelOutcome(s, in); done {
		return s, err
	}
	return provider.Snapshot{}, unknown("the cancel was accepted, and the payment does not show it")
}

// cancelledBefore finds out about a cancel that the vendor says was asked for before.
func (p *Provider) cancelledBefore(ctx context.Context, c credentials.Unsealed, in provider.CancelRequest,
	a answer) (provider.Snapshot, error) {
	s, err := p.get(ctx, c, in.Ref)
	if err != nil {
		return provider.Snapshot{}, unknown("the provider answers %s: %s", printable(a.ResultCode), err)
	}
	if done, err := cancelOutcome(s, in); done {
		return s, err
	}
	return provider.Snapshot{}, unknown("the provider answers %s, and the payment does not show it", printable(a.ResultCode))
}

// showsCancel tells whether the payment shows the refund that was asked for.
func showsCancel(s provider.Snapshot, in provider.CancelRequest) bool {
	return slices.ContainsFunc(s.Cancellations, func(c provider.Cancellation) bool {
		return c.RefundCode == in.RefundCode && !c.Returned && (in.Amount == nil || c.Amount == *in.Amount)
	})
}

// Expire implements provider.Port. One that is closed already is closed. ErrNotFound when there is none; ErrAlreadyPaid when
// it was paid; ErrUnknown when a payer has begun meanwhile: ask for the payment, and cancel that.
func (p *Provider) Expire(ctx context.Context, c credentials.Unsealed, ref provider.PaymentRef) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	closed, err := p.checkout(ctx, c, "POST", "/v1/checkout/"+url.PathEscape(ref.Code)+"/expire", struct{}{})
	if err != nil {
		return err
	}
	switch checkoutKind(closed.code()) {
	case kindDone:
	case kindPageClosed:
		return nil
	case kindNoPage:
		return provider.ErrNotFound
	case kindUnknown, kindDuplicate:
		return unknown("the provider answers %s", printable(closed.code()))
	default:
		return &provider.DeclinedError{Code: printable(closed.code()), Message: printable(closed.ResultMsg)}
	}
	switch {
	case closed.OrderID != ref.Code || closed.SessionID != "" && closed.SessionID != ref.Code:
		return unknown("the checkout is about another order")
	case closed.Status == "paid" || closed.Status == "partialCancelled":
		return provider.ErrAlreadyPaid
	case closed.TID != "" && closed.Status == "ready":
		return unknown("the payer has begun")
	}
	return nil
}

// NetCancel implements provider.Port. What was undone already is undone; ErrNotFound when there is nothing to undo.
func (p *Provider) NetCancel(ctx context.Context, c credentials.Unsealed, code string) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	raw, err := p.call(ctx, c, "POST", "/v1/payments/netcancel", map[string]string{"orderId": code})
	if err != nil {
		return err
	}
	a, err := readAnswer(raw)
	if err != nil {
		return err
	}
	_, secret := c.Reveal()
	switch cancelKind(a.ResultCode) {
	case kindDone:
		s, err := a.snapshot(expectation{codes: []string{code}, secret: secret}, raw)
		if err == nil && s.Status != provider.PaymentCanceled {
			err = unknown("the payment was not undone")
		}
		return err
	case kindDuplicate:
		if a.ResultCode == "2013" {
			return nil
		}
		return unknown("the provider answers %s", printable(a.ResultCode))
	case kindNotFound:
		return provider.ErrNotFound
	case kindUnknown:
		return unknown("the provider answers %s", printable(a.ResultCode))
	}
	return declinedAs(a)
}

// declinedAs is a refusal in the vendor's words.
func declinedAs(a answer) *provider.DeclinedError {
	return &provider.DeclinedError{Code: printable(a.ResultCode), Message: printable(a.ResultMsg)}
}
