package mysql

import (
	"database/sql"

	"hub.internal/pkg/telemetry"
)

// Observe shows the pools of a source and its reader, until forget is called: those of the fixed statements,
// of callers' sessions, and of kills.
func Observe(s *Source, r *Reader) (forget func()) {
	var ends []func()
	for name, db := range map[string]*sql.DB{"source": s.db, "source sessions": r.db, "source kills": r.kills} {
		ends = append(ends, telemetry.ObservePool(name, func() telemetry.Pool {
			st := db.Stats()
			return telemetry.Pool{Max: int64(st.MaxOpenConnections), Used: int64(st.InUse), Idle: int64(st.Idle),
				Waits: st.WaitCount, Waited: st.WaitDuration}
		}))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
