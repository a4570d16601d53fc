package turns

// Remembered is of how many networks the tries are counted.
func (t *Turns) Remembered() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tried.current) + len(t.tried.old)
}
