package bulkhead

// Remembered is of how many networks the tries are counted.
func (b *Bulkhead) Remembered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.attempts.current) + len(b.attempts.old)
}
