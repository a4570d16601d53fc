package payments

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// Operations keeps what operators do.
type Operations interface {
	// Operate changes an order by do, and keeps the row of the audit log that do makes in the same transaction.
	Operate(ctx context.Context, code string, by Actor, do func(*order.Aggregate) (audit.Entry, error)) (*order.Aggregate, error)
	Reports
}

// Reports are what operators read. Nothing here locks or changes an order.
type Reports interface {
	// Order returns an order as it is.
	Order(ctx context.Context, code string) (*order.Aggregate, error)
	// History returns the events and the messages of an order, oldest first.
	History(ctx context.Context, code string) (History, error)
	// Webhooks returns the inbox of an order, newest first.
	Webhooks(ctx context.Context, code string, limit int) ([]Webhook, error)
	// AttentionCounts counts the orders that need an operator; those count as stuck that have been READY since before a moment.
	AttentionCounts(ctx context.Context, readySince time.Time) (AttentionCounts, error)
	// Totals are the sums of the orders that a filter leaves, by status.
	Totals(ctx context.Context, f Filter) ([]StatusTotal, error)
	// Days are what was paid and paid back of the orders that a filter leaves, by Korean day, from a moment on.
	Days(ctx context.Context, f Filter, from time.Time) ([]DailyTotal, error)
	// Export hands over the orders that a filter leaves, newest first, limit at most; more tells that some are left.
	Export(ctx context.Context, f Filter, limit int, row func(order.Order) error) (more bool, err error)
	// Ledger is what was received, and what became of it, by app and environment.
	Ledger(ctx context.Context) ([]LedgerAccount, error)
	// Unbalanced are the orders whose ledger does not balance, limit at most.
	Unbalanced(ctx context.Context, limit int) ([]LedgerAccount, error)
	// Sweeps are the reports of the last sweeps, newest first.
	Sweeps(ctx context.Context, limit int) ([]SweepReport, error)
}

// AttentionCounts counts the orders that need an operator.
type AttentionCounts struct {
	// Flagged ones name the reason themselves. Stuck ones have been READY for too long, Undelivered ones have a message
	// that was given up.
	Flagged, Stuck, Undelivered int
}

// StatusTotal is the sum of orders in one status, in won.
type StatusTotal struct {
	Status                                  order.Status
	Orders, Amount, Paid, Refunded, Pending int64
}

// DailyTotal is what was paid and paid back on one day in Korea, in won.
type DailyTotal struct {
	// At is when the day began.
	At             time.Time
	Paid, Refunded int64
}

// LedgerAccount is money by app and environment, or of one order: what was received, and what became of it. Orders is how many there
// are. It is reckoned from the rows of deposits and refunds on one side and from those of orders on the other, so that a defect in
// either shows as a difference (SPEC.md 11).
type LedgerAccount struct {
	ServiceCode, Code string
	Env               credentials.Env
	Orders            int64
	// Received is the sum of all deposits; the next five are what became of it.
	Received, Applied, Open, Returning, Returned, Reversed int64
	// Paid is what the orders say was paid. Refunded and Pending are what they say of refunds, RefundsDone and
	// RefundsPending what the refunds say.
	Paid, Refunded, Pending, RefundsDone, RefundsPending int64
}

// Unaccounted is what was received and is nowhere (SPEC.md 11, row 13).
func (a LedgerAccount) Unaccounted() int64 {
	return a.Received - a.Applied - a.Open - a.Returning - a.Returned - a.Reversed
}

// Balanced tells that everything adds up: what was received, what was paid, and what was refunded.
func (a LedgerAccount) Balanced() bool {
	return a.Unaccounted() == 0 && a.Applied == a.Paid && a.RefundsDone == a.Refunded && a.RefundsPending == a.Pending
}

