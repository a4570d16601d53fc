package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// Names in _meta.
const (
	keyMeta      = "hub/idempotencyKey"
	requestMeta  = "hub/requestId"
	countMeta    = "hub/count"
	tookMeta     = "hub/tookMs"
	replayedMeta = "hub/replayed"
	nowMeta      = "hub/now"
	zoneMeta     = "hub/timeZone"
	newestMeta   = "hub/newest"
)

// codeRefused is the JSON-RPC error of what Hub refuses and what is no call; its data is the failure envelope.
const codeRefused = -32000

// receive is where the protocol hands a message over. Each is charged to its key's limits, the first as the request that it came in,
// but for notifications, which ask for nothing.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		x := exchangeOf(ctx)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(x.in.Context(), cancel)() // who has gone needs no answer
		switch method {
		case callMethod:
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
				ctx = context.WithValue(ctx, nameKey{}, p.Name)
				p.Name = placeholderTool
			}
			return next(ctx, method, req)
		case "tools/list":
			return s.listTools(ctx, x)
		case "notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed":
			return next(ctx, method, req)
		}
		c := x.call(s.gateway)
		if _, err := s.other(ctx, c); err != nil {
			return nil, s.refused(ctx, c, codeRefused, err)
		}
		return s.withInstructions(next(ctx, method, req))
	}
}

// refused is a failure as an error of the protocol.
func (s *Server) refused(ctx context.Context, c *edge.Call, code int64, err error) error {
	f := s.gateway.Fault(ctx, c, err)
	return &jsonrpc.Error{Code: code, Message: f.Message, Data: c.Failure(f)}
}

// placeholderTool is the one tool that the protocol knows: what is called in truth is in the context (nameKey), and the
// catalog's to find.
const placeholderTool = "call"

// nameKey is where a context has the name of the tool that is called.
type nameKey struct{}

// callAny is a call as the protocol hands it over.
func (s *Server) callAny(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	x, name := exchangeOf(ctx), ctx.Value(nameKey{}).(string)
	var place struct{ Slot int }
	if json.Unmarshal(req.Params.Arguments, &place) != nil || place.Slot >= len(x.messages) || name == "" {
		return nil, protocolError(jsonrpc.CodeInvalidParams, errNoName)
	}
	return s.callTool(ctx, x, place.Slot, name, req.Params.GetMeta())
}

// callTool is a call of the pipeline. A failure is a result that its model can read, but for a tool that nobody has.
func (s *Server) callTool(ctx context.Context, x *exchange, slot int, name string, meta map[string]any) (*mcp.CallToolResult, error) {
	m := x.messages[slot]
	c := x.call(s.gateway)
	c.Name, c.MostBytes = name, readable
	input := []byte(m.arguments)
	if m.arguments == nil || m.arguments.Kind() == 'n' {
		input = []byte("{}")
	}
	c.BodyLength = int64(len(input))
	c.Transport = transport{s.gateway.Catalog, name, input}
	if id, ok := meta[requestMeta].(string); ok && caller.ValidRequestID(id) {
		c.RequestID = id
	}
	x.idempotency(c, meta)
	response, err := s.call(continueTrace(ctx, meta), c)
	if err == nil {
		answer := response.(*edge.Answer)
		var data *payload
		if data, err = x.collect(caller.With(ctx, c.Caller), answer.Response); err == nil {
			return s.result(x, slot, c, data, answer), nil
		}
	}
	if c.Entry == nil && fault.From(err).Code == fault.NotFound {
		return nil, s.refused(ctx, c, jsonrpc.CodeInvalidParams, err)
	}
	return s.result(x, slot, c, &payload{kept: c.Failure(s.gateway.Fault(ctx, c, err))}, nil), nil
}

// transport is a call of a message.
type transport struct {
	catalog *catalog.Catalog
	name    string
	input   []byte
}

// Find implements edge.Transport.
func (t transport) Find() *catalog.Entry { return t.catalog.Entry(t.name) }

