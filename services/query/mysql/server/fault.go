package server

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"regexp"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/pkg/fault"
	"hub.internal/services/query/mysql/errno"
)

// Fault turns an error of one of this package's own statements into a fault: the
// statement's text is known to be right, so what is left is the server, its load, or
// a source without the CRM's tables. Other errors are returned as they are and end
// as E_INTERNAL. Faults pass through.
func Fault(ctx context.Context, err error) error {
	var already *fault.Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	if f := trouble(ctx, err); f != nil {
		return f
	}
	var answered *mysqldriver.MySQLError
	if !errors.As(err, &answered) {
		return err
	}
	switch answered.Number {
	case errno.DatabaseDenied, errno.AccessDenied, errno.UnknownDatabase, errno.ColumnDenied, errno.BrokenView, errno.NoDefiner:
		// Also of a view whose definer is gone: MySQL says 1045 of it.
		return fault.New(fault.NotFound, "The source database has the tables that this tool needs, but not so that Hub may read them "+
			"(the server's error %d): an administrator of that database has to mend them.", answered.Number).Because(err)
	case errno.NoSuchTable, errno.TableDenied:
		// A server that hides what an account may not see says 1142 of a missing table.
		return fault.New(fault.NotFound, "The source database has no table %q that Hub may read; this tool needs it.",
			tableIn(answered.Message)).Because(err)
	case errno.UnknownColumn:
		return fault.New(fault.NotFound, "The source database's tables are not the CRM's that this tool needs: %s.",
			answered.Message).Because(err)
	}
	return err
}

// connectError is what a server said while a connection to it was made. It tells nothing of a statement, whatever its number:
// a password that is wrong and a view whose definer is gone have the same one.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

// Connecting marks an error of making a connection.
func Connecting(err error) error {
	if err == nil {
		return nil
	}
	return connectError{err}
}

// environmental are the errors of an open session that say something of the server and its load, not of the statement. What
// is not among them its caller can cause.
var environmental = numbers(
	errno.TooManyConnections, errno.Shutdown, errno.TooManyUserConnections, errno.UserLimit,
	errno.LockWaitTimeout, errno.Deadlock, errno.Killed, errno.ConnectionKilled,
	1077, 1078, 1079, 1080, 3032, 3168, 3169, 4031, // it stops, is offline, has ended the session
	3, 5, 1021, 1026, 1030, 1037, 1041, // disk and memory; storage engine
	126, 127, 132, 134, 141, 144, 145, 1016, 1017, 1024, 1033, 1034, 1035, 1194, 1195, 1877, // a file or a table is damaged
	1152, 1153, 1156, 1157, 1158, 1159, 1160, 1161, 1184, 2006, 2013, // the connection
	1135, 1180, 1206, // threads, transactions
	1412, errno.PlanOutdated, // a table was altered meanwhile
	8027, 8028, 9001, 9002, 9003, 9004, 9005, // TiDB's storage and schema
)

func numbers(list ...uint16) map[uint16]bool {
	set := map[uint16]bool{}
	for _, n := range list {
		set[n] = true
	}
	return set
}

// IsEnvironmental tells of a server's error that another server, or the same one later, may well answer.
func IsEnvironmental(err error) bool {
	var connect connectError
	var answered *mysqldriver.MySQLError
	return errors.As(err, &connect) || errors.As(err, &answered) && environmental[answered.Number]
}

// Lost tells of a method's error that the server was not reached, went away in the middle, or is full:
// another one may well answer the same.
func Lost(err error) bool {
	var grants *GrantsError
	var connect connectError
	var answered *mysqldriver.MySQLError
	if errors.As(err, &grants) {
		return true
	}
	if errors.As(err, &answered) && !errors.As(err, &connect) {
		switch answered.Number {
		case errno.TooManyConnections, errno.Shutdown, errno.TooManyUserConnections, errno.UserLimit,
			errno.ServerOffline, errno.ServerUnavailable:
			return true
		}
		return false
	}
	return errors.As(err, &answered) || cut(err)
}

// Killed tells of a method's error that somebody else ended the statement: a server that stops does so,
// and an administrator.
func Killed(err error) bool {
	var answered *mysqldriver.MySQLError
	return errors.As(err, &answered) && (answered.Number == errno.Killed || answered.Number == errno.ConnectionKilled)
}

// Answered tells of an error that a server has sent it, or that it was asked and is not to be used.
func Answered(err error) bool {
	var answered *mysqldriver.MySQLError
	var grants *GrantsError
	return errors.As(err, &answered) || errors.As(err, &grants)
}

// cut tells that there is no connection, or none any more.
func cut(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// trouble is the fault of an error that says nothing about the statement: too slow,
// or the server cannot be reached, is full, or chose this transaction as a victim.
// It is nil for any other error.
func trouble(ctx context.Context, err error) *fault.Error {
	var answered *mysqldriver.MySQLError
	var grants *GrantsError
	isAnswer := errors.As(err, &answered)
	switch {
	case errors.As(err, &grants):
		return fault.New(fault.DB, "The source database is not used: Hub's account there may do more than read.").Because(err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		isAnswer && (answered.Number == errno.StatementTimeMariaDB || answered.Number == errno.StatementTimeMySQL):
		return fault.New(fault.DBTimeout, "The source database did not answer in time.").Because(err)
	case IsEnvironmental(err):
		return Unavailable(err)
	case isAnswer:
		return nil
	}
	if cut(err) || errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return Unavailable(err)
	}
	return nil
}

func Unavailable(err error) *fault.Error {
	return fault.New(fault.DB, "The source database is not available right now. Try again in a moment.").After(time.Second).Because(err)
}

// tooLarge is the fault of a fixed statement that answers more than fixedBytes.
func tooLarge(err error) error {
	return fault.New(fault.Validation, "The source database answers more than the %d MiB that this tool reads: "+
		"ask for less, with a smaller limit or for one record.", fixedBytes>>20).Because(err)
}

// named finds the table in "Table 'db.campaign' doesn't exist" and in "… denied to
// user … for table `db`.`campaign`".
var named = regexp.MustCompile("(?:Table '(?:[^']*\\.)?([^'.]+)' doesn't exist|for table (?:`[^`]*`\\.)?[`']([^`']+)[`'])")

func tableIn(message string) string {
	if m := named.FindStringSubmatch(message); m != nil {
		return m[1] + m[2]
	}
	return "?"
}
