package payments

import "time"

// Turns are those of attempts to notify apps.
func Turns() func(app string) (done func(), wait time.Duration) { return newTurns().take }
