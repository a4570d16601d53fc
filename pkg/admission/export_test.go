package admission

const (
	Floor    = floor
	Patience = patience
	Reserve  = reserve
)

// Begin is New with another limit to begin with.
func Begin(most, limit int) *Limiter {
	l := New(most)
	l.pace.limit = float64(limit)
	return l
}

// Open is how many places are taken, and Accounts how many callers are remembered.
func (l *Limiter) Open() (open, accounts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, len(l.accounts)
}
