package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/config"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/process"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/sqlguard"
)

// name is the service's discovery name.
const name = "query"

type settings struct {
	process.Settings
	SourceDSN      config.Secret `env:"HUB_SOURCE_DSN,required,notEmpty"`
	SourcePool     int           `env:"HUB_SOURCE_POOL" envDefault:"16"`
	WriteStoreURL  config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
	MaxRowLimit    int           `env:"MCP_MAX_ROW_LIMIT" envDefault:"1000"`
	QueryTimeoutMS int64         `env:"MCP_QUERY_TIMEOUT_MS" envDefault:"30000"`
	MaxResultBytes int           `env:"HUB_MAX_RESULT_BYTES" envDefault:"16777216"`
	SQLFunctions   []string      `env:"HUB_SQL_FUNCTIONS"`
	SQLConcurrent  int           `env:"HUB_SQL_CONCURRENT" envDefault:"8"`
	SQLPerKey      int           `env:"HUB_SQL_PER_KEY"` // 0 is half of HUB_SQL_CONCURRENT
	SQLWait        time.Duration `env:"HUB_SQL_WAIT" envDefault:"2s"`
}

func (s settings) check() error {
	for setting, n := range map[string]int64{"HUB_SOURCE_POOL": int64(s.SourcePool), "MCP_MAX_ROW_LIMIT": int64(s.MaxRowLimit), "MCP_QUERY_TIMEOUT_MS": s.QueryTimeoutMS,
		"HUB_MAX_RESULT_BYTES": int64(s.MaxResultBytes), "HUB_SQL_CONCURRENT": int64(s.SQLConcurrent), "HUB_SQL_WAIT": int64(s.SQLWait)} {
		if n < 1 {
			return fmt.Errorf("configuration: %s has to be positive, not %d", setting, n)
		}
	}
	return nil
}

func serve(ctx context.Context, environ []string) error {
	s, err := config.Load[settings](environ)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return err
	}
	for i, f := range s.SQLFunctions {
		s.SQLFunctions[i] = strings.TrimSpace(f)
	}
	guard, err := sqlguard.New(sqlguard.Options{Functions: s.SQLFunctions, MaxResultBytes: s.MaxResultBytes})
	if err != nil {
		return fmt.Errorf("configuration: HUB_SQL_FUNCTIONS: %w", err)
	}
	timeout := time.Duration(s.QueryTimeoutMS) * time.Millisecond
	source, err := mysql.Open(s.SourceDSN.Reveal(), mysql.Options{
		PoolSize: s.SourcePool, StatementTimeout: min(timeout, mysql.DefaultStatementTimeout), Functions: s.SQLFunctions,
	})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	store, err := postgres.Open(postgres.Config{URL: s.WriteStoreURL.Reveal()})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	p, err := process.Start(ctx, name, s.Settings, s)
	if err != nil {
		return err
	}
	if err := proven(ctx, source, p.Logger); err != nil {
		return err
	}
	reader := mysql.NewReader(source, mysql.ReaderOptions{Timeout: timeout, Sessions: s.SQLConcurrent + s.SQLConcurrent/2, MaxRows: s.MaxRowLimit, Logger: p.Logger})
	log := audit.NewLog(store, p.Logger)
	service := query.New(query.Config{
		Source: source, Reader: reader, Guard: guard, Audit: query.AuditTo(log), MaxRowLimit: s.MaxRowLimit, QueryTimeout: timeout,
		SQL: query.SQLLimits{ResultBytes: s.MaxResultBytes, Concurrent: s.SQLConcurrent, PerKey: s.SQLPerKey, Wait: s.SQLWait},
	})
	p.OnStop("write store", func(context.Context) error { store.Close(); return nil })
	p.OnStop("audit log", log.Close)
	p.OnStop("source", func(context.Context) error { return source.Close() })
	p.OnStop("reader", func(context.Context) error { return reader.Close() })

	mux := http.NewServeMux()
	p.Health(mux) // ready without the source: all replicas share it
	tool.Mount(mux, name, query.Tools(service), p.Keys, p.Logger,
		func(spec tool.Spec) endpoint.Middleware { return telemetry.Endpoint(spec.Name) },
		log.Middleware("execute_read_sql")) // which records itself before it answers
	query.NewRecipients(source).Mount(mux, p.Keys, p.Logger)
	addr, err := p.Serve("internal", s.Addr, mux)
	if err != nil {
		return err
	}
	if err := p.Announce(name, addr); err != nil {
		return err
	}
	return p.Run(ctx)
}

// proven refuses to start with an account that may do more than read. A source that
// cannot be reached now is judged before its first use instead; until then its tools
// answer E_DB.
func proven(ctx context.Context, source *mysql.Source, logger *slog.Logger) error {
	err := source.Prove(ctx)
	var grants *mysql.GrantsError
	if errors.As(err, &grants) {
		return fmt.Errorf("HUB_SOURCE_DSN: %w", grants)
	}
	if err != nil {
		logger.WarnContext(ctx, "the source database cannot be used yet", "error", err)
	}
	return nil
}
