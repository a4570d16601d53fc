package payments_test

import (
	"fmt"
	"testing"
)

// TestTrips: a store may be far away, and each round trip to it is waited for. Those to auth are auth's.
func TestTrips(t *testing.T) {
	t.Parallel()
	s := newShop(t, options{idle: true, far: true})
	n := 0
	var code string
	s.distance.AtMost(t, 6, "an order", func() {
		n++
		code = s.must("pay.orders.create", fmt.Sprint("far-", n), `{"amount":11000}`).Order.Code // of a card: no webhook tells of it yet
	})
	s.distance.AtMost(t, 2, "a list of orders", func() { s.must("pay.orders.list", "", `{}`) })
	s.distance.AtMost(t, 1, "to show an order", func() { s.show(code) })
}