// Add adds up.
func (a LedgerAccount) Add(b LedgerAccount) LedgerAccount {
	a.Orders += b.Orders
	a.Received, a.Applied, a.Open = a.Received+b.Received, a.Applied+b.Applied, a.Open+b.Open
	a.Returning, a.Returned, a.Reversed = a.Returning+b.Returning, a.Returned+b.Returned, a.Reversed+b.Reversed
	a.Paid, a.Refunded, a.Pending = a.Paid+b.Paid, a.Refunded+b.Refunded, a.Pending+b.Pending
	a.RefundsDone, a.RefundsPending = a.RefundsDone+b.RefundsDone, a.RefundsPending+b.RefundsPending
	return a
}

// StuckFor is how long an order may be READY before an operator sees it: by then a payer has paid or left, and an unknown
// outcome should be known.
const StuckFor = time.Hour

// MaxNote bounds a note, in characters.
const MaxNote = 500

// Env is the environment of new orders.
func (s *Service) Env() credentials.Env { return s.c.Env }

// Reports are what operators read.
func (s *Service) Reports() Reports { return s.c.Store }

// Capabilities is what the provider can do with an order's pay method.
func (s *Service) Capabilities(o order.Order) provider.Capabilities {
	return s.c.Provider.Capabilities(o.PayMethod)
}

// RecordExport keeps that an operator takes orders or accounts away as a file, before the first byte of it leaves.
func (s *Service) RecordExport(ctx context.Context, what string, detail map[string]string) error {
	return s.c.Store.Record(ctx, audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: what, Outcome: audit.OK, Detail: detail})
}

// OrderVersion names an order as an operator has seen it: what is done to it is refused when it has moved since. A page that
// was open for an hour must not decide about an order that is another one by now.
type OrderVersion struct {
	Code    string
	Version int64
}

// operate changes an order that is as it was seen, with a row of the audit log in the same transaction: nothing that an operator
// does is done without its trace.
func (s *Service) operate(ctx context.Context, seen OrderVersion, name string, detail map[string]any,
	do func(*order.Aggregate) error) error {
	by := s.actor(ctx)
	_, err := s.c.Store.Operate(ctx, seen.Code, by, func(a *order.Aggregate) (audit.Entry, error) {
		if err := a.CheckVersion(seen.Version); err != nil {
			return audit.Entry{}, err
		}
		if err := do(a); err != nil {
			return audit.Entry{}, err
		}
		detail["order"], detail["status"] = seen.Code, a.Order.Status
		return audit.Entry{At: by.Now, Caller: caller.From(ctx), Tool: name, Outcome: audit.OK, Count: 1, Detail: detail}, nil
	})
	return err
}

// ApplyDeposit lets a late deposit pay its order; see order.Aggregate.ApplyDeposit. The provider is asked before: E_CONFLICT with
// DEPOSIT_GONE when it does not hold the money any more, E_DB when it does not say. E_CONFLICT with ORDER_CHANGED for an order
// that was not seen as it is.
func (s *Service) ApplyDeposit(ctx context.Context, seen OrderVersion, deposit schema.ID, note string) error {
	note, err := checkNote(note, false)
	if err != nil {
		return err
	}
	if err := s.stillThere(ctx, seen.Code, deposit); err != nil {
		return err
	}
	return s.operate(ctx, seen, "pay.deposits.apply", map[string]any{"deposit": deposit, "note": note},
		func(a *order.Aggregate) error { return a.ApplyDeposit(deposit, note) })
}

// stillThere asks the provider whether it holds an open deposit, whole. Of any other deposit the aggregate says why it cannot be applied.
func (s *Service) stillThere(ctx context.Context, code string, deposit schema.ID) error {
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return err
	}
	d, err := a.Deposit(deposit)
	if err != nil || !a.CanApplyDeposit(*d) {
		return err
	}
	_, now, err := s.fetch(ctx, provider.PaymentRef{TID: d.TID, Code: code})
	if err != nil || now != nil && now.Status == provider.PaymentPaid && now.Balance == d.Amount &&
		d.Same(order.Deposit{TID: now.TID, Amount: now.Amount, At: now.PaidAt}) {
		return err
	}
	return order.Conflict(order.CodeDepositGone,
		"The provider does not hold this deposit any more: it was taken or paid back. Keep that it went back.",
		map[string]any{"tid": d.TID})
}

