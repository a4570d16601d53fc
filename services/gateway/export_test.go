package gateway

// Compiled counts the manifests that the catalog has compiled.
func (c *Catalog) Compiled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compiled
}

// WithValue is the input of a body and a value of its path.
func WithValue(name, value string, body []byte) []byte {
	return (&match{values: []member{{name, value}}}).withValues(body)
}
