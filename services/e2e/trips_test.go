package e2e_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTrips: how many round trips to the write store a call waits for, whichever service makes them. They are told by how long the
// call takes while the store is far away; the services' own tests count their parts.
func TestTrips(t *testing.T) {
	const distance = 400 * time.Millisecond
	x := newShopWith(t, options{far: true})
	var n atomic.Int64
	segment := `{"name":"far","kind":"partner","targets":[{"externalId":1,"snapshot":{}}]}`
	for _, c := range []struct {
		name string
		most int
		call func(key string) reply
	}{
		{"an order", 8, func(key string) reply {
			return x.v1(t, "POST", "/v1/pay/orders", `{"amount":11000}`, "Idempotency-Key", key)
		}},
		{"a list of orders", 4, func(string) reply { return x.v1(t, "GET", "/v1/pay/orders", "") }},
		{"a segment", 4, func(key string) reply { return x.call("create_segment", segment, "Idempotency-Key", key) }},
		{"the catalog", 1, func(string) reply {
			r, err := x.send(t.Context(), x.url, "GET", "/api/tools", "")
			if err != nil {
				t.Error(err)
			}
			return r
		}},
	} {
		call := func() time.Duration {
			r := c.call(fmt.Sprint("far-", n.Add(1)))
			if r.status >= 400 {
				t.Errorf("%s: %d %s", c.name, r.status, r.raw)
			}
			return r.took
		}
		// Sessions that are new, and statements that they do not know, cost trips of their own.
		for range 3 {
			var warm sync.WaitGroup
			for range 12 {
				warm.Go(func() { call() })
			}
			warm.Wait()
		}
		x.distance.Set(distance)
		least := time.Duration(1<<63 - 1)
		for range 10 {
			if least = min(least, call()); least < time.Duration(c.most+1)*distance {
				break
			}
		}
		x.distance.Set(0)
		t.Logf("%s: %.1f trips", c.name, least.Seconds()/distance.Seconds())
		if least >= time.Duration(c.most+1)*distance {
			t.Errorf("%s takes %v where the store is %v away: it may make %d round trips", c.name, least, distance, c.most)
		}
	}
}
