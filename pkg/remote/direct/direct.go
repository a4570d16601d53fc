// Package direct is an HTTP/1.1 client for small requests between Hub's processes. The caller's own goroutine writes the
// request in one write and reads the answer, where net/http.Transport wakes two goroutines for each exchange: on two cores
// who wakes whom takes more than the work. Whatever is large, or of unknown length, is net/http's.
package direct

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// small is the largest body that is written before the answer is read: with its header it is one write, and fits in
	// the socket's buffer, so that a server which answers before it has read it keeps nobody waiting.
	small = 16 << 10
	// maxHeader bounds the header of an answer, of interim ones too, in bytes.
	maxHeader = 1 << 20
	// maxInterim is how many interim answers (1xx) an answer may follow, as in net/http.
	maxInterim = 5
)

// Transport is an http.RoundTripper. Its fields are not changed once it is used.
type Transport struct {
	// Large sends what is not small; its dialer and its bounds are those of Transport.
	Large *http.Transport

	mu    sync.Mutex
	idle  map[string][]*conn // by address, the one used last at the end
	sweep *time.Timer        // nil while no connection is idle
}

// RoundTrip implements http.RoundTripper. A request on a connection that its server has closed meanwhile is sent on another
// one only as long as nothing of it was written. The error is the context's cause when its end ended the exchange.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isSmall(req) {
		return t.Large.RoundTrip(req)
	}
	if req.Body != nil {
		defer req.Body.Close()
	}
	ctx := req.Context()
	c, err := t.get(ctx, req.URL.Host)
	if err != nil {
		return nil, err
	}
	// Whoever waits in a read or a write is woken, and the server learns that nobody waits for it any more.
	leave := context.AfterFunc(ctx, func() { c.Close() })
	resp, err := c.exchange(req)
	if err != nil {
		leave()
		c.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, conn: c, resp: resp, done: func(reusable bool) {
		if leave() && reusable && c.SetReadDeadline(time.Time{}) == nil {
			t.put(req.URL.Host, c)
		} else {
			c.Close()
		}
	}}
	return resp, nil
}

// isSmall tells whether a request is written whole before its answer is read.
func isSmall(req *http.Request) bool {
	return req.URL.Scheme == "http" && (req.Body == nil || req.Body == http.NoBody || req.ContentLength > 0 && req.ContentLength <= small) &&
		req.Header.Get("Expect") == "" && req.Header.Get("Upgrade") == "" && req.Method != http.MethodConnect
}

// CloseIdleConnections drops the connections that nobody uses.
func (t *Transport) CloseIdleConnections() {
	t.drop(time.Now().Add(time.Hour))
	t.Large.CloseIdleConnections()
}

// get takes an idle connection that its server has not closed, or makes one.
func (t *Transport) get(ctx context.Context, addr string) (*conn, error) {
	for c := t.pop(addr); c != nil; c = t.pop(addr) {
		if c.alive() {
			return c, nil
		}
		c.Close()
	}
	raw, err := t.Large.DialContext(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() != nil {
			err = &net.OpError{Op: "dial", Net: "tcp", Err: context.Cause(ctx)}
		}
		return nil, err
	}
	return newConn(raw), nil
}

func (t *Transport) pop(addr string) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.idle[addr]
	if len(all) == 0 {
		return nil
	}
	c := all[len(all)-1]
	t.idle[addr] = all[:len(all)-1]
	return c
}

// put keeps a connection for the next request, unless there are enough.
func (t *Transport) put(addr string, c *conn) {
	c.since = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle[addr]) >= t.Large.MaxIdleConnsPerHost {
		c.Close()
		return
	}
	if t.idle == nil {
		t.idle = map[string][]*conn{}
	}
	t.idle[addr] = append(t.idle[addr], c)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(t.Large.IdleConnTimeout, func() { t.drop(time.Now().Add(-t.Large.IdleConnTimeout)) })
	}
}