// RecordManualReturn keeps that an operator has paid a deposit back without Hub. typed is the amount, to be sure: E_VALIDATION
// unless it is the deposit's. See order.Aggregate.RecordManualReturn.
func (s *Service) RecordManualReturn(ctx context.Context, seen OrderVersion, deposit schema.ID, typed, note string) error {
	note, err := checkNote(note, true)
	if err != nil {
		return err
	}
	return s.operate(ctx, seen, "pay.deposits.returned", map[string]any{"deposit": deposit, "note": note}, func(a *order.Aggregate) error {
		d, err := a.Deposit(deposit)
		if err == nil && ParseWon(typed) != d.Amount {
			err = schema.Invalid("/amount", "equal", "must be the deposit's amount, %d", d.Amount)
		}
		if err != nil {
			return err
		}
		return a.RecordManualReturn(deposit, note)
	})
}

// ResolveAttention ends the attention that an order needs; see order.Aggregate.ResolveAttention.
func (s *Service) ResolveAttention(ctx context.Context, seen OrderVersion, note string) error {
	note, err := checkNote(note, true)
	if err != nil {
		return err
	}
	return s.operate(ctx, seen, "pay.cases.resolve", map[string]any{"note": note},
		func(a *order.Aggregate) error { return a.ResolveAttention(note) })
}

// ReturnDeposit has the provider pay an open deposit back: the wish is kept, the provider is asked, and what it says is
// kept. Of an unknown outcome the deposit stays RETURNING, for a job to find out. E_VALIDATION when the provider needs an
// account, E_CONFLICT with PROVIDER_DECLINED when it refuses; see order.Aggregate.RequestDepositReturn.
func (s *Service) ReturnDeposit(ctx context.Context, seen OrderVersion, deposit schema.ID, account *provider.RefundAccount,
	note string) (order.Deposit, error) {
	note, err := checkNote(note, false)
	if err != nil {
		return order.Deposit{}, err
	}
	r := order.DepositReturn{Code: s.newCode(refundPrefix)}
	if account != nil {
		if err := account.Check(); err != nil {
			return order.Deposit{}, err
		}
		if r.Account, r.Masked, err = s.sealAccount(returnAccountName(r.Code), *account); err != nil {
			return order.Deposit{}, err
		}
	}
	err = s.operate(ctx, seen, "pay.deposits.return", map[string]any{"deposit": deposit, "code": r.Code, "note": note},
		func(a *order.Aggregate) error {
			if account == nil && s.Capabilities(a.Order).NeedsRefundAccount {
				return schema.Invalid("/accountNumber", "required", "is needed: the provider pays back to an account")
			}
			return a.RequestDepositReturn(deposit, r, note)
		})
	if err != nil {
		return order.Deposit{}, err
	}
	// The wish is committed: from here on it is brought to its end, by this call or by the job of the order.
	by := s.actor(ctx)
	ctx, cancel := detach(ctx)
	defer cancel()
	if err := s.returnAtProvider(ctx, seen.Code, deposit, false, by); err != nil {
		return order.Deposit{}, err
	}
	a, err := s.c.Store.Order(ctx, seen.Code)
	if err != nil {
		return order.Deposit{}, err
	}
	d, err := a.Deposit(deposit)
	if err != nil {
		return order.Deposit{}, err
	}
	if d.NeedsDecision() && d.Return != nil && d.Return.Failure != nil {
		return *d, order.Conflict(order.CodeProviderDeclined,
			"The payment provider does not pay it back: "+d.Return.Failure.Message+". The deposit is open again.",
			map[string]any{"provider": d.Return.Failure})
	}
	return *d, nil
}

