package audit

import (
	"context"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

const (
	// tallyEvery is how long refusals are counted before a row says how many they were.
	tallyEvery = time.Minute
	// ownRows is how many refusals of one origin are rows of their own in that time, and allRows of all together.
	ownRows, allRows = 20, 600
	// maxOrigins is how many origins are counted apart; all others are counted together.
	maxOrigins = 1000
	// others names those.
	others = "others"
)

// Tally keeps whoever is charged for nothing from filling a log that nobody can delete from. In a minute, the first 20
// refusals of an origin (a client's network, or a credential) are rows of their own, and at most 600 of all; the rest is
// counted in memory and told in one row for each origin when the minute is over, for at most 1,000 origins and the others
// together. So no call costs more than a number, a minute adds at most 1,601 rows, and no row is ever changed. What a
// process has counted when it is killed is lost.
//
// A nil Tally counts nothing: each refusal is a row.
type Tally struct {
	tool string
	log  interface{ Queue(Entry) }

	mu      sync.Mutex
	since   time.Time
	rows    int
	origins map[string]*origin
}

// origin is what was refused of one. Its caller is nobody for a network, where many may be.
type origin struct {
	caller   caller.Caller
	rows     int
	count    int
	outcomes map[string]int
}

// NewTally counts for log; tool is the name that the rows of counts have.
func NewTally(log interface{ Queue(Entry) }, tool string) *Tally {
	return &Tally{tool: tool, log: log, since: time.Now(), origins: map[string]*origin{}}
}

// Counted tells that a refusal was counted. Otherwise it is for the caller to record.
func (t *Tally) Counted(from string, e Entry) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.origins[from]
	if o == nil && len(t.origins) >= maxOrigins {
		from = others
		o = t.origins[from]
	}
	if o == nil {
		o = &origin{}
		if e.Caller.CredentialID == from {
			o.caller = caller.Caller{Service: e.Caller.Service, CredentialID: from}
		}
		t.origins[from] = o
	}
	if from != others && o.rows < ownRows && t.rows < allRows {
		o.rows++
		t.rows++
		return false
	}
	if o.outcomes == nil {
		o.outcomes = map[string]int{}
	}
	o.count++
	o.outcomes[e.Outcome]++
	return true
}

// Run tells each minute what was counted, and once more when ctx ends.
func (t *Tally) Run(ctx context.Context) error {
	tick := time.NewTicker(tallyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.tell()
			return nil
		case <-tick.C:
			t.tell()
		}
	}
}

// tell queues a row for each origin of which something was counted, and begins the next minute.
func (t *Tally) tell() {
	now := time.Now()
	t.mu.Lock()
	origins, since := t.origins, t.since
	t.origins, t.since, t.rows = map[string]*origin{}, now, 0
	t.mu.Unlock()
	for from, o := range origins {
		if o.count == 0 {
			continue
		}
		t.log.Queue(Entry{At: now, Caller: o.caller, Tool: t.tool, Outcome: string(fault.RateLimit), Count: o.count,
			Detail: map[string]any{"from": from, "since": since.UTC().Truncate(time.Second), "outcomes": o.outcomes}})
	}
}
