package admission

const (
	Floor    = floor
	Patience = patience
	Reserve  = reserve
)

// Open is how many places are taken, and Accounts how many callers are remembered.
func (l *Limiter) Open() (open, accounts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, len(l.accounts)
}
