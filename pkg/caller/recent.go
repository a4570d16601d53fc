package caller

import "sync"

// generationSize is how many entries each of the two halves of a recentCache holds.
const generationSize = 2048

// recentCache keeps the entries that were used last, and at most twice generationSize of them: when the
// young half is full it becomes the old one, which is dropped with all that nobody has asked for
// since. Whether an entry still holds is for whoever gets it to judge.
type recentCache[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]V
}

func (r *recentCache[K, V]) get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[k]
	if !ok {
		if v, ok = r.old[k]; ok {
			r.add(k, v)
		}
	}
	return v, ok
}

func (r *recentCache[K, V]) put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(k, v)
}

func (r *recentCache[K, V]) add(k K, v V) {
	if r.young == nil || len(r.young) >= generationSize {
		r.old, r.young = r.young, map[K]V{}
	}
	r.young[k] = v
}
