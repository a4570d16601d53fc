package caller

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"hub.internal/pkg/fault"
)

// The headers of a call from process to process.
const (
	// Header carries the token of the process that calls; the gateway's says for whom.
	Header = "Hub-Token"
	// ShownHeader carries, without its proof, the token with which somebody has called the
	// service that calls.
	ShownHeader = "Hub-Caller-Token"
	// RequestHeader carries the request id.
	RequestHeader = "Hub-Request-Id"
)

// Present sets the headers of a call to the audience. The gateway presents the caller of ctx;
// a service presents itself, and shows the token of the caller of ctx when the operation needs
// to know for whom it is, and there is one.
func (k *Keys) Present(ctx context.Context, h http.Header, audience string, show bool) error {
	c := carriedBy(ctx)
	who := c.Caller
	if who.Kind == Service || !maySay(k.process, who.Kind) {
		who = Itself(k.process)
		if show && c.shown != "" {
			h.Set(ShownHeader, c.shown)
		}
	}
	token, err := k.mint(who, audience)
	if err != nil {
		return err
	}
	h.Set(Header, token)
	if ValidRequestID(c.RequestID) {
		h.Set(RequestHeader, c.RequestID)
	}
	return nil
}

// Accept judges the headers of a call to an operation with this rule, and returns a context
// with its caller: the one whose token is shown, else the one who is presented. It returns
// E_AUTH_MISSING for no token, E_AUTH_INVALID for one that does not hold here, and E_SCOPE for
// one that holds but whom the operation does not take. A request id of another form is dropped.
func (k *Keys) Accept(ctx context.Context, h http.Header, takes Rule) (context.Context, error) {
	token := h.Get(Header)
	if token == "" {
		return nil, fault.New(fault.AuthMissing, "An internal token is required.")
	}
	s, err := k.open(token)
	if err != nil {
		return nil, err
	}
	c := callContext{Caller: s.caller}
	if shown := h.Get(ShownHeader); shown != "" {
		behind, err := k.openShown(shown, s.issuer)
		if err != nil {
			return nil, err
		}
		c.Caller = behind.caller
	} else if c.Kind != Service {
		c.shown = s.signed
	}
	// What is kept is everybody's, and what is handed out the receiver's own.
	c.Scopes, c.Roles = slices.Clone(c.Scopes), slices.Clone(c.Roles)
	if !takes.takes(s.issuer, c.Kind) {
		return nil, fault.New(fault.Scope, "This operation is not for whoever called it.").
			Because(fmt.Errorf("%s presents the kind %q", s.issuer, c.Kind))
	}
	if id := h.Get(RequestHeader); ValidRequestID(id) {
		c.RequestID = id
	}
	return context.WithValue(ctx, key{}, c), nil
}
