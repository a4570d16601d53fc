package server

import (
	"context"
	"database/sql/driver"
	"errors"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/services/query/mysql/errno"
)

// plans are the statements that a connection has prepared, by their texts; nil for one that the server does not prepare. They are
// constants of the program (see Server.QueryPrepared), and so a few.
type plans map[string]driver.StmtQueryContext

// find is the prepared statement for a text; nil when it is to be sent as text: the server has refused to prepare it, as where the
// statements of all connections are max_prepared_stmt_count. Its error is of the connection or the context.
func (p plans) find(ctx context.Context, conn driver.ConnPrepareContext, text string) (driver.StmtQueryContext, error) {
	plan, known := p[text]
	if known {
		return plan, nil
	}
	stmt, err := conn.PrepareContext(ctx, text)
	var refused *mysqldriver.MySQLError
	switch {
	case errors.As(err, &refused):
		p[text] = nil
	case err != nil:
		return nil, err
	default:
		p[text] = stmt.(driver.StmtQueryContext)
	}
	return p[text], nil
}

// unplanned tells that a prepared statement did not run because the server has no plan for it any more. It is for good then: the
// connection sends the text.
func unplanned(err error) bool {
	var refused *mysqldriver.MySQLError
	return errors.As(err, &refused) && (refused.Number == errno.UnknownPlan || refused.Number == errno.PlanOutdated)
}
