package pgsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The kinds of fault. Drop and Reorder are for webhooks, WebhookFirst is for issue and cancel.
// What arrives of a call or a webhook after each of them is said beside it.
const (
	TimeoutBefore = "timeout-before" // the connection breaks, and nothing was done
	TimeoutAfter  = "timeout-after"  // it was done, and then the connection breaks
	ServerError   = "500"            // nothing was done
	Duplicate     = "duplicate"      // a call arrives twice, a webhook is sent twice
	Delay         = "delay"
	Reorder       = "reorder" // this webhook goes after the next one of its order
	Drop          = "drop"
	Garbage       = "garbage"     // it was done, and the answer cannot be read
	WrongOrder    = "wrong-order" // it was done, and the answer is about another order
	Decline       = "decline"     // refused, and nothing was done
	WebhookFirst  = "webhook-first"
)

// Fault is what is to go wrong, on the next calls or webhooks. With faults a test reaches what the vendor's sandbox never does:
// the answer that does not come, the one that cannot be read, and the one that is about somebody else.
type Fault struct {
	Kind string `json:"kind"`
	// On is issue, cancel, get or webhook.
	On string `json:"on"`
	// Times is how often; 1 when it is 0.
	Times int `json:"times"`
	// MS is how long a delay takes; 200 when it is 0.
	MS int `json:"ms"`
	// Code is the vendor's code of a decline.
	Code string `json:"code"`
}

// fault is one that waits to happen; left counts how often.
type fault struct {
	Fault
	left int
}

// pause is how long a Delay takes.
func (f fault) pause() time.Duration {
	if f.MS == 0 {
		return 200 * time.Millisecond
	}
	return time.Duration(f.MS) * time.Millisecond
}

// code is the result code of a Decline: of the vendor's codes for a definite refusal where none is given.
// 2016 and 2152 are definite, so that a caller may end the refund or the order, and need not ask again.
func (f fault) code() string {
	switch {
	case f.Code != "":
		return f.Code
	case f.On == "cancel":
		return "2016"
	}
	return "2152"
}

// callFaults and hookFaults are the kinds that Arm takes for calls and for webhooks.
var (
	callFaults = []string{TimeoutBefore, TimeoutAfter, ServerError, Duplicate, Delay, Drop, Garbage, WrongOrder, Decline, WebhookFirst}
	hookFaults = []string{Duplicate, Delay, Reorder, Drop, Garbage, WrongOrder}
)

// Arm lets something go wrong with the next calls or webhooks. Faults for the same thing happen one after the other.
// A fault that is armed for three times happens to the next three, and is gone then; Heal takes away what is left.
func (s *Sim) Arm(f Fault) error {
	kinds := callFaults
	if f.On == "webhook" {
		kinds = hookFaults
	}
	if !slices.Contains([]string{"issue", "cancel", "get", "webhook"}, f.On) || !slices.Contains(kinds, f.Kind) || f.Times < 0 {
		return fmt.Errorf("there is no fault %q on %q: on is issue, cancel, get or webhook, kinds are %s, for webhooks %s",
			f.Kind, f.On, strings.Join(callFaults, " "), strings.Join(hookFaults, " "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{Fault: f, left: max(f.Times, 1)})
	return nil
}

// Heal forgets the faults that have not happened yet.
func (s *Sim) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault is nextFault with the lock.
func (s *Sim) takeFault(on string) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextFault(on)
}

// nextFault is the one to happen now; the lock is held.
// The zero fault, whose kind is empty, is none.
func (s *Sim) nextFault(on string) fault {
	for i, f := range s.faults {
		if f.On == on {
			if f.left--; f.left == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
			return *f
		}
	}
	return fault{}
}

// Call is a call that was received. It holds no credential and no account.
// Seq counts from 1 and is never used twice.
type Call struct {
	Seq     int       `json:"seq"`
	At      time.Time `json:"at"`
	On      string    `json:"on"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	OrderID string    `json:"orderId,omitempty"`
	// Code is the orderId of a cancel.
	Code   string `json:"code,omitempty"`
	TID    string `json:"tid,omitempty"`
	Amount int64  `json:"amount,omitempty"`
	// Result is the vendor's code of the answer, Fault what was done to it.
	Result string `json:"result,omitempty"`
	Fault  string `json:"fault,omitempty"`
}

// maxCalls bounds what is remembered of the past.
const maxCalls = 100_000

// keep remembers a call before anything is done about it.
// It reads the body for itself, so that also a call is listed that its handler refuses.
func (s *Sim) keep(on string, r *http.Request, body []byte) Call {
	var in struct {
		OrderID   string `json:"orderId"`
		Amount    int64  `json:"amount"`
		CancelAmt int64  `json:"cancelAmt"`
	}
	_ = json.Unmarshal(body, &in) // what cannot be read is refused by who handles it
	path, _ := url.PathUnescape(r.URL.Path)
	c := Call{On: on, Method: r.Method, Path: path, OrderID: in.OrderID, Amount: max(in.Amount, in.CancelAmt), TID: r.PathValue("tid")}
	for _, name := range []string{"sessionId", "orderId"} {
		if v := r.PathValue(name); v != "" {
			c.OrderID = v
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The orderId in the body of a cancel is the refund's own.
	if c.TID != "" && r.Method == http.MethodPost {
		c.Code, c.OrderID = in.OrderID, ""
	}
	if p := s.payments[c.TID]; p != nil {
		c.OrderID = p.OrderID
	}
	c.At, c.Seq = s.c.Now(), 1
	if n := len(s.calls); n > 0 {
		c.Seq = s.calls[n-1].Seq + 1
	}
	if s.calls = append(s.calls, c); len(s.calls) > maxCalls {
		s.calls = slices.Delete(s.calls, 0, len(s.calls)-maxCalls)
	}
	return c
}

// settleCall remembers how a call was answered.
// A call whose entry was dropped meanwhile, because too many came after it, is settled without a trace.
func (s *Sim) settleCall(c Call, kind string, out any) {
	switch a := out.(type) {
	case *answer:
		c.Result, c.TID = a.ResultCode, a.TID
	case *checkoutAnswer:
		c.Result = a.ResultCode
	case *refusal:
		c.Result = a.ResultCode
	}
	c.Fault = kind
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, found := slices.BinarySearchFunc(s.calls, c.Seq, func(c Call, seq int) int { return c.Seq - seq }); found {
		s.calls[i] = c
	}
}

// Calls are those that were received, in their order.
func (s *Sim) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call{}, s.calls...)
}
