package remote

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
)

// proxiedRequest is a request on its way through Proxy.
type proxiedRequest struct {
	request *http.Request
	// upload is nil for a request without a body.
	upload *upload
	answer *http.Response
}

// upload is a request's body. It stays open for the next instance when one refuses the
// connection, and remembers how it ended while there was time for it: io.EOF, or a failure of the client to send it.
type upload struct {
	io.Reader
	ctx   context.Context
	ended atomic.Pointer[error]
}

func (u *upload) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	if err != nil && u.ctx.Err() == nil {
		u.ended.Store(&err)
	}
	return n, err
}

// Close leaves the body to the server.
func (u *upload) Close() error { return nil }

// fault is that of a client who did not send its body, E_VALIDATION, or nil: it has broken it off, or was still sending it when the
// time of the exchange was over. That says nothing about the instance.
func (u *upload) fault() error {
	if u == nil {
		return nil
	}
	ended := u.ended.Load()
	switch {
	case ended != nil && !errors.Is(*ended, io.EOF):
		return rpc.Unread(*ended)
	case ended == nil && errors.Is(u.ctx.Err(), context.DeadlineExceeded):
		return fault.New(fault.Validation, "The form did not arrive in the time that there is for it. Send it again.").Because(u.ctx.Err())
	}
	return nil
}

// Proxy hands a whole HTTP request to an instance and streams its answer back: the balancing,
// the breaker and the health probe are those of Do. The instance sees the context's caller as
// Do's does; headers between processes that a client may have sent (Hub-…) are dropped, and so
// are hop-by-hop ones. edit changes the answer's header before it is written, and may refuse
// it with an error. The request's context bounds the exchange, its deadline all but an answer
// that has begun.
//
// Proxy returns what Do returns, or edit's error, and has written nothing then. A body that does not come to its end, or not before the
// deadline, is E_VALIDATION.
func (c *Client) Proxy(w http.ResponseWriter, r *http.Request, prepare func(http.Header), edit func(*http.Response) error) error {
	presented := http.Header{}
	if err := c.keys.Present(r.Context(), presented, c.service, false); err != nil {
		return err
	}
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: instanceTransport{c},
		// No protocol but HTTP: an upgraded connection would escape every bound.
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Host = p.In.Host
			p.Out.URL.Scheme, p.Out.URL.Host = "http", c.service
			p.Out.Header.Del("Upgrade")
			p.Out.Header.Del("Connection")
			for name := range p.Out.Header {
				if internalHeader(name) {
					p.Out.Header.Del(name)
				}
			}
			prepare(p.Out.Header)
			maps.Copy(p.Out.Header, presented)
			otel.GetTextMapPropagator().Inject(p.Out.Context(), propagation.HeaderCarrier(p.Out.Header))
		},
		ModifyResponse: func(resp *http.Response) error {
			err := edit(resp)
			for name := range resp.Header {
				if internalHeader(name) {
					resp.Header.Del(name)
				}
			}
			return err
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, r)
	return failed
}

func internalHeader(name string) bool { return len(name) > 4 && name[:4] == "Hub-" }

// instanceTransport is the transport of one client's instances.
type instanceTransport struct{ client *Client }

func (p instanceTransport) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	c := p.client
	defer func(start time.Time) { c.metrics.calls.Done(r.Context(), "proxy", start, proxyOutcome(answer, err)) }(time.Now())
	// Pages of one address take as long as what they show, so that they are not compared.
	place, err := c.enter(r.Context(), "")
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	pass := &proxiedRequest{request: out}
	bodyless := r.Body == nil || r.Body == http.NoBody
	if !bodyless {
		place.Answered() // it is the client who takes long
		pass.upload = &upload{Reader: r.Body, ctx: r.Context()}
		out.Body = pass.upload
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	response, err := c.attempt(r.Context(), pass, safe && bodyless)
	if err != nil {
		leave(place, err)
		return nil, c.failure(r.Context(), err)
	}
	place.Answered()
	pass.answer.Body = &releasingBody{response.Data, place.Leave}
	return pass.answer, nil
}

// proxyTo sends the request to one instance.
func (c *Client) proxyTo(ctx context.Context, addr string, probe *probe, p *proxiedRequest) (*Response, error) {
	resp, s, err := c.exchange(ctx, probe, true, func(ctx context.Context) (*http.Request, error) {
		out := p.request.WithContext(ctx)
		url := *p.request.URL
		url.Host = addr
		out.URL = &url
		setDeadline(ctx, out.Header)
		return out, nil
	})
	if err != nil {
		if f := p.upload.fault(); f != nil && Unanswered(err) && !refused(err) {
			return nil, f
		}
		return nil, err
	}
	if resp.Header.Get(rpc.RefusedHeader) != "" {
		defer resp.Body.Close()
		return nil, &unreachable{cause: errTokenRefused, unsent: p.upload == nil}
	}
	p.answer = resp
	return &Response{Data: s.bodyOf(resp.Body, c.stall)}, nil
}
