package payments_test

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkWebhooks tells of the deposits of 1,000 orders within two seconds: how long an acknowledgement takes, and how long it is
// from the first webhook until all orders are paid and what their apps are told is stored.
func BenchmarkWebhooks(b *testing.B) {
	const orders, within = 1000, 2 * time.Second
	var acks []time.Duration
	var applied time.Duration
	for b.Loop() {
		b.StopTimer()
		s := newShop(b, options{})
		s.do(s.sim.SetWebhookURL("")) // this test tells
		codes := make([]string, orders)
		for _, err := range together(8, func(w int) error {
			for i := w; i < orders; i += 8 {
				a, err := s.call(create, "", `{"amount":11000,"payMethod":"vbank"}`)
				if err != nil {
					return err
				}
				codes[i] = a.Order.Code
				if err := s.sim.Deposit(a.Order.Code, 11000, time.Time{}, 1); err != nil {
					return err
				}
			}
			return nil
		}) {
			s.do(err)
		}
		bodies := make([][]byte, orders)
		for i, code := range codes {
			bodies[i] = s.hook(s.truth(code).Payments[0], code, "paid")
		}
		b.StartTimer()
		began := time.Now()
		took := make([]time.Duration, orders)
		var all sync.WaitGroup
		for i, body := range bodies {
			time.Sleep(time.Until(began.Add(within * time.Duration(i) / orders)))
			all.Go(func() {
				sent := time.Now()
				if !s.acked(body) {
					b.Error("not acknowledged")
				}
				took[i] = time.Since(sent)
			})
		}
		all.Wait()
		for s.rows(`SELECT count(*) FROM payments.orders WHERE status = 'PAID'`) < orders {
			time.Sleep(20 * time.Millisecond)
		}
		applied += time.Since(began)
		acks = append(acks, took...)
		b.StopTimer()
		s.stop()
		b.StartTimer()
	}
	slices.Sort(acks)
	b.ReportMetric(float64(acks[len(acks)*99/100].Microseconds())/1000, "ack-p99-ms")
	b.ReportMetric(float64(acks[len(acks)/2].Microseconds())/1000, "ack-p50-ms")
	b.ReportMetric(float64(applied.Milliseconds())/float64(b.N), "applied-ms")
}
