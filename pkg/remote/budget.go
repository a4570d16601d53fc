package remote

import "sync"

// budget lets retries be a tenth of the calls, with a little to begin with, so that
// a service in trouble is not buried under second attempts.
type budget struct {
	mu     sync.Mutex
	tokens float64
}

const (
	budgetStart = 10
	budgetMax   = 100
	budgetEarn  = 0.1
)

func newBudget() *budget { return &budget{tokens: budgetStart} }

func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+budgetEarn, budgetMax)
}

func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
