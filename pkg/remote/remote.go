// Package remote is a typed call to another service: admission, discovery, round-robin balance, the deadline that travels along,
// retries within a retry budget, a circuit breaker and a health probe for each instance, HTTP. A fault survives the hop; a neighbour
// that cannot be reached is E_DB, at once. It refuses to know what is called.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/kit/endpoint"
	"github.com/go-kit/kit/sd"
	"github.com/go-kit/kit/sd/lb"
	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"hub.internal/pkg/admission"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote/direct"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
)

const (
	// maxAttempts is one call and at most two retries.
	maxAttempts = 3
	// retryJitter bounds the pause before a retry: a service that is down has to be
	// reported within 50 ms.
	retryJitter = 8 * time.Millisecond
	// defaultDeadline is what a call without a deadline gets.
	defaultDeadline = 10 * time.Second
	// maxFault bounds a refusal: it may name each of 10,000 targets.
	maxFault = 8 << 20
)

// Options describe a neighbour.
type Options struct {
	Service   string
	Instancer sd.Instancer
	Keys      *caller.Keys
	Logger    *slog.Logger
	// Concurrency bounds the calls in flight to the service; 0 means 256. Within it a limit follows
	// the latency of the service's answers (pkg/admission).
	Concurrency int
	// Patience is how long an instance may take to accept a connection, and to say that it is
	// well; 0 means 1 s.
	Patience time.Duration
	// Stall is how long an instance may leave the reader of a streamed answer without a byte; 0
	// means 30 s. It is more than an instance waits for its reader (HUB_STALL_TIMEOUT), so that it
	// is the reader who is found slow.
	Stall time.Duration
}

// Client calls one service.
type Client struct {
	service    string
	keys       *caller.Keys
	endpointer *sd.DefaultEndpointer
	turn       atomic.Uint64
	following  sync.Mutex // held while a probe starts, and while stop ends them all
	stop       context.CancelFunc
	probes     sync.WaitGroup
	transport  *direct.Transport
	admission  *admission.Limiter
	budget     *budget
	stall      time.Duration
	tracer     trace.Tracer
	metrics    *metrics
}

// Request is one call.
type Request struct {
	Path string
	Body []byte
	// IdempotencyKey travels on; a write that carries one may be retried.
	IdempotencyKey string
	// DeriveKey tells that the caller sent none, and that IdempotencyKey is new.
	DeriveKey bool
	// MostBytes is how many bytes of data the caller can read at once; 0 is any number.
	MostBytes int
	// Retry tells that doing it twice is harmless.
	Retry bool
	// Show sends along the token of whoever the call is for: the operation needs to know.
	Show bool
	// Uneven tells that what it takes depends on its input more than on the service: it is compared with nothing, and neither its
	// answer nor its failure moves the limit (pkg/admission).
	Uneven bool
	// Method defaults to POST.
	Method string
	// Success are the statuses of an answer; nil means 200. Any other is no answer.
	Success []int
	// Stream tells that somebody else reads the answer, as slowly as they can: the context's
	// deadline is then for its beginning alone.
	Stream bool
}

func (r Request) succeeds(status int) bool {
	if r.Success == nil {
		return status == http.StatusOK
	}
	return slices.Contains(r.Success, status)
}

// Response is an answer whose data has not been read yet; the caller closes Data.
type Response struct {
	tool.Head
	Data   io.ReadCloser
	Length int64
}

// New prepares a client; Close releases it.
func New(o Options) *Client {
	o.Concurrency, o.Patience, o.Stall = cmp.Or(o.Concurrency, 256), cmp.Or(o.Patience, time.Second), cmp.Or(o.Stall, 30*time.Second)
	c := &Client{
		service: o.Service, stall: o.Stall, keys: o.Keys, admission: admission.New(o.Concurrency), budget: newBudget(),
		tracer: otel.Tracer("hub.internal/pkg/remote"),
		// net/http keeps two idle connections a host by default, which costs a handshake for almost every concurrent call.
		transport: &direct.Transport{Large: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: o.Patience, KeepAlive: 15 * time.Second}).DialContext,
			MaxIdleConns:        o.Concurrency,
			MaxIdleConnsPerHost: o.Concurrency,
			IdleConnTimeout:     60 * time.Second,
			DisableCompression:  true,
			ReadBufferSize:      32 << 10,
			WriteBufferSize:     32 << 10,
		}},
	}
	c.metrics = newMetrics(o.Service, c.admission)
	following, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.endpointer = sd.NewEndpointer(awaitFirstInstances{o.Instancer}, func(addr string) (endpoint.Endpoint, io.Closer, error) {
		return c.instance(following, addr, o.Patience)
	}, discardLog{})
	return c
}

