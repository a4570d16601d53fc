package payments

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/order"
)

// NotificationState says how far a message to an app has come.
type NotificationState string

// The states of a notification. A Dead one has used up its schedule. A Skipped one is of an order without a notification URL.
// The receiver of a Stopped one has answered 410 Gone, after which no notification of that order is sent.
const (
	NotificationPending   NotificationState = "PENDING"
	NotificationDelivered NotificationState = "DELIVERED"
	NotificationDead      NotificationState = "DEAD"
	NotificationSkipped   NotificationState = "SKIPPED"
	NotificationStopped   NotificationState = "STOPPED"
)

// Notification is a row of the transactional outbox: a message to an app, stored once as bytes in the transaction of its
// event. It is delivered at least once, and every attempt sends the same bytes under the same id, by which a receiver tells
// a repetition.
type Notification struct {
	ID    string
	Order string
	// ServiceCode is the app.
	ServiceCode string
	Seq         int64
	Type        string
	URL         string
	Body        []byte
	State       NotificationState
	// Failed counts the failed attempts since it was first sent, or asked to be sent again.
	Failed    int
	NextAt    *time.Time
	CreatedAt time.Time
}

// Delivery is a message on its way.
type Delivery struct {
	ID, URL string
	Body    []byte
	Secrets []string
}

// Attempt is what became of one attempt to deliver a message.
type Attempt struct {
	At time.Time
	// Status is the answer's, 0 without one.
	Status    int
	Delivered bool
	// Gone tells that the address wants no more of them.
	Gone       bool
	RetryAfter time.Duration
	// Error says in a few words why not; Answer is the beginning of what was answered.
	Error  string
	Answer string
	Took   time.Duration
}

// StatusText is what was answered, in two words for people.
func (a Attempt) StatusText() string {
	if a.Status == 0 {
		return "no answer"
	}
	return strconv.Itoa(a.Status)
}

// Outbox keeps messages until they are delivered, or given up.
type Outbox interface {
	// Notification returns a notification; E_NOT_FOUND without one.
	Notification(ctx context.Context, id string) (Notification, error)
	// TakeAttempt takes the next attempt of a message, as it was read, until a moment: nobody else makes it meanwhile. False when
	// somebody has it already.
	TakeAttempt(ctx context.Context, n Notification, until time.Time) (bool, error)
	// RecordAttempt keeps an attempt and what it makes of the message. With Gone the order's other messages stop, too.
	RecordAttempt(ctx context.Context, n Notification, a Attempt) error
	// Redeliver lets a message be sent again, the same bytes under the same id. E_NOT_FOUND unless it is the order's,
	// E_CONFLICT for one that has nowhere to go.
	Redeliver(ctx context.Context, order, id string, by Actor) error
}

// RecordedEvent is an event of an order, as it is read back.
type RecordedEvent struct {
	Seq      int64
	From, To order.Status
	Trigger  order.Trigger
	Subject  string
	// Note is what an operator has written.
	Note      string
	Actor     string
	RequestID string
	At        time.Time
}

// NotificationHistory is a message without its body, with its attempts.
type NotificationHistory struct {
	Notification
	Attempts []Attempt
}

// History is the events of an order, and its notifications with their attempts.
type History struct {
	Events        []RecordedEvent
	Notifications []NotificationHistory
}

// attemptLease is how long an attempt may take until another may be made: its 15 s, and a little. Who died in it is waited for.
const attemptLease = 20 * time.Second

