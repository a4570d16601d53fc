package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
)

// Gateway is the edge and what it needs.
type Gateway struct {
	Keys     KeyVerifier
	Limiter  Limiter
	Catalog  *Catalog
	Services Services
	Audit    Recorder
	// Refused counts the refusals of those whom no limit is charged for; nil records each.
	Refused *audit.Tally
	Logger  *slog.Logger
	// Failures is the limit on failed credentials of one client's network.
	Failures Rate
	// Console is the part for people; nil serves none.
	Console *Console
	// TrustedHops is how many proxies in front of the gateway append to X-Forwarded-For.
	TrustedHops int
}

// Services finds the client of a service by name; nil when there is none.
type Services interface {
	Client(service string) *remote.Client
}

// Recorder keeps a row of what was refused at the edge, best effort.
type Recorder interface{ Queue(audit.Entry) }

// Pipeline is the way of a tool call, in the order of the checks: what fails first is
// what the caller hears of.
func (g *Gateway) Pipeline() endpoint.Endpoint {
	stages := []endpoint.Middleware{
		g.observe,
		g.record,
		hop.Recover(g.Logger),
		g.capBody,
		g.authenticate,
		g.lookup,
		g.authorize,
		g.limit,
		g.requireKey,
		g.validate,
		g.deadline,
	}
	return chain(stages, g.route)
}

// Listing is the way of a catalog or detail request: it ends with the credential known
// and counted against its limits.
func (g *Gateway) Listing(last endpoint.Endpoint) endpoint.Endpoint {
	return chain([]endpoint.Middleware{g.observe, g.record, hop.Recover(g.Logger), g.authenticate, g.limit}, last)
}

func chain(stages []endpoint.Middleware, last endpoint.Endpoint) endpoint.Endpoint {
	for i := len(stages) - 1; i >= 0; i-- {
		last = stages[i](last)
	}
	return last
}

// stage turns a check into a middleware that goes on when the check holds.
func stage(check func(context.Context, *Call) (context.Context, error)) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			ctx, err := check(ctx, request.(*Call))
			if err != nil {
				return nil, err
			}
			return next(ctx, request)
		}
	}
}

func (g *Gateway) observe(next endpoint.Endpoint) endpoint.Endpoint {
	return telemetry.EndpointBy("gateway", func(request any) string {
		if c := request.(*Call); c.Entry != nil {
			return "gateway " + c.Entry.Spec.Name
		}
		return "gateway"
	})(next)
}

// record keeps what was refused here, or got no answer from its owner; what a service
// has answered is in that service's own rows. A call that was charged to no limit, because
// it was refused before or by it, can be made without end: those are counted.
func (g *Gateway) record(next endpoint.Endpoint) endpoint.Endpoint {
	return func(ctx context.Context, request any) (any, error) {
		response, err := next(ctx, request)
		if c := request.(*Call); err != nil && (c.Input == nil || remote.Unanswered(err)) {
			e := audit.Entry{At: c.Started, Caller: c.Caller, Tool: c.Tool, Outcome: audit.Outcome(err), Took: time.Since(c.Started)}
			e.Caller.RequestID = c.RequestID
			from := c.Key.ID
			if from == "" {
				from, e.Detail = caller.Network(c.Address), map[string]string{"address": c.Address}
			}
			charged := len(c.Limits.States) > 0 && c.Limits.Refused == ""
			if charged || !g.Refused.Counted(from, e) {
				g.Audit.Queue(e)
			}
		}
		return response, err
	}
}

// capBody refuses a declared length over the tool's cap before anything else is read;
// an undeclared one is held to it while it is read.
func (g *Gateway) capBody(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		limit := int64(tool.DefaultMaxBody)
		if e := g.Catalog.Entry(c.Tool); e != nil {
			limit = e.Spec.MaxBody
		}
		if c.BodyLength > limit {
			return ctx, hop.TooLarge(limit)
		}
		return ctx, nil
	})(next)
}

