package statements

import (
	"testing"

	"hub.internal/pkg/hubtest"
)

func TestMain(m *testing.M) { hubtest.Main(m) }
