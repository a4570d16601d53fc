package reviewcontrol

import (
	"fmt"
	"testing"
	"time"

	"hub.internal/pkg/fault"
)

// TestNext holds every status, trigger and condition to contract 3, and every other to
// E_CONFLICT.
func TestNext(t *testing.T) {
	t.Parallel()
	counts := map[string]Counts{
		"undecided":     {Pending: 1, Approved: 1},
		"none approved": {Rejected: 2},
		"waiting":       {Approved: 2, Sent: 1},
		"all out":       {Approved: 4, Sent: 1, Failed: 1, Suppressed: 1, Unknown: 1},
	}
	want := map[string]Status{}
	for name := range counts {
		for _, attempted := range []bool{false, true} {
			at := func(s Status, tr Trigger) string { return fmt.Sprint(s, tr, name, attempted) }
			want[at(Drafted, Queue)] = InReview
			want[at(Drafted, Cancel)], want[at(InReview, Cancel)] = Cancelled, Cancelled
			want[at(InReview, Decide)] = map[string]Status{"undecided": InReview, "none approved": Rejected, "waiting": Approved, "all out": Approved}[name]
			want[at(Approved, Deliver)] = map[string]Status{"undecided": Approved, "none approved": Sent, "waiting": Approved, "all out": Sent}[name]
			if !attempted {
				want[at(Approved, Cancel)] = Cancelled
			}
		}
	}
	for _, from := range Statuses() {
		for _, tr := range []Trigger{Queue, Decide, Deliver, Cancel} {
			for name, c := range counts {
				for _, attempted := range []bool{false, true} {
					got, err := Next(from, tr, c, attempted)
					to, allowed := want[fmt.Sprint(from, tr, name, attempted)]
					if allowed != (err == nil) || got != to || err != nil && !fault.Is(err, fault.Conflict) {
						t.Errorf("%s %s (%s, attempted %v): %q, %v", from, tr, name, attempted, got, err)
					}
					if err != nil {
						if d := fault.From(err).Details.(map[string]Status); d["from"] != from || d["to"] == "" {
							t.Errorf("%v", d)
						}
					}
				}
			}
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	p := Pace{Retry: 30 * time.Second}
	for delays, want := range map[int][2]time.Duration{1: {30 * time.Second, 30 * time.Second}, 2: {time.Minute, time.Minute}, 5: {8 * time.Minute, 5 * time.Minute}, 8: {time.Hour, 5 * time.Minute}, 1 << 30: {time.Hour, 5 * time.Minute}} {
		if reached, away := p.wait(delays, true), p.wait(delays, false); reached != want[0] || away != want[1] {
			t.Errorf("%d: %s, %s, want %v", delays, reached, away, want)
		}
	}
	if got := (Pace{Retry: 2 * time.Hour}).wait(1, true); got != time.Hour {
		t.Error(got)
	}
}

func TestMaker(t *testing.T) {
	t.Parallel()
	ada := Reviewer{ID: "usr_1", Email: "ada@hub.example", Name: "Ada"}
	for _, m := range []Maker{{CreatedBy: "ADA@hub.example"}, {CreatedBy: " ada "}, {HubUser: "usr_1"}, {ExternalUser: "ada@hub.example"}} {
		if !m.Is(ada) {
			t.Errorf("%+v is not Ada", m)
		}
	}
	for _, m := range []Maker{{}, {CreatedBy: "Adam"}, {HubUser: "usr_2"}, {CreatedBy: " "}} {
		if m.Is(ada) || m.Is(Reviewer{}) {
			t.Errorf("%+v is Ada", m)
		}
	}
}
