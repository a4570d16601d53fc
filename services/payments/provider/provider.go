// Package provider is the port to a payment provider: what Hub asks of one, what one answers, and the errors that tell a
// definite refusal from an outcome that nobody knows. An adapter, such as package nicepay, implements Port. The package
// holds no rule about orders; what an answer does to an order is decided by the aggregate in package order.
package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hub.internal/pkg/schema"
	"hub.internal/services/payments/credentials"
)

// PayMethod is how an order is paid. A card is paid on the provider's page at once; a virtual account is a bank account of the
// provider's, made for one order, into which the payer transfers the amount until a deadline.
type PayMethod string

// The pay methods that Hub takes.
const (
	Card  PayMethod = "card"
	VBank PayMethod = "vbank"
)

// Capabilities are what a provider can do with a pay method.
type Capabilities struct {
	// PartialRefund tells that less than all can be paid back.
	PartialRefund bool
	// NeedsRefundAccount tells that a refund has to name an account.
	NeedsRefundAccount bool
	// MaxValidHours bounds how long a virtual account can wait for its deposit.
	MaxValidHours int
}

// IssueRequest asks for an order to be paid. Code is the order's, and is the idempotency key of the request: the provider takes
// it once, so that to ask again after an unknown outcome makes no second payment.
type IssueRequest struct {
	Code      string
	CreatedAt time.Time
	Amount    int64
	// TaxFree tells that the price was stated to hold no tax.
	TaxFree   bool
	PayMethod PayMethod
	// Name is what is sold, as the payer reads it.
	Name string
	// ReturnURL is where the provider's page sends the browser.
	ReturnURL  string
	ValidHours int
	Holder     string
	Buyer      Buyer
}

// PaymentRef names a payment at the provider: by its own id, or by the order's code and the moment of its creation.
type PaymentRef struct {
	TID       string
	Code      string
	CreatedAt time.Time
}

// CancelRequest asks for money to be paid back, or for an unpaid order to be given up.
type CancelRequest struct {
	Ref PaymentRef
	// RefundCode is the refund's, unique at the provider, and found again in the reason; for an order that is not
	// paid it is the order's code with "-cancel".
	RefundCode string
	Reason     string
	// Amount is nil for all.
	Amount *int64
	// TaxFree tells that the order was stated to hold no tax, so that what goes back of it holds none either.
	TaxFree bool
	// Account is where the money goes, where the provider needs to be told.
	Account *RefundAccount
	// Unless tells of the payment, as it is before anything is paid back, that nothing may be: ErrUnless. nil for no such case.
	Unless func(Snapshot) bool
}

// PaymentStatus is what a provider says of a payment.
type PaymentStatus string

// What a payment can be. Issued waits for the payer; a Paid one may have been paid back in part.
const (
	PaymentIssued   PaymentStatus = "issued"
	PaymentPaid     PaymentStatus = "paid"
	PaymentCanceled PaymentStatus = "canceled"
	PaymentFailed   PaymentStatus = "failed"
	PaymentExpired  PaymentStatus = "expired"
)

// Snapshot is a payment as its provider tells it at one moment. It is the only thing that moves an order: a webhook, a browser
// that comes back and a call of an app each lead to a Get, and what that answers is applied.
type Snapshot struct {
	// TID is the provider's id of the payment; empty as long as the payer has not begun on the provider's page.
	TID    string
	Code   string
	Status PaymentStatus
	Amount int64
	// Balance is what of Amount was not paid back.
	Balance int64
	PaidAt  time.Time
	// ReversedAt is when the deposit was taken back after it had been told as paid, so that the account waits again;
	// zero when it was not. A mere Issued after Paid is no reversal: it may be old news.
	ReversedAt time.Time
	// CheckoutURL is the page on which the payer goes on; set by Issue.
	CheckoutURL   string
	Account       *VirtualAccount
	Cancellations []Cancellation
	// Raw is what the provider has answered, without anything secret: for the operator.
	Raw []byte
}

// Cancellation is money that a provider has paid back, or a payment that it has given up. Refunds of Hub's are among them, and so
// are those that somebody has made on the provider's own pages.
type Cancellation struct {
	TID string
	// RefundCode is Hub's, when it is found in the reason; empty for one that Hub did not ask for.
	RefundCode string
	Amount     int64
	Reason     string
	At         time.Time
	// Returned tells that the payout came back later: the money is with the merchant again.
	Returned bool
}

// WebhookKind says what a webhook is about. It is a hint: what holds is asked for.
type WebhookKind string

// The kinds of webhook.
const (
	// WebhookOfPayment is about a payment.
	WebhookOfPayment WebhookKind = "payment"
	// WebhookTrial is a provider's trial of the address: it is acknowledged, and nothing is stored.
	WebhookTrial WebhookKind = "test"
)

// WebhookEvent is a verified webhook.
type WebhookEvent struct {
	// Key is the same for a repetition of the event, and another one for another event.
	Key  string
	TID  string
	Code string
	Kind WebhookKind
	// Credential is the one that has verified it.
	Credential credentials.Unsealed
	// Status is what it claims, for the operator alone.
	Status string
}

