package nicepay

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"hub.internal/services/payments"
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

// Cancel implements payments.Provider. The refund's code is the orderId of the cancel, which the vendor takes once, and
// stands in its reason, which is all that the vendor tells of a cancel later. It has succeeded when the payment tells of a
// cancel with that code and amount. To give up an order that turns out to be paid is ErrAlreadyPaid; to pay back what went back
// otherwise is ErrAlreadyCanceled, with the payment as it is.
func (p *Provider) Cancel(ctx context.Context, c payments.Cred, in payments.CancelRequest) (payments.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if in.Amount != nil && (*in.Amount < 1 || *in.Amount > maxWireAmount) {
		return payments.Snapshot{}, &payments.DeclinedError{Code: "2010", Message: "the amount of a refund is at least 1"}
	}
	if in.Ref.TID == "" || unpaid(in) {
		before, err := p.get(ctx, c, in.Ref)
		if err != nil {
			return payments.Snapshot{}, notYet(err)
		}
		if s, done, err := given(before, in); done {
			return s, err
		}
		in.Ref.TID = before.TID
	}
	raw, err := p.call(ctx, c, "POST", "/v1/payments/"+url.PathEscape(in.Ref.TID)+"/cancel", cancelOf(in))
	if err != nil {
		return payments.Snapshot{}, err
	}
	a, err := readAnswer(raw)
	if err != nil {
		return payments.Snapshot{}, err
	}
	switch ofCancel(a.ResultCode) {
	case kindDone:
		return p.cancelled(ctx, c, in, a, raw)
	case kindDuplicate:
		return p.cancelledBefore(ctx, c, in, a)
	case kindNotFound:
		return payments.Snapshot{}, payments.ErrNotFound
	case kindUnknown:
		return payments.Snapshot{}, unknown("the provider answers %s", printable(a.ResultCode))
	}
	declined := declinedAs(a)
	declined.Drift = ofCancel(a.ResultCode) == kindDrift
	if unpaid(in) {
		// A deposit may have come between the question and the cancel.
		if s, err := p.get(ctx, c, in.Ref); err == nil && s.Status == payments.PaymentPaid {
			return s, payments.ErrAlreadyPaid
		}
	}
	return payments.Snapshot{}, declined
}

// unpaid tells whether an order is to be given up that nobody has paid.
func unpaid(in payments.CancelRequest) bool { return in.RefundCode == in.Ref.Code+"-cancel" }

