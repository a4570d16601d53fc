package apps

import "time"

// NewApp and NewToken open the rules to their tests.
var (
	NewApp   = newApp
	NewToken = newToken
)

// Become opens the states.
func (a App) Become(to Status, reason string, now time.Time) (App, error) {
	return a.become(to, reason, now)
}
