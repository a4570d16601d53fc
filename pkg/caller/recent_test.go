package caller

import "testing"

func TestRecentIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	var r recentCache[int, int]
	r.put(0, 0)
	for i := 1; i < 10*generationSize; i++ {
		r.put(i, i)
		if v, ok := r.get(i - i%7); !ok || v != i-i%7 {
			t.Fatalf("%d is forgotten at once", i-i%7)
		}
		if _, ok := r.get(0); !ok {
			t.Fatalf("what is asked for each time was forgotten at %d", i)
		}
		if n := len(r.young) + len(r.old); n > 2*generationSize {
			t.Fatalf("%d entries", n)
		}
	}
	if _, ok := r.get(1); ok {
		t.Error("nothing is forgotten")
	}
}
