package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// wire is the network connection under a session. It tells of what comes before the
// driver takes it: the driver takes a row as one piece, however large it is.
type wire struct {
	net.Conn
	meter meter           // of the statement that runs; nil when nobody counts
	cut   bool            // the meter has ended the reading, and with it the connection
	large bool            // the driver has had a buffer that it does not keep, and holds on to the last one
	last  [endLength]byte // the bytes that came last
}

// meter is told of n bytes that have come; false ends the reading.
type meter interface{ Arrived(n int) (more bool) }

var errCut = errors.New("more was answered than is read")

// keptBuffer is the largest buffer that the driver uses again.
const keptBuffer = 256 << 10

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	w.large = w.large || len(b) > keptBuffer
	n, err := w.Conn.Read(b)
	if n >= endLength {
		copy(w.last[:], b[n-endLength:n])
	} else if n > 0 {
		copy(w.last[:], w.last[n:])
		copy(w.last[endLength-n:], b[:n])
	}
	if w.meter != nil && n > 0 && !w.meter.Arrived(n) {
		w.cut = true
		return n, errCut
	}
	return n, err
}

// SyscallConn implements syscall.Conn, by which the driver sees whether a connection has
// died in the pool.
func (w *wire) SyscallConn() (syscall.RawConn, error) {
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
	arrived int
	cut     bool
}

// Arrived implements meter.
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
	wire *wire
}

// IsValid implements driver.Validator: what a large row took does not wait in the pool.
func (c *metered) IsValid() bool { return !c.wire.large && c.driverConn.IsValid() }

// QueryContext implements driver.QueryerContext.
func (c *metered) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.wire.meter = nil
	if m, ok := ctx.Value(fixedMeterKey{}).(*fixedMeter); ok {
		c.wire.meter = m
	}
	return c.driverConn.QueryContext(ctx, query, args)
}
