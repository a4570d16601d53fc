package pgsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// hook is a webhook on its way. Its bytes never change: a repetition is the same event, signed once.
// next and busy are of this process, and not in the journal.
type hook struct {
	ID       int
	OrderID  string
	Body     []byte
	Attempts []Attempt
	Done     bool

	next time.Time // by the machine's clock
	busy bool
}

// Attempt is one try to deliver a webhook.
// Status is 0 where no answer came, and Error is empty where it was acknowledged.
type Attempt struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// Webhook is what was told, and what was answered.
// Body is JSON, and a text of JSON where a fault has cut it.
type Webhook struct {
	OrderID  string          `json:"orderId"`
	Body     json.RawMessage `json:"body"`
	Attempts []Attempt       `json:"attempts"`
	Done     bool            `json:"done"`
}

const (
	// hookTimeout bounds one delivery, as the vendor does.
	hookTimeout = 10 * time.Second
	// hooksAtOnce bounds how many are delivered at a time.
	hooksAtOnce = 32
	// reorderLimit is how long a webhook waits to be overtaken.
	reorderLimit = 2 * time.Second
)

// newClient is a client for webhooks. It follows no redirect, as the vendor does not.
func newClient() *http.Client {
	return &http.Client{Timeout: hookTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: hooksAtOnce},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// notify tells of a payment; the lock is held.
// One fault at most happens to it. It is queued, and never sent while the lock is held.
func (s *Sim) notify(a *answer) {
	f := s.nextFault("webhook")
	if f.Kind == WrongOrder {
		a.OrderID = "po_00000000000000000000000000" // the signature does not cover it
	}
	body, err := json.Marshal(a)
	if err != nil {
		panic(err) // the type can always be written
	}
	if f.Kind == Garbage {
		body = body[:len(body)/2]
	}
	s.push(a.OrderID, body, f)
}

// push puts a webhook among those to be delivered; the lock is held.
func (s *Sim) push(orderID string, body []byte, f fault) {
	if s.hookURL == "" || f.Kind == Drop {
		return
	}
	h := &hook{ID: s.number(), OrderID: orderID, Body: body, next: time.Now()}
	switch f.Kind {
	case Delay:
		h.next = h.next.Add(f.pause())
	case Reorder:
		h.next = h.next.Add(reorderLimit)
	}
	s.hooks = append(s.hooks, h)
	// The one that waits to be overtaken goes right behind this one, and waits no longer.
	if n := len(s.hooks); f.Kind == "" && n > 1 && s.hooks[n-2].overtaken(h) {
		s.hooks[n-2], s.hooks[n-1] = h, s.hooks[n-2]
		s.hooks[n-1].next = h.next
	}
	s.journal.hook(h)
	if f.Kind == Duplicate {
		s.push(orderID, body, fault{})
	}
	s.moved()
}

// overtaken tells whether a webhook waits for the next one of its order.
func (h *hook) overtaken(by *hook) bool {
	return h.OrderID == by.OrderID && len(h.Attempts) == 0 && !h.busy && h.next.After(by.next)
}

// moved wakes who waits for webhooks; the lock is held.
func (s *Sim) moved() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// deliver sends what is due until ctx ends: those of one order begin in their order.
// Delivery is at least once: an acknowledgement that is lost makes the webhook come again, with the same bytes.
func (s *Sim) deliver(ctx context.Context) {
	slots := make(chan struct{}, hooksAtOnce)
	for {
		h, changed, wait := s.due()
		if h == nil {
			var timer <-chan time.Time
			if wait >= 0 {
				timer = time.After(wait)
			}
			select {
			case <-changed:
			case <-timer:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		s.running.Go(func() {
			defer func() { <-slots }()
			s.attempt(ctx, h)
		})
	}
}

// due is the next webhook to send, marked as being sent, or how long it takes until there is one; -1 is for ever.
// A first attempt waits for those of the same order before it; a repetition waits for nobody, so that a late one may come
// after newer news.
func (s *Sim) due() (*hook, <-chan struct{}, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Deliveries go by the machine's clock, and not by the simulated one: a test that moves time does not move the network.
	now, wait := time.Now(), time.Duration(-1)
	untried := map[string]bool{}
	for _, h := range s.hooks {
		first := len(h.Attempts) == 0
		blocked := first && untried[h.OrderID]
		if first {
			untried[h.OrderID] = true
		}
		if h.busy || blocked {
			continue
		}
		if d := h.next.Sub(now); d > 0 {
			if wait < 0 || d < wait {
				wait = d
			}
			continue
		}
		h.busy = true
		return h, s.changed, 0
	}
	return nil, s.changed, wait
}

// attempt sends a webhook once.
func (s *Sim) attempt(ctx context.Context, h *hook) {
	s.mu.Lock()
	target := s.hookURL
	s.mu.Unlock()
	// The lock is not held during the call: the receiver may ask the simulator before it answers, as Hub does.
	a := Attempt{At: s.c.Now()}
	status, err := s.post(ctx, target, h.Body)
	if a.Status = status; err != nil {
		a.Error = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.busy = false
	// An attempt that Close has cut off does not count: the next simulator sends it.
	if ctx.Err() == nil {
		h.Attempts = append(h.Attempts, a)
		n := len(h.Attempts)
		if h.Done = err == nil || n > len(s.c.Retries); !h.Done {
			h.next = time.Now().Add(s.c.Retries[n-1])
		}
		if err != nil {
			s.c.Logger.Warn("a webhook was not acknowledged", "order", h.OrderID, "attempt", n, "error", err.Error())
		}
		s.journal.hook(h)
		if h.Done {
			s.hooks = slices.DeleteFunc(s.hooks, func(other *hook) bool { return other == h })
			s.remember(h)
		}
	}
	s.moved()
}

// remember keeps a webhook that is over, for whoever asks what was told.
func (s *Sim) remember(h *hook) {
	if s.told = append(s.told, h); len(s.told) > maxCalls {
		s.told = s.told[1:]
	}
}

// post sends a webhook and checks its acknowledgement as the vendor does: 200, text/html, OK.
// U337 and U338 are the vendor's codes for these failures.
func (s *Sim) post(ctx context.Context, target string, body []byte) (int, error) {
	if target == "" {
		return 0, errors.New("there is no webhook URL")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json;charset=utf-8")
	response, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return response.StatusCode, err
	case response.StatusCode != http.StatusOK:
		return response.StatusCode, fmt.Errorf("U337: the status is %d, not 200", response.StatusCode)
	case kind != "text/html":
		return response.StatusCode, fmt.Errorf("the content type is %q, not text/html", kind)
	case strings.TrimSpace(string(text)) != "OK":
		return response.StatusCode, errors.New("U338: the body is not OK")
	}
	return response.StatusCode, nil
}

// awaitAttempts waits until every webhook of an order was tried, 5 seconds at most.
func (s *Sim) awaitAttempts(ctx context.Context, orderID string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = s.await(ctx, func(h *hook) bool { return h.OrderID != orderID || len(h.Attempts) > 0 }) // to be late is its own answer
}

// Settle waits until every webhook is acknowledged or given up.
// It ends with ctx's error when that ends first. What is told while it waits is waited for as well.
func (s *Sim) Settle(ctx context.Context) error {
	return s.await(ctx, func(*hook) bool { return false })
}

// await waits until every webhook that is on its way is good enough.
// changed is taken with the lock that looks at the webhooks, so that no move between the two is missed.
func (s *Sim) await(ctx context.Context, good func(*hook) bool) error {
	for {
		s.mu.Lock()
		changed, waits := s.changed, slices.ContainsFunc(s.hooks, func(h *hook) bool { return !good(h) })
		s.mu.Unlock()
		if !waits {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Webhooks are those that were told or are to be told, in the order of their ends.
func (s *Sim) Webhooks() []Webhook {
	out := []Webhook{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]*hook{s.told, s.hooks} {
		for _, h := range list {
			w := Webhook{OrderID: h.OrderID, Body: h.Body, Attempts: append([]Attempt{}, h.Attempts...), Done: h.Done}
			if !json.Valid(h.Body) {
				w.Body, _ = json.Marshal(string(h.Body))
			}
			out = append(out, w)
		}
	}
	return out
}
