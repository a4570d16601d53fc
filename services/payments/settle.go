package payments

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// errStale tells that an order has moved since the provider was asked: what it said may be old.
var errStale = errors.New("the order has moved since the provider was asked")

// tries is how often the provider is asked while the order moves on.
const maxPulls = 5

// pull asks the provider for an order, and brings it to what the provider says, unless it has moved meanwhile: then it
// asks again. ref may name a payment of the order's that is not known yet. No snapshot tells that the provider knows
// nothing. E_DB when the provider does not say.
func (s *Service) reconcileWithProvider(ctx context.Context, ref provider.PaymentRef, by Actor) (*order.Aggregate, *provider.Snapshot, error) {
	for range maxPulls {
		seen, snapshot, err := s.fetch(ctx, ref)
		if err != nil || snapshot == nil {
			return seen, nil, err
		}
		by.Now = s.now()
		b, err := s.c.Store.Change(ctx, ref.Code, by, func(b *order.Aggregate) error {
			if b.Order.Version != seen.Order.Version {
				return errStale
			}
			return b.ApplyFresh(*snapshot)
		}, nil)
		if errors.Is(err, errStale) {
			continue
		}
		if err == nil && b.CancelAtProvider {
			s.cancelUnwanted(ctx, b.Order)
		}
		return b, snapshot, err
	}
	return nil, nil, fault.New(fault.Conflict, "The order is changing right now. Try again in a second.").After(time.Second).Because(errStale)
}

// look asks the provider about an order, and returns it as it was before.
func (s *Service) fetch(ctx context.Context, ref provider.PaymentRef) (*order.Aggregate, *provider.Snapshot, error) {
	b, err := s.c.Store.Order(ctx, ref.Code)
	if err != nil {
		return nil, nil, err
	}
	cred, err := s.c.Credentials.ByID(ctx, b.Order.CredentialID)
	if err != nil {
		return b, nil, err
	}
	if ref.TID == "" {
		ref.TID = b.Order.TID
	}
	ref.CreatedAt = b.Order.CreatedAt
	snapshot, err := s.c.Provider.Get(ctx, cred, ref)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return b, nil, nil
	case err != nil:
		return b, nil, s.providerUnreachable().Because(err)
	case snapshot.Code != ref.Code:
		return b, nil, s.providerUnreachable().Because(errors.New("the provider answers about another order"))
	}
	return b, &snapshot, nil
}

func (s *Service) providerUnreachable() *fault.Error {
	return fault.New(fault.DB, "The payment provider does not answer right now. Try again in a moment.").After(2 * time.Second)
}

// giveUp cancels at the provider what must not be paid, best effort: who looks at the order later tries again.
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

// askToCancel gives an order up at the provider. What was paid meanwhile comes back as such.
func (s *Service) cancelAtProvider(ctx context.Context, code string, by Actor) (*order.Aggregate, error) {
	b, _, err := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	if err != nil || b.Order.Status != order.Ready && b.Order.Status != order.AwaitingDeposit {
		return b, err
	}
	o := b.Order
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
	switch {
	case err == nil && over || errors.Is(err, provider.ErrNotFound):
		// Nobody can begin to pay any more: the order ends, unless it has moved.
		by.Now = s.now()
		b, err = s.c.Store.Change(ctx, code, by, func(b *order.Aggregate) error {
			if b.Order.Version != o.Version {
				return errStale
			}
			return b.CancelUnpaid()
		}, nil)
		if !errors.Is(err, errStale) {
			return b, err
		}
	case err != nil && !errors.Is(err, provider.ErrAlreadyPaid) && !errors.Is(err, provider.ErrAlreadyCanceled):
		return nil, s.providerUnreachable().Because(err)
	}
	b, _, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	return b, err
}

