package edge_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// careless is an Authenticator of API keys with other stages.
type careless struct {
	edge.APIKeys
	stages func(*edge.Gateway) []edge.Stage
}

func (c careless) Stages(g *edge.Gateway) []edge.Stage { return c.stages(g) }

// anyKey takes every key, and gives it no scope.
type anyKey struct{}

func (anyKey) Verify(context.Context, string) (edge.APIKey, error) {
	rate := edge.Rate{PerMinute: 600, Burst: 600}
	return edge.APIKey{ID: "ak_1", Service: "svc", User: rate, ServiceWide: rate}, nil
}

// request is a call of the tool search_echo.
type request struct{ entry *catalog.Entry }

func (r request) Find() *catalog.Entry                      { return r.entry }
func (request) Read(context.Context, int64) ([]byte, error) { return []byte("{}"), nil }

// TestNoCredentialLeavesTheScopeOut: a credential names the stages of its calls. One whose stages do not say what a call
// may do has no call answered, and those of Hub refuse a caller without the scope.
func TestNoCredentialLeavesTheScopeOut(t *testing.T) {
	manifests := catalog.New(slog.New(slog.DiscardHandler))
	echo := tool.New(
		tool.Declaration{
			Name:        "search_echo",
			Category:    tool.Query,
			Description: "Echoes.",
			Scope:       "query",
			Input:       schema.Object(),
			Position:    1,
		},
		func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil },
	)
	if err := manifests.Update(tool.Manifest{Service: "echo", Tools: []tool.Spec{echo.Spec}}); err != nil {
		t.Fatal(err)
	}
	keys := edge.APIKeys{Keys: anyKey{}}
	for name, c := range map[string]struct {
		credential edge.Authenticator
		refused    fault.Code
	}{
		"API keys":               {keys, fault.Scope},
		"no credential":          {edge.Open{Rate: edge.Rate{PerMinute: 600, Burst: 600}}, ""},
		"no stage at all":        {careless{keys, func(*edge.Gateway) []edge.Stage { return nil }}, fault.Internal},
		"a limit and no scope":   {careless{keys, func(g *edge.Gateway) []edge.Stage { return []edge.Stage{g.Limit} }}, fault.Internal},
		"the scope after limits": {careless{keys, func(g *edge.Gateway) []edge.Stage { return []edge.Stage{g.Limit, g.Scope} }}, fault.Scope},
	} {
		g := &edge.Gateway{Limiter: edge.NewMemory(time.Now), Audit: nowhere{}, Logger: slog.New(slog.DiscardHandler), Catalog: manifests}
		reached := false
		call := &edge.Call{Started: time.Now(), Address: "192.0.2.1", Transport: request{manifests.Entry("search_echo")}}
		if name != "no credential" {
			call.Credential.APIKey = []string{aKey}
		}
		_, err := g.Pipeline(c.credential, func(context.Context, any) (any, error) { reached = true; return nil, nil })(t.Context(), call)
		got := fault.Code("")
		if err != nil {
			got = fault.From(err).Code
		}
		if got != c.refused || reached != (c.refused == "") {
			t.Errorf("%s: %q, reached the tool: %t", name, got, reached)
		}
	}
}
