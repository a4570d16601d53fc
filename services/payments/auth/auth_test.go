package auth_test

import (
	"testing"

	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/payments/auth"
)

func TestContracts(t *testing.T) {
	t.Parallel()
	contract.Clients(t, "payments", "auth", auth.Contracts()...)
}
