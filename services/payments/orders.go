package payments

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// CreateInput is an order as its app wants it.
type CreateInput struct {
	Amount, SupplyAmount, VAT *int64
	PayMethod                 provider.PayMethod
	NotifyURL                 string
	ClientOrderID             string
	Name                      string
	ReturnURL                 string
	VirtualAccount            *VirtualAccountInput
	Buyer                     provider.Buyer
	Metadata                  map[string]string
}

// VirtualAccountInput is how long a virtual account waits, in hours, and whose name it has.
type VirtualAccountInput struct {
	ValidHours int
	Holder     string
}

// The writes of apps, as the audit log names them.
const (
	operationCreate = "pay.orders.create"
	operationRefund = "pay.orders.refund"
	operationCancel = "pay.orders.cancel"
)

// How long an account waits, in hours, whose name it has, and why money is refunded, where the app does not say.
const (
	defaultValidHours = 168
	defaultHolder     = "Hub"
	defaultReason     = "requested"
)

// unstated is the input without the defaults that it writes out: as what a key stands for, both are one call (SPEC.md 7.1). They are left
// out, and not filled in, so that a key of the release before stands for the same where its call has left them out.
func (in CreateInput) unstated() CreateInput {
	if len(in.Metadata) == 0 {
		in.Metadata = nil
	}
	if in.SupplyAmount != nil && in.VAT != nil && *in.VAT == 0 {
		in.VAT = nil
	}
	if in.PayMethod == provider.VBank && in.VirtualAccount != nil {
		account := *in.VirtualAccount
		if account.ValidHours == defaultValidHours {
			account.ValidHours = 0
		}
		if account.Holder == defaultHolder {
			account.Holder = ""
		}
		if in.VirtualAccount = &account; account == (VirtualAccountInput{}) {
			in.VirtualAccount = nil
		}
	}
	return in
}

// OrderAnswer is an answer with an order.
type OrderAnswer struct {
	Order order.View `json:"order"`
}

