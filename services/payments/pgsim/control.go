package pgsim

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// controlled lets only those in who know the secret: whoever reaches the control API decides what was paid. With
// OpenControl a program of this machine is let in, too.
// A wrong token is refused also with OpenControl: who sends one means to be known.
func (s *Sim) controlled(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if (!found || !same(token, s.c.Secret)) && !(s.c.OpenControl && !found && local(r)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			write(w, http.StatusUnauthorized, problem{"the control API wants Authorization: Bearer HUB_PGSIM_SECRET"})
			return
		}
		next(w, r)
	}
}

// local tells whether a program of this machine asks. A loopback peer is not enough: a page in a browser is one, of
// whatever site, and whatever name that has made its browser resolve to here. A browser says so of itself.
// Origin and Sec-Fetch-Site are headers of which a page's script cannot leave out both, and the Host is checked against DNS
// rebinding.
func local(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	host, _, split := net.SplitHostPort(r.Host)
	if split != nil {
		host = r.Host
	}
	named, other := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && peer.Addr().Unmap().IsLoopback() && (host == "localhost" || other == nil && named.IsLoopback()) &&
		r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("X-Forwarded-For") == ""
}

// problem is why the control API does not do something.
type problem struct {
	Error string `json:"error"`
}

// command is what any action can be told.
// Members that no action has are refused, so that a misspelt one does not pass for the default.
type command struct {
	// OrderID names the order; what needs none ignores it.
	OrderID string `json:"orderId"`
	// Amount is in won, At when a deposit came, and Times how often its webhook is sent.
	Amount     int64     `json:"amount"`
	At         time.Time `json:"at"`
	Times      int       `json:"times"`
	RefundCode string    `json:"refundCode"`
	URL        string    `json:"url"`
	Fault
}

// act does what the control API is asked to: an empty object is the answer, or {"error": …} with 400, 404 or 409.
// 400 is a body that cannot be read, 404 an action that does not exist, 409 one that is refused, mostly for the state of
// the order.
func (s *Sim) act(w http.ResponseWriter, r *http.Request) {
	var c command
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err == nil && len(bytes.TrimSpace(body)) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&c)
	}
	if err != nil {
		write(w, http.StatusBadRequest, problem{err.Error()})
		return
	}
	c.Fault.Times = c.Times
	act := s.actions(r, c)[r.PathValue("action")]
	if act == nil {
		write(w, http.StatusNotFound, problem{"there is no such action"})
		return
	}
	if err := act(); err != nil {
		write(w, http.StatusConflict, problem{err.Error()})
		return
	}
	write(w, http.StatusOK, struct{}{})
}

// actions are what POST /_control/{action} can do.
// A new action is a line here and a method: the HTTP side has no more to say about it.
func (s *Sim) actions(r *http.Request, c command) map[string]func() error {
	return map[string]func() error{
		"issue":             func() error { return s.Issue(c.OrderID) },
		"pay":               func() error { return s.Pay(c.OrderID) },
		"fail":              func() error { return s.Fail(c.OrderID) },
		"deposit":           func() error { return s.Deposit(c.OrderID, c.Amount, c.At, c.Times) },
		"reverse":           func() error { return s.Reverse(c.OrderID) },
		"console-cancel":    func() error { return s.ConsoleCancel(c.OrderID, c.Amount) },
		"fail-refund-later": func() error { return s.FailRefundLater(c.RefundCode) },
		"same-account":      func() error { return s.SameAccount(c.OrderID) },
		"tell":              func() error { return s.Tell(c.OrderID) },
		"test-webhook":      func() error { s.TestWebhook(); return nil },
		"webhook-url":       func() error { return s.SetWebhookURL(c.URL) },
		"fault":             func() error { return s.Arm(c.Fault) },
		"heal":              func() error { s.Heal(); return nil },
		"settle":            func() error { return s.Settle(r.Context()) },
	}
}

// show answers what the simulator knows: calls, payments or webhooks; ?orderId= keeps to one order.
// The lists are whole: there is no page of them, and calls and webhooks are those that are remembered (maxCalls).
func (s *Sim) show(w http.ResponseWriter, r *http.Request) {
	only := r.URL.Query().Get("orderId")
	switch r.PathValue("what") {
	case "calls":
		write(w, http.StatusOK, slices.DeleteFunc(s.Calls(), func(c Call) bool { return only != "" && c.OrderID != only }))
	case "payments":
		write(w, http.StatusOK, slices.DeleteFunc(s.Payments(), func(t Truth) bool { return only != "" && t.OrderID != only }))
	case "webhooks":
		write(w, http.StatusOK, slices.DeleteFunc(s.Webhooks(), func(h Webhook) bool { return only != "" && h.OrderID != only }))
	default:
		write(w, http.StatusNotFound, problem{"there are calls, payments and webhooks"})
	}
}
