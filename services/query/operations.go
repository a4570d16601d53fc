package query

import (
	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
	"hub.internal/services/query/recipients"
)

// Operations declares what query does for its neighbours.
func Operations(s *Service, r *recipients.Judge) []rpc.Operation {
	return []rpc.Operation{
		rpc.New(rpc.Declaration{Path: recipients.Path, Takes: caller.Neighbour("authoring"), MaxBody: recipients.MaxBody}, r.Check),
		rpc.New(rpc.Declaration{Path: recipients.IDsPath, Takes: caller.Neighbour("authoring"), MaxBody: recipients.IDsMaxBody}, r.CheckIDs),
		rpc.New(rpc.Declaration{Path: recipients.RowsPath, Takes: caller.Neighbour("authoring")}, r.Rows),
		healthOperation(s),
		rpc.New(rpc.Declaration{Path: NewestPath, Takes: caller.Neighbour(caller.Gateway)}, s.newestRows),
	}
}
