package catalog

// Compiled counts the manifests that the catalog has compiled.
func (c *Catalog) Compiled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compiled
}
