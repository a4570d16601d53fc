package authoring_test

import (
	"testing"

	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/review-control/authoring"
)

func TestContracts(t *testing.T) {
	contract.Clients(t, "review-control", "authoring", authoring.Contracts()...)
}
