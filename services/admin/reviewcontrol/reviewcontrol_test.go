package reviewcontrol_test

import (
	"testing"

	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/admin/reviewcontrol"
)

func TestContracts(t *testing.T) {
	t.Parallel()
	contract.Clients(t, "admin", "review-control", reviewcontrol.Contracts()...)
}
