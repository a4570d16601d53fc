package query

import "hub.internal/pkg/telemetry"

// Observe shows the turns of callers' statements and the memory of their answers, until forget is called.
func (s *Service) Observe() (forget func()) {
	turns := telemetry.ObserveBulkhead("sql", func() telemetry.Bulkhead { return s.statements.turns.gauge() })
	memory := telemetry.ObserveBulkhead("sql answers", func() telemetry.Bulkhead {
		taken, waiting, refused := s.statements.memory.Use()
		return telemetry.Bulkhead{Limit: s.statements.memory.Size(), Used: taken, Waiting: waiting, Refused: refused}
	})
	return func() { turns(); memory() }
}

func (b *bulkhead) gauge() telemetry.Bulkhead {
	b.mu.Lock()
	defer b.mu.Unlock()
	return telemetry.Bulkhead{Limit: int64(b.limit), Used: int64(b.total), Waiting: int64(len(b.queue)), Refused: b.refused}
}
