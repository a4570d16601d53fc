package bulkhead

// Remembered is of how many networks the tries are counted.
func (t *Bulkhead) Remembered() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.attempts.current) + len(t.attempts.old)
}
