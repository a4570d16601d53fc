package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
)

// shelf is a log that remembers.
type shelf struct {
	mu   sync.Mutex
	rows []audit.Entry
}

func (s *shelf) Queue(e audit.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, e)
}

// take empties the log of what it remembers.
func (s *shelf) take() []audit.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.rows
	s.rows = nil
	return rows
}

// refuse is what a service does with a refusal.
func (s *shelf) refuse(t *audit.Tally, from, outcome string) {
	e := audit.Entry{
		At:      time.Now(),
		Caller:  caller.Caller{RequestID: "req_1", Service: "svc", ExternalUserID: "somebody", CredentialID: "ak_1"},
		Tool:    "x",
		Outcome: outcome,
	}
	if !t.Counted(from, e) {
		s.Queue(e)
	}
}

// counts are the rows that tell how many were counted, by origin.
func counts(t *testing.T, rows []audit.Entry) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, e := range rows {
		if e.Tool != "calls.refused" {
			continue
		}
		b, err := json.Marshal(e.Detail)
		if err != nil {
			t.Fatal(err)
		}
		var detail struct {
			From     string         `json:"from"`
			Since    time.Time      `json:"since"`
			Outcomes map[string]int `json:"outcomes"`
		}
		if err := json.Unmarshal(b, &detail); err != nil {
			t.Fatal(err)
		}
		if found[detail.From] != "" || e.Outcome != "E_RATE_LIMIT" || e.Caller.RequestID+e.Caller.ExternalUserID != "" ||
			(e.Caller.CredentialID == "ak_1") != (detail.From == "ak_1") ||
			detail.Since.IsZero() {
			t.Errorf("%+v", e)
		}
		found[detail.From] = fmt.Sprint(e.Count, " ", detail.Outcomes)
	}
	return found
}

// TestTallyBoundsTheRowsOfAMinute refuses thousands of calls of many origins.
func TestTallyBoundsTheRowsOfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &shelf{}
		tally := audit.NewTally(log, "calls.refused")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- tally.Run(ctx) }()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 1500 {
					log.refuse(tally, "192.0.2.1", []string{"E_AUTH_INVALID", "E_RATE_LIMIT"}[(i+n)%2])
				}
			})
		}
		all.Wait()
		log.refuse(tally, "192.0.2.2", "E_AUTH_INVALID")
		if n := len(log.take()); n != 21 {
			t.Errorf("%d rows before the minute is over", n)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		rows := log.take()
		if got := counts(
			t,
			rows,
		); len(got) != 1 || len(rows) != 1 || !strings.HasPrefix(got["192.0.2.1"], "5980 map[E_AUTH_INVALID:") ||
			!strings.Contains(got["192.0.2.1"], "E_RATE_LIMIT:") {
			t.Errorf("%d rows, %v", len(rows), got)
		}
		log.refuse(tally, "192.0.2.1", "E_AUTH_INVALID")
		if n := len(log.take()); n != 1 {
			t.Errorf("the next minute begins with %d rows", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for n := range 5000 { // each a few times
			for range 3 {
				log.refuse(tally, map[bool]string{true: "ak_1", false: fmt.Sprint(n)}[n == 7], "E_AUTH_INVALID")
			}
		}
		if n := len(log.take()); n != 600 {
			t.Errorf("%d rows of 5,000 origins", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		rows = log.take()
		if got := counts(t, rows); len(rows) > 1001 || len(got) < 801 || got["others"] != "12000 map[E_AUTH_INVALID:12000]" {
			t.Errorf("%d rows, of %d origins, others %s", len(rows), len(got), got["others"])
		}
	})
}

func TestNoTallyCountsNothing(t *testing.T) {
	t.Parallel()
	var none *audit.Tally
	if none.Counted("192.0.2.1", audit.Entry{}) {
		t.Error("a refusal is lost")
	}
}