// drop closes the connections that have been idle since before a moment, and looks again while others are.
func (t *Transport) drop(before time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for addr, all := range t.idle {
		n := 0
		for n < len(all) && all[n].since.Before(before) {
			all[n].Close()
			n++
		}
		if n == len(all) {
			delete(t.idle, addr)
		} else {
			t.idle[addr] = append([]*conn(nil), all[n:]...)
		}
	}
	switch {
	case t.sweep == nil:
	case len(t.idle) == 0:
		t.sweep.Stop()
		t.sweep = nil
	default:
		t.sweep.Reset(t.Large.IdleConnTimeout / 2)
	}
}

// conn is a connection that one exchange uses at a time.
type conn struct {
	net.Conn
	socket syscall.RawConn // nil for one that is no socket
	read   *bufio.Reader
	write  *bufio.Writer
	since  time.Time // when it became idle
	// header is how much of an answer's header may still come, in bytes; negative while a body is read.
	header int
}

func newConn(raw net.Conn) *conn {
	c := &conn{Conn: raw}
	if s, is := raw.(syscall.Conn); is {
		c.socket, _ = s.SyscallConn()
	}
	c.read, c.write = bufio.NewReaderSize(c, 32<<10), bufio.NewWriterSize(raw, 2*small)
	return c
}

var errHeader = fmt.Errorf("the header of an answer takes more than %d bytes", maxHeader)

// Read counts the bytes of a header: net/http bounds those of a request, and those that its own Transport reads.
func (c *conn) Read(b []byte) (int, error) {
	if c.header < 0 {
		return c.Conn.Read(b)
	}
	if c.header == 0 {
		return 0, errHeader
	}
	n, err := c.Conn.Read(b[:min(len(b), c.header)])
	c.header -= n
	return n, err
}

// alive tells that nothing has come on an idle connection, neither its end nor what nobody has asked for. It does not wait.
func (c *conn) alive() bool {
	if c.socket == nil {
		return true
	}
	var silent bool
	err := c.socket.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && silent
}

var (
	errInterim  = errors.New("too many interim answers")
	errSwitched = errors.New("the instance speaks another protocol than HTTP/1.1")
	errTrailers = errors.New("an answer with trailers")
)

// exchange writes a request and reads the answer up to its body.
func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	c.header = maxHeader
	defer func() { c.header = -1 }()
	if err := errors.Join(req.Write(c.write), c.write.Flush()); err != nil {
		return nil, err
	}
	for range maxInterim {
		resp, err := http.ReadResponse(c.read, req)
		switch {
		case err != nil:
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF // the server has closed the connection
			}
			return nil, fmt.Errorf("read the answer: %w", err)
		case resp.StatusCode == http.StatusSwitchingProtocols, resp.ProtoMajor != 1:
			return nil, errSwitched
		case resp.Trailer != nil:
			return nil, errTrailers
		case resp.StatusCode >= http.StatusOK:
			return resp, nil
		}
	}
	return nil, errInterim
}

// body is an answer's body: its end, or its being closed, ends the exchange.
type body struct {
	io.ReadCloser
	conn *conn
	resp *http.Response
	done func(reusable bool) // nil once called
	end  error               // what the last read said
}

func (b *body) Read(p []byte) (int, error) {
	if b.done == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	switch ctx := b.resp.Request.Context(); {
	case errors.Is(err, io.EOF) && b.resp.Trailer != nil:
		err = errTrailers
	case err != nil && !errors.Is(err, io.EOF) && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	b.end = err
	return n, err
}

// Close keeps the connection when all of the body was read, or else closes it: it waits for nothing. A reader that knows the
// length may have left out the end alone, which has come then.
func (b *body) Close() error {
	if b.done == nil {
		return nil
	}
	if b.end == nil {
		_ = b.conn.SetReadDeadline(time.Unix(1, 0))
		var one [1]byte
		if n, err := b.Read(one[:]); n > 0 || !errors.Is(err, io.EOF) {
			b.end = io.ErrUnexpectedEOF
		}
	}
	done := b.done
	b.done = nil
	done(errors.Is(b.end, io.EOF) && !b.resp.Close && b.conn.read.Buffered() == 0)
	return nil
}
