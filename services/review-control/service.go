// Package reviewcontrol is where people decide what leaves the house: it takes drafts into
// review (queue_for_review), keeps each decision, sends what was approved, and owns the
// suppression list. It refuses to decide or to send for an agent, to send anything but the
// content that was decided on, and to hand a mail over twice.
//
// The domain is in review.go and delivery.go. What can be asked for is in queue.go, drafts.go,
// targets.go, decide.go, inspect.go, deliver.go and suppression.go.
package reviewcontrol

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
)

// Store keeps reviews, decisions, deliveries and the suppression list, and the jobs that
// follow from them. Its errors are faults; E_NOT_FOUND for what it does not have.
type Store interface {
	// Answered returns the answer of an earlier call with the key, if there is one.
	Answered(ctx context.Context, key write.Key) (tool.Result, bool, error)
	// Intend keeps that a draft is about to be queued, with a job that ends it should nobody
	// else; it returns what was kept before under the same key, E_CONFLICT when another
	// call has the draft, and E_IDEMPOTENCY when the key has another draft.
	Intend(ctx context.Context, in Intent, targets []Target) (Intent, error)
	// Intent returns what is kept of a draft about to be queued, if it is.
	Intent(ctx context.Context, id ID) (Intent, bool, error)
	// Enqueue makes the intent a review, once for its key.
	Enqueue(ctx context.Context, in Intent, answer tool.Result, entry audit.Entry) (tool.Result, error)
	// Withdraw forgets an intent whose draft cannot be queued.
	Withdraw(ctx context.Context, in Intent) error

	Review(ctx context.Context, id ID) (Review, error)
	// Reviews returns the reviews that there are of the drafts.
	Reviews(ctx context.Context, ids []ID) (map[ID]Review, error)
	// Waiting returns reviews with targets to decide on, the oldest first.
	Waiting(ctx context.Context, limit int) ([]Review, error)
	Targets(ctx context.Context, id ID, f TargetFilter) ([]Target, error)
	// Place is which of the targets that a filter finds its After is, from 1; 0 when it is none of them.
	Place(ctx context.Context, id ID, f TargetFilter) (int, error)
	Target(ctx context.Context, id ID, index int) (Target, error)
	// TargetsAt returns the targets of the indexes, by index; E_NOT_FOUND when one is missing.
	TargetsAt(ctx context.Context, id ID, indexes []int) ([]Target, error)
	// History returns the decisions on a target, the newest first.
	History(ctx context.Context, id ID, index int) ([]Decision, error)
	// Update locks a review, hands it over with the targets of the indexes, and commits what
	// the function changes of them, with the jobs that follow.
	Update(ctx context.Context, id ID, indexes []int, change func(*Unit) error) (Review, error)

	// UpdateAction is Update with those targets whose newest decision is a part of the action, and with
	// the decisions that held before those.
	UpdateAction(ctx context.Context, id ID, action int, change func(*Unit) error) (Review, error)
	// LastAction returns the newest action on a draft of which something is left: a reviewer's, or
	// anybody's when by is empty.
	LastAction(ctx context.Context, id ID, by string) (Action, bool, error)

	// Uninspected returns targets behind an index (-1 begins) that were not inspected, by index.
	Uninspected(ctx context.Context, id ID, after, limit int) ([]Target, error)
	// KeepInspected keeps the inspections of targets that have none yet.
	KeepInspected(ctx context.Context, id ID, batch []Inspected) error
	// Variants returns the variants of a draft that have several mails, the largest first.
	Variants(ctx context.Context, id ID) ([]Variant, error)
	// Tally counts the targets that a filter finds, by choice and by flag.
	Tally(ctx context.Context, id ID, f TargetFilter) (Tally, error)

	// OpenMakers returns who has made the drafts that are in review, or about to be.
	OpenMakers(ctx context.Context) ([]Maker, error)
	// Ahead returns the status of at most so many drafts of which authoring may know another one.
	Ahead(ctx context.Context, limit int) (map[ID]Status, error)
	// Flagged sums up what a reviewer should look at among the undecided mails of drafts; those without are absent.
	Flagged(ctx context.Context, ids []ID) (map[ID]Flagged, error)
	// See keeps that a reviewer has a draft open, unless that was kept after since; it forgets who was seen before old.
	See(ctx context.Context, id ID, by Reviewer, at, since, old time.Time) error
	// Present returns the names of the others who were seen at the drafts after a moment.
	Present(ctx context.Context, ids []ID, but Reviewer, after time.Time) (map[ID][]string, error)

	// Record keeps an audit row of what was done elsewhere.
	Record(ctx context.Context, entry audit.Entry) error

	// Finish makes approved targets wait for their delivery; doing it again changes nothing. While
	// their review can be undone it does nothing, and tells how long to wait.
	Finish(ctx context.Context, id ID, now time.Time) (wait time.Duration, err error)
	// Turn gives a target's mail its place in the line of all mails, one each interval; it
	// keeps those that are further away than near. It is false when there is nothing to send.
	Turn(ctx context.Context, id ID, index int, now time.Time, interval, near time.Duration) (time.Time, bool, error)
	// TakeSync returns a review whose changes authoring may not have heard of, with how many of its targets are rejected
	// for which reason; changes that come later ask for another job. Synced keeps what authoring knows, Unsynced that it does not.
	TakeSync(ctx context.Context, id ID) (Review, map[Reason]int, error)
	Synced(ctx context.Context, id ID, version int64) error
	Unsynced(ctx context.Context, id ID) error

	// Listed returns those of the addresses that are on the list, by EmailKey.
	Listed(ctx context.Context, emails []string) (map[string]bool, error)
	// Suppressions returns entries in their order, those of a domain when that is not empty;
	// prefix is what the address or the domain starts with.
	Suppressions(ctx context.Context, prefix string, byDomain bool, after string, limit int) ([]Suppression, error)
	Suppress(ctx context.Context, x Suppression, entry audit.Entry) (added bool, err error)
	// Unsuppress returns E_NOT_FOUND for an address that is not on the list.
	Unsuppress(ctx context.Context, email, by, reason string, at time.Time, entry audit.Entry) error
	// TokenTarget returns whose mail a token was in, and the draft of it.
	TokenTarget(ctx context.Context, token []byte) (ID, Target, error)

	AddImport(ctx context.Context, in Import, data []byte, entry audit.Entry) (Import, error)
	Import(ctx context.Context, id ID) (Import, error)
	Imports(ctx context.Context, limit int) ([]Import, error)
	ImportData(ctx context.Context, id ID) ([]byte, error)
	// ImportBatch stores a batch behind those done before, and nothing when another has been.
	ImportBatch(ctx context.Context, in Import, b Batch) (Import, error)
	// EndImport ends an import; its file is needed no more.
	EndImport(ctx context.Context, id ID, at time.Time) error
	BadLines(ctx context.Context, id ID, after, limit int) ([]BadLine, error)
}