func (g *Gateway) authenticate(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		key, err := g.verify(ctx, c.Credential)
		if err != nil {
			if code := fault.From(err).Code; code == fault.AuthInvalid || code == fault.AuthRevoked {
				if limited := g.countFailure(ctx, c.Address); limited != nil {
					return ctx, limited
				}
			}
			return ctx, err
		}
		c.Key = key
		c.Caller = caller.Caller{Kind: caller.Key, Service: key.Service, ExternalUserID: key.ID, CredentialID: key.ID, Scopes: key.Scopes, RequestID: c.RequestID}
		if c.ExternalUserID != "" {
			if err := validExternalUser(c.ExternalUserID); err != nil {
				return ctx, err
			}
			c.Caller.ExternalUserID = c.ExternalUserID
		}
		return caller.With(ctx, c.Caller), nil
	})(next)
}

func (g *Gateway) lookup(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		if c.Entry = g.Catalog.Entry(c.Tool); c.Entry == nil {
			return ctx, g.Catalog.unknown(c.Tool)
		}
		return ctx, nil
	})(next)
}

func (g *Gateway) authorize(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		if scope := c.Entry.Spec.Scope; !c.Caller.Holds(scope) {
			return ctx, fault.New(fault.Scope, "The credential lacks the scope %q that %s needs.", scope, c.Tool).With(map[string]string{"scope": scope})
		}
		return ctx, nil
	})(next)
}

func (g *Gateway) limit(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		c.Limits = g.Limiter.Take(ctx, c.Key.buckets(c.Caller))
		return ctx, c.Limits.Refusal()
	})(next)
}

func (g *Gateway) requireKey(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		if !c.Entry.Spec.Write {
			c.IdempotencyKey = ""
			return ctx, nil
		}
		if !c.HasKey {
			return ctx, badKey("is required for a tool that writes: send a new UUID per intended write, and the same one when you retry it")
		}
		key, err := idempotencyKey(c.IdempotencyKey)
		c.IdempotencyKey = key
		return ctx, err
	})(next)
}

func (g *Gateway) validate(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		body, err := c.ReadBody(ctx, c.Entry.Spec.MaxBody)
		if err != nil {
			return ctx, err
		}
		if f := c.Entry.Validate(body); f != nil {
			return ctx, f
		}
		c.Input = body
		return ctx, nil
	})(next)
}

// deadline begins when the input is there: what a slow line takes to send it is bounded by its
// progress, and not taken from the time that the tool has.
func (g *Gateway) deadline(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		ctx, c.end = context.WithTimeout(ctx, c.Entry.Spec.Timeout())
		return ctx, nil
	})(next)
}

// route hands the call to the tool's owner. The deadline travels on, and the data
// comes back as a stream that the transport copies.
func (g *Gateway) route(ctx context.Context, request any) (any, error) {
	c := request.(*Call)
	client := g.Services.Client(c.Entry.Service)
	if client == nil {
		return nil, fault.New(fault.DB, "The %s service is not known to this gateway yet.", c.Entry.Service).After(time.Second)
	}
	response, err := client.Do(ctx, remote.Request{Path: hop.ToolPath(c.Tool), Body: c.Input, IdempotencyKey: c.IdempotencyKey, Retry: !c.Entry.Spec.Write, Stream: true})
	if err != nil {
		return nil, err
	}
	return &Answer{response}, nil
}

func validExternalUser(id string) error {
	if len(id) <= 200 {
		ok := true
		for i := range len(id) {
			ok = ok && id[i] >= 0x20 && id[i] <= 0x7e
		}
		if ok {
			return nil
		}
	}
	const message = "must have 1 to 200 printable characters"
	return fault.New(fault.Validation, "The header X-External-User-Id %s.", message).
		With(map[string]any{"violations": []schema.Violation{{Rule: "externalUserId", Message: "the header X-External-User-Id " + message}}})
}

// printable keeps a caller's text short and free of control characters in a message.
func printable(s string) string {
	const longest = 64
	out := make([]rune, 0, longest)
	for _, r := range s {
		if len(out) == longest {
			break
		}
		if r < 0x20 || r == 0x7f {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
