package payments

import "time"

// NewBulkhead are those of attempts to notify apps.
func NewBulkhead() func(app string) (done func(), wait time.Duration) { return newBulkhead().acquire }
