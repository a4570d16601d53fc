package query

import (
	"context"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/telemetry"
)

// HealthPath is where admin asks how the source database is.
const HealthPath = "/internal/source/health"

// pingTakes is how long the source may take to answer a health check: whoever asks waits for a page.
const pingTakes = 700 * time.Millisecond

// HealthRequest asks for it.
type HealthRequest struct{}

// HealthResponse tells how the source is to this replica of query, and what of execute_read_sql runs there.
type HealthResponse struct {
	Reachable bool `json:"reachable"`
	// TookMS is how long the source took to answer, in milliseconds.
	TookMS float64 `json:"took_ms"`
	// Running statements have a slot, of Slots; Waiting ones have none yet; Runaway ones have outlived their kill.
	Running int `json:"running"`
	Slots   int `json:"slots"`
	Waiting int `json:"waiting"`
	Runaway int `json:"runaway"`
	// Replicas are the source's servers, where there may be several.
	Replicas []ReplicaHealth `json:"replicas,omitempty"`
}

// ReplicaHealth tells how one of the source's servers is.
type ReplicaHealth struct {
	Addr string `json:"addr"`
	// Up ones answer; Asked ones are within the lag limit too, or nobody can tell.
	Up    bool `json:"up"`
	Asked bool `json:"asked"`
	// LagSeconds is null while nobody knows it.
	LagSeconds *float64 `json:"lag_seconds"`
}

// healthOperation is asked by admin for itself.
func healthOperation(s *Service) rpc.Operation {
	return rpc.New(rpc.Declaration{Path: HealthPath, Takes: caller.Neighbour("admin")}, s.health)
}

func (s *Service) health(ctx context.Context, _ HealthRequest) (HealthResponse, error) {
	load := s.statements.turns.Load()
	slots, _ := s.statements.turns.Limits()
	h := HealthResponse{Running: load.Running, Slots: slots, Waiting: load.Waiting, Runaway: load.Overdue}
	if s.Replicas != nil {
		h.Replicas = s.Replicas()
	}
	if s.Ping == nil {
		return h, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTakes)
	defer cancel()
	start := time.Now()
	h.Reachable = s.Ping(ctx) == nil
	h.TookMS = float64(time.Since(start).Microseconds()) / 1000
	return h, nil
}

// Observe shows the turns of callers' statements and the memory of their answers, until forget is called.
func (s *Service) Observe() (forget func()) {
	turns := telemetry.ObserveBulkhead("sql", s.statements.turns.Gauge)
	memory := telemetry.ObserveBulkhead("sql answers", func() telemetry.Bulkhead {
		taken, waiting, refused := s.statements.memory.Use()
		return telemetry.Bulkhead{Limit: s.statements.memory.Size(), Used: taken, Waiting: waiting, Refused: refused}
	})
	return func() { turns(); memory() }
}
