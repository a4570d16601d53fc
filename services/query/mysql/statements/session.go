package statements

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/services/query/mysql/server"
)

// sessions makes read-only sessions.
// It is a driver.Connector: database/sql asks it for each connection of a pool, and puts nothing into the pool that is not
// armed.
type sessions struct {
	server   *server.Server
	timeout  time.Duration
	maxRows  int
	tmpBytes int64
	sqlModes []string // beside those of every session
}

// session is a connection whose id is known.
// It implements what database/sql asks of a connection in a pool: SessionResetter and Validator.
type session struct {
	driver.Conn
	wire  *server.Wire
	id    uint64
	chain string // ends the transaction and begins the next one; empty where there are none
	// limitRows sets the session's own limit of rows again.
	limitRows string
	// keptWarnings is how many of a statement's warnings the session keeps (max_error_count): there may have been more.
	keptWarnings int
}

// Driver implements driver.Connector.
func (c *sessions) Driver() driver.Driver { return mysqldriver.MySQLDriver{} }

// Connect implements driver.Connector: it connects, arms the session, and reads back
// that it is armed.
// What it reads back rests on no promise of the driver or of a proxy in between. An error here is no fault of a
// statement's: it becomes E_DB.
func (c *sessions) Connect(ctx context.Context) (driver.Conn, error) {
	p, err := c.server.Identify(ctx)
	if err != nil {
		return nil, err
	}
	config := c.server.Config()
	if config.MultiStatements || config.AllowAllFiles {
		return nil, errors.New("mysql: multiple statements and local files must be off")
	}
	// A statement with a parameter list would be rewritten by the driver; callers' statements have none.
	config.InterpolateParams = false // a caller's text goes as it is
	config.Params = server.SessionVariables(p.Dialect, c.timeout)
	maps.Copy(config.Params, c.more(p))
	if len(c.sqlModes) > 0 {
		config.Params["sql_mode"] = strings.TrimSuffix(config.Params["sql_mode"], "'") + "," + strings.Join(c.sqlModes, ",") + "'"
	}
	conn, w, err := c.server.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &session{Conn: conn, wire: w, limitRows: rowLimit(uint64(c.maxRows) + 1)}
	if err := s.arm(ctx, p.Dialect, c.timeout); err != nil {
		_ = conn.Close()
		return nil, server.Connecting(err)
	}
	return s, nil
}

// noRowLimit is the greatest limit of rows, which is none.
const noRowLimit = math.MaxUint64

// rowLimit bounds how many rows a SELECT without a LIMIT answers in a session.
func rowLimit(rows uint64) string { return fmt.Sprintf("SET SESSION sql_select_limit = %d", rows) }

// more are the variables of a session for callers' statements. sql_select_limit is a
// second belt: it bounds a SELECT without a LIMIT, and leaves what the greatest
// row_limit and its probe row need.
func (c *sessions) more(p *server.Identity) map[string]string {
	v := map[string]string{"sql_select_limit": strconv.Itoa(c.maxRows + 1)}
	for _, name := range p.TmpLimits {
		// The server's own limit stands where it is less; 0 is none.
		v[name] = fmt.Sprintf("IF(@@GLOBAL.%[1]s BETWEEN 1 AND %[2]d, @@GLOBAL.%[1]s, %[2]d)", name, c.tmpBytes)
	}
	switch p.Dialect {
	case server.MariaDB:
		v["max_recursive_iterations"] = recursionLimit
		v["idle_readonly_transaction_timeout"] = "0" // a session waits inside a transaction that holds nothing
		v["idle_transaction_timeout"] = "0"
	case server.MySQL:
		v["cte_max_recursion_depth"] = mostRecursion
	case server.TiDB:
		v["cte_max_recursion_depth"] = recursionLimit
	}
	return v
}

// arm makes the session READ ONLY, opens a READ ONLY transaction in it and reads back
// what the safety of it all rests on.
// READ ONLY stands twice, for the session and for the transaction: a statement that ended the one would find the other. The
// modes that are refused would cut a text otherwise than the guard did: "x" as a name, \ as a plain character.
func (s *session) arm(ctx context.Context, d server.Dialect, timeout time.Duration) error {
	check := "SELECT CONNECTION_ID(), @@sql_mode, @@max_execution_time, @@transaction_read_only, 1, @@max_error_count"
	switch d {
	case server.MariaDB:
		check = "SELECT CONNECTION_ID(), @@sql_mode, ROUND(@@max_statement_time * 1000), @@tx_read_only, @@in_transaction, @@max_error_count"
	case server.TiDB: // has no read-only sessions; the account's grants hold alone
		check = "SELECT CONNECTION_ID(), @@sql_mode, @@max_execution_time, 1, 1, @@max_error_count"
	}
	if d != server.TiDB {
		s.chain = "ROLLBACK AND CHAIN"
		// The isolation level keeps a SERIALIZABLE server from locking what is read.
		for _, statement := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", "START TRANSACTION READ ONLY"} {
			if err := s.exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
	}
	rows, err := s.Conn.(driver.QueryerContext).QueryContext(ctx, check, nil)
	if err != nil {
		return fmt.Errorf("reading the session back: %w", err)
	}
	values := make([]driver.Value, 6)
	if err := rows.Next(values); err != nil {
		return fmt.Errorf("reading the session back: %w", err)
	}
	var read [6]string
	for i, v := range values {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		read[i] = fmt.Sprint(v)
	}
	if err := rows.Close(); err != nil {
		return err
	}
	if s.id, err = strconv.ParseUint(read[0], 10, 64); err != nil {
		return fmt.Errorf("connection id: %w", err)
	}
	if s.keptWarnings, err = strconv.Atoi(read[5]); err != nil {
		return fmt.Errorf("max_error_count: %w", err)
	}
	mode := "," + strings.ToUpper(read[1]) + ","
	for _, bad := range []string{"ANSI", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE", "PIPES_AS_CONCAT", "IGNORE_SPACE"} {
		if strings.Contains(mode, ","+bad+",") {
			return fmt.Errorf("the session has sql_mode %s, which reads text otherwise than the guard does", bad)
		}
	}
	limit, err := strconv.ParseFloat(read[2], 64)
	if err != nil || limit != float64(max(timeout.Milliseconds(), 1)) {
		return fmt.Errorf("the session's statement timeout is %s ms, not %s", read[2], timeout)
	}
	if read[3] != "1" || read[4] != "1" {
		return errors.New("the session is not READ ONLY")
	}
	return nil
}

// exec runs a statement without rows, outside the pool's own bookkeeping.
func (s *session) exec(ctx context.Context, statement string) error {
	_, err := s.Conn.(driver.ExecerContext).ExecContext(ctx, statement, nil)
	return err
}

// ResetSession implements driver.SessionResetter: it finds out whether the connection
// has died in the pool.
func (s *session) ResetSession(ctx context.Context) error {
	return s.Conn.(driver.SessionResetter).ResetSession(ctx)
}

// IsValid implements driver.Validator: what a large row took does not wait in the pool.
func (s *session) IsValid() bool { return !s.wire.Large && s.Conn.(driver.Validator).IsValid() }
