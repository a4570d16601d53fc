package links

import (
	"context"
	"time"

	"hub.internal/pkg/audit"
)

// Held is the link that a pair has.
type Held struct {
	Link
	// Disabled tells that its account is: the link acts for nobody, and stays its own.
	Disabled bool
}

// taken is why nobody else can have the pair.
func (h Held) taken() Reason {
	if h.Disabled {
		return TakenForGood
	}
	return Taken
}

// State is what a decision about the link of a pair is made of.
type State struct {
	App App
	// Link is the pair's, if there is one that is not revoked.
	Link *Held
	// Versions is how many consents it has had.
	Versions int
	// Used tells that the ticket was used before.
	Used bool
}

// Grant is a consent that the app has yet to confirm.
type Grant struct {
	Hash      Hash
	Link      string
	Version   int
	ExpiresAt time.Time
}

// Redeemed is what a code was made for.
type Redeemed struct {
	App     App
	Link    Link
	Grant   Grant
	Consent Consent
}

// Change is what a decision does to the store, all of it or nothing.
type Change struct {
	// Ended is a link that makes room for another one.
	Ended *Link
	// Link is as it is from now on; New tells that it was not there before.
	Link    Link
	New     bool
	Consent *Consent
	Grant   *Grant
	Audit   audit.Entry
}

// Attempt is somebody who wants to link a pair. Nonce is that of their ticket, which Until ends; an operator has none.
type Attempt struct {
	Service, ExternalUser string
	Nonce                 []byte
	Until                 time.Time
}

// Filter says which links a list has: active ones of an app, of a user, or of both or neither, newest first.
type Filter struct {
	Service, HubUser string
	// After is the id after which the list goes on; empty begins it.
	After string
	Limit int
}

// Listed is a link in a list.
type Listed struct {
	Link
	AppName, AppStatus string
	// Email is the address of the account.
	Email string
	// ConsentAt is when the user last agreed to what holds.
	ConsentAt time.Time
}

// Store keeps links. Its errors are faults; E_NOT_FOUND for an app or a link that it does not have.
type Store interface {
	// LinkApp returns an app.
	LinkApp(ctx context.Context, code string) (App, error)
	// LinkOf returns the link of a pair that is not revoked, in one read.
	LinkOf(ctx context.Context, service, externalUser string) (Held, bool, error)
	// ChangeLink locks a pair and its app, notes that the ticket is used, lets decide judge, and commits what it decides.
	// decide may run several times, the last of which counts.
	ChangeLink(ctx context.Context, a Attempt, decide func(State) (Change, error)) error
	// RedeemGrant takes a grant away, lets decide judge, and commits what it decides. E_NOT_FOUND for one that is not
	// there.
	RedeemGrant(ctx context.Context, h Hash, decide func(Redeemed) (Change, error)) error
	// EndLink locks a link, lets decide judge it, and commits what it decides.
	EndLink(ctx context.Context, id string, decide func(Link) (Change, error)) error
	// ListLinks returns the links of a filter.
	ListLinks(ctx context.Context, f Filter) ([]Listed, error)
	// UserID returns the id of the user with an address.
	UserID(ctx context.Context, email string) (string, error)
	// ReapLinks revokes the links that were pending before a moment, with an audit entry if there were any, and deletes
	// nonces that were over before used and grants that are over now.
	ReapLinks(ctx context.Context, pending, used, now time.Time, entry func(ids []string) audit.Entry) error
}