// awaitFirstInstances is an Instancer whose Register returns when the instances of that moment are in
// use. The follower's channel has no buffer, so a second event is taken only after the
// first has been worked through; without it the first calls of a client find no instance.
type awaitFirstInstances struct{ sd.Instancer }

func (s awaitFirstInstances) Register(ch chan<- sd.Event) {
	s.Instancer.Register(ch)
	s.Instancer.Register(ch)
}

// Close stops following instances and drops idle connections.
func (c *Client) Close() {
	c.endpointer.Close() // leaves the endpoints that it has made to us
	c.following.Lock()
	c.stop()
	c.following.Unlock()
	c.probes.Wait()
	c.metrics.forget()
	c.transport.CloseIdleConnections()
}

// instance makes the endpoint of one instance, with a breaker and a health probe of its
// own. An open breaker is closed by the probe and not by a trial call: a call may take
// half a minute, and whoever made it would have to wait for an instance that is down.
func (c *Client) instance(following context.Context, addr string, patience time.Duration) (endpoint.Endpoint, io.Closer, error) {
	c.following.Lock()
	defer c.following.Unlock()
	if following.Err() != nil {
		return nil, nil, following.Err()
	}
	breaker := gobreaker.NewCircuitBreaker[*Response](gobreaker.Settings{
		Name: c.service + " " + addr, MaxRequests: 1, Timeout: probeEvery / 2,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= 5 },
		// A business refusal proves that the instance is alive, and a caller that went away proves nothing.
		IsSuccessful: func(err error) bool { return !Unanswered(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) && !Unanswered(err) },
	})
	asking, stop := context.WithCancel(following)
	probe := newProbe(c.transport, c.service, addr, patience, stop)
	inOrder := func() bool { return probe.healthy() && breaker.State() == gobreaker.StateClosed }
	c.probes.Go(func() {
		defer c.metrics.follow(&inOrder)()
		probe.run(asking, func(err error) {
			if breaker.State() == gobreaker.StateHalfOpen {
				_, _ = breaker.Execute(func() (*Response, error) { return nil, err })
			}
		})
	})
	e := func(ctx context.Context, request any) (any, error) {
		try := request.(attemptRequest)
		if try.at != nil {
			*try.at = addr
		}
		if other := probe.foreign.Load(); other != nil {
			return nil, &unreachable{cause: fmt.Errorf("at %s is the service %s", addr, *other), skipped: true}
		}
		if !inOrder() {
			return nil, &unreachable{cause: fmt.Errorf("%s is out of order", addr), skipped: true}
		}
		if probe.leaving.Load() && !try.leaving {
			return nil, &unreachable{cause: fmt.Errorf("%s is about to stop", addr), skipped: true}
		}
		response, err := breaker.Execute(func() (*Response, error) {
			if p, ok := try.request.(*proxiedRequest); ok {
				return c.proxyTo(ctx, addr, probe, p)
			}
			return c.send(ctx, addr, probe, try.request.(Request))
		})
		if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
			return nil, &unreachable{cause: err, skipped: true}
		}
		return response, err
	}
	return e, probe, nil
}

// unreachable is a failure to get an answer from an instance.
type unreachable struct {
	cause error
	// unsent tells that the instance did not get the request, or did no work for it.
	unsent bool
	// skipped tells that it was not even tried, because it is known to be out of order.
	skipped bool
}

func (d *unreachable) Error() string { return d.cause.Error() }
func (d *unreachable) Unwrap() error { return d.cause }

// Unanswered tells whether err means that the neighbour gave no answer, in contrast
// to a fault that it answered.
func Unanswered(err error) bool {
	var d *unreachable
	return errors.As(err, &d)
}

