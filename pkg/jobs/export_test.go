package jobs

import "hub.internal/pkg/telemetry"

// Sample is the runner's.
func (r Runner) Sample() *telemetry.Sample { return r.sample() }
