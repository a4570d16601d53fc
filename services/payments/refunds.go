package payments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// RefundInput is a refund as its app wants it.
type RefundInput struct {
	// Amount is nil for all that can be refunded.
	Amount             *int64
	Reason             string
	Account            *provider.RefundAccount
	ExpectedRefundable *int64
}

// RefundAnswer is an answer with a refund.
type RefundAnswer struct {
	Refund order.RefundView `json:"refund"`
	Order  order.View       `json:"order"`
}

// Refund pays money of a paid order back: the amount is reserved, the provider is asked, and what it says is kept. An
// unknown outcome leaves the refund PENDING, for a job to find out. It returns E_CONFLICT with ORDER_NOT_REFUNDABLE,
// TOO_MANY_REFUNDS, AMOUNT_MISMATCH, REFUND_NOT_KNOWN, REFUND_EXCEEDS_BALANCE or PROVIDER_DECLINED, and E_VALIDATION when the provider
// needs an account.
func (s *Service) Refund(ctx context.Context, code string, in RefundInput) (tool.Result, error) {
	call, err := s.refundCall(ctx, code, in)
	if err != nil {
		return tool.Result{}, err
	}
	return s.refund(ctx, call, code, in)
}

// refundCall is the call of a refund that ctx belongs to.
func (s *Service) refundCall(ctx context.Context, code string, in RefundInput) (write.Call, error) {
	if in.Reason == defaultReason {
		in.Reason = "" // as CreateInput.unstated does
	}
	return write.NewRouteCall(ctx, operationRefund, http.MethodPost, "/v1/pay/orders/{code}/refund", struct {
		Code string
		RefundInput
	}{code, in}, s.c.Now())
}

// refund is Refund with the key of its call.
func (s *Service) refund(ctx context.Context, call write.Call, code string, in RefundInput) (answer tool.Result, err error) {
	// The code is drawn before the key is claimed, because the account is sealed under it.
	asked := order.RefundRequest{Code: s.newCode(refundPrefix), Amount: in.Amount, Reason: cmp.Or(in.Reason, defaultReason),
		ExpectedRefundable: in.ExpectedRefundable}
	if in.Account != nil {
		if asked.Account, asked.Masked, err = s.sealAccount(refundAccountName(asked.Code), *in.Account); err != nil {
			return tool.Result{}, err
		}
	}
	claim, err := s.c.Store.Claim(ctx, call.Key, code, s.callActor(call), func(a *order.Aggregate) (Subject, error) {
		if err := ownedBy(call.Caller, a.Order); err != nil {
			return Subject{}, err
		}
		r, err := a.RequestRefund(asked)
		if err == nil {
			err = s.refundFits(a.Order, r, in.Account)
		}
		return Subject{RefundOfOrder, r.Code}, err
	})
	if err != nil || claim.Done {
		return claim.Answer, err
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	return s.refundClaimed(ctx, call, claim, code)
}

// refundFits is E_VALIDATION for a refund that the provider could not make.
func (s *Service) refundFits(o order.Order, r order.Refund, account *provider.RefundAccount) error {
	caps := s.c.Provider.Capabilities(o.PayMethod)
	switch {
	case caps.NeedsRefundAccount && account == nil:
		return schema.Invalid("/refundAccount", "required", "is needed for an order that was paid by %s", o.PayMethod)
	case !caps.PartialRefund && r.Amount != o.PaidAmount:
		return schema.Invalid("/amount", "partial", "must be all of %d: the provider refunds no part of an order that was paid by %s",
			o.PaidAmount, o.PayMethod)
	}
	return nil
}

// finishRefund stores the answer of a refund with its key. One that the provider has refused frees the key instead:
// only what was done is answered again.
func (s *Service) finishRefund(ctx context.Context, call write.Call, claim write.Claim, code string) (tool.Result, error) {
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return tool.Result{}, err
	}
	refund := ParseSubject(claim.Resource).Code
	if r := a.Refund(refund); r.Status == order.RefundFailed {
		if r.Failure.Code == order.CodeRefundNotKnown {
			return tool.Result{}, s.release(ctx, claim, order.Conflict(order.CodeRefundNotKnown, r.Failure.Message, nil))
		}
		return tool.Result{}, s.release(ctx, claim, order.Conflict(order.CodeProviderDeclined,
			"The payment provider refuses this refund: "+strings.TrimRight(r.Failure.Message, ".")+". Nothing of it went back.",
			map[string]any{"refund": r.Code, "provider": r.Failure}))
	}
	var answer tool.Result
	_, err = s.c.Store.Change(ctx, code, s.callActor(call), func(*order.Aggregate) error { return nil },
		&Completion{claim, func(a *order.Aggregate) (tool.Result, audit.Entry, error) {
			r := a.Refund(refund)
			var err error
			answer, err = write.Answer(RefundAnswer{r.View(), a.View()}, 1)
			return answer, call.Entry(1, map[string]any{"order": code, "refund": r.Code, "amount": r.Amount, "status": r.Status}), err
		}})
	return answer, s.explainTakenOver(err)
}

