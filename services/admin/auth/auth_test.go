package auth_test

import (
	"testing"

	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/admin/auth"
)

func TestContracts(t *testing.T) {
	t.Parallel()
	contract.Clients(t, "admin", "auth", auth.Contracts()...)
}
