package service

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pace is what is asked of a peer that sends or reads: some progress all the time, and a
// least rate in the long run. It bounds no transfer as such: a call may take its time before
// the first byte, and a large answer to a slow line may take minutes.
type pace struct {
	// stall is how long a peer may keep a transfer waiting, beyond what rate takes.
	stall time.Duration
	rate  int64 // bytes a second
}

// allowance is what is left of the stall with one peer. It is spent while a transfer waits, and
// comes back with the bytes that move and with the time in which nothing waits.
type allowance struct {
	pace
	left time.Duration
	last time.Time // when what is left was told
}

func (p pace) patience() allowance { return allowance{pace: p, left: p.stall, last: time.Now()} }

// hurried is what is asked of a peer when many are there: it may wait a quarter of the time.
func (p pace) hurried() pace { return pace{stall: p.stall / 4, rate: p.rate} }

// begin is when the transfer that begins now has to have moved.
func (p *allowance) begin() time.Time {
	now := time.Now()
	p.left = min(p.stall, p.left+now.Sub(p.last))
	p.last = now
	return now.Add(p.left)
}

// end tells that it has moved n bytes.
func (p *allowance) end(n int) {
	now := time.Now()
	p.left = min(p.stall, p.left-now.Sub(p.last)+time.Duration(n)*time.Second/time.Duration(p.rate))
	p.last = now
}

const (
	// writeChunk is how much of an answer is written at a time. More would let who reads look like who does not.
	writeChunk = 64 << 10
	// unsentBytes bounds what the system keeps of an answer that is not read, beside a chunk and what has
	// been sent: by itself it takes megabytes of each. As many answers may go unread as there are connections.
	unsentBytes = 16 << 10
)

// listen opens a listener with these places, whose connections are written at this pace. The deadlines are the
// connection's, not the handler's, so that nothing that leaves the process is without one:
// the end of an answer, a refusal of net/http's own, 100 Continue.
func (p pace) listen(addr string, places *connections) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		boundSocket(c, unsentBytes, p.stall)
		return nil
	}}
	config.SetMultipathTCP(false) // whose sockets have no such bounds
	l, err := config.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return pacedListener{l, p, places}, nil
}

// pacedListener accepts connections for which there is a slot.
type pacedListener struct {
	net.Listener
	pace   pace
	places *connections
}

// Accept returns the next connection that there is a place for.
func (l pacedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if place := l.places.take(c); place != nil {
			pace := l.pace
			if l.places.crowded() {
				pace = pace.hurried()
			}
			return &pacedConn{Conn: c, place: place, patience: pace.patience()}, nil
		}
		_ = errors.Join(discardUnsent(c), c.Close()) // nobody has it
	}
}

// discardUnsent lets nothing that the peer has not read outlive the connection.
func discardUnsent(c net.Conn) error {
	if tcp, ok := c.(*net.TCPConn); ok {
		return tcp.SetLinger(0)
	}
	return nil
}

// pacedConn is a connection that is given up when its peer does not read.
type pacedConn struct {
	net.Conn
	place    *slot
	mu       sync.Mutex // writes take turns, as in the connection itself
	patience allowance
}

// Write writes a chunk at a time. What moves of it within what the peer has left of its allowance adds to that.
func (c *pacedConn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := c.SetWriteDeadline(c.patience.begin()); err != nil {
			return n, err
		}
		waits := c.place.wait()
		moved, err := c.Conn.Write(b[n:min(len(b), n+writeChunk)])
		if waits && !c.place.begin() {
			err = net.ErrClosed
		}
		c.patience.end(moved)
		n += moved
		if errors.Is(err, os.ErrDeadlineExceeded) && c.patience.left > 0 {
			continue // it reads as fast as it has to
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// What the peer has not read goes with the connection, or the system would offer it on.
			err = errors.Join(err, discardUnsent(c.Conn))
		}
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// CloseWrite lets net/http end an answer before it gives up a request that is still arriving.
func (c *pacedConn) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}
