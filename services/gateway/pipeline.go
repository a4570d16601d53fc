package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
)

// Gateway is the edge and what it needs.
type Gateway struct {
	// Authenticators are those of the kinds of credential; tools take tool.KeyCredential.
	Authenticators map[string]Authenticator
	Limiter        Limiter
	Catalog        *Catalog
	Services       Services
	Audit          Recorder
	// Refused counts the refusals of those whom no limit is charged for; nil records each.
	Refused *audit.Tally
	Logger  *slog.Logger
	// Failures is the limit on what does not hold of one client's network: credentials, links.
	Failures Rate
	// Console is the part for people; nil serves none.
	Console *Console
	// TrustedHops is how many proxies in front of the gateway append to X-Forwarded-For.
	TrustedHops int

	doubt doubt
}

// Services finds the client of a service by name; nil when there is none.
type Services interface {
	Client(service string) *remote.Client
}

// Recorder keeps a row of what was refused at the edge, best effort.
type Recorder interface{ Queue(audit.Entry) }

// Pipeline is the way of every call whose credential a judges, from a *Call to an *Answer, in the order
// of the checks: what fails first is what the caller hears of. A transport makes the Call of what it has
// read, and writes the Answer or the failure in its own form.
func (g *Gateway) Pipeline(a Authenticator) endpoint.Endpoint {
	stages := []endpoint.Middleware{
		g.observe,
		g.record,
		hop.Recover(g.Logger),
		g.capBody,
		g.authenticate(a),
		g.lookup,
		g.authorize,
		g.limit,
		g.admit,
		g.requireKey,
		g.validate,
		g.deadline,
	}
	return chain(stages, g.route)
}

// Listing is the way of a catalog or detail request: it ends with the credential known
// and counted against its limits.
func (g *Gateway) Listing(a Authenticator, last endpoint.Endpoint) endpoint.Endpoint {
	return chain([]endpoint.Middleware{g.observe, g.record, hop.Recover(g.Logger), g.authenticate(a), g.limit}, last)
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
// it was refused before or by it, can be made without end, and one without a credential by
// anybody: those are counted.
func (g *Gateway) record(next endpoint.Endpoint) endpoint.Endpoint {
	return func(ctx context.Context, request any) (any, error) {
		response, err := next(ctx, request)
		if c := request.(*Call); err != nil && (c.Input == nil || remote.Unanswered(err)) {
			e := audit.Entry{At: c.Started, Caller: c.Caller, Tool: c.Name, Outcome: audit.Outcome(err), Took: time.Since(c.Started),
				TraceID: audit.TraceID(ctx)}
			e.Caller.RequestID = c.RequestID
			from := c.Caller.CredentialID
			if from == "" {
				from, e.Detail = caller.Network(c.Address), map[string]string{"address": c.Address}
			}
			charged := len(c.Limits.States) > 0 && c.Limits.Refused == "" && c.Caller.Kind != caller.Visitor
			if charged || !g.Refused.Counted(from, e) {
				g.Audit.Queue(e)
			}
		}
		return response, err
	}
}

// capBody refuses a declared length over the cap before anything else is read;
// an undeclared one is held to it while it is read.
func (g *Gateway) capBody(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		limit := int64(tool.DefaultMaxBody)
		if e := c.Find(); e != nil {
			limit = e.Spec.MaxBody
		}
		if c.BodyLength > limit {
			return ctx, hop.TooLarge(limit)
		}
		return ctx, nil
	})(next)
}

func (g *Gateway) authenticate(a Authenticator) endpoint.Middleware {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		p, err := g.Authenticate(ctx, a, c)
		c.Principal = p // also of a refusal, as far as it is known: for its record
		if err != nil {
			return ctx, g.refused(ctx, c, err)
		}
		return caller.With(ctx, p.Caller), nil
	})
}

func (g *Gateway) lookup(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		if c.Entry = c.Find(); c.Entry == nil {
			return ctx, g.Catalog.unknown(c.Name)
		}
		return ctx, nil
	})(next)
}

func (g *Gateway) authorize(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		if c.Admit != nil {
			return ctx, nil
		}
		return ctx, c.Entry.Authorize(c.Caller)
	})(next)
}

// Authorize is nil, or E_SCOPE for a caller without the scope.
func (e *Entry) Authorize(c caller.Caller) error {
	if !c.Holds(e.Spec.Scope) {
		return missingScope(e)
	}
	return nil
}

func missingScope(e *Entry) error {
	return fault.New(fault.Scope, "The credential lacks the scope %q that %s needs.", e.Spec.Scope, e.Spec.Name).
		With(map[string]string{"scope": e.Spec.Scope})
}

func (g *Gateway) limit(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		c.Limits = g.Limiter.Take(ctx, c.buckets())
		return ctx, c.Limits.Refusal()
	})(next)
}

func (g *Gateway) admit(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		if c.Admit == nil {
			return ctx, nil
		}
		admitted, err := c.Admit(ctx, c.Entry)
		if err != nil {
			return ctx, err
		}
		c.Caller = admitted
		return caller.With(ctx, admitted), nil
	})(next)
}

func (g *Gateway) requireKey(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (_ context.Context, err error) {
		switch rule := c.Entry.key(); {
		case rule == tool.KeyIgnored || rule == tool.KeyOptional && !c.HasKey:
			c.IdempotencyKey = ""
		case slices.Contains(c.Repeated, tool.KeyHeader):
			err = c.once(tool.KeyHeader)
		case !c.HasKey:
			err = badKey("is required for a call that writes: send a new UUID per intended write, and the same one when you retry it")
		default:
			c.IdempotencyKey, err = idempotencyKey(c.IdempotencyKey)
		}
		return ctx, err
	})(next)
}

func (g *Gateway) validate(next endpoint.Endpoint) endpoint.Endpoint {
	return stage(func(ctx context.Context, c *Call) (context.Context, error) {
		input, err := c.Read(ctx, c.Entry.Spec.MaxBody)
		if err != nil {
			return ctx, err
		}
		if f := c.Entry.Validate(ctx, input); f != nil {
			return ctx, f
		}
		c.Input = input
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

// route hands the call to its owner. The deadline travels on, and the data
// comes back as a stream that the transport copies.
func (g *Gateway) route(ctx context.Context, request any) (any, error) {
	c := request.(*Call)
	client := g.Services.Client(c.Entry.Service)
	if client == nil {
		return nil, fault.New(fault.DB, "The %s service is not known to this gateway yet.", c.Entry.Service).After(time.Second)
	}
	response, err := client.Do(ctx, c.Entry.request(c))
	if err != nil {
		return nil, err
	}
	if c.Entry.raw() {
		answer, err := readRaw(response, c.Entry.Route)
		if err != nil {
			return nil, fmt.Errorf("raw answer of %s to %s: %w", c.Entry.Service, c.Name, err)
		}
		return answer, nil
	}
	if c.Entry.Route != nil {
		if err := settle(response); err != nil {
			_ = response.Data.Close()
			return nil, fmt.Errorf("answer of %s to %s: %w", c.Entry.Service, c.Name, err)
		}
	}
	return &Answer{response}, nil
}

// printable is a caller's text in a message.
func printable(s string) string { return text.Shown(s, 64) }