// RefundWanted is a refund as its app wants it.
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
// AMOUNT_MISMATCH, REFUND_EXCEEDS_BALANCE or PROVIDER_DECLINED, and E_VALIDATION when the provider needs an account.
func (s *Service) Refund(ctx context.Context, code string, in RefundInput) (tool.Result, error) {
	call, err := write.NewRouteCall(ctx, operationRefund, http.MethodPost, "/v1/pay/orders/{code}/refund", struct {
		Code string
		RefundInput
	}{code, in}, s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	asked := order.RefundRequest{Code: s.newCode("rf_"), Amount: in.Amount, Reason: in.Reason, ExpectedRefundable: in.ExpectedRefundable}
	if asked.Reason == "" {
		asked.Reason = "requested"
	}
	if in.Account != nil {
		if asked.Account, asked.Masked, err = s.sealAccount(refundAccountName(asked.Code), *in.Account); err != nil {
			return tool.Result{}, err
		}
	}
	claim, err := s.c.Store.Claim(ctx, call.Key, code, s.callActor(call), func(b *order.Aggregate) (string, error) {
		if err := ownedBy(call.Caller, b.Order); err != nil {
			return "", err
		}
		r, err := b.RequestRefund(asked)
		if err == nil {
			err = s.refundFits(b.Order, r, in.Account)
		}
		return r.Code, err
	})
	if err != nil || claim.Done {
		return claim.Answer, err
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	return s.refundClaimed(ctx, call, claim, code)
}

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

func (s *Service) finishRefund(ctx context.Context, call write.Call, claim write.Claim, code string) (tool.Result, error) {
	b, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return tool.Result{}, err
	}
	if r := b.Refund(claim.Resource); r.Status == order.RefundFailed {
		return tool.Result{}, s.release(ctx, claim, order.Conflict(order.CodeProviderDeclined, "The payment provider refuses this refund.",
			map[string]any{"refund": r.Code, "provider": r.Failure}))
	}
	var answer tool.Result
	_, err = s.c.Store.Change(ctx, code, s.callActor(call), func(*order.Aggregate) error { return nil },
		&Completion{claim, func(b *order.Aggregate) (tool.Result, audit.Entry, error) {
			r := b.Refund(claim.Resource)
			var err error
			answer, err = write.Answer(RefundAnswer{r.View(), b.View()}, 1)
			return answer, call.Entry(1, map[string]any{"order": code, "refund": r.Code, "amount": r.Amount, "status": r.Status}), err
		}})
	return answer, s.explainTakenOver(err)
}

// payBack asks the provider for a pending refund. One that the provider may have heard of is looked for first. An
// unknown outcome is no error: the refund stays pending.
func (s *Service) refundAtProvider(ctx context.Context, code, refund string, mayBeDone bool, by Actor) error {
	b, err := s.c.Store.Order(ctx, code)
	if err == nil && mayBeDone {
		if b, _, err = s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by); err != nil {
			return nil //nolint:nilerr // who does not answer now is asked later
		}
	}
	if err != nil {
		return err
	}
	r := b.Refund(refund)
	if r == nil || r.Status != order.RefundPending {
		return nil
	}
	snapshot, err := s.requestRefund(ctx, b.Order, *r)
	by.Now = s.now()
	var declined *provider.DeclinedError
	switch {
	case err == nil:
		_, err = s.apply(ctx, code, by, &snapshot, nil)
		return err
	case errors.As(err, &declined):
		return s.declineRefund(ctx, code, refund, by, order.Failure{Code: declined.Code, Message: declined.Message}, declined.Drift)
	case errors.Is(err, provider.ErrAlreadyCanceled):
		after, snapshot, pulled := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
		if pulled != nil || snapshot == nil {
			return nil //nolint:nilerr // who does not answer now is asked later
		}
		if r := after.Refund(refund); r.Status == order.RefundPending {
			return s.declineRefund(ctx, code, refund, by, order.Failure{Code: "ALREADY_CANCELED", Message: "the provider has paid it back without this refund"}, true)
		}
		return nil
	}
	s.c.Logger.WarnContext(ctx, "the provider was asked for a refund, and its answer is not known", "order", code, "refund", refund,
		"error", err)
	return nil
}

