package gateway_test

import (
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/gateway"
)

func TestContracts(t *testing.T) {
	contract.Clients(t, caller.Gateway, "auth", gateway.Contracts()...)
}
