package bulkhead

import "time"

const (
	// remembered is how long an attempt counts, and up to twice as long.
	remembered = 30 * time.Minute
	// maxRemembered bounds the networks whose attempts are counted, and there are two such counts. Whoever has tried from more
	// than that within half an hour makes the older count go sooner, for everybody.
	maxRemembered = 20_000
	// wider is how many attempts of a network are as much as one of a network within it.
	wider = 4
)

// attempts counts by network what was tried lately in this process, in two generations: the older one is dropped as a whole
// when the current one is half an hour old or full. Its user locks it.
type attempts struct {
	now          func() time.Time
	since        time.Time
	current, old map[string]int
}

// of is how many attempts were made from the networks of somebody: from the narrowest, or in proportion from a wider one if
// that is more.
func (a *attempts) of(networks []string) int {
	most, part := 0, 1
	for _, n := range networks {
		most = max(most, (a.current[n]+a.old[n])/part)
		part *= wider
	}
	return most
}

// add counts n attempts of each of the networks; a negative n takes them back.
func (a *attempts) add(networks []string, n int) {
	if len(networks) == 0 {
		return
	}
	if now := a.now(); a.current == nil || now.Sub(a.since) >= remembered || len(a.current) >= maxRemembered {
		a.old, a.current, a.since = a.current, map[string]int{}, now
	}
	for _, network := range networks {
		a.current[network] += n
	}
}
