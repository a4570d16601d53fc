//go:build race

package markup_test

// slow is how much slower the code is built for this test; large is a large text for it.
const (
	slow  = 10
	large = 1 << 16
)
