package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/services/gateway/edge"
)

// exchange is one request, and what stands behind the words that the protocol is given for its parts.
type exchange struct {
	// first is the call of the request itself, in its connection's name; in is the request.
	first *edge.Call
	in    *http.Request
	// principal is whom the credential names, found out once for all messages; refusal is why the request gets no further.
	principal edge.Principal
	refusal   error
	batch     bool
	// messages are those of the body, in order; batch tells that they came as an array.
	messages []*message
	// outlivesCalls tells that the contexts of its calls do until the answer is written.
	outlivesCalls bool
	// placeholder begins every placeholder of this exchange; nobody outside can know it before it is used.
	placeholder string

	mu sync.Mutex
	// calls are those that were made; data is what they are answered, by message.
	calls []*edge.Call
	data  map[int]*payload
	// status and out are the protocol's answer.
	status int
	header http.Header
	out    bytes.Buffer
}

// exchangeKey is where a context has its exchange: the SDK hands the context on, and nothing else of ours.
type exchangeKey struct{}

// exchangeOf returns the exchange that a context belongs to. It panics without one, since serve gives every request one.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// newExchange begins the exchange of a request. Its call is that of its first message.
func newExchange(r *http.Request, c *edge.Call) *exchange {
	return &exchange{first: c, in: r, placeholder: rand.Text(), data: map[int]*payload{}, header: http.Header{}}
}

// read reads the body, of at most limit bytes, on the account of the caller.
func (x *exchange) read(ctx context.Context, limit int64) ([]byte, error) {
	return rpc.ReadBody(caller.With(ctx, x.principal.Caller), x.in.Body, x.in.ContentLength, limit)
}

// request is the request that the protocol is given.
func (x *exchange) request(ctx context.Context, r *http.Request) (*http.Request, *jsonrpc.Error) {
	var body bytes.Buffer
	for slot := range x.messages {
		given, err := x.given(ctx, slot)
		if err != nil {
			return nil, err
		}
		if slot > 0 {
			body.WriteByte(',')
		}
		body.Write(given)
	}
	b := body.Bytes()
	if x.batch {
		b = append(append([]byte{'['}, b...), ']')
	}
	r = r.Clone(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	if len(r.Header.Values("Accept")) == 0 {
		r.Header.Set("Accept", "*/*") // RFC 9110 section 12.5.1
	}
	return r, nil
}

// call makes the Call of a message.
func (x *exchange) call(g *edge.Gateway) *edge.Call {
	c := x.first
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.calls) > 0 {
		c = g.NewCall(x.in)
	}
	x.calls = append(x.calls, c)
	return c
}

// called tells whether the pipeline was asked for any of the messages.
func (x *exchange) called() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.calls) > 0
}

// end releases what the calls hold.
func (x *exchange) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, data := range x.data {
		data.end()
	}
	for _, c := range x.calls {
		c.End()
	}
}

// keep puts data behind the word of a message, and returns the words for it as a value and as text.
func (x *exchange) keep(slot int, data *payload) (value json.RawMessage, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.data[slot] = data
	n := strconv.Itoa(slot)
	return json.RawMessage(`"` + x.placeholder + "v" + n + `"`), x.placeholder + "t" + n
}

// collect is the data of an answer: they are kept, on the account of the caller, since they are written twice. Large ones
// of a call whose context lasts until then come as they are written the first time.
func (x *exchange) collect(ctx context.Context, a *remote.Response) (p *payload, err error) {
	p = &payload{}
	if a.Length >= 0 { // as it is but for an owner that streams
		if err = x.Hold(ctx, a.Length); err == nil {
			if x.outlivesCalls && a.Length > atOnce {
				return &payload{kept: make([]byte, 0, a.Length), rest: a.Data}, nil
			}
			p.kept = make([]byte, a.Length)
			_, err = io.ReadFull(a.Data, p.kept)
		}
	} else {
		p.kept, err = rpc.ReadBody(ctx, held{a.Data, x}, a.Length, maxData)
	}
	_ = a.Data.Close()
	if err != nil && fault.From(err).Code != fault.RateLimit {
		return nil, fault.New(fault.DB, "The answer could not be read to its end. Try again.").After(time.Second).Because(err)
	}
	return p, err
}

