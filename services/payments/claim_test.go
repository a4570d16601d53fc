package payments_test

import (
	"testing"

	"hub.internal/services/payments"
)

// TestSubjectsOfClaims: what a claim is about is read as it was written, and written as the release before reads it.
func TestSubjectsOfClaims(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]payments.Subject{
		"po_1":        {Kind: payments.NewOrder, Code: "po_1"},
		"known po_1":  {Kind: payments.KnownOrder, Code: "po_1"},
		"cancel po_1": {Kind: payments.Cancellation, Code: "po_1"},
		"rf_1":        {Kind: payments.RefundOfOrder, Code: "rf_1"},
	} {
		if got := payments.ParseSubject(stored); got != want || want.String() != stored {
			t.Errorf("%q is read as %+v, and %+v is written as %q", stored, got, want, want.String())
		}
	}
}
