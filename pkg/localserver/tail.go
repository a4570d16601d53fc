package localserver

import (
	"strings"
	"sync"
)

// tailBytes is how much of a program's last output goes into an error.
const tailBytes = 600

// tail keeps the last bytes written to it.
// The zero value is empty. Several goroutines may write to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write keeps the end of all that was written; it never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - tailBytes; n > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	}
	return len(b), nil
}

// String is the kept text on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.FieldsFunc(strings.TrimSpace(string(t.buf)), func(r rune) bool { return r == '\n' })
	return strings.Join(lines, " | ")
}
