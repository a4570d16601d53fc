package query_test

import (
	"testing"

	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/authoring/query"
)

func TestContracts(t *testing.T) {
	contract.Clients(t, "authoring", "query", query.Contracts()...)
}
