package remote

import "sync"

// budget is a retry budget (a token bucket): it lets retries be a tenth of the calls, with a little to begin with, so that
// a service in trouble is not buried under second attempts.
type budget struct {
	mu     sync.Mutex
	tokens float64
}

const (
	// budgetStart, budgetMax and budgetEarn are in retries: what a client begins with, may save up, and earns with each call.
	budgetStart = 10
	budgetMax   = 100
	budgetEarn  = 0.1
)

func newBudget() *budget { return &budget{tokens: budgetStart} }

// earn is called with each call.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+budgetEarn, budgetMax)
}

// spend pays for a retry; it is false when there is nothing to pay with.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
