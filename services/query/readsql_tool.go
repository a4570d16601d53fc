package query

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

const (
	toolExecuteReadSQL = "execute_read_sql"
	maxSQL             = 8000
	defaultSQLRows     = 1000
	maxSQLRows         = 1_000_000
)

// readSQLDoc documents data of execute_read_sql.
type readSQLDoc struct {
	Columns []struct {
		Name string `json:"name" jsonschema:"Name as the server gives it; the same name may come twice"`
		Type string `json:"type" jsonschema:"The server's type, such as bigint, decimal, varchar, datetime"`
	} `json:"columns" jsonschema:"The columns in order"`
	Rows        [][]any `json:"rows" jsonschema:"One array per row, its values in the order of columns"`
	RowCount    int64   `json:"row_count" jsonschema:"Number of rows in this answer"`
	Truncated   bool    `json:"truncated" jsonschema:"true when the statement has more rows than this answer; false when its own LIMIT ended it"`
	RowLimit    int64   `json:"row_limit" jsonschema:"The row cap that applied: limit, or less where the server allows less"`
	TruncatedBy string  `json:"truncated_by,omitempty" jsonschema:"bytes when the size of the answer cut it (max_result_bytes); absent when the row cap did. With no row at all, the first is larger than an answer may be: select fewer or shorter columns, such as LEFT(col, 1000)"`
	// Warnings are what the server and the guard noticed.
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"What may have been meant otherwise, such as a text compared as a date; absent when there is nothing"`
}

func executeReadSQLTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: toolExecuteReadSQL, Position: 3, Category: tool.Explore, Scope: "sql", RecordsItself: true,
		Description: "Run one read-only SQL statement on the source database (MariaDB or MySQL): SELECT, WITH ... SELECT, SHOW, " +
			"EXPLAIN or DESCRIBE; no INTO, no locking clause, no variables with :=. Functions of text, number, date, JSON, regexp, " +
			"aggregate, window, control, cast, hash and network, not of XML, geometry, locks, files or the session; stored ones " +
			"only where the operator names them. SHOW TABLES, COLUMNS, INDEX, CREATE TABLE, VARIABLES and the like, with LIKE or a " +
			"plain WHERE; of the server's schemas, information_schema where it describes tables. Joins, aggregates and ORDER BY " +
			"run over all data; only the final rows are capped at limit, and truncated says whether there were more. warnings " +
			"tells what looks meant otherwise. Integers beyond ±2^53 and decimals are strings, DATETIME is 2026-01-31T09:00:00 " +
			"without a zone (TIMESTAMP in UTC), binary data base64:…. B2C tables (member, campaign_application, review) are for " +
			"analytics, never for a mailing. Every statement is recorded. Start with describe_schema or get_ddl.",
		Input: schema.Object(
			schema.Required("sql", schema.String("One statement, without a semicolon.", schema.Length(1, maxSQL))),
			schema.Optional("limit", schema.Integer("Most rows to answer; the server's MCP_MAX_ROW_LIMIT holds too, and row_limit says "+
				"what applied.",
				schema.Range(1, maxSQLRows), schema.Default(defaultSQLRows))),
		),
		Output: schema.Of[readSQLDoc](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation,
				Reason: "The input breaks its schema, the statement is not a single reading one (rule sql.…, with what to write instead), it has " +
					"too many columns (rule sql.columns), or the database refused it (rule sql.server, with details.db_errno), as one that needs more " +
					"than max_temporary_bytes."},
			{Code: fault.DBTimeout,
				Reason: "The statement ran longer than MCP_QUERY_TIMEOUT_MS and was stopped. Read less, or look at its EXPLAIN."},
			{Code: fault.RateLimit,
				Reason: "Too many statements run on the source database, or too many large answers are on their way, or a statement of this key was " +
					"stopped and the database has not ended it yet: write that one cheaper (details.scope is source). Try again after retryAfter " +
					"seconds."},
			{Code: fault.DB,
				Reason: "The source database cannot be reached or broke the statement off (deadlock, lock wait), or the call could not be recorded. " +
					"Try again in a moment."},
		},
		Limits: map[string]int64{
			"default_limit": defaultSQLRows, "max_row_limit": int64(s.MaxRowLimit), "max_result_bytes": int64(s.statements.byteLimit),
			"max_temporary_bytes": s.statements.tmpLimit,
			"max_sql_chars":       maxSQL, "query_timeout_ms": s.QueryTimeout.Milliseconds(),
			"max_concurrent": int64(s.statements.turns.limit), "max_concurrent_per_key": int64(s.statements.turns.perKey),
		},
		Examples: examples(toolExecuteReadSQL),
		Timeout:  s.QueryTimeout + deadlineMargin,
	}, s.ExecuteReadSQL)
}

// sqlRefused is the answer to a statement that the guard refuses.
func sqlRefused(rule, message string) error {
	return fault.New(fault.Validation, "The statement is refused (%s): %s.", rule, message).
		With(map[string]any{"violations": []schema.Violation{{Path: "/sql", Rule: rule, Message: message}}})
}

// AuditLog is the part of audit.Log that keeps statements.
type AuditLog interface {
	Away() error
	Queue(audit.Entry)
	Write(context.Context, audit.Entry) error
}

// AuditTo returns the record of statements that an audit log keeps.
func AuditTo(log AuditLog) SQLAudit { return sqlAudit{log} }

type sqlAudit struct{ log AuditLog }

type sqlDetail struct {
	SQL       string   `json:"sql"`
	Columns   []string `json:"columns"`
	RowCount  int      `json:"row_count"`
	Truncated bool     `json:"truncated"`
}

// hashOf is the hash of the input as its schema reads it, defaults filled in: the same call has the same hash.
func hashOf(in ReadSQLIn) ([]byte, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("input of %s: %w", toolExecuteReadSQL, err)
	}
	return audit.HashInput(input), nil
}

// Away implements SQLAudit. The statement is not in the record of a refused call: it did not run, and many of them are to wait.
func (a sqlAudit) Away(ctx context.Context, in ReadSQLIn) error {
	away := a.log.Away()
	if away == nil {
		return nil
	}
	hash, err := hashOf(in)
	if err != nil {
		return err
	}
	a.log.Queue(audit.Entry{At: time.Now(), Caller: caller.From(ctx), Tool: toolExecuteReadSQL, Outcome: audit.Outcome(away),
		InputHash: hash, TraceID: audit.TraceID(ctx)})
	return away
}

// Record implements SQLAudit.
func (a sqlAudit) Record(ctx context.Context, r SQLRecord) error {
	if r.Columns == nil {
		r.Columns = []string{}
	}
	hash, err := hashOf(r.Input)
	if err != nil {
		return err
	}
	return a.log.Write(ctx, audit.Entry{
		At: r.At, Caller: caller.From(ctx), Tool: toolExecuteReadSQL, Outcome: audit.Outcome(r.Err), Count: r.RowCount, Took: r.Took,
		InputHash: hash,
		Detail:    sqlDetail{SQL: r.Input.SQL, Columns: r.Columns, RowCount: r.RowCount, Truncated: r.Truncated},
	})
}
