package edge

// Buckets is how many buckets are kept.
func (m *Memory) Buckets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tats)
}

// BucketName is how a bucket of a member of a group is named.
func BucketName(group, member string) string { return bucketName(group, member) }

// Proven is how much of what has held is remembered.
func Proven(g *Gateway) (n int) {
	g.failed.mu.Lock()
	defer g.failed.mu.Unlock()
	for _, of := range g.failed.proven {
		n += len(of)
	}
	return n
}