// maxData bounds the data of an answer of unknown length, in bytes.
const maxData = 256 << 20

// held is data whose bytes count as the request's body does.
type held struct {
	io.Reader
	*exchange
}

// Hold implements rpc.Holder. The calls of a batch take turns.
func (x *exchange) Hold(ctx context.Context, n int64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if holder, ok := x.in.Body.(rpc.Holder); ok {
		return holder.Hold(ctx, n)
	}
	return nil
}

// answer is where the protocol writes its own.
func (x *exchange) answer() http.ResponseWriter { return (*recorder)(x) }

// recorder is the http.ResponseWriter that the SDK writes its answer to: it is kept in the exchange until all of it is there.
type recorder exchange

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter; the first status counts.
func (r *recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

// Flush implements http.Flusher, which the protocol asks for; what it writes is sent when it has ended.
func (r *recorder) Flush() {}

// write writes the protocol's answer with the data in place of the words. When data do not come to their end, the connection
// is cut.
func (x *exchange) write(w http.ResponseWriter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := w.Header()
	if len(x.calls) == 0 || x.batch {
		x.first.Headers(w)
	} else {
		x.calls[0].Headers(w)
	}
	if allow := x.header.Get("Allow"); allow != "" {
		h.Set("Allow", allow)
	}
	if kind := x.header.Get("Content-Type"); kind != "" {
		h.Set("Content-Type", kind)
	} else {
		h.Del("Content-Type")
	}
	parts, length := x.splice()
	if x.out.Len() > 0 && length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if x.status != 0 {
		w.WriteHeader(x.status)
	}
	for _, p := range parts {
		if err := p.write(w); errors.Is(err, errCut) {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		} else if err != nil {
			return // the reader has gone
		}
	}
}

// plain makes a failure of the protocol, which it tells in a line of text, one of JSON-RPC: clients read that.
func (x *exchange) plain() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status < http.StatusBadRequest || x.header.Get("Content-Type") == "application/json" {
		return
	}
	code := int64(jsonrpc.CodeInvalidRequest)
	if bytes.HasPrefix(x.out.Bytes(), []byte("JSON RPC not handled")) {
		code = jsonrpc.CodeMethodNotFound
	}
	x.fail(&jsonrpc.Error{Code: code, Message: string(bytes.TrimSpace(x.out.Bytes()))})
}

// fail makes an error the answer of the request. x.mu is held.
func (x *exchange) fail(e *jsonrpc.Error) {
	x.header.Set("Content-Type", "application/json")
	x.out.Reset()
	x.out.Write(errorBody(x.id(), e))
}

// protocolFault is the error that the protocol answers a request with, as a call's: E_NOT_FOUND for a method that nobody has, else
// E_VALIDATION. It is nil where there was nothing to answer, as to a notification.
func (x *exchange) protocolFault() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status == http.StatusAccepted {
		return nil
	}
	said := struct{ Error jsonrpc.Error }{}
	if json.Unmarshal(x.out.Bytes(), &said) != nil {
		said.Error.Message = "No message of the batch can be answered." // each has an error of its own
	}
	code := fault.Validation
	if said.Error.Code == jsonrpc.CodeMethodNotFound {
		code = fault.NotFound
	}
	return fault.New(code, "%s", said.Error.Message)
}

// id is that of the one message of a request, as it was sent; nil for a batch, whose messages have one each.
func (x *exchange) id() json.RawMessage {
	if len(x.messages) == 1 && !x.batch {
		return json.RawMessage(x.messages[0].id)
	}
	return nil
}

// reject is the answer of a request whose messages the protocol is not given.
func (x *exchange) reject(e *jsonrpc.Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status = http.StatusBadRequest
	if e.Code == jsonrpc.CodeMethodNotFound {
		x.status = http.StatusNotFound
	}
	x.fail(e)
}

// errorBody is a JSON-RPC response with an error. Its id is null where the request's could not be read, as JSON-RPC wants it.
func errorBody(id json.RawMessage, e *jsonrpc.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	wrong, err := json.Marshal(e)
	if err != nil {
		wrong = []byte(`{"code":-32603,"message":"internal error"}`)
	}
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), wrong, []byte{'}'})
}
