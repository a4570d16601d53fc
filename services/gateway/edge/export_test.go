package edge

// Buckets is how many buckets are kept.
func (m *Memory) Buckets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tats)
}

// BucketName is how a bucket of a member of a group is named.
func BucketName(group, member string) string { return bucketName(group, member) }