// Read implements edge.Transport. The pipeline has held the length of the input to its bound.
func (t transport) Read(context.Context, int64) ([]byte, error) { return t.input, nil }

// result is what a call is answered: data in the envelope's place, or the failure envelope when there is no answer.
func (s *Server) result(x *exchange, slot int, c *edge.Call, data *payload, a *edge.Answer) *mcp.CallToolResult {
	value, text := x.keep(slot, data)
	if a != nil && readsStructured(x.in.Header) {
		text = summary(c.Name, a.Count, data.length())
	}
	r := &mcp.CallToolResult{StructuredContent: value, Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: a == nil}
	r.Meta = mcp.Meta{requestMeta: c.RequestID, tookMeta: c.Took()}
	s.tellsNow(r.Meta)
	if a != nil {
		r.Meta[countMeta] = a.Count
		if a.Replayed {
			r.Meta[replayedMeta] = true
			if c.DeriveKey {
				r.Content = append(r.Content, &mcp.TextContent{Text: replayNotice(a.Age)})
			}
		}
	}
	return r
}

const (
	// structuredSince is the first revision whose clients know structuredContent.
	structuredSince = "2025-06-18"
	// readable is how many bytes of data a model is given at once: of what hosts let in, about half. An owner that can ends its answer
	// there, and says how to read on; of the others a text says it.
	readable = 40_000
)

// readsStructured tells that a client says that it speaks a revision with structuredContent: it needs no copy of it as text.
func readsStructured(h http.Header) bool { return h.Get("Mcp-Protocol-Version") >= structuredSince }

// summary is the text of a result whose data stand beside it.
func summary(name string, count, bytes int) string {
	text := fmt.Sprintf("%s: the answer is structuredContent (count %d).", name, count)
	if bytes > readable {
		text += fmt.Sprintf(" It has %d kB, which a host may cut: ask for less at once, by a smaller limit and an offset or by narrower filters.",
			bytes/1000)
	}
	return text
}

// idempotency is the key of a call that writes: of its _meta, or of the request's header when it holds one message. A client that
// sends none has a new one, and leaves it to the owner of the tool to make one of the call itself, so that the same call again is
// answered as the first was for ten minutes; a tool that replaces something has none made (tool.Spec.Replaces).
func (x *exchange) idempotency(c *edge.Call, meta map[string]any) {
	key, sent := meta[keyMeta]
	if sent || x.batch {
		c.Repeated = nil // the headers do not say it
	}
	switch text, isText := key.(string); {
	case sent && isText:
		c.IdempotencyKey, c.HasKey = text, true
	case sent:
		c.IdempotencyKey, c.HasKey = "", true // refused for its form
	case c.HasKey && !x.batch:
	default:
		c.IdempotencyKey, c.HasKey = "", false
		if e := c.Find(); e != nil && e.Spec.Write {
			c.IdempotencyKey, c.HasKey, c.DeriveKey = "mcp-"+rand.Text(), true, true
		}
	}
}

// replayNotice says to a model, which reads no _meta, that its call was not made again.
func replayNotice(ago time.Duration) string {
	when := "a moment ago"
	switch {
	case ago >= 2*time.Minute:
		when = fmt.Sprintf("%d minutes ago", ago/time.Minute)
	case ago >= 2*time.Second:
		when = fmt.Sprintf("%d seconds ago", ago/time.Second)
	}
	return "This is the answer to the same call, made " + when + "; nothing was written again. Send " + keyMeta +
		" in _meta, new with each intended write, to write it a second time."
}

// continueTrace continues the trace that a message names in its _meta (SEP-414).
func continueTrace(ctx context.Context, meta map[string]any) context.Context {
	carrier := propagation.MapCarrier{}
	for _, name := range []string{"traceparent", "tracestate", "baggage"} {
		if text, ok := meta[name].(string); ok {
			carrier[name] = text
		}
	}
	if carrier["traceparent"] == "" {
		return ctx
	}
	return otel.GetTextMapPropagator().Extract(ctx, carrier)
}
