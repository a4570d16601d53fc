package links

import (
	"errors"

	"hub.internal/pkg/fault"
)

// Reason says why a user cannot link their account now, for who has to tell them.
type Reason string

// The reasons.
const (
	// BadTicket is for one that is too old, or none of Hub's: the two are not told apart.
	BadTicket Reason = "BAD_TICKET"
	// Used is for a ticket that was allowed before.
	Used Reason = "USED"
	// Taken is for a user of the app who is linked to another account.
	Taken Reason = "TAKEN"
	// TakenForGood is for one who is linked to an account that is disabled: nobody can sign in to it to unlink.
	TakenForGood Reason = "TAKEN_FOR_GOOD"
	// Closed is for an app that is not ACTIVE.
	Closed Reason = "CLOSED"
	// NoReturn is for an app that confirms links, and has not said where its users come back to.
	NoReturn Reason = "NO_RETURN"
	// Stale is for an answer to something else than was asked.
	Stale Reason = "STALE"
)

// Refusal is why a link was not made. It unwraps to a fault.
type Refusal struct {
	Reason Reason
	// App is as far as it is known.
	App App
	// Linked tells that the pair is linked to the user who was refused.
	Linked bool
	fault  *fault.Error
}

// Error implements error.
func (r *Refusal) Error() string { return r.fault.Error() }

// Unwrap returns the fault.
func (r *Refusal) Unwrap() error { return r.fault }

// RefusalOf is the refusal that err is, or nil.
func RefusalOf(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// refuse is the refusal for a reason; app may be nobody's.
func refuse(reason Reason, app App) *Refusal {
	r := &Refusal{Reason: reason, App: app}
	switch reason {
	case BadTicket:
		r.fault = fault.New(fault.NotFound, "This link does not work, or not any more. Ask the service that sent you for a new one.")
	case Used:
		r.fault = fault.New(fault.Conflict, "This link was already used. Ask %s for a new one.", app.Name)
	case Taken:
		r.fault = fault.New(fault.Conflict, "This user of %s is linked to another Hub account. Unlink it there first.", app.Name)
	case TakenForGood:
		r.fault = fault.New(fault.Conflict, "This user of %s is linked to a Hub account that is disabled. An administrator can end that link "+
			"(auth link revoke).", app.Name)
	case Closed:
		r.fault = fault.New(fault.Conflict, "The app %s is not active, so no account can be linked to it.", app.Code)
	case NoReturn:
		r.fault = fault.New(fault.Conflict, "%s has to say where its users come back to: returnUrl, one of its redirect URLs.", app.Name)
	case Stale:
		r.fault = fault.New(fault.Conflict, "Something else was asked here meanwhile. Look at it again, then decide.")
	}
	return r
}
