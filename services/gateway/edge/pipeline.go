package edge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/catalog"
)

// Gateway is the edge and what it needs.
type Gateway struct {
	// Authenticators are those of the kinds of credential; tools take tool.KeyCredential.
	Authenticators map[string]Authenticator
	Limiter        Limiter
	Catalog        *catalog.Catalog
	Services       Services
	Audit          Recorder
	// Refused counts the refusals of those whom no limit is charged for; nil records each.
	Refused *audit.Tally
	Logger  *slog.Logger
	// Failures is the limit on what does not hold of one client's network: credentials, links.
	Failures Rate
	// TrustedHops is how many proxies in front of the gateway append to X-Forwarded-For.
	TrustedHops int

	failed failureGuard
}

// Services finds the client of a service by name; nil when there is none.
type Services interface {
	Client(service string) *remote.Client
}

// Recorder keeps a row of what was refused at the edge, best effort.
type Recorder interface{ Queue(audit.Entry) }

// Stage is one check of a call: it returns the context of what follows, or why the call ends here.
type Stage func(context.Context, *Call) (context.Context, error)

// middleware goes on when the check holds.
func (check Stage) middleware(next endpoint.Endpoint) endpoint.Endpoint {
	return func(ctx context.Context, request any) (any, error) {
		ctx, err := check(ctx, request.(*Call))
		if err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// Pipeline is the way of every call whose credential a judges, from a *Call to what last answers, in the order
// of the checks: what fails first is what the caller hears of. What the credential allows, and its limits, are a's own
// Stages, between the lookup of the tool and its input. A transport makes the Call of what it has read, ends with
// Route, and writes the Answer or the failure in its own form.
func (g *Gateway) Pipeline(a Authenticator, last endpoint.Endpoint) endpoint.Endpoint {
	stages := slices.Concat([]Stage{capBody, g.authenticate(a), g.lookup}, a.Stages(g), []Stage{authorized, requireKey, g.validate, deadline})
	return g.chain(last, stages...)
}

// Listing is the way of a catalog or detail request: it ends with the credential known
// and counted against its limits.
func (g *Gateway) Listing(a Authenticator, last endpoint.Endpoint) endpoint.Endpoint {
	return g.chain(last, g.authenticate(a), g.Limit)
}

// chain puts stages in front of what last does: outermost the span, then the record of refusals, then the end of a panic. So a
// panic is recorded as a refusal with E_INTERNAL is.
func (g *Gateway) chain(last endpoint.Endpoint, stages ...Stage) endpoint.Endpoint {
	middlewares := []endpoint.Middleware{g.record, rpc.Recover(g.Logger)}
	for _, s := range stages {
		middlewares = append(middlewares, s.middleware)
	}
	return endpoint.Chain(observe, middlewares...)(last)
}

// observe makes the span of a call.
func observe(next endpoint.Endpoint) endpoint.Endpoint {
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
		if c := request.(*Call); err != nil && (c.Input == nil || remote.Unanswered(err) || fault.Shed(err)) {
			e := audit.Entry{At: c.Started, Caller: c.Caller, Tool: c.Name, Outcome: audit.Outcome(err), Took: time.Since(c.Started),
				TraceID: audit.TraceID(ctx)}
			e.Caller.RequestID = c.RequestID
			from, address := c.Caller.CredentialID, ""
			if from == "" {
				from, address = caller.Network(c.Address), c.Address
			}
			charged := len(c.Limits.States) > 0 && c.Limits.Refused == "" && c.Caller.Kind != caller.Visitor && !fault.Shed(err)
			if charged || !g.Refused.Counted(from, e) {
				// What is only counted costs no more than that.
				e.Detail = audit.Refusal{Refused: audit.ToldOf(err), Address: address}
				g.Audit.Queue(e)
			}
		}
		return response, err
	}
}

// capBody refuses a declared length over the cap before anything else is read;
// an undeclared one is held to it while it is read.
func capBody(ctx context.Context, c *Call) (context.Context, error) {
	limit := int64(tool.DefaultMaxBody)
	if e := c.Find(); e != nil {
		limit = e.Spec.MaxBody
	}
	if c.BodyLength > limit {
		return ctx, rpc.TooLarge(limit)
	}
	return ctx, nil
}

// authenticate asks a who calls.
func (g *Gateway) authenticate(a Authenticator) Stage {
	return func(ctx context.Context, c *Call) (context.Context, error) {
		p, err := g.Authenticate(ctx, a, c)
		c.Principal = p // also of a refusal, as far as it is known: for its record
		if err != nil {
			return ctx, g.refuseCredential(ctx, c, err)
		}
		return caller.With(ctx, p.Caller), nil
	}
}

// lookup finds the tool or the route, or refuses with E_NOT_FOUND.
func (g *Gateway) lookup(ctx context.Context, c *Call) (context.Context, error) {
	if c.Entry = c.Find(); c.Entry == nil {
		return ctx, g.Catalog.Unknown(c.Name)
	}
	return ctx, nil
}

// Scope refuses a caller without the scope of the tool with E_SCOPE.
func (g *Gateway) Scope(ctx context.Context, c *Call) (context.Context, error) {
	if !c.Caller.Holds(c.Entry.Spec.Scope) {
		return ctx, missingScope(c.Entry)
	}
	c.authorized = true
	return ctx, nil
}

// Unscoped is in the place of Scope for a credential that has none: whoever calls may.
func Unscoped(ctx context.Context, c *Call) (context.Context, error) {
	c.authorized = true
	return ctx, nil
}

// authorized refuses a call whose credential's stages have not judged what it may call: a defect, and so E_INTERNAL.
func authorized(ctx context.Context, c *Call) (context.Context, error) {
	if !c.authorized {
		return ctx, errors.New("no stage of the credential has authorized the call of " + c.Entry.Spec.Name)
	}
	return ctx, nil
}

// missingScope is E_SCOPE, with the scope in its details.
func missingScope(e *catalog.Entry) error {
	return fault.New(fault.Scope, "The credential lacks the scope %q that %s needs.", e.Spec.Scope, e.Spec.Name).
		With(map[string]string{"scope": e.Spec.Scope})
}

// Limit charges the call to its buckets, or refuses with E_RATE_LIMIT. A call is charged once: what its transport has charged before
// it read the body stays decided.
func (g *Gateway) Limit(ctx context.Context, c *Call) (context.Context, error) {
	if c.Limits.States == nil {
		c.Limits = g.Limiter.Take(ctx, c.buckets())
	}
	return ctx, c.Limits.Refusal()
}

// requireKey holds the Idempotency-Key to what the tool says of it.
func requireKey(ctx context.Context, c *Call) (_ context.Context, err error) {
	switch rule := c.Entry.KeyRule(); {
	case rule == tool.KeyIgnored || rule == tool.KeyOptional && !c.HasKey:
		c.IdempotencyKey = ""
	case slices.Contains(c.Repeated, tool.KeyHeader):
		err = c.refuseRepeated(tool.KeyHeader)
	case !c.HasKey:
		err = badKey("is required for a call that writes: send a new UUID per intended write, and the same one when you retry it")
	default:
		c.IdempotencyKey, err = idempotencyKey(c.IdempotencyKey)
	}
	return ctx, err
}

// validate reads the input and holds it to the tool's schema. Its owner does so again.
func (g *Gateway) validate(ctx context.Context, c *Call) (context.Context, error) {
	input, err := c.Read(ctx, c.Entry.Spec.MaxBody)
	if err != nil {
		return ctx, err
	}
	if f := c.Entry.Validate(ctx, input); f != nil {
		return ctx, g.Catalog.Elsewhere(c.Entry, f)
	}
	c.Input = input
	return ctx, nil
}

// deadline begins when the input is there: what a slow line takes to send it is bounded by its
// progress, and not taken from the time that the tool has.
func deadline(ctx context.Context, c *Call) (context.Context, error) {
	ctx, c.cancel = context.WithTimeout(ctx, c.Entry.Spec.Timeout())
	return ctx, nil
}

// ownStatements is the scope of tools that run what their caller has written (CONTRACT.md 3.2).
const ownStatements = "sql"

// Route is the end of a pipeline: it hands the call to its owner, and returns an *Answer. The deadline travels on, and the
// data comes back as a stream that the transport copies.
func (g *Gateway) Route(ctx context.Context, request any) (any, error) {
	c := request.(*Call)
	client := g.Services.Client(c.Entry.Service)
	if client == nil {
		return nil, UnknownService(c.Entry.Service)
	}
	r := remote.Request{Path: rpc.ToolPath(c.Name), Body: c.Input, IdempotencyKey: c.IdempotencyKey, DeriveKey: c.DeriveKey,
		MostBytes: c.MostBytes, Retry: !c.Entry.Spec.Write, Stream: !c.Entry.Raw(), Uneven: c.Entry.Spec.Scope == ownStatements}
	if c.Entry.Route != nil {
		r.Path, r.Success = rpc.RoutePath(c.Name), c.Entry.Route.Success
	}
	response, err := client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Answer{response}, nil
}

// UnknownService is the refusal (E_DB) of what is owned by a service that the gateway has no client of.
func UnknownService(name string) error {
	return fault.New(fault.DB, "The %s service is not known to this gateway yet.", name).After(time.Second)
}
