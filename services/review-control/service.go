// Package reviewcontrol is where people decide what leaves the house: it takes drafts into
// review (queue_for_review), keeps each decision, sends what was approved, and owns the
// suppression list. It refuses to decide or to send for an agent, to send anything but the
// content that was decided on, and to hand a mail over twice.
//
// The domain is in review.go and delivery.go. What can be asked for is in drafts.go, targets.go, decide.go, inspect.go and
// deliver.go, and in the room queue, which takes drafts into review.
package reviewcontrol

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/metrics"
	"hub.internal/services/review-control/suppression"
	"hub.internal/services/review-control/triage"
)

// Store is the store in its roles, each declared beside what uses it. Its errors are faults; E_NOT_FOUND for what it
// does not have.
type Store interface {
	ReviewStore
	TargetStore
	DecisionStore
	DeliveryStore
	TestStore
}

// Drafts is authoring, as far as review-control knows it.
type Drafts interface {
	Draft(ctx context.Context, id ID) (Draft, error)
	// Drafts returns a page of drafts, with the counts that belong to it.
	Drafts(ctx context.Context, q DraftQuery) (DraftsFound, error)
	// Recipients returns all targets of a draft without their mails.
	Recipients(ctx context.Context, id ID) ([]Target, error)
	// Page returns targets from behind an index (-1 for the first page) with their mails, and the index that the next
	// page is behind; -1 on the last.
	Page(ctx context.Context, id ID, after, limit int) ([]TargetView, int, error)
	// Mails hands over the mails of the indexes, in their order. It is E_NOT_FOUND when one is missing.
	Mails(ctx context.Context, id ID, indexes []int, each func(index int, m Mail) error) error
	// Transition changes the draft's status, once for the operation. It is E_CONFLICT, with the
	// status that the draft is in as details.from, for a draft that is in none of From, and when
	// newer counts than those of Version are known.
	Transition(ctx context.Context, id ID, t Transition) error
	// Progress tells the counts of a review, how many of its targets are rejected for which reason, and the last of these, unless
	// newer ones are known.
	Progress(ctx context.Context, r Review, rejections map[Reason]int, rejected []Target) error
}

// DraftQuery asks authoring for drafts.
type DraftQuery struct {
	// Status "" is any.
	Status Status
	Search string
	// ByQueue lists the longest waiting first, else the newest.
	ByQueue bool
	// After is the last draft of the page before; 0 begins.
	After ID
	Limit int
	// Makers are those of the drafts of who asks; Others leaves those out.
	Makers []Maker
	Others bool
	// Uncounted leaves the counts out, which cost as much as the page.
	Uncounted bool
	// Ahead has the status of drafts of which authoring may know another one.
	Ahead map[ID]Status
}

// DraftsFound is a page of drafts. Next is the After of the next page, 0 on the last. Counts are the drafts that the
// search finds by status, Others those that Makers have not made; both are nil when authoring does not count yet.
type DraftsFound struct {
	Drafts         []Draft
	Next           ID
	Counts, Others map[Status]int
}

// Keys is auth, as far as review-control knows it: it names the API keys that drafts were made with.
type Keys interface {
	// Names returns the names that are known of keys, by id, also beside an error.
	Names(ctx context.Context, ids []string) (map[string]string, error)
}

// Transition is what authoring is asked to change of a draft's status.
type Transition struct {
	From []Status
	To   Status
	// QueuedAt goes with the transition from draft to in_review alone.
	QueuedAt *time.Time
	// Operation names the wish: the same one again answers the same.
	Operation string
	// Version is that of the review which asks; 0 for none.
	Version int64
}

// Config is what a Service is made of.
type Config struct {
	Store  Store
	Drafts Drafts
	// Suppressions is asked before a draft is queued, on each page, and before each hand-over.
	Suppressions *suppression.List
	// Keys may be nil: then keys have no names.
	Keys   Keys
	Sender Sender
	// PublicURL is where browsers reach Hub, without a slash at its end.
	PublicURL string
	// From is Hub's mailbox: who mails are from when their draft names nobody.
	From mailer.Address
	// SendTimeout bounds connecting to the SMTP server, and again one hand-over; 0 means 30 s.
	SendTimeout time.Duration
	// Pace's Retry defaults to 30 s, GiveUp to 24 h.
	Pace mailer.Pace
	// PerMinute bounds the mails of all replicas together; 0 means 600.
	PerMinute int
	// SendDelay is how long the mails of an approved draft wait, so that the last decision can be undone.
	SendDelay time.Duration
	// Policy is what each mail has to have.
	Policy triage.Policy
	// Now is the clock; nil means time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

// Service is review-control.
type Service struct {
	c       Config
	metrics metrics.Metrics
}

// New returns a service. It touches no database.
func New(c Config) *Service {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.SendTimeout = cmp.Or(c.SendTimeout, 30*time.Second)
	c.Pace.Retry = cmp.Or(c.Pace.Retry, 30*time.Second)
	c.Pace.GiveUp = cmp.Or(c.Pace.GiveUp, 24*time.Hour)
	c.PerMinute = cmp.Or(c.PerMinute, 600)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Service{c, metrics.New(
		[]DeliveryState{Queued, Delivered, Failed, Changed, Suppressed, Unknown}, []Choice{Approve, Reject, Pending})}
}

// Config is what the service is made of, with its defaults.
func (s *Service) Config() Config { return s.c }

// now is the time as it is stored: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

// itself is a context in which review-control acts for nobody else.
func itself(ctx context.Context) context.Context {
	return caller.Alone(ctx, "review-control")
}

// entry is the audit row of what a person asked for.
func (s *Service) entry(ctx context.Context, name string, count int, detail map[string]any) audit.Entry {
	return audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: name, Outcome: audit.OK, Count: count, Detail: detail}
}

// Missing is E_NOT_FOUND for an id that names nothing.
func Missing(kind, id string) error {
	return fault.New(fault.NotFound, "There is no %s %q.", kind, text.Shown(id, 40))
}
