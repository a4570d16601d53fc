package e2e_test

import (
	"fmt"
	"testing"
	"time"
)

func TestTrips(t *testing.T) {
	const distance = 300 * time.Millisecond
	x := newShopWith(t, options{far: true})
	for _, c := range []struct {
		name string
		most int
		call func(i int) reply
	}{
		{"an order", 8, func(i int) reply {
			return x.v1(t, "POST", "/v1/pay/orders", `{"amount":1000,"payMethod":"vbank"}`, "Idempotency-Key", fmt.Sprint("order-", i))
		}},
		{"orders", 4, func(int) reply { return x.v1(t, "GET", "/v1/pay/orders", "") }},
		{"a segment", 4, func(i int) reply {
			return x.call("create_segment", `{"name":"s","kind":"partner","targets":[{"externalId":1,"snapshot":{"a":1}}]}`,
				"Idempotency-Key", fmt.Sprint("segment-", i))
		}},
		{"the catalog", 1, func(int) reply {
			r, err := x.send(t.Context(), x.url, "GET", "/api/tools", "")
			if err != nil {
				t.Fatal(err)
			}
			return r
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range 3 {
				if r := c.call(i); r.status >= 400 {
					t.Fatalf("%d %s", r.status, r.raw)
				}
			}
			time.Sleep(1500 * time.Millisecond)
			x.distance.Set(distance)
			defer x.distance.Set(0)
			for i := range 3 {
				before := x.distance.Trips()
				r := c.call(100 + i)
				t.Logf("%d %v %.2f trips; counted %d", r.status, r.took, r.took.Seconds()/distance.Seconds(), x.distance.Trips()-before)
				time.Sleep(2500 * time.Millisecond)
			}
		})
	}
}