// refundAtProvider asks the provider for a pending refund. One that the provider may have heard of is looked for first. An
// unknown outcome is no error: the refund stays pending. Where the provider has made a refund that Hub has lost it fails as
// REFUND_NOT_KNOWN: it may be that one.
func (s *Service) refundAtProvider(ctx context.Context, code, refund string, mayBeDone bool, by Actor) error {
	a, err := s.c.Store.Order(ctx, code)
	if err == nil && mayBeDone {
		if a, _, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by); err != nil {
			return nil //nolint:nilerr // who does not answer now is asked later
		}
	}
	if err != nil {
		return err
	}
	r := a.Refund(refund)
	if r == nil || r.Status != order.RefundPending {
		return nil
	}
	var lost *provider.Cancellation
	var unread error
	snapshot, err := s.requestRefund(ctx, a.Order, *r, func(told provider.Snapshot) bool {
		if a.LostRefund(told, refund) == nil {
			return false
		}
		// Another refund of the order may have been made meanwhile: it was stored before the provider heard of it.
		var now *order.Aggregate
		if now, unread = s.c.Store.Order(ctx, code); unread == nil {
			lost = now.LostRefund(told, refund)
		}
		return unread != nil || lost != nil
	})
	by.Now = s.now()
	var declined *provider.DeclinedError
	switch {
	case err == nil:
		_, err = s.apply(ctx, code, by, &snapshot, nil)
		return err
	case errors.As(err, &declined):
		return s.declineRefund(ctx, code, refund, by, order.Failure{Code: declined.Code, Message: declined.Message}, declined.Drift)
	case errors.Is(err, provider.ErrUnless):
		if unread != nil {
			return unread
		}
		return s.refuseRefund(ctx, code, refund, *lost, by)
	case errors.Is(err, provider.ErrAlreadyCanceled):
		after, snapshot, pulled := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
		if pulled != nil || snapshot == nil {
			return nil //nolint:nilerr // who does not answer now is asked later
		}
		if r := after.Refund(refund); r.Status == order.RefundPending {
			return s.declineRefund(ctx, code, refund, by, order.Failure{Code: "ALREADY_CANCELED",
				Message: "the provider has paid it back without this refund"}, true)
		}
		return nil
	}
	s.c.Logger.WarnContext(ctx, "the provider was asked for a refund, and its answer is not known", "order", code, "refund", refund,
		"error", err)
	return nil
}

// refuseRefund ends a refund of an order of which the provider has made another that Hub has lost, and takes that one over.
func (s *Service) refuseRefund(ctx context.Context, code, refund string, lost provider.Cancellation, by Actor) error {
	why := order.Failure{Code: order.CodeRefundNotKnown, Message: order.RefundNotKnown(lost.RefundCode, lost.Amount)}
	if err := s.declineRefund(ctx, code, refund, by, why, false); err != nil {
		return err
	}
	if _, _, err := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by); err != nil {
		s.c.Logger.WarnContext(ctx, "a refund that was lost is not taken over yet", "order", code, "refund", lost.RefundCode, "error", err)
	}
	return nil
}

// requestRefund asks the provider for a refund of the payment that the order is paid with.
func (s *Service) requestRefund(ctx context.Context, o order.Order, r order.Refund,
	unless func(provider.Snapshot) bool) (provider.Snapshot, error) {
	in := provider.CancelRequest{Ref: provider.PaymentRef{TID: o.TID}, RefundCode: r.Code, Reason: r.Reason, Amount: &r.Amount, Unless: unless}
	return s.requestPayout(ctx, o, in, r.Account, refundAccountName(r.Code))
}

// requestPayout asks the provider to pay money of an order back, to the account that is sealed under a name, if there is one.
func (s *Service) requestPayout(ctx context.Context, o order.Order, in provider.CancelRequest, sealed []byte,
	name string) (provider.Snapshot, error) {
	cred, err := s.c.Credentials.ByID(ctx, o.CredentialID)
	if err != nil {
		return provider.Snapshot{}, err
	}
	in.Ref.Code, in.Ref.CreatedAt, in.TaxFree = o.Code, o.CreatedAt, o.TaxFree
	if sealed != nil {
		if in.Account, err = s.openAccount(name, sealed); err != nil {
			return provider.Snapshot{}, err
		}
	}
	return s.c.Provider.Cancel(ctx, cred, in)
}

// declineRefund records that the provider has definitely refused: the reserve is free again.
func (s *Service) declineRefund(ctx context.Context, code, refund string, by Actor, why order.Failure, drift bool) error {
	_, err := s.c.Store.Change(ctx, code, by, func(a *order.Aggregate) error {
		return a.DeclineRefund(refund, why, drift)
	}, nil)
	return err
}

// refundClaimed pays a reserved refund back, and finishes its call.
func (s *Service) refundClaimed(ctx context.Context, call write.Call, claim write.Claim, code string) (tool.Result, error) {
	if err := s.refundAtProvider(ctx, code, ParseSubject(claim.Resource).Code, claim.Resumed, s.callActor(call)); err != nil {
		return tool.Result{}, err
	}
	return s.finishRefund(ctx, call, claim, code)
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

// openAccount opens what sealAccount has sealed under the same name.
func (s *Service) openAccount(name string, sealed []byte) (*provider.RefundAccount, error) {
	text, err := s.c.Sealer.Open(sealed, name)
	if err != nil {
		return nil, err
	}
	var a provider.RefundAccount
	return &a, json.Unmarshal([]byte(text), &a)
}

// refundAccountName binds the sealed account of a refund to its row.
func refundAccountName(refund string) string { return "payments.refunds|account|" + refund }

// maskName leaves the first character.
func maskName(name string) string {
	for _, first := range name {
		return string(first) + "**"
	}
	return ""
}
