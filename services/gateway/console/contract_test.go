package console_test

import (
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/gateway/console"
)

func TestContracts(t *testing.T) {
	for _, owner := range []string{"auth", "admin", "payments", "review-control"} {
		contract.Clients(t, caller.Gateway, owner, console.Contracts(owner)...)
	}
}