// Port speaks with a payment provider. Each call takes one credential, that of the order. An implementation never retries by
// itself: whether to send again depends on what the order has become meanwhile, which the caller knows. It is safe for
// concurrent use.
type Port interface {
	Name() string
	Capabilities(PayMethod) Capabilities
	// Issue begins a payment. The same Code again answers the one that was begun. DeclinedError when the provider refuses; any
	// other error leaves it open whether the payment was begun.
	Issue(context.Context, credentials.Unsealed, IssueRequest) (Snapshot, error)
	// Get asks for a payment as it is. ErrNotFound when the provider knows none: it has to be certain of that, because an order
	// that is not found may be sent again, or given up.
	Get(context.Context, credentials.Unsealed, PaymentRef) (Snapshot, error)
	// Cancel pays back, or gives up what is not paid. It answers the payment as it is then. The same RefundCode again is the same
	// refund. DeclinedError, ErrAlreadyPaid, ErrAlreadyCanceled and ErrUnless are definite; ErrUnknown is to be found out by Get.
	Cancel(context.Context, credentials.Unsealed, CancelRequest) (Snapshot, error)
	// Expire closes the provider's page of an order that nobody has begun to pay. ErrAlreadyPaid when somebody has paid there.
	Expire(context.Context, credentials.Unsealed, PaymentRef) error
	// NetCancel undoes an approval whose outcome stayed unknown, within an hour.
	NetCancel(ctx context.Context, c credentials.Unsealed, code string) error
	// VerifyWebhook reads a webhook: ErrUnverified when no credential verifies it. What verifies is authentic as far as its
	// signature goes, which may cover a part of it only.
	VerifyWebhook(contentType string, raw []byte, creds []credentials.Unsealed) (WebhookEvent, error)
	// Ack is what the provider wants to hear of a webhook: ok for one that is stored, and otherwise what has it sent again.
	Ack(ok bool) (status int, contentType, body string)
}

// The errors of a provider. Anything else that a call returns is an unknown outcome, too.
var (
	// ErrNotSent: the provider has not heard of it. To send it again does no harm.
	ErrNotSent = errors.New("the request did not leave")
	// ErrUnknown: the provider may have done it.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrNotFound: the provider knows no such payment.
	ErrNotFound = errors.New("the provider knows no such payment")
	// ErrAlreadyPaid: what was to be given up is paid.
	ErrAlreadyPaid = errors.New("the payment is paid")
	// ErrAlreadyCanceled: what was to be paid back is paid back already, or more than is left.
	ErrAlreadyCanceled = errors.New("the payment was paid back already")
	// ErrUnless: the payment is as CancelRequest.Unless describes, and nothing was asked for.
	ErrUnless = errors.New("the payment is not as the caller knows it")
	// ErrUnverified: nobody who knows a secret has sent it.
	ErrUnverified = errors.New("the webhook is not signed with any credential")
)

// DeclinedError is a definite refusal: nothing has happened at the provider, and the same request will be refused again. Only
// this error ends an order or a refund as failed; every other leaves it pending, for a job to find out.
type DeclinedError struct {
	// Code and Message are the provider's; Drift tells that the provider's balance is not what Hub takes it for.
	Code, Message string
	Drift         bool
}

// Error implements error.
func (e *DeclinedError) Error() string {
	return fmt.Sprintf("the provider declines: %s %s", e.Code, e.Message)
}

// Buyer is who pays, as far as the app says.
type Buyer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
	Tel   string `json:"tel,omitempty"`
}

// VirtualAccount is a virtual account that waits for a deposit.
type VirtualAccount struct {
	BankCode  string
	BankName  string
	Number    string
	Holder    string
	ExpiresAt time.Time
}

// RefundAccount is where a refund goes. It is stored sealed, and answered masked.
type RefundAccount struct {
	BankCode      string `json:"bankCode"`
	AccountNumber string `json:"accountNumber"`
	Holder        string `json:"holder"`
}

// The forms of a bank's code and of an account's number.
var (
	bankCode      = regexp.MustCompile(`^[0-9]{3}$`)
	accountNumber = regexp.MustCompile(`^[0-9]{1,16}$`)
)

// maxHolder bounds the holder of an account that money goes back to, in characters.
const maxHolder = 10

// Check returns E_VALIDATION for an account that is not of the provider's form.
func (a RefundAccount) Check() error {
	switch {
	case !bankCode.MatchString(a.BankCode):
		return schema.Invalid("/bankCode", "pattern", "must be three digits")
	case !accountNumber.MatchString(a.AccountNumber):
		return schema.Invalid("/accountNumber", "pattern", "must be 1 to 16 digits")
	case strings.TrimSpace(a.Holder) == "" || strings.ContainsFunc(a.Holder, unicode.IsControl) ||
		utf8.RuneCountInString(a.Holder) > maxHolder:
		return schema.Invalid("/holder", "length", "must be 1 to %d characters on one line", maxHolder)
	}
	return nil
}

// AddsUp tells whether a snapshot's balance is what its cancels leave.
func (s Snapshot) AddsUp() bool {
	left := s.Amount
	for _, c := range s.Cancellations {
		if !c.Returned {
			left -= c.Amount
		}
	}
	return left == s.Balance
}
