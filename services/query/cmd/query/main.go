// Command query is the service that answers the query tools from the source database.
package main

import (
	"context"
	"fmt"
	"os"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/service"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/statements"
	"hub.internal/services/query/recipients"
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
	from, err := open(h, s)
	if err != nil {
		return err
	}
	svc := query.New(query.Config{Source: from.source, Ping: from.source.Ping, Replicas: from.replicas, Reader: from.reader, Guard: guard,
		Audit:        query.AuditTo(h.Audit()),
		MaxRowLimit:  s.MaxRowLimit,
		QueryTimeout: s.timeout(),
		SQL: query.SQLLimits{ResultBytes: s.MaxResultBytes, Concurrent: s.SQLConcurrent, PerKey: s.SQLPerKey, Wait: s.SQLWait,
			TmpBytes: s.SQLTmpBytes}})
	forgetPools, forgetTurns := statements.Observe(from.pools...), svc.Observe()
	h.OnStop("gauges of the source", func(context.Context) error { forgetPools(); forgetTurns(); return nil })
	h.Tools(query.Tools(svc)...)
	h.Operations(query.Operations(svc, recipients.New(from.source))...)
	return nil // ready without the source: all replicas share it
}