// Notify is the worker of the outbox. It makes one attempt to deliver a message. again is the wait after which to make the next; 0 for
// one that is delivered or given up. Of the jobs that a message may have, as when it was asked for again, one makes each attempt, which
// takes it first: the others end, as does one that comes well before the next attempt.
func (s *Service) Notify(ctx context.Context, id string) (again time.Duration, err error) {
	n, err := s.c.Store.Notification(ctx, id)
	if err != nil || n.State != NotificationPending {
		return 0, err
	}
	if n.NextAt != nil && s.now().Before(*n.NextAt) {
		if wait := n.NextAt.Sub(s.now()); wait <= attemptLease {
			return wait, nil
		}
		return 0, nil
	}
	done, wait := s.bulkhead.acquire(n.ServiceCode)
	if wait > 0 {
		return wait, nil
	}
	defer done()
	app, err := s.c.Apps.App(ctx, n.ServiceCode)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return 0, err // without the app's secrets nothing was tried
	}
	if taken, err := s.c.Store.TakeAttempt(ctx, n, s.now().Add(attemptLease)); err != nil || !taken {
		return 0, err
	}
	a := Attempt{At: s.now(), Error: "the app has no secret to sign with"}
	if err := s.c.Notifier.Check(n.URL, app.Origins); err != nil { // they may have been fewer since the order was made
		a.Error = "the URL cannot be used: " + err.Error()
	} else if len(app.Secrets) > 0 {
		a = s.c.Notifier.Send(ctx, Delivery{ID: n.ID, URL: n.URL, Body: n.Body, Secrets: app.Secrets})
		a.At = s.now()
	}
	return s.recordAttempt(ctx, n, a)
}

// recordAttempt decides what an attempt makes of its notification, and stores both. The wait is the schedule's, or
// longer when the receiver asks for more with Retry-After.
func (s *Service) recordAttempt(ctx context.Context, n Notification, a Attempt) (again time.Duration, err error) {
	switch {
	case a.Delivered:
		n.State, n.NextAt = NotificationDelivered, nil
	case a.Gone:
		n.State, n.NextAt = NotificationStopped, nil
	default:
		n.Failed++
		wait, ok := s.c.Notifier.Next(n.Failed)
		if !ok {
			n.State, n.NextAt = NotificationDead, nil
			s.c.Logger.ErrorContext(ctx, "a message to an app is given up", "message", n.ID, "order", n.Order, "app", n.ServiceCode, "error",
				a.Error)
			break
		}
		again = max(wait, a.RetryAfter, time.Second)
		n.NextAt = new(s.now().Add(again))
	}
	return again, s.c.Store.RecordAttempt(ctx, n, a)
}

// bulkhead bounds how much one app can take of what all share (the bulkhead pattern). The receivers of one app, when they are
// slow, do not take all the workers that the notifications of other apps wait for. An app is slow for a minute after an
// attempt that took more than a second; while it is, slowLimit of its attempts run at once, and the others wait as jobs.
type bulkhead struct {
	mu sync.Mutex
	// running counts an app's attempts, and slowUntil is how long it is taken for slow.
	running   map[string]int
	slowUntil map[string]time.Time
}

const (
	// slowThreshold is what an attempt may take, slowFor how long a slower one is remembered, and slowTurns how many attempts of
	// a slow app run at once in a process.
	slowThreshold = time.Second
	slowPeriod    = time.Minute
	slowLimit     = 4
	// bulkheadWait is how long who has no turn waits at least, and at most twice that.
	bulkheadWait = 5 * time.Second
)

// newBulkhead makes one for the attempts of this process.
func newBulkhead() *bulkhead {
	return &bulkhead{running: map[string]int{}, slowUntil: map[string]time.Time{}}
}

// acquire begins an attempt of an app, which done ends; or tells how long to wait.
func (t *bulkhead) acquire(app string) (done func(), wait time.Duration) {
	began := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[app] >= slowLimit && began.Before(t.slowUntil[app]) {
		return nil, bulkheadWait + rand.N(bulkheadWait)
	}
	t.running[app]++
	return func() {
		now := time.Now()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.running[app]--; t.running[app] == 0 {
			delete(t.running, app)
		}
		switch {
		case now.Sub(began) > slowThreshold:
			t.slowUntil[app] = now.Add(slowPeriod)
		case now.After(t.slowUntil[app]):
			delete(t.slowUntil, app)
		}
	}, 0
}

// Redeliver lets a message of the caller's order be sent again: the same bytes under the same id, at once and by the schedule from its
// beginning. It returns E_NOT_FOUND, and E_CONFLICT for an order without a URL.
func (s *Service) Redeliver(ctx context.Context, code, id string) error {
	if _, err := s.ownOrder(ctx, code); err != nil {
		return err
	}
	return s.c.Store.Redeliver(ctx, code, id, s.actor(ctx))
}