// Create makes an order and asks the provider for it. A provider that definitely refuses ends the order, with E_CONFLICT
// and details.code PROVIDER_DECLINED; one whose answer is unknown leaves it READY, for a job to find out. A
// clientOrderId that the app has used before answers that order, or E_CONFLICT with CLIENT_ORDER_ID_TAKEN,
// CLIENT_ORDER_ID_OTHER_ENV or AMOUNT_MISMATCH. It returns BAD_AMOUNT, E_VALIDATION for a URL that the app may not use,
// E_CONFLICT for a key that was used for something else, and E_DB when a store, auth or a credential is missing.
func (s *Service) Create(ctx context.Context, in CreateInput) (tool.Result, error) {
	amounts, err := order.ResolveAmount(in.Amount, in.SupplyAmount, in.VAT)
	if err != nil {
		return tool.Result{}, err
	}
	call, err := write.NewRouteCall(ctx, operationCreate, http.MethodPost, "/v1/pay/orders", in.unstated(), s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	p, stored, found, err := s.learn(ctx, call)
	// What is answered already must not fail on what has changed since.
	if found || err != nil {
		return stored, err
	}
	// The order is complete before the key is claimed: what is refused here has stored nothing, and the key stays free.
	o, err := s.newOrder(call.Caller, in, amounts, p)
	if err != nil {
		return tool.Result{}, err
	}
	a, err := order.New(o)
	if err != nil {
		return tool.Result{}, err
	}
	claim, err := s.c.Store.Open(ctx, call.Key, a)
	if err != nil || claim.Done {
		return claim.Answer, err
	}
	// From here on something is stored that has to be brought to its end, also when the caller has hung up.
	ctx, cancel := detach(ctx)
	defer cancel()
	about := ParseSubject(claim.Resource)
	if about.Kind == KnownOrder {
		return s.answerExisting(ctx, call, claim, about.Code, o)
	}
	if claim.Resumed { // the order is of whoever began
		if a, err = s.c.Store.Order(ctx, about.Code); err != nil {
			return tool.Result{}, err
		}
	}
	return s.issue(ctx, call, claim, a.Order, p.cred)
}

// premises are what a new order has to know, or why that cannot be known.
type premises struct {
	app             App
	cred            credentials.Unsealed
	appErr, credErr error
}

// learn asks for the premises of a call, and for an earlier answer to it, all at once: each is a round trip to a store.
func (s *Service) learn(ctx context.Context, call write.Call) (p premises, stored tool.Result, found bool, err error) {
	var asked sync.WaitGroup
	asked.Go(func() { p.app, p.appErr = s.c.Apps.App(ctx, call.Caller.Service) })
	asked.Go(func() { p.cred, p.credErr = s.c.Credentials.Active(ctx, s.c.Provider.Name(), s.c.Env) })
	stored, found, err = s.c.Store.Answered(ctx, call.Key)
	asked.Wait()
	return p, stored, found, err
}

// newOrder is the order that the caller wants, with the defaults of what it does not say. The credential of the moment
// is kept with it: a rotation changes nothing for orders that are there.
func (s *Service) newOrder(c caller.Caller, in CreateInput, amounts order.Amounts, p premises) (order.Order, error) {
	if p.appErr != nil {
		return order.Order{}, p.appErr
	}
	if err := s.checkURLs(in, p.app); err != nil {
		return order.Order{}, err
	}
	if p.credErr != nil {
		return order.Order{}, p.credErr
	}
	o := order.Order{Code: s.newCode("po_"), ServiceCode: c.Service, ExternalUserID: c.ExternalUserID, HubUser: c.HubUser, Env: s.c.Env,
		Provider: s.c.Provider.Name(), CredentialID: p.cred.ID, Amounts: amounts, PayMethod: in.PayMethod, ClientOrderID: in.ClientOrderID,
		Name: in.Name, NotifyURL: in.NotifyURL, ReturnURL: in.ReturnURL, Buyer: in.Buyer, Metadata: in.Metadata, CreatedAt: s.now()}
	if o.PayMethod == "" {
		o.PayMethod = provider.Card
	}
	if o.PayMethod != provider.VBank {
		if in.VirtualAccount != nil {
			return order.Order{}, schema.Invalid("/vbank", "vbank", "belongs to payMethod vbank alone")
		}
		return o, nil
	}
	o.ValidHours, o.Holder = defaultValidHours, defaultHolder
	if in.VirtualAccount != nil {
		o.Holder = cmp.Or(in.VirtualAccount.Holder, defaultHolder)
		if in.VirtualAccount.ValidHours != 0 {
			o.ValidHours = in.VirtualAccount.ValidHours
		}
	}
	if most := s.c.Provider.Capabilities(provider.VBank).MaxValidHours; most > 0 && o.ValidHours > most {
		return order.Order{}, schema.Invalid("/vbank/validHours", "maximum", "must be at most %d", most)
	}
	return o, nil
}

// checkURLs holds the URLs of an order to what the app has registered. The notification URL is checked again at each
// attempt.
func (s *Service) checkURLs(in CreateInput, app App) error {
	if in.NotifyURL != "" {
		if err := s.c.Notifier.Check(in.NotifyURL, app.Origins); err != nil {
			return schema.Invalid("/payment_notify_url", "url", "%s", err)
		}
	}
	if in.ReturnURL != "" && !slices.Contains(app.RedirectURLs, in.ReturnURL) {
		return schema.Invalid("/returnUrl", "url", "must be one of the app's redirect URLs, byte for byte")
	}
	return nil
}

// answerExisting answers the order that has the clientOrderId already.
func (s *Service) answerExisting(ctx context.Context, call write.Call, claim write.Claim, code string,
	wanted order.Order) (tool.Result, error) {
	a, err := s.c.Store.Order(ctx, code)
	switch {
	case err != nil:
	case ownedBy(call.Caller, a.Order) != nil:
		err = fault.New(fault.Conflict, "Another order has the clientOrderId %q already. Choose another one.", wanted.ClientOrderID).
			With(map[string]string{"code": order.CodeClientOrderTaken})
	case a.Order.Env != wanted.Env: // one that was paid in the sandbox pays nothing in production
		err = order.Conflict(order.CodeClientOrderEnv, "The order with this clientOrderId is of another environment. Choose another one.",
			map[string]any{"stored": a.Order.Env, "requested": wanted.Env})
	case a.Order.Amounts.Amount != wanted.Amounts.Amount || a.Order.Supply != wanted.Supply || a.Order.VAT != wanted.VAT:
		err = order.Conflict(order.CodeAmountMismatch, "The order with this clientOrderId has another amount.",
			map[string]any{"stored": a.Order.Amounts.Amount, "requested": wanted.Amounts.Amount})
	}
	if err != nil {
		return tool.Result{}, s.release(ctx, claim, err)
	}
	return s.finish(ctx, call, claim, a.Order.Code, http.StatusOK, nil)
}

// issue asks the provider for an order, and finishes the call with what became of it. cred is the one of the moment, or none.
func (s *Service) issue(ctx context.Context, call write.Call, claim write.Claim, o order.Order,
	cred credentials.Unsealed) (tool.Result, error) {
	code := o.Code
	snapshot, declined, err := s.askToIssue(ctx, o, cred)
	if err != nil {
		return tool.Result{}, err
	}
	if declined != nil {
		if _, err := s.c.Store.Change(ctx, code, s.callActor(call),
			func(a *order.Aggregate) error { return a.Decline(*declined) }, nil); err != nil {
			return tool.Result{}, err
		}
		return tool.Result{}, s.release(ctx, claim, order.Conflict(order.CodeProviderDeclined, "The payment provider refuses this order.",
			map[string]any{"order": code, "provider": declined}))
	}
	return s.finish(ctx, call, claim, code, http.StatusCreated, snapshot)
}

// askToIssue asks the provider for an order that it may have heard of. No snapshot is an unknown outcome.
func (s *Service) askToIssue(ctx context.Context, o order.Order, cred credentials.Unsealed) (*provider.Snapshot, *order.Failure,
	error) {
	// Whoever had the claim before may have been answered already; then there is nothing to ask for.
	if o.Status == order.Failed {
		return nil, o.Failure, nil // by whoever had the claim before
	}
	if o.Status != order.Ready || o.CheckoutURL != "" {
		return nil, nil, nil
	}
	if cred.ID != o.CredentialID {
		var err error
		if cred, err = s.c.Credentials.ByID(ctx, o.CredentialID); err != nil {
			return nil, nil, err
		}
	}
	snapshot, err := s.c.Provider.Issue(ctx, cred, provider.IssueRequest{Code: o.Code, CreatedAt: o.CreatedAt, Amount: o.Amounts.Amount,
		TaxFree: o.TaxFree, PayMethod: o.PayMethod, Name: cmp.Or(o.Name, "Order "+o.Code), ReturnURL: s.c.PublicURL + "/v1/pay/return/" + o.Code,
		ValidHours: o.ValidHours, Holder: o.Holder, Buyer: o.Buyer})
	var declined *provider.DeclinedError
	switch {
	case err == nil:
		return &snapshot, nil, nil
	case errors.As(err, &declined):
		return nil, &order.Failure{Code: declined.Code, Message: declined.Message}, nil
	}
	s.c.Logger.WarnContext(ctx, "the provider was asked for an order, and its answer is not known", "order", o.Code, "error", err)
	return nil, nil, nil
}

// finish applies what the provider has said, if anything, and stores the answer with the key.
func (s *Service) finish(ctx context.Context, call write.Call, claim write.Claim, code string, status int,
	snapshot *provider.Snapshot) (tool.Result, error) {
	var answer tool.Result
	_, err := s.apply(ctx, code, s.callActor(call), snapshot, &Completion{claim, func(a *order.Aggregate) (tool.Result, audit.Entry, error) {
		var err error
		answer, err = write.AnswerAs(status, OrderAnswer{a.View()}, 1)
		return answer, call.Entry(1, map[string]any{"order": a.Order.Code, "status": a.Order.Status}), err
	}})
	return answer, s.explainTakenOver(err)
}

// explainTakenOver says of a call whose claim was taken over what its caller can do.
func (s *Service) explainTakenOver(err error) error {
	if errors.Is(err, write.ErrTakenOver) {
		return fault.New(fault.Conflict, "A call with this Idempotency-Key is still running. Send it again in a second.").
			With(map[string]string{"code": order.CodeInProgress}).After(time.Second).Because(err)
	}
	return err
}

// release frees a claim for refused.
func (s *Service) release(ctx context.Context, claim write.Claim, refused error) error {
	if err := s.c.Store.Release(ctx, claim); err != nil && !errors.Is(err, write.ErrTakenOver) {
		return err
	}
	return refused
}

// callActor is the caller of a call as an actor, now.
func (s *Service) callActor(call write.Call) Actor {
	return s.actorOf(call.Caller)
}

// apply brings an order to a snapshot, if there is one, and gives up at the provider what must not be paid.
func (s *Service) apply(ctx context.Context, code string, by Actor, snapshot *provider.Snapshot, end *Completion) (*order.Aggregate,
	error) {
	a, err := s.c.Store.Change(ctx, code, by, func(a *order.Aggregate) error {
		if snapshot == nil {
			return nil
		}
		return a.Apply(*snapshot)
	}, end)
	if err == nil && a.CancelAtProvider {
		s.cancelUnwanted(ctx, a.Order)
	}
	return a, err
}

// Order returns an order of the caller's; E_NOT_FOUND for any other.
func (s *Service) Order(ctx context.Context, code string) (OrderAnswer, error) {
	a, err := s.ownOrder(ctx, code)
	if err != nil {
		return OrderAnswer{}, err
	}
	return OrderAnswer{a.View()}, nil
}

// List returns a page of the caller's orders, newest first, and the position after it, if there are more.
func (s *Service) List(ctx context.Context, f Filter) (page []*order.Aggregate, next *Position, err error) {
	switch c := caller.From(ctx); c.Kind {
	case caller.App:
		f.ServiceCode, f.ExternalUserID = c.Service, c.ExternalUserID
		if c.Service == "" || c.ExternalUserID == "" { // empty is everybody
			return nil, nil, nil
		}
	case caller.User: // an operator
	default:
		return nil, nil, nil
	}
	f.Limit++ // one more than the page has tells whether there is a next one
	page, err = s.c.Store.Orders(ctx, f)
	if err == nil && len(page) == f.Limit {
		page = page[:f.Limit-1]
		last := page[len(page)-1].Order
		next = &Position{last.CreatedAt, last.Code}
	}
	return page, next, err
}

// History returns the events and the notifications of an order of the caller's; E_NOT_FOUND for any other.
func (s *Service) History(ctx context.Context, code string) (History, error) {
	if _, err := s.ownOrder(ctx, code); err != nil {
		return History{}, err
	}
	return s.c.Store.History(ctx, code)
}

// CancelOrder gives an order up that is not paid: E_CONFLICT with ORDER_NOT_CANCELABLE for one that is, that has ended, or that
// has a deposit of another amount which is not paid back. E_DB when the provider does not say; to ask again does no harm.
func (s *Service) CancelOrder(ctx context.Context, code string) (tool.Result, error) {
	call, err := write.NewRouteCall(ctx, operationCancel, http.MethodPost, "/v1/pay/orders/{code}/cancel", code, s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	claim, err := s.c.Store.Claim(ctx, call.Key, code, s.callActor(call), func(a *order.Aggregate) (Subject, error) {
		if err := ownedBy(call.Caller, a.Order); err != nil {
			return Subject{}, err
		}
		return Subject{Cancellation, code}, cancelable(a.Order)
	})
	if err != nil || claim.Done {
		return claim.Answer, err
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	return s.cancelClaimed(ctx, call, claim, code)
}

// cancelClaimed gives an order up, and finishes the call that wants it.
func (s *Service) cancelClaimed(ctx context.Context, call write.Call, claim write.Claim, code string) (tool.Result, error) {
	a, err := s.cancelAtProvider(ctx, code, s.callActor(call))
	if err == nil && a.Order.Status != order.Canceled {
		err = cancelable(a.Order)
	}
	if err == nil && a.Order.Status != order.Canceled {
		err = s.providerUnreachable()
	}
	if err != nil {
		return tool.Result{}, s.release(ctx, claim, err)
	}
	return s.finish(ctx, call, claim, code, http.StatusOK, nil)
}

// cancelable is nil for an order that is not paid, and E_CONFLICT with ORDER_NOT_CANCELABLE for any other.
func cancelable(o order.Order) error {
	if o.Status == order.Ready || o.Status == order.AwaitingDeposit {
		return nil
	}
	return order.Conflict(order.CodeNotCancelable,
		"The order "+o.Code+" is "+string(o.Status)+"; only one that is not paid can be canceled. Refund a "+
			"paid one.",
		map[string]any{"status": o.Status})
}

// Reconcile asks the provider, and brings the order to what it says. It returns E_CONFLICT with AMOUNT_MISMATCH when the
// caller or the provider has another amount, and E_DB when the provider does not answer.
func (s *Service) Reconcile(ctx context.Context, code string, amount *int64) (OrderAnswer, error) {
	a, err := s.ownOrder(ctx, code)
	if err != nil {
		return OrderAnswer{}, err
	}
	stored := a.Order.Amounts.Amount
	if amount != nil && *amount != stored {
		return OrderAnswer{}, order.Conflict(order.CodeAmountMismatch, "The order has another amount.", map[string]any{"stored": stored,
			"requested": *amount})
	}
	by := s.actor(ctx)
	ctx, cancel := detach(ctx)
	defer cancel()
	a, snapshot, err := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, by)
	if err != nil {
		return OrderAnswer{}, err
	}
	entry := audit.Entry{At: by.Now, Caller: caller.From(ctx), Tool: "pay.orders.reconcile", Outcome: audit.OK, Count: 1,
		Detail: map[string]any{"order": code, "status": a.Order.Status}}
	if err := s.c.Store.Record(ctx, entry); err != nil {
		return OrderAnswer{}, err
	}
	if snapshot != nil && snapshot.Amount != stored {
		return OrderAnswer{}, order.Conflict(order.CodeAmountMismatch, "The provider has another amount.", map[string]any{"stored": stored,
			"provider": snapshot.Amount})
	}
	return OrderAnswer{a.View()}, nil
}