// errTokenRefused is the cause where an instance takes no token of this process.
var errTokenRefused = errors.New("it refuses our token")

// TokenRefused tells whether err means that an instance answered, but does not believe this process.
func TokenRefused(err error) bool { return errors.Is(err, errTokenRefused) }

// Do sends a request. It returns the neighbour's fault as it is, E_DB when the
// service is down or does not answer by the deadline, E_RATE_LIMIT with scope "capacity" when the call finds no place (Enter of
// pkg/admission) and so was not begun, and the context's error when the caller went away.
func (c *Client) Do(ctx context.Context, r Request) (response *Response, err error) {
	defer func(start time.Time) { c.metrics.calls.Done(ctx, "call", start, outcome(err)) }(time.Now())
	operation := r.Path
	if r.Uneven {
		operation = ""
	}
	place, err := c.enter(ctx, operation)
	if err != nil {
		return nil, err
	}
	response, err = c.attempt(ctx, r, r.Retry || r.IdempotencyKey != "")
	if err != nil {
		leave(place, err)
		return nil, c.failure(ctx, err)
	}
	place.Answered()
	response.Data = &releasingBody{response.Data, place.Leave}
	return response, nil
}

// failure is what the caller of Do and Proxy gets to see of err.
func (c *Client) failure(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case Unanswered(err):
		return c.unavailable(err)
	}
	return err
}

// attemptRequest is what the endpoint of an instance is asked: to send a Request or a *proxiedRequest.
type attemptRequest struct {
	request any
	// leaving tells that an instance takes it even when it is about to stop.
	leaving bool
	// at is where the instance leaves its address; nil for nobody who asks.
	at *string
}

// attempt tries one instance after the other, beginning with the one whose turn it is.
// Instances that are known to be out of order are passed over: that costs them nothing,
// so it is no attempt. So are those that are about to stop, until each other has been
// tried. A retry after a refused connection burdens nobody; any other is paid from the
// budget. repeatable tells that doing it twice is harmless.
func (c *Client) attempt(ctx context.Context, r any, repeatable bool) (*Response, error) {
	c.budget.earn()
	endpoints, err := c.endpointer.Endpoints()
	if err != nil || len(endpoints) == 0 {
		return nil, &unreachable{cause: errors.Join(lb.ErrNoEndpoints, err), unsent: true}
	}
	turn, all := c.turn.Add(1), len(endpoints)
	for tried, attempt := 0, 0; ; tried++ {
		response, err := endpoints[(turn+uint64(tried))%uint64(all)](ctx, attemptRequest{request: r, leaving: tried >= all})
		if err == nil {
			return response.(*Response), nil
		}
		var d *unreachable
		if !errors.As(err, &d) || ctx.Err() != nil {
			return nil, err
		}
		if d.skipped {
			if tried >= 2*all-1 {
				return nil, err
			}
			continue
		}
		attempt++
		if attempt == maxAttempts || !(d.unsent || repeatable) || !refused(err) && !c.budget.spend() {
			return nil, err
		}
		c.metrics.retries.Add(ctx, 1, c.metrics.service)
		select {
		case <-time.After(rand.N(retryJitter)):
		case <-ctx.Done():
			return nil, &unreachable{cause: ctx.Err()}
		}
	}
}

func (c *Client) unavailable(cause error) error {
	return fault.New(fault.DB, "The %s service is not available right now. Try again in a moment.", c.service).After(time.Second).
		Because(fmt.Errorf("remote %s: %w", c.service, cause))
}

func (c *Client) send(ctx context.Context, addr string, probe *probe, r Request) (*Response, error) {
	resp, s, err := c.exchange(ctx, probe, r.Stream, func(ctx context.Context) (*http.Request, error) { return c.request(ctx, addr, r) })
	if err != nil {
		return nil, err
	}
	if resp.Header.Get(rpc.FaultHeader) != "" || !r.succeeds(resp.StatusCode) {
		defer resp.Body.Close()
		return nil, readFault(resp)
	}
	count, _ := strconv.Atoi(resp.Header.Get(rpc.CountHeader))
	head := tool.Head{Status: resp.StatusCode, Count: count, Replayed: resp.Header.Get(rpc.ReplayedHeader) == "true",
		Location: resp.Header.Get("Location")}
	if age, err := strconv.ParseInt(resp.Header.Get(rpc.AgeHeader), 10, 64); err == nil {
		head.Age = time.Duration(age) * time.Millisecond
	}
	return &Response{Head: head, Data: s.bodyOf(resp.Body, c.stall), Length: resp.ContentLength}, nil
}

