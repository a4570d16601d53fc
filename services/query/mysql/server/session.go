package server

import (
	"context"
	"database/sql/driver"
	"strconv"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// connector makes read-only sessions.
type connector struct {
	server  *Server
	timeout time.Duration
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	p, err := c.server.Identify(ctx)
	if err != nil {
		return nil, err
	}
	config := c.server.Config()
	config.Params = SessionVariables(p.Dialect, c.timeout)
	conn, w, err := c.server.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	return &metered{driverConn: conn.(driverConn), wire: w, plans: plans{}}, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return mysqldriver.MySQLDriver{} }

// SessionVariables are the variables of each session: read-only, limited, and the same
// reading of text and time on every server.
func SessionVariables(d Dialect, timeout time.Duration) map[string]string {
	v := map[string]string{
		"time_zone":                "'+00:00'",
		"sql_mode":                 "'" + sqlMode + "'",
		"innodb_lock_wait_timeout": strconv.Itoa(lockWait),
	}
	switch d {
	case MariaDB:
		v["tx_read_only"] = "1"
		v["lock_wait_timeout"] = strconv.Itoa(lockWait)
		v["max_statement_time"] = strconv.FormatFloat(timeout.Seconds(), 'f', 3, 64)
	case MySQL:
		v["transaction_read_only"] = "1"
		v["lock_wait_timeout"] = strconv.Itoa(lockWait)
		v["max_execution_time"] = strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)
		// The estimates of information_schema.tables as of now, not of yesterday.
		v["information_schema_stats_expiry"] = "0"
	case TiDB:
		// TiDB has no read-only sessions: the account's grants hold alone.
		v["max_execution_time"] = strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)
	}
	return v
}
