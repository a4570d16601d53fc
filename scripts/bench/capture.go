package main

// The limit has to run the statements that Hub runs, or the comparison says nothing. So they are not written down here
// a second time: the server's general log tells them.

import (
	"context"
	"fmt"
	"strings"
)

// capture calls a tool once through the gateway and returns the statements that the query
// service then sends to the source database, as the server's own log has them: what the
// limit runs is the same SQL by construction, and stays so.
func capture(ctx context.Context, s *stack, tool string, body []byte) (statements []string, err error) {
	call := func() error {
		c, err := hubTarget(s).open(&workload{tool: tool, inputs: []input{{json: body}}})
		if err != nil {
			return err
		}
		defer c.close()
		_, err = c.call(0)
		return err
	}
	// The first call fills what Hub keeps in memory.
	if err := call(); err != nil {
		return nil, err
	}
	db, err := s.sources[0].Admin()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	// The log is on for one call only: it costs time.
	for _, q := range []string{"SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = 1"} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return nil, err
		}
	}
	callErr := call()
	if _, err := db.ExecContext(ctx, "SET GLOBAL general_log = 0"); err != nil {
		return nil, err
	}
	if callErr != nil {
		return nil, callErr
	}
	// What the administrator of this server sends is in the log too.
	rows, err := db.QueryContext(ctx, "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') AND user_host LIKE ?",
		"%"+s.source.Reader+"%")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if strings.HasPrefix(text, "SELECT") {
			statements = append(statements, text)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(statements) == 0 {
		return nil, fmt.Errorf("%s sends no statement", tool)
	}
	return statements, nil
}
