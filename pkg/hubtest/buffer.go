package hubtest

import (
	"bytes"
	"sync"
)

// Buffer keeps what is written to it, by any number of goroutines while others read. The
// zero value is empty.
type Buffer struct {
	// A bytes.Buffer alone is for one goroutine.
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
