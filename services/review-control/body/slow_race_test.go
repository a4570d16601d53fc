//go:build race

package body

// slow is how much slower the code is built for this test; large is a large body for it.
const (
	slow  = 10
	large = 1 << 16
)