// returnAtProvider asks the provider for a deposit that is returning. What the provider may have done is looked for first. An
// unknown outcome is no error: the deposit stays RETURNING.
func (s *Service) returnAtProvider(ctx context.Context, code string, deposit schema.ID, mayBeDone bool, by Actor) error {
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return err
	}
	d, err := a.Deposit(deposit)
	if err == nil && mayBeDone && d.State == order.DepositStateReturning {
		if a, _, err = s.reconcileWithProvider(ctx, provider.PaymentRef{TID: d.TID, Code: code}, by); err != nil {
			return nil //nolint:nilerr // who does not answer now is asked later
		}
		d, err = a.Deposit(deposit)
	}
	if err != nil || d.State != order.DepositStateReturning {
		return err
	}
	if a.PaidWith(d.TID) {
		return s.declineReturn(ctx, code, d.Return.Code, by, order.Failure{Code: order.CodeSamePayment,
			Message: "the order was paid with this payment meanwhile"})
	}
	snapshot, err := s.requestReturn(ctx, a.Order, *d)
	by.Now = s.now()
	var declined *provider.DeclinedError
	switch {
	case err == nil:
		_, err = s.apply(ctx, code, by, &snapshot, nil)
		return err
	case errors.As(err, &declined):
		return s.declineReturn(ctx, code, d.Return.Code, by, order.Failure{Code: declined.Code, Message: declined.Message})
	case errors.Is(err, provider.ErrNotFound):
		return s.declineReturn(ctx, code, d.Return.Code, by, order.Failure{Code: "NOT_FOUND", Message: "the provider knows no such payment"})
	case errors.Is(err, provider.ErrAlreadyCanceled):
		if _, snapshot, pulled := s.reconcileWithProvider(ctx, provider.PaymentRef{TID: d.TID, Code: code}, by); pulled != nil ||
			snapshot == nil {
			return nil //nolint:nilerr // as above
		}
		return s.declineReturn(ctx, code, d.Return.Code, by, order.Failure{Code: "ALREADY_CANCELED",
			Message: "the provider has paid it back otherwise"})
	}
	s.c.Logger.WarnContext(ctx, "the provider was asked to pay a deposit back, and its answer is not known", "order", code, "return",
		d.Return.Code, "error", err)
	return nil
}

// requestReturn asks the provider to pay a deposit back. A provider that pays no part back is asked for all of the
// payment.
func (s *Service) requestReturn(ctx context.Context, o order.Order, d order.Deposit) (provider.Snapshot, error) {
	in := provider.CancelRequest{Ref: provider.PaymentRef{TID: d.TID}, RefundCode: d.Return.Code, Reason: "deposit not applied",
		Amount: &d.Amount}
	if !s.Capabilities(o).PartialRefund {
		in.Amount = nil
	}
	return s.requestPayout(ctx, o, in, d.Return.Account, returnAccountName(d.Return.Code))
}

// declineReturn records that the provider has definitely refused: the deposit is open again.
func (s *Service) declineReturn(ctx context.Context, code, returned string, by Actor, why order.Failure) error {
	_, err := s.c.Store.Change(ctx, code, by, func(a *order.Aggregate) error { return a.DeclineDepositReturn(returned, why) }, nil)
	return err
}

// RefundForm is a refund as an operator wants it, as the page that asks sends it. Amounts are in won.
type RefundForm struct {
	// Key is drawn with the form, as NewFormKey does: what is sent twice is refunded once.
	Key string
	// Amount is what the page says will be refunded, and Typed what the operator has typed to confirm it.
	Amount int64
	Typed  string
	// Refundable is what can be refunded, as the operator has seen it.
	Refundable int64
	Reason     string
	// Account is where the money goes; nil where the provider needs no account.
	Account *provider.RefundAccount
}

// MaxReason bounds the reason of a refund, in characters.
const MaxReason = 100

