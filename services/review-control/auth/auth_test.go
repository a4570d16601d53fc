package auth_test

import (
	"testing"

	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/review-control/auth"
)

func TestContracts(t *testing.T) {
	t.Parallel()
	contract.Clients(t, "review-control", "auth", auth.Contracts()...)
}
