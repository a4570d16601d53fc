// Package paymentstest holds what every payments.Provider has to keep to: Contract runs the same table against any of them.
package paymentstest

import (
	"time"

	"hub.internal/services/payments"
)

// The kinds of fault; those of the simulator have the same names.
const (
	TimeoutBefore = "timeout-before" // nothing was done, and that is not known
	TimeoutAfter  = "timeout-after"  // it was done, and that is not known
	ServerError   = "500"
	Duplicate     = "duplicate"
	Reorder       = "reorder"
	Drop          = "drop"
	Garbage       = "garbage"
	WrongOrder    = "wrong-order"
	Decline       = "decline"
	WebhookFirst  = "webhook-first" // the webhook comes before the answer
)

// What a fault is on.
const (
	OnIssue   = "issue"
	OnCancel  = "cancel"
	OnGet     = "get"
	OnWebhook = "webhook"
)

// Fault is what goes wrong, Times times (once, when it is 0).
type Fault struct {
	Kind, On string
	Times    int
	// Code is the provider's of a decline.
	Code string
}

// Control plays payer, bank and the operator at the provider. An order is named by its code.
type Control interface {
	// Begin lets the payer take a virtual account on the provider's page.
	Begin(code string) error
	// Pay lets the payer pay by card, Fail lets that fail.
	Pay(code string) error
	Fail(code string) error
	// Deposit moves money to the account at a time (zero is now), and tells of it a number of times.
	Deposit(code string, amount int64, at time.Time, times int) error
	Reverse(code string) error
	ConsoleCancel(code string, amount int64) error
	FailRefundLater(refundCode string) error
	// SameAccount lets the next account have the number of this order's.
	SameAccount(code string) error
	Arm(Fault) error
	// Heal forgets the faults that have not happened.
	Heal()
	// Truth is what the provider holds; false when it knows no such order.
	Truth(code string) (Truth, bool)
}

// Truth is what a provider holds about an order.
type Truth struct {
	TID    string
	Status payments.PaymentStatus
	// Paid has come in and was not reversed, Cancelled of it has gone back.
	Paid, Cancelled int64
	// Payments counts them.
	Payments int
	Account  string
	Cancels  []Return
}

// Return is money that went back, or a payment that was given up before it was paid.
type Return struct {
	Code           string
	Amount         int64
	Failed, Unpaid bool
}

// Webhook is what a provider has told.
type Webhook struct {
	ContentType string
	Body        []byte
}
