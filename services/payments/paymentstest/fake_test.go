package paymentstest_test

import (
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/payments"
	"hub.internal/services/payments/paymentstest"
)

func TestFakeKeepsTheContract(t *testing.T) {
	paymentstest.Contract(t, func(_ *testing.T, auto bool) *paymentstest.World {
		clock := hubtest.NewClock(time.Time{})
		cred := payments.NewCred(7, payments.Sandbox, "client", "CANARY-SECRET")
		fake := paymentstest.NewFake(cred, clock.Now)
		fake.AutoIssue = auto
		return &paymentstest.World{Provider: fake, Control: fake, Cred: cred, Now: clock.Now, Advance: clock.Advance, Webhooks: fake.Flush}
	})
}
