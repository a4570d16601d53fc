package turns

import "time"

const (
	// remembered is how long a try counts, and up to twice as long.
	remembered = 30 * time.Minute
	// maxRemembered bounds the networks whose tries are counted, and there are two such counts. Whoever has tried from more
	// than that within half an hour makes the older count go sooner, for everybody.
	maxRemembered = 20_000
	// wider is how many tries of a network are as much as one of a network within it.
	wider = 4
)

// tried counts what was tried from where lately, in this process. It is to be locked by its user.
type tried struct {
	now          func() time.Time
	since        time.Time
	current, old map[string]int
}

// of is how much was tried from the networks of somebody: from the narrowest, or in proportion from a wider one if that is
// more.
func (t *tried) of(networks []string) int {
	most, part := 0, 1
	for _, n := range networks {
		most = max(most, (t.current[n]+t.old[n])/part)
		part *= wider
	}
	return most
}

func (t *tried) add(networks []string, n int) {
	if len(networks) == 0 {
		return
	}
	if now := t.now(); t.current == nil || now.Sub(t.since) >= remembered || len(t.current) >= maxRemembered {
		t.old, t.current, t.since = t.current, map[string]int{}, now
	}
	for _, network := range networks {
		t.current[network] += n
	}
}
