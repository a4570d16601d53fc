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

// Buckets is how many buckets are kept.
func (m *Memory) Buckets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tats)
}

// BucketName is how a bucket of a member of a group is named.
func BucketName(group, member string) string { return bucketName(group, member) }

// Printable is a caller's text as a message has it.
func Printable(s string) string { return printable(s) }