// Unit is a review with some of its targets while something happens to them: nobody else
// changes them until the function that got it returns.
type Unit struct {
	Review Review
	// Targets are those asked for, by index.
	Targets []Target
	// Earlier are the decisions that held before those on the targets of an action, in their order.
	Earlier []Decision
	// Listed tells whether an address is on the list.
	Listed func(email string) (bool, error)
	// Entry is the audit row, for what somebody asked for.
	Entry *audit.Entry
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
	// Progress tells the counts of a review, and how many of its targets are rejected for which reason, unless newer ones
	// are known.
	Progress(ctx context.Context, r Review, rejections map[Reason]int) error
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
	// Keys may be nil: then keys have no names.
	Keys   Keys
	Sender Sender
	// PublicURL is where browsers reach Hub, without a slash at its end.
	PublicURL string
	// From is Hub's mailbox: who mails are from when their draft names nobody.
	From Address
	// SendTimeout bounds connecting to the SMTP server, and again one hand-over; 0 means 30 s.
	SendTimeout time.Duration
	// Pace's Retry defaults to 30 s, GiveUp to 24 h.
	Pace Pace
	// PerMinute bounds the mails of all replicas together; 0 means 600.
	PerMinute int
	// SendDelay is how long the mails of an approved draft wait, so that the last decision can be undone.
	SendDelay time.Duration
	// Now is the clock; nil means time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

// Service is review-control.
type Service struct {
	c       Config
	metrics metrics
}

// New returns a service. It touches no database.
func New(c Config) *Service {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.SendTimeout == 0 {
		c.SendTimeout = 30 * time.Second
	}
	if c.Pace.Retry == 0 {
		c.Pace.Retry = 30 * time.Second
	}
	if c.Pace.GiveUp == 0 {
		c.Pace.GiveUp = 24 * time.Hour
	}
	if c.PerMinute == 0 {
		c.PerMinute = 600
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{c, newMetrics()}
}

// now is the time as it is stored: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

// person refuses everybody but people with a console session: no agent decides, whatever
// it holds.
func person(ctx context.Context) error {
	if caller.From(ctx).Kind != caller.User {
		return fault.New(fault.Scope, "Only a person can do that, in the console.")
	}
	return nil
}

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

// metrics are what an operator watches: how reviews and mails go.
type metrics struct {
	deliveries, decisions, undos metric.Int64Counter
	handOver                     metric.Float64Histogram
}

func newMetrics() metrics {
	meter := otel.Meter("hub.internal/services/review-control")
	deliveries, err1 := meter.Int64Counter("hub.review.deliveries",
		metric.WithDescription("Ends of deliveries by outcome; queued is a mail that was put off."))
	decisions, err2 := meter.Int64Counter("hub.review.decisions", metric.WithDescription("Decisions of reviewers by choice."))
	undos, err4 := meter.Int64Counter("hub.review.undone", metric.WithDescription("Decisions that were undone."))
	handOver, err3 := meter.Float64Histogram("hub.review.handover.duration", metric.WithUnit("s"),
		metric.WithDescription("Time to hand a mail over to the SMTP server, or to fail."),
		metric.WithExplicitBucketBoundaries(.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		otel.Handle(err)
	}
	m := metrics{deliveries, decisions, undos, handOver}
	// An alarm needs the series before the first of them.
	for _, outcome := range []DeliveryState{Queued, Delivered, Failed, Changed, Suppressed, Unknown} {
		deliveries.Add(context.Background(), 0, metric.WithAttributes(attribute.String("outcome", string(outcome))))
	}
	for _, choice := range []Choice{Approve, Reject, Pending} {
		decisions.Add(context.Background(), 0, metric.WithAttributes(attribute.String("choice", string(choice))))
	}
	undos.Add(context.Background(), 0)
	return m
}

func (m metrics) delivered(ctx context.Context, outcome DeliveryState) {
	m.deliveries.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", string(outcome))))
}

func (m metrics) decided(ctx context.Context, choice Choice, n int) {
	m.decisions.Add(ctx, int64(n), metric.WithAttributes(attribute.String("choice", string(choice))))
}

func (m metrics) undone(ctx context.Context, n int) { m.undos.Add(ctx, int64(n)) }

func (m metrics) handedOver(ctx context.Context, took time.Duration) {
	m.handOver.Record(ctx, took.Seconds())
}
