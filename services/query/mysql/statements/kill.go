package statements

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/services/query"
	"hub.internal/services/query/mysql/errno"
	"hub.internal/services/query/mysql/server"
)

const (
	// killLimit bounds a KILL, waiting for a connection included.
	killLimit = 2 * time.Second
	// killGrace is how long a killed statement may take to end before harder means.
	killGrace = 150 * time.Millisecond
)

// flight is a statement on its way. Its connection is its own until land: whoever
// stops the statement before that may kill by the connection's id, and the connection
// is never used again.
type flight struct {
	id      uint64 // the server's id of the connection
	request string // the request's id, for the log
	start   time.Time
	turn    query.Turn         // nil when nobody waits for the end
	cancel  context.CancelFunc // closes the connection's socket
	landed  chan struct{}

	mu      sync.Mutex
	ended   bool
	stopped error // why it was stopped
}

// stop ends the statement on the server, for the given reason. It returns at once; a
// second stop and one after land do nothing.
// The KILL runs beside the reader, and goes on when the caller's context has ended: that is the most frequent reason for
// it.
func (r *Reader) stop(ctx context.Context, f *flight, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.stopped != nil {
		return
	}
	f.stopped = why
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		r.kill(context.WithoutCancel(ctx), f)
	}()
}

// land says that nothing more is read from the statement, and returns why it was
// stopped; nil means that nobody has tried to kill it, and that stop no longer will.
func (f *flight) land() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.landed)
	}
	return f.stopped
}

// kill sends KILL QUERY. A statement that runs on takes the whole connection with it: a
// KILL QUERY that arrives just before the statement starts is lost on MySQL. The reader
// does not wait for any of that longer than twice killGrace, since the KILL itself may hang.
func (r *Reader) kill(ctx context.Context, f *flight) {
	ctx, done := context.WithTimeout(ctx, killLimit)
	defer done()
	// The socket is closed whatever the server does: the reader waits for that and no longer.
	giveUp := time.AfterFunc(2*killGrace, f.cancel)
	defer giveUp.Stop()
	defer f.cancel()

	dialect, err := r.server.Dialect(ctx)
	if err == nil {
		err = kill(ctx, r.kills, dialect, "QUERY", f.id)
	}
	if err == nil {
		select {
		case <-f.landed:
			return
		case <-time.After(killGrace):
		}
	}
	if err := kill(ctx, r.kills, dialect, "CONNECTION", f.id); err != nil {
		r.logger.Warn("statement not killed", "connection", f.id, "error", err)
	}
}

// kill ends a connection's QUERY, or the CONNECTION; one that has ended already is no error.
// The id is a number of the server's own, and what is one of two constants: nothing of a caller's is in the text.
func kill(ctx context.Context, db *sql.DB, d server.Dialect, what string, id uint64) error {
	command := "KILL "
	if d == server.TiDB { // reaches the connection on whichever server of the cluster it is
		command = "KILL TIDB "
	}
	_, err := db.ExecContext(ctx, command+what+" "+strconv.FormatUint(id, 10))
	var answered *mysqldriver.MySQLError
	if errors.As(err, &answered) && answered.Number == errno.UnknownThread {
		return nil
	}
	return err
}