func (s *Service) requestRefund(ctx context.Context, o order.Order, r order.Refund) (provider.Snapshot, error) {
	cred, err := s.c.Credentials.ByID(ctx, o.CredentialID)
	if err != nil {
		return provider.Snapshot{}, err
	}
	in := provider.CancelRequest{Ref: provider.PaymentRef{TID: o.TID, Code: o.Code, CreatedAt: o.CreatedAt}, RefundCode: r.Code, Reason: r.Reason,
		Amount: &r.Amount, TaxFree: o.TaxFree}
	if r.Account != nil {
		if in.Account, err = s.openAccount(refundAccountName(r.Code), r.Account); err != nil {
			return provider.Snapshot{}, err
		}
	}
	return s.c.Provider.Cancel(ctx, cred, in)
}

func (s *Service) declineRefund(ctx context.Context, code, refund string, by Actor, why order.Failure, drift bool) error {
	_, err := s.c.Store.Change(ctx, code, by, func(b *order.Aggregate) error {
		return b.DeclineRefund(refund, why, drift)
	}, nil)
	return err
}

// mostLeft is how many calls one run of Complete ends.
const completionBatch = 100

// Complete ends calls whose process has gone: what they began is brought to its end, and its answer kept for whoever
// sends the same key again. One takes less time than its lease lasts, so that nobody else has it meanwhile.
func (s *Service) Complete(ctx context.Context) error {
	left, err := s.c.Store.AbandonedClaims(ctx, completionBatch)
	if err != nil {
		return err
	}
	for _, claim := range left {
		claim, ok, err := s.c.Store.TakeOverClaim(ctx, claim)
		if err == nil && ok {
			within, cancel := context.WithTimeout(ctx, providerTimeout)
			err = s.complete(within, claim)
			cancel()
		}
		if err != nil {
			s.c.Logger.WarnContext(ctx, "a call that was left is not completed yet", "about", claim.Resource, "error", err)
		}
	}
	return ctx.Err()
}

// complete ends one call as its caller would have, in whose name it is recorded.
func (s *Service) complete(ctx context.Context, claim write.Claim) error {
	if strings.HasPrefix(claim.Resource, Known) {
		// Nothing was begun. Whether the caller may see that order is judged when the call comes again.
		return s.release(ctx, claim, nil)
	}
	code := strings.TrimPrefix(claim.Resource, toCancel)
	if strings.HasPrefix(claim.Resource, refunds) {
		var err error
		if code, err = s.c.Store.OrderOfRefund(ctx, claim.Resource); err != nil {
			return err
		}
	}
	b, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return err
	}
	call := write.Call{Key: claim.Key, At: s.now(), Caller: caller.Caller{Kind: caller.App, Service: b.Order.ServiceCode,
		ExternalUserID: b.Order.ExternalUserID, HubUser: b.Order.HubUser, CredentialID: claim.Key.Principal}}
	switch {
	case strings.HasPrefix(claim.Resource, toCancel):
		call.Operation = operationCancel
		_, err = s.cancelClaimed(ctx, call, claim, code)
	case strings.HasPrefix(claim.Resource, refunds):
		call.Operation = operationRefund
		_, err = s.refundClaimed(ctx, call, claim, code)
	default:
		call.Operation = operationCreate
		_, err = s.issue(ctx, call, claim)
	}
	if fault.Is(err, fault.Conflict) {
		return nil // refused, and free again
	}
	return err
}

// refundClaimed pays a reserved refund back, and finishes its call.
func (s *Service) refundClaimed(ctx context.Context, call write.Call, claim write.Claim, code string) (tool.Result, error) {
	if err := s.refundAtProvider(ctx, code, claim.Resource, claim.Resumed, s.callActor(call)); err != nil {
		return tool.Result{}, err
	}
	return s.finishRefund(ctx, call, claim, code)
}
