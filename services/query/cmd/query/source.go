package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"hub.internal/pkg/service"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/replicas"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
	"hub.internal/services/query/recipients"
)

// from is the source database, whether it is one server or several.
type from struct {
	source interface {
		query.Source
		recipients.Source
		Ping(context.Context) error
	}
	reader   query.StatementReader
	replicas func() []query.ReplicaHealth // nil for one server
	pools    []statements.Pools
}

// open opens the source. The accounts are judged before the first call; which servers are there, later.
func open(h *service.Host, s settings) (from, error) {
	source := server.Options{PoolSize: s.SourcePool, StatementTimeout: min(s.timeout(), server.DefaultStatementTimeout),
		Functions: s.SQLFunctions, Logger: h.Logger(),
		TLS: server.TLS{CA: s.SourceCA.Reveal(), Cert: s.SourceCert.Reveal(), Key: s.SourceKey.Reveal(), ServerKey: s.SourceServerKey.Reveal()}}
	reader := statements.ReaderOptions{Timeout: s.timeout(), Sessions: s.SQLConcurrent + s.SQLConcurrent/2, MaxRows: s.MaxRowLimit,
		TmpBytes: s.SQLTmpBytes, Logger: h.Logger()}
	if s.SourceDSNs != "" {
		return several(h, s, replicas.Options{Source: source, Reader: reader, MaxLag: s.SourceMaxLag, LagSQL: s.SourceLagSQL,
			Logger: h.Logger()})
	}
	one, err := mysql.Open(s.SourceDSN.Reveal(), source)
	if err != nil {
		return from{}, fmt.Errorf("configuration: %w", err)
	}
	if err := proven(h.Context(), one, h.Logger()); err != nil {
		return from{}, err
	}
	callers := statements.NewReader(one.Server, reader)
	h.Check("source", "HUB_SOURCE_DSN", one.Prove)
	h.OnStop("source", func(context.Context) error { return one.Close() })
	h.OnStop("reader", func(context.Context) error { return callers.Close() })
	return from{source: one, reader: callers, pools: []statements.Pools{{Server: one.Server, Reader: callers}}}, nil
}

func several(h *service.Host, s settings, o replicas.Options) (from, error) {
	set, err := replicas.Open(replicas.Split(s.SourceDSNs.Reveal()), o)
	if err != nil {
		return from{}, fmt.Errorf("configuration: %w", err)
	}
	if err := set.Prove(h.Context()); err != nil {
		return from{}, err
	}
	h.Check("source", "HUB_SOURCE_DSNS", set.Reach)
	h.OnStop("source", func(context.Context) error { return set.Close() })
	h.Go("source replicas", set.Watch)
	return from{source: set, reader: set, replicas: set.Replicas, pools: set.Pools()}, nil
}

// proven refuses to start with an account that may do more than read. A source that
// cannot be reached now is judged before its first use instead; until then its tools
// answer E_DB.
func proven(ctx context.Context, source *mysql.Source, logger *slog.Logger) error {
	err := source.Prove(ctx)
	var grants *server.GrantsError
	if errors.As(err, &grants) {
		return fmt.Errorf("HUB_SOURCE_DSN: %w", grants)
	}
	if err != nil {
		logger.WarnContext(ctx, "the source database cannot be used yet", "error", err)
	}
	return nil
}
