package statements

import (
	"database/sql"

	"hub.internal/pkg/telemetry"
	"hub.internal/services/query/mysql/server"
)

// Pools are those of one server of the source.
// package replicas has one for each server.
type Pools struct {
	Server *server.Server
	Reader *Reader
}

// Observe shows the pools of the source, over all its servers, until forget is called: those of the fixed statements,
// of callers' sessions, and of kills.
// They are summed up under one name each, since an operator asks whether callers wait for connections, and not where.
func Observe(servers ...Pools) (forget func()) {
	var ends []func()
	for name, of := range map[string]func(Pools) []*sql.DB{
		"source":          func(p Pools) []*sql.DB { return []*sql.DB{p.Server.DB()} },
		"source sessions": func(p Pools) []*sql.DB { return []*sql.DB{p.Reader.ordinary.db, p.Reader.heavy.db, p.Reader.groups.db} },
		"source kills":    func(p Pools) []*sql.DB { return []*sql.DB{p.Reader.kills} },
	} {
		ends = append(ends, telemetry.ObservePool(name, func() (sum telemetry.Pool) {
			for _, p := range servers {
				for _, db := range of(p) {
					st := db.Stats()
					sum.Max += int64(st.MaxOpenConnections)
					sum.Used += int64(st.InUse)
					sum.Idle += int64(st.Idle)
					sum.Waits += st.WaitCount
					sum.Waited += st.WaitDuration
				}
			}
			return sum
		}))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
