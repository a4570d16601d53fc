package query

import "sync"

// memory bounds what the answers of execute_read_sql take together, from their first
// byte to the moment that they have been written, and what those of one key take.
type memory struct {
	limit, perKey int

	mu    sync.Mutex
	taken int
	keys  map[string]int
}

const (
	// freeMemory is what an answer may take without being counted.
	freeMemory = 64 << 10
	// memoryStep is how much is taken at a time.
	memoryStep = 256 << 10
	// memoryAnswers is how many answers of the greatest size there is memory for: one
	// takes three times its size while it is read (see sqlAnswer.fits).
	memoryAnswers = 12
)

func newMemory(answer int) *memory {
	limit := max(memoryAnswers*answer, memoryAnswers*memoryStep)
	return &memory{limit: limit, perKey: limit / 2, keys: map[string]int{}}
}

// loan is what one answer takes. It is of one goroutine at a time.
type loan struct {
	of    *memory
	key   string
	taken int
}

// grow takes what is missing to size bytes; false when there is not enough.
func (l *loan) grow(size int) bool {
	if size <= l.taken+freeMemory {
		return true
	}
	more := (size - freeMemory - l.taken + memoryStep - 1) / memoryStep * memoryStep
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken+more > m.limit || m.keys[l.key]+more > m.perKey {
		return false
	}
	m.taken += more
	m.keys[l.key] += more
	l.taken += more
	return true
}

// shrink gives back what is not needed for size bytes.
func (l *loan) shrink(size int) {
	if keep := max(size-freeMemory, 0); keep < l.taken {
		l.give(l.taken - keep)
	}
}

// end gives everything back.
func (l *loan) end() { l.give(l.taken) }

func (l *loan) give(n int) {
	if n == 0 {
		return
	}
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()
	l.taken -= n
	m.taken -= n
	if m.keys[l.key] -= n; m.keys[l.key] == 0 {
		delete(m.keys, l.key)
	}
}
