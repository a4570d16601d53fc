package payments

import (
	"context"
	"strings"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/write"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
)

// SubjectKind says what a claim of an Idempotency-Key is about.
type SubjectKind int

// The kinds of subject.
const (
	// NewOrder is an order that was stored with the claim, and that the provider has to be asked for.
	NewOrder SubjectKind = iota
	// KnownOrder is an order that was there before, found by its clientOrderId: nothing was begun.
	KnownOrder
	// Cancellation is an unpaid order that is to be given up.
	Cancellation
	// RefundOfOrder is a refund whose amount is reserved, and that the provider has to be asked for.
	RefundOfOrder
)

// Subject is what a claim is about. Code is the order's, or the refund's for RefundOfOrder.
type Subject struct {
	Kind SubjectKind
	Code string
}

// The stored form of a subject, write.Claim.Resource. The release before reads it too, so that it stays as it is: a refund
// is told by its code, which no order has.
const (
	knownPrefix        = "known "
	cancellationPrefix = "cancel "
	refundPrefix       = order.RefundPrefix
)

// String is the stored form; see ParseSubject.
func (s Subject) String() string {
	switch s.Kind {
	case KnownOrder:
		return knownPrefix + s.Code
	case Cancellation:
		return cancellationPrefix + s.Code
	}
	return s.Code
}

// ParseSubject reads what String has written.
func ParseSubject(resource string) Subject {
	if code, found := strings.CutPrefix(resource, knownPrefix); found {
		return Subject{KnownOrder, code}
	}
	if code, found := strings.CutPrefix(resource, cancellationPrefix); found {
		return Subject{Cancellation, code}
	}
	if strings.HasPrefix(resource, refundPrefix) {
		return Subject{RefundOfOrder, resource}
	}
	return Subject{NewOrder, resource}
}

// completionBatch is how many calls one run of Complete ends at most; the next run goes on with the oldest that are left.
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
	about := ParseSubject(claim.Resource)
	code := about.Code
	switch about.Kind {
	case KnownOrder:
		// Nothing was begun. Whether the caller may see that order is judged when the call comes again.
		return s.release(ctx, claim, nil)
	case RefundOfOrder:
		var err error
		if code, err = s.c.Store.OrderOfRefund(ctx, about.Code); err != nil {
			return err
		}
	}
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return err
	}
	// The caller is gone. Its call is recorded in its name all the same, from what the order and the key say of it.
	call := write.Call{Key: claim.Key, At: s.now(), Caller: caller.Caller{Kind: caller.App, Service: a.Order.ServiceCode,
		ExternalUserID: a.Order.ExternalUserID, HubUser: a.Order.HubUser, CredentialID: claim.Key.Principal}}
	if email, found := strings.CutPrefix(claim.Key.Principal, operatorPrefix); found {
		call.Caller = caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: email, Email: email,
			CredentialID: claim.Key.Principal}
	}
	switch about.Kind {
	case Cancellation:
		call.Operation = operationCancel
		_, err = s.cancelClaimed(ctx, call, claim, code)
	case RefundOfOrder:
		call.Operation = operationRefund
		_, err = s.refundClaimed(ctx, call, claim, code)
	default:
		call.Operation = operationCreate
		_, err = s.issue(ctx, call, claim, a.Order, credentials.Unsealed{})
	}
	if fault.Is(err, fault.Conflict) {
		return nil // refused, and free again
	}
	return err
}
