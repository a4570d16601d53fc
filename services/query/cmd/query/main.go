// Command query is the service that answers the query tools from the source database.
package main

import (
	"context"
	"fmt"
	"os"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/service"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/sqlguard"
)

// program has no tables but the audit log that it appends to.
var program = service.Program[settings]{Name: "query", Short: "The service that answers the query tools from the source database",
	Migrate: audit.Migrate, Manifest: query.Manifest, Build: build}

func main() { os.Exit(program.Main()) }

func build(h *service.Host, s settings) error {
	guard, err := sqlguard.New(sqlguard.Options{Functions: s.SQLFunctions, MaxResultBytes: s.MaxResultBytes})
	if err != nil {
		return fmt.Errorf("configuration: HUB_SQL_FUNCTIONS: %w", err)
	}
	source, err := mysql.Open(s.SourceDSN.Reveal(), mysql.Options{
		PoolSize: s.SourcePool, StatementTimeout: min(s.timeout(), mysql.DefaultStatementTimeout), Functions: s.SQLFunctions})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := proven(h.Context(), source, h.Logger()); err != nil {
		return err
	}
	reader := mysql.NewReader(source, mysql.ReaderOptions{Timeout: s.timeout(), Sessions: s.SQLConcurrent + s.SQLConcurrent/2,
		MaxRows:  s.MaxRowLimit,
		TmpBytes: s.SQLTmpBytes, Logger: h.Logger()})
	h.Check("source", "HUB_SOURCE_DSN", source.Prove)
	h.OnStop("source", func(context.Context) error { return source.Close() })
	h.OnStop("reader", func(context.Context) error { return reader.Close() })
	svc := query.New(query.Config{Source: source, Ping: source.Ping, Reader: reader, Guard: guard, Audit: query.AuditTo(h.Audit()),
		MaxRowLimit:  s.MaxRowLimit,
		QueryTimeout: s.timeout(),
		SQL: query.SQLLimits{ResultBytes: s.MaxResultBytes, Concurrent: s.SQLConcurrent, PerKey: s.SQLPerKey, Wait: s.SQLWait,
			TmpBytes: s.SQLTmpBytes}})
	forgetPools, forgetTurns := mysql.Observe(source, reader), svc.Observe()
	h.OnStop("gauges of the source", func(context.Context) error { forgetPools(); forgetTurns(); return nil })
	h.Tools(query.Tools(svc)...)
	h.Operations(query.Operations(svc, query.NewRecipients(source))...)
	return nil // ready without the source: all replicas share it
}
