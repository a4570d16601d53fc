package auth_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/services/payments/auth"
)

type asked struct {
	ServiceCode string `json:"service_code"`
}

// TestAnotherAppsSettings: auth may answer for another app than was asked about; its secrets sign nothing of this one's.
func TestAnotherAppsSettings(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	h := rpc.Server{Mux: mux, Keys: callertest.Keys(t, "auth", "payments"), Logger: logger}
	h.Operation(contract.Lie(t, "auth", rpc.Declaration{Path: "/internal/apps/settings", Takes: caller.Neighbour("payments")},
		func(context.Context, asked) (map[string]any, error) {
			return map[string]any{
				"service_code":    "shop",
				"status":          "ACTIVE",
				"redirect_urls":   []string{},
				"origins":         []string{},
				"webhook_secrets": []string{"whsec_x"},
			}, nil
		}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := remote.New(remote.Options{Service: "auth", Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
		Keys: callertest.Keys(t, "payments"), Logger: logger, Patience: hubtest.Patience})
	t.Cleanup(client.Close)
	if a, err := auth.New(client).App(t.Context(), "shop"); err != nil || len(a.Secrets) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err := auth.New(client).App(t.Context(), "other"); !fault.Is(err, fault.DB) || len(a.Secrets) > 0 {
		t.Errorf("%+v, %v", a, err)
	}
}
