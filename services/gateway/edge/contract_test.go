package edge_test

import (
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/gateway/edge"
)

func TestContracts(t *testing.T) {
	contract.Clients(t, caller.Gateway, "auth", edge.Contracts()...)
}
