package payments

import "time"

// TransitionOf is the table's answer about a step.
var TransitionOf = transition

// Turns are those of attempts to notify apps.
func Turns() func(app string) (done func(), wait time.Duration) { return newTurns().take }