// notYet is the error of a question that came before the cancel: nothing was cancelled, whatever it was.
func notYet(err error) error {
	if errors.Is(err, payments.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w: the payment could not be asked for: %s", payments.ErrNotSent, err.Error()) // one kind of error, not two
}

// given answers without a cancel where one would do harm, or nothing.
func given(s payments.Snapshot, in payments.CancelRequest) (payments.Snapshot, bool, error) {
	switch {
	case unpaid(in) && (s.Status == payments.PaymentPaid || !s.PaidAt.IsZero()):
		return s, true, payments.ErrAlreadyPaid // also where all of it went back since
	case unpaid(in) && s.Status != payments.PaymentIssued:
		return s, true, nil // it is given up: cancelled, expired or failed
	}
	return s, false, nil
}

func cancelOf(in payments.CancelRequest) cancelRequest {
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
	ctx context.Context, c payments.Cred, in payments.CancelRequest, a answer, raw []byte,
) (payments.Snapshot, error) {
	_, secret := c.Reveal()
	s, err := a.snapshot(asked{tid: in.Ref.TID, codes: []string{in.Ref.Code, in.RefundCode}, secret: secret}, raw)
	if err != nil {
		return payments.Snapshot{}, err
	}
	if holds(s, in) {
		return proven(s, in)
	}
	if s, err = p.get(ctx, c, in.Ref); err != nil {
		return payments.Snapshot{}, unknown("the cancel was accepted: %s", err)
	}
	if !holds(s, in) {
		return payments.Snapshot{}, unknown("the cancel was accepted, and the payment does not show it")
	}
	return proven(s, in)
}

// proven is the answer of a cancel that the payment shows. A refund of what is not paid any more has given up the account
// instead: no money went back.
func proven(s payments.Snapshot, in payments.CancelRequest) (payments.Snapshot, error) {
	if !unpaid(in) && s.PaidAt.IsZero() {
		return s, &payments.DeclinedError{Code: codeNotPaid, Message: "the deposit was taken back before", Drift: true}
	}
	return s, nil
}

// cancelledBefore finds out about a cancel that the vendor says was asked for before.
func (p *Provider) cancelledBefore(ctx context.Context, c payments.Cred, in payments.CancelRequest, a answer) (payments.Snapshot, error) {
	s, err := p.get(ctx, c, in.Ref)
	switch {
	case err != nil:
		return payments.Snapshot{}, unknown("the provider answers %s: %s", printable(a.ResultCode), err)
	case holds(s, in):
		return proven(s, in)
	case slices.ContainsFunc(s.Cancels, func(c payments.ProviderCancel) bool { return c.Returned && c.RefundCode == in.RefundCode }):
		return s, &payments.DeclinedError{Code: codeReturned, Message: "the payout came back; another refund can be made"}
	case s.Status == payments.PaymentCanceled:
		return s, payments.ErrAlreadyCanceled
	}
	return s, unknown("the provider answers %s, and the payment does not show it", printable(a.ResultCode))
}

// holds tells whether the payment shows the cancel that was asked for.
func holds(s payments.Snapshot, in payments.CancelRequest) bool {
	if unpaid(in) {
		return s.Status == payments.PaymentCanceled
	}
	return slices.ContainsFunc(s.Cancels, func(c payments.ProviderCancel) bool {
		return c.RefundCode == in.RefundCode && !c.Returned && (in.Amount == nil || c.Amount == *in.Amount)
	})
}

// Expire implements payments.Provider. One that is closed already is closed. ErrNotFound when there is none; ErrAlreadyPaid when
// it was paid; ErrUnknown when a payer has begun meanwhile: ask for the payment, and cancel that.
func (p *Provider) Expire(ctx context.Context, c payments.Cred, ref payments.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	closed, err := p.checkout(ctx, c, "POST", "/v1/checkout/"+url.PathEscape(ref.Code)+"/expire", struct{}{})
	if err != nil {
		return err
	}
	switch ofCheckout(closed.code()) {
	case kindDone:
	case kindPageClosed:
		return nil
	case kindNoPage:
		return payments.ErrNotFound
	case kindUnknown, kindDuplicate:
		return unknown("the provider answers %s", printable(closed.code()))
	default:
		return &payments.DeclinedError{Code: printable(closed.code()), Message: printable(closed.ResultMsg)}
	}
	switch {
	case closed.OrderID != ref.Code || closed.SessionID != "" && closed.SessionID != ref.Code:
		return unknown("the checkout is about another order")
	case closed.Status == "paid" || closed.Status == "partialCancelled":
		return payments.ErrAlreadyPaid
	case closed.TID != "" && closed.Status == "ready":
		return unknown("the payer has begun")
	}
	return nil
}

// NetCancel implements payments.Provider. What was undone already is undone; ErrNotFound when there is nothing to undo.
func (p *Provider) NetCancel(ctx context.Context, c payments.Cred, code string) error {
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
	switch ofCancel(a.ResultCode) {
	case kindDone:
		s, err := a.snapshot(asked{codes: []string{code}, secret: secret}, raw)
		if err == nil && s.Status != payments.PaymentCanceled {
			err = unknown("the payment was not undone")
		}
		return err
	case kindDuplicate:
		if a.ResultCode == "2013" {
			return nil
		}
		return unknown("the provider answers %s", printable(a.ResultCode))
	case kindNotFound:
		return payments.ErrNotFound
	case kindUnknown:
		return unknown("the provider answers %s", printable(a.ResultCode))
	}
	return declinedAs(a)
}

// declinedAs is a refusal in the vendor's words.
func declinedAs(a answer) *payments.DeclinedError {
	return &payments.DeclinedError{Code: printable(a.ResultCode), Message: printable(a.ResultMsg)}
}
