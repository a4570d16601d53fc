package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestConsulFailover: services that find one another through a real Consul agent. One of two instances of query is killed
// under load, comes back, and then the other one is: no call fails.
func TestConsulFailover(t *testing.T) {
	t.Parallel()
	consul := hubtest.Consul(t)
	s := start(t, options{twice: "query", env: []string{"HUB_DISCOVERY=consul", "HUB_CONSUL_ADDR=" + consul.Addr()}})
	passing := func(n int) func() bool {
		return func() bool {
			resp, err := http.Get("http://" + consul.Addr() + "/v1/health/service/query?passing")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			var list []any
			return json.NewDecoder(resp.Body).Decode(&list) == nil && len(list) == n
		}
	}
	hubtest.Eventually(t, "Consul has both", passing(2))
	hubtest.Eventually(t, "the tools answer", func() bool { return s.call("get_brand", `{"brandId":1}`).OK })
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var calls atomic.Int64
	for i := range 8 {
		tool := []struct{ name, input string }{{"get_brand", `{"brandId":1}`},
			{"execute_read_sql", `{"sql":"SELECT COUNT(*) FROM campaign"}`}}[i%2]
		all.Go(func() {
			for ctx.Err() == nil {
				if r, err := s.send(context.Background(), s.url, "POST", "/api/tools/"+tool.name, tool.input); err != nil || !r.OK {
					t.Errorf("%s: %v %s", tool.name, err, r.raw)
				}
				calls.Add(1)
			}
		})
	}
	goOn := func() {
		enough := calls.Load() + 100
		hubtest.Eventually(t, "calls go on", func() bool { return calls.Load() > enough })
	}
	for i, name := range []string{"query", "query-2"} {
		goOn()
		s.process[name].Kill()
		goOn()
		hubtest.Eventually(t, fmt.Sprint("Consul has seen that ", name, " is gone"), passing(1))
		goOn()
		if i == 0 {
			s.start(name)
			hubtest.Eventually(t, name+" is back", passing(2))
		}
	}
	stop()
	all.Wait()
	t.Logf("%d calls", calls.Load())
}
