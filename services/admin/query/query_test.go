package query_test

import (
	"testing"

	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/admin/query"
)

func TestContracts(t *testing.T) {
	t.Parallel()
	contract.Clients(t, "admin", "query", query.Contracts()...)
}