// formKey is the form of a key that NewFormKey has drawn.
var formKey = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// NewFormKey draws the key of a form that refunds.
func NewFormKey() string { return rand.Text() }

// input is the form as a call of the app's would have it; E_VALIDATION lists everything that is wrong with it at once.
func (f RefundForm) input() (RefundInput, error) {
	if !formKey.MatchString(f.Key) {
		return RefundInput{}, fault.New(fault.Validation, "The form does not say which refund it is. Open the order again.")
	}
	var v schema.Violations
	switch {
	case f.Amount < 1:
		v.Add("/amount", "minimum", "must be a whole number of won, at least 1")
	case ParseWon(f.Typed) != f.Amount:
		v.Add("/typed", "equal", "must be the amount, %d", f.Amount)
	}
	reason := strings.TrimSpace(text.Storable(f.Reason))
	switch {
	case reason == "":
		v.Add("/reason", "required", "is needed: who looks at it later wants to know")
	case utf8.RuneCountInString(reason) > MaxReason || strings.ContainsFunc(reason, unicode.IsControl):
		v.Add("/reason", "maxLength", "must be at most %d characters on one line", MaxReason)
	}
	if f.Account != nil {
		for _, wrong := range schema.ViolationsOf(f.Account.Check()) {
			v.Add(wrong.Path, wrong.Rule, "%s", wrong.Message)
		}
	}
	return RefundInput{Amount: &f.Amount, Reason: reason, Account: f.Account, ExpectedRefundable: &f.Refundable}, v.Err()
}

// RefundAsOperator is Refund for an operator, in whose name it is recorded, also when it is refused. The key is the operator's: the
// same form answers the refund that it has made, as it is by now. E_VALIDATION for a form that is not complete.
func (s *Service) RefundAsOperator(ctx context.Context, code string, f RefundForm) (order.Refund, error) {
	in, err := f.input()
	if err != nil {
		return order.Refund{}, err
	}
	call, err := s.refundCall(ctx, code, in)
	if err != nil {
		return order.Refund{}, err
	}
	call.Key.Principal, call.Key.Key = s.actor(ctx).Name, f.Key
	answer, refused := s.refund(ctx, call, code, in)
	ctx, cancel := detach(ctx)
	defer cancel()
	if refused != nil {
		entry := call.Entry(0, map[string]any{"order": code, "amount": f.Amount, "refused": fault.From(refused).Details})
		entry.Outcome = audit.Outcome(refused)
		return order.Refund{}, errors.Join(refused, s.c.Store.Record(ctx, entry))
	}
	var told RefundAnswer
	if err := json.Unmarshal(answer.Data, &told); err != nil {
		return order.Refund{}, err
	}
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return order.Refund{}, err
	}
	return *a.Refund(told.Refund.Code), nil
}

// NextCheck is when Hub asks the provider about an order next; nil when the order waits for nothing.
func (s *Service) NextCheck(ctx context.Context, code string) (*time.Time, error) {
	_, next, err := s.c.Store.Checks(ctx, code)
	return next, err
}

// returnAccountName binds the account that a deposit goes back to, to its row.
func returnAccountName(code string) string { return "payments.deposits|return_account|" + code }

// checkNote trims a note.
func checkNote(note string, needed bool) (string, error) {
	note = strings.TrimSpace(text.Storable(note))
	switch {
	case note == "" && needed:
		return "", schema.Invalid("/note", "required", "is needed: who looks at it later wants to know")
	case utf8.RuneCountInString(note) > MaxNote:
		return "", schema.Invalid("/note", "maxLength", "must be at most %d characters", MaxNote)
	}
	return note, nil
}

// ParseWon reads an amount that somebody has typed, with separators or without; -1 for what is none.
func ParseWon(typed string) int64 {
	n, err := strconv.ParseUint(strings.NewReplacer(",", "", "₩", "", " ", "").Replace(typed), 10, 40)
	if err != nil {
		return -1
	}
	return int64(n)
}
