package mcp_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/services/gateway/mcp"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"x","version":"1"}}}`

func TestContracts(t *testing.T) {
	contract.Clients(t, caller.Gateway, "query", mcp.Contracts()...)
}

// TestAnswersTellTheDay: a model knows neither the day nor how new the source's rows are.
func TestAnswersTellTheDay(t *testing.T) {
	t.Parallel()
	clock := hubtest.NewClock(time.Date(2026, 11, 26, 7, 30, 0, 0, time.FixedZone("KST", 9*60*60)))
	e := newFixture(t, func(o *mcp.Options) { o.Now = clock.Now })
	want := mcp.Instructions + " Today is Wednesday, 2026-11-25; times are UTC."
	if got := e.post(t, e.urls[0], allScopes, hello).Result.Instructions; got != want {
		t.Errorf("got %s", got)
	}
	meta := e.post(t, e.urls[0], allScopes, call(1, "get_brand", brand, "")).Result.Meta
	if meta["hub/now"] != "2026-11-25T22:30:00.000Z" || meta["hub/timeZone"] != "UTC" || meta["hub/newest"] != nil {
		t.Errorf("got %v", meta)
	}
	refused := e.post(t, e.urls[0], allScopes, call(1, "get_brand", `{"brandId":true}`, ""))
	if !refused.Result.IsError || refused.Result.Meta["hub/now"] != meta["hub/now"] {
		t.Errorf("got %s", refused.body)
	}
}

// TestTheNewestRowsAreTold: what query said last stands in the instructions and in each answer, while it is away too.
func TestTheNewestRowsAreTold(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var away error
	e := newFixture(t, func(o *mcp.Options) {
		o.Newest = func(context.Context) (map[string]string, error) {
			stop()
			return map[string]string{"deposit_transaction": "2026-06-30T23:32:00", "campaign": "2026-09-11T17:22:00"}, away
		}
	})
	for _, away = range []error{nil, errors.New("query is away")} {
		if err := e.servers[0].Follow(ctx); err != nil {
			t.Fatal(err)
		}
		hello := e.post(t, e.urls[0], allScopes, hello)
		if !strings.HasSuffix(hello.Result.Instructions, " times are UTC. The source's newest rows: campaign 2026-09-11T17:22:00, "+
			"deposit_transaction 2026-06-30T23:32:00; nothing later is known, whatever happened.") {
			t.Errorf("got %s", hello.body)
		}
		want := map[string]any{"deposit_transaction": "2026-06-30T23:32:00", "campaign": "2026-09-11T17:22:00"}
		if got := e.post(t, e.urls[0], allScopes, call(1, "get_brand", brand, "")).Result.Meta["hub/newest"]; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v", got)
		}
	}
}
