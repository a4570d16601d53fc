package server

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Wire is the network connection under a session. It tells of what comes before the
// driver takes it: the driver takes a row as one piece, however large it is.
type Wire struct {
	net.Conn
	Meter  Meter           // of the statement that runs; nil when nobody counts
	Cut    bool            // the meter has ended the reading, and with it the connection
	Large  bool            // the driver has had a buffer that it does not keep, and holds on to the last one
	last   [endLength]byte // the bytes that the driver was given last
	plain  bool            // the bytes are not encrypted, and can be read
	result *result         // whose rows are kept back; nil while the driver has all
}

// Meter is told of n bytes that have come; false ends the reading.
type Meter interface{ Arrived(n int) (more bool) }

var errCut = errors.New("more was answered than is read")

// keptBuffer is the largest buffer that the driver uses again.
const keptBuffer = 256 << 10

// Read implements net.Conn for the driver.
func (w *Wire) Read(b []byte) (int, error) {
	if w.result != nil {
		return w.readResult(b)
	}
	w.Large = w.Large || len(b) > keptBuffer
	n, err := w.receive(b)
	w.remember(b[:n])
	return n, err
}

// remember keeps the last of the bytes that the driver is given.
func (w *Wire) remember(b []byte) {
	if n := len(b); n >= endLength {
		copy(w.last[:], b[n-endLength:])
	} else {
		copy(w.last[:], w.last[n:])
		copy(w.last[endLength-n:], b)
	}
}

// receive reads from the network, and tells the meter.
func (w *Wire) receive(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if w.Meter != nil && n > 0 && !w.Meter.Arrived(n) {
		w.Cut = true
		return n, errCut
	}
	return n, err
}

// SyscallConn implements syscall.Conn, by which the driver sees whether a connection has
// died in the pool.
func (w *Wire) SyscallConn() (syscall.RawConn, error) {
	c, ok := w.Conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a %T shows no descriptor", w.Conn)
	}
	return c.SyscallConn()
}

// fixedBytes bounds what a fixed statement answers: far more than any should.
const fixedBytes = 16 << 20

// fixedMeter counts what one fixed statement answers.
type fixedMeter struct {
	arrived  int
	cut      bool
	prepared bool // the statement is to be prepared
}

// Arrived implements Meter.
func (m *fixedMeter) Arrived(n int) bool {
	m.arrived += n
	m.cut = m.arrived > fixedBytes
	return !m.cut
}

type fixedMeterKey struct{}

// withFixedMeter has the statement that runs under the context counted.
func withFixedMeter(ctx context.Context, m *fixedMeter) context.Context {
	return context.WithValue(ctx, fixedMeterKey{}, m)
}

// driverConn is what the driver's connections are.
type driverConn interface {
	driver.Conn
	driver.Pinger
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// metered is a connection of a pool whose statements are counted.
type metered struct {
	driverConn
	wire  *Wire
	plans plans
}

// IsValid implements driver.Validator: what a large row took does not wait in the pool.
func (c *metered) IsValid() bool { return !c.wire.Large && c.driverConn.IsValid() }

// QueryContext implements driver.QueryerContext.
func (c *metered) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.wire.Meter = nil
	m, ok := ctx.Value(fixedMeterKey{}).(*fixedMeter)
	if !ok {
		return c.driverConn.QueryContext(ctx, query, args)
	}
	c.wire.Meter = m
	if m.prepared {
		if plan, err := c.plans.find(ctx, c.driverConn, query); err != nil {
			return nil, err
		} else if plan != nil {
			rows, err := plan.QueryContext(ctx, args)
			if !unplanned(err) {
				return rows, err
			}
			c.plans[query] = nil
		}
	}
	return c.driverConn.QueryContext(ctx, query, args)
}

// endLength is more than the packet that ends a result takes.
const endLength = 16

// warned reads how many warnings the server counted from the bytes that came last: the end of a result, as a packet EOF
// (five bytes and four of a header), or OK with the header of EOF (seven). Of what cannot be read, as under TLS, it says that
// there may be some.
func warned(last []byte) bool {
	n := len(last)
	// A length of three bytes and a number of the packet, then 0xfe: no rows, no id, status, warnings; or warnings, status.
	if n >= 11 && bytes.HasPrefix(last[n-11:], []byte{7, 0, 0}) && bytes.HasPrefix(last[n-7:], []byte{0xfe, 0, 0}) {
		return last[n-2] != 0 || last[n-1] != 0
	}
	if n >= 9 && bytes.HasPrefix(last[n-9:], []byte{5, 0, 0}) && last[n-5] == 0xfe {
		return last[n-4] != 0 || last[n-3] != 0
	}
	return true
}

// MayHaveWarned reports whether the result that was read last ended with warnings of the server, or cannot be told.
func (w *Wire) MayHaveWarned() bool { return warned(w.last[:]) }
