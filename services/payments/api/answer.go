package api

import (
	"encoding/base64"
	"strings"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

// Orders is the answer of a list.
type Orders struct {
	Orders []order.View `json:"orders"`
	// Next is the cursor of the next page; null after the last.
	Next *string `json:"next_cursor"`
}

// Count implements tool.Counter.
func (o Orders) Count() int { return len(o.Orders) }

// Events is the answer about what has happened to an order.
type Events struct {
	Events        []Event        `json:"events"`
	Notifications []Notification `json:"notifications"`
}

// Count implements tool.Counter.
func (e Events) Count() int { return len(e.Events) }

// Event is a step of an order.
type Event struct {
	Seq       int64         `json:"seq"`
	From      *order.Status `json:"from"`
	To        order.Status  `json:"to"`
	Trigger   order.Trigger `json:"trigger"`
	About     *string       `json:"about"`
	Actor     string        `json:"actor"`
	RequestID *string       `json:"request_id"`
	At        string        `json:"at"`
}

// Notification is a message to the app, with its attempts.
type Notification struct {
	ID       string                     `json:"id"`
	Seq      int64                      `json:"seq"`
	Type     string                     `json:"type"`
	State    payments.NotificationState `json:"state"`
	NextAt   *string                    `json:"nextAt"`
	Attempts []Attempt                  `json:"attempts"`
}

// Attempt is one attempt to deliver a message.
type Attempt struct {
	At        string  `json:"at"`
	Status    *int    `json:"status"`
	Delivered bool    `json:"delivered"`
	Error     *string `json:"error"`
	MS        int64   `json:"ms"`
}

// eventsOf is a history as the API answers it. Lists are never null, and a member without a value is null rather than
// absent, so that clients can rely on the shape.
func eventsOf(h payments.History) Events {
	e := Events{Events: []Event{}, Notifications: []Notification{}}
	for _, x := range h.Events {
		e.Events = append(e.Events, Event{x.Seq, optional(x.From), x.To, x.Trigger, optional(x.Subject), actorOf(x.Actor), optional(x.RequestID),
			schema.Moment(x.At)})
	}
	for _, n := range h.Notifications {
		out := Notification{ID: n.ID, Seq: n.Seq, Type: n.Type, State: n.State, Attempts: []Attempt{}}
		if n.NextAt != nil {
			out.NextAt = new(schema.Moment(*n.NextAt))
		}
		for _, a := range n.Attempts {
			out.Attempts = append(out.Attempts, Attempt{schema.Moment(a.At), optional(a.Status), a.Delivered, optional(a.Error),
				a.Took.Milliseconds()})
		}
		e.Notifications = append(e.Notifications, out)
	}
	return e
}

// actorOf keeps from the app which of Hub's people it was.
func actorOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}

// optional is a value as JSON has it: the zero value is null.
func optional[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// cursor is a position as its reader sends it back.
func cursor(p *payments.Position) *string {
	if p == nil {
		return nil
	}
	return new(base64.RawURLEncoding.EncodeToString([]byte(p.At.UTC().Format(time.RFC3339Nano) + "|" + p.Code)))
}

// readCursor reads what cursor has written. It judges the code too, because the text goes into a statement of the
// store; ok is false for anything else.
func readCursor(s string) (p payments.Position, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	at, code, found := strings.Cut(string(b), "|")
	if err == nil && found {
		p.At, err = time.Parse(time.RFC3339Nano, at)
	}
	p.Code = code
	return p, err == nil && found && orderCode.MatchString(code)
}