// exchange sends what request makes to one instance, in a span of its own, and returns the answer with its body unread; closing that
// ends the exchange. Its context ends when the instance turns unhealthy, and at a deadline in any case. s is nil unless the answer
// is to stream.
func (c *Client) exchange(asked context.Context, probe *probe, streams bool, request func(context.Context) (*http.Request, error)) (
	resp *http.Response, s *stream, err error,
) {
	asked, span := c.tracer.Start(asked, c.service, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	ctx, cancel := asked, context.CancelFunc(func() {})
	if _, has := ctx.Deadline(); !has {
		ctx, cancel = context.WithTimeout(ctx, defaultDeadline)
	}
	end := func() {}
	if streams {
		ctx, s, end = newStream(ctx)
	}
	ctx, leave := probe.while(ctx)
	release := func() { leave(); end(); cancel() }
	req, err := request(ctx)
	if err != nil {
		release()
		return nil, nil, err
	}
	resp, err = c.transport.RoundTrip(req)
	if err != nil {
		release()
		if errors.Is(asked.Err(), context.Canceled) {
			return nil, nil, context.Canceled
		}
		return nil, nil, &unreachable{cause: err, unsent: refused(err)}
	}
	resp.Body = &releasingBody{resp.Body, release}
	return resp, s, nil
}

func (c *Client) request(ctx context.Context, addr string, r Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), "http://"+addr+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("remote %s: %w", c.service, err)
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	setDeadline(ctx, h)
	if err := c.keys.Present(ctx, h, c.service, r.Show); err != nil {
		return nil, fmt.Errorf("remote %s: %w", c.service, err)
	}
	if r.IdempotencyKey != "" {
		h.Set(tool.KeyHeader, r.IdempotencyKey)
		if r.DeriveKey {
			h.Set(tool.DeriveHeader, "true")
		}
	}
	if r.MostBytes > 0 {
		h.Set(tool.BytesHeader, strconv.Itoa(r.MostBytes))
	}
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(h))
	return req, nil
}

// setDeadline tells the neighbour how long the caller will wait.
func setDeadline(ctx context.Context, h http.Header) {
	if deadline, ok := ctx.Deadline(); ok {
		h.Set(rpc.DeadlineHeader, strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10))
	}
}

// refused tells that no connection came about.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// ReadFault reads the fault of an answer that carries one (rpc.FaultHeader).
func ReadFault(resp *http.Response) error {
	err := readFault(resp)
	if Unanswered(err) {
		return fault.New(fault.DB, "A service gave an answer that cannot be read. Try again in a moment.").After(time.Second).Because(err)
	}
	return err
}

// readFault reads a neighbour's refusal. An answer in another form means that
// something else listens there, or that the neighbour broke: no answer at all; a code
// that only a later release knows is an answer like any other. Nor is
// it one that it does not believe us: whom we call for has nothing to do with that, and
// another instance may.
func readFault(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxFault))
	var f fault.Error
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err == nil && resp.StatusCode < http.StatusBadRequest {
		err = errors.New("a fault with the status of a success")
	}
	if err != nil {
		return &unreachable{cause: fmt.Errorf("status %d: %w", resp.StatusCode, err), unsent: resp.StatusCode == http.StatusServiceUnavailable}
	}
	if resp.Header.Get(rpc.RefusedHeader) != "" {
		return &unreachable{cause: fmt.Errorf("%w: %s", errTokenRefused, f.Message), unsent: true}
	}
	return f.Answered(resp.StatusCode)
}

// releasingBody runs release once, when the body is closed.
type releasingBody struct {
	io.ReadCloser
	release func()
}

func (r *releasingBody) Close() error {
	err := r.ReadCloser.Close()
	if r.release != nil {
		r.release()
		r.release = nil
	}
	return err
}

type discardLog struct{}

func (discardLog) Log(...any) error { return nil }
