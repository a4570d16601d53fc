package reviewcontrol_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/suppression"
)

func sendError(v mailer.Verdict) error {
	return &mailer.SendError{Verdict: v, Reason: "450 4.2.1 " + string(v)}
}

// TestWholeWay takes a draft from its queueing to its last mail, with the jobs running.
func TestWholeWay(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) { c.Now, c.PerMinute = nil, 60_000 })
	id := h.queued(5)
	h.exec(`INSERT INTO review_control.suppressions VALUES ('c1-3@partner.example', 'partner.example', 'c1-3@partner.example', '', ` +
		`'console', 'x', now())`)
	h.sender.to("C1-2@partner.example", answer{say: sendError(mailer.Never)})
	h.sender.to("C1-4@partner.example", answer{say: sendError(mailer.Perhaps)})
	h.decide(id, 0, reviewcontrol.Approve)
	h.decide(id, 1, reviewcontrol.Reject)
	for _, index := range []int{2, 3, 4} {
		h.decide(id, index, reviewcontrol.Approve)
	}
	h.run(h.service, "the draft is sent", func() bool {
		return h.authoring.row(id).Status == "sent" &&
			h.authoring.row(id).Delivery["sent"] == 1
	})
	r := h.review(id)
	if want := (reviewcontrol.Counts{Approved: 4, Rejected: 1, Sent: 1, Failed: 1, Suppressed: 1, Unknown: 1}); r.Counts != want ||
		r.Status != reviewcontrol.Sent {
		t.Errorf("%+v", r)
	}
	row := h.authoring.row(id)
	if row.Decisions["approved"] != 4 || row.Decisions["rejected"] != 1 || row.Delivery["failed"] != 1 || row.Delivery["unknown"] != 1 ||
		row.Delivery["suppressed"] != 1 || row.ProgressVersion != r.Version {
		t.Errorf("authoring has %+v, we are at version %d", row, r.Version)
	}
	for _, m := range h.sender.mails() {
		token, found := strings.CutPrefix(m.Unsubscribe, "https://hub.example/unsubscribe/")
		if raw, err := base64.RawURLEncoding.DecodeString(token); !found || err != nil || len(raw) != 16 {
			t.Errorf("unsubscribe %q", m.Unsubscribe)
		}
		if m.From != (mailer.Address{Name: "Hub", Email: "hub@hub.example"}) || m.Sender.Email != "hub@hub.example" ||
			!strings.HasSuffix(m.ID, "@hub.example") || m.Text == "" || m.HTML != "" {
			t.Errorf("%+v", m)
		}
	}
	// Authoring may be told once more what it knows.
	if n := h.jobs("deliver") + h.jobs("finish_review"); n > 0 {
		t.Errorf("%d jobs are left", n)
	}
}

func sending(v mailer.Verdict) answer { return answer{say: sendError(v)} }

// TestOutcomes tries a mail as often as it wants to be tried.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	later, refused := sending(mailer.Later), answer{refuse: sendError(mailer.Later)}
	for name, c := range map[string]struct {
		answers  []answer
		want     reviewcontrol.DeliveryState
		attempts int
		mails    int
	}{
		"taken":                        {nil, reviewcontrol.Delivered, 1, 1},
		"taken at the third try":       {[]answer{later, later}, reviewcontrol.Delivered, 3, 3},
		"refused for good":             {[]answer{sending(mailer.Never)}, reviewcontrol.Failed, 1, 1},
		"put off, then refused":        {[]answer{later, sending(mailer.Never)}, reviewcontrol.Failed, 2, 2},
		"lost":                         {[]answer{sending(mailer.Perhaps)}, reviewcontrol.Unknown, 1, 1},
		"an error of no kind":          {[]answer{{say: errors.New("?")}}, reviewcontrol.Unknown, 1, 1},
		"nobody there, then taken":     {[]answer{refused, refused, refused}, reviewcontrol.Delivered, 1, 1},
		"not even asked, and for good": {[]answer{{refuse: sendError(mailer.Never)}}, reviewcontrol.Failed, 0, 0},
	} {
		id := h.approved(1)
		email := h.target(id, 0).ToEmail
		h.sender.to(email, c.answers...)
		before := len(h.sender.mails())
		for {
			again := h.deliver(id, 0)
			d := h.target(id, 0).Delivery
			if again == 0 {
				break
			}
			if d.State != reviewcontrol.Queued || !strings.Contains(d.Problem, "450") || d.Since == nil ||
				h.review(id).Status != reviewcontrol.Approved {
				t.Errorf("%s: %+v", name, d)
			}
			h.clock.Advance(again)
		}
		d, r := h.target(id, 0).Delivery, h.review(id)
		mails := h.sender.mails()[before:]
		if d.State != c.want || d.Attempts != c.attempts || len(mails) != c.mails || r.Status != reviewcontrol.Sent ||
			r.Attempted != (c.attempts > 0) {
			t.Errorf("%s: %+v, %d mails, %+v", name, d, len(mails), r)
		}
		if c.want == reviewcontrol.Delivered && (d.Problem != "" || d.MessageID != mails[len(mails)-1].ID) {
			t.Errorf("%s: %+v", name, d)
		}
		if again := h.deliver(id, 0); again != 0 || len(h.sender.mails()) != before+c.mails {
			t.Errorf("%s: sent again", name)
		}
	}
}

func TestGiveUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(1)
	email := h.target(id, 0).ToEmail
	start := h.clock.Now()
	var waits []time.Duration
	for {
		h.sender.to(email, sending(mailer.Later))
		again := h.deliver(id, 0)
		if again == 0 {
			break
		}
		waits = append(waits, again)
		h.clock.Advance(again)
	}
	d := h.target(id, 0).Delivery
	if took := h.clock.Now().Sub(start); d.State != reviewcontrol.Failed || !strings.HasPrefix(d.Problem, "Given up after 24h") ||
		took < 24*time.Hour || took > 26*time.Hour {
		t.Errorf("%+v after %s", d, took)
	}
	for i, wait := range waits {
		want := min(30*time.Second<<min(i, 10), time.Hour)
		if wait < want*4/5 || wait > want*6/5 {
			t.Errorf("wait %d is %s, want about %s", i, wait, want)
		}
	}
	if len(waits) < 25 || len(waits) > 45 {
		t.Errorf("%d tries", len(waits))
	}
}

// TestSentOnce has many jobs of the same mail run at once and again: one mail leaves.
func TestSentOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	other := h.another()
	for range 5 {
		id := h.approved(2)
		before := len(h.sender.mails())
		var wg sync.WaitGroup
		for i := range 12 {
			s := h.service
			if i%2 == 0 {
				s = other
			}
			wg.Go(func() {
				if _, err := s.Deliver(context.Background(), id, i%4/2); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(h.sender.mails()) - before; n != 2 {
			t.Errorf("%d mails", n)
		}
		if r := h.review(id); r.Status != reviewcontrol.Sent || r.Counts.Sent != 2 {
			t.Errorf("%+v", r)
		}
	}
}

// TestCrashWhileSending leaves a mail between its hand-over and the record of it. It waits
// for its lease, is unknown then, and never sent again; a late record is heard all the same.
func TestCrashWhileSending(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late error
		want reviewcontrol.DeliveryState
	}{
		"sent after all":    {nil, reviewcontrol.Delivered},
		"refused after all": {sendError(mailer.Never), reviewcontrol.Failed},
		"put off after all": {sendError(mailer.Later), reviewcontrol.Unknown},
		"lost":              {sendError(mailer.Perhaps), reviewcontrol.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			id := h.approved(1)
			h.sender.to(h.target(id, 0).ToEmail, answer{say: c.late, while: func(context.Context) {
				// The job is found again while the first one hangs.
				if again := h.deliver(id, 0); again <= 0 || again > h.service.Lease() {
					t.Errorf("again in %s", again)
				}
				h.clock.Advance(h.service.Lease())
				if again := h.deliver(id, 0); again != 0 {
					t.Errorf("again in %s", again)
				}
				if d, r := h.target(id, 0).Delivery, h.review(id); d.State != reviewcontrol.Unknown || r.Status != reviewcontrol.Sent ||
					r.Counts.Unknown != 1 {
					t.Errorf("%+v, %+v", d, r)
				}
			}})
			if again := h.deliver(id, 0); again != 0 {
				t.Errorf("again in %s", again)
			}
			r := h.review(id)
			if d := h.target(id, 0).Delivery; d.State != c.want || r.Status != reviewcontrol.Sent || r.Counts.Waiting() != 0 {
				t.Errorf("%+v, %+v", d, r)
			}
			if n := len(h.sender.mails()); n != 1 {
				t.Errorf("%d mails", n)
			}
			if err := h.service.Sync(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCrashWhileSendingAlone: a mail whose sender has died ends when its lease does, although authoring does not answer by then, and
// although it would answer another mail.
func TestCrashWhileSendingAlone(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*house, reviewcontrol.ID){
		"authoring away": func(h *house, _ reviewcontrol.ID) { h.authoring.say(fault.New(fault.DB, "It is away.")) },
		"another mail": func(h *house, id reviewcontrol.ID) {
			h.authoring.change(id, func(d *draftRow) { d.targets[0].Subject = "Another one" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			id := h.approved(1)
			h.sender.to(h.target(id, 0).ToEmail, answer{while: func(context.Context) {
				meanwhile(h, id)
				if again := h.deliver(id, 0); again <= 0 || again > h.service.Lease() {
					t.Errorf("again in %s", again)
				}
				h.clock.Advance(h.service.Lease())
				if again := h.deliver(id, 0); again != 0 {
					t.Errorf("again in %s", again)
				}
				if d, r := h.target(id, 0).Delivery, h.review(id); d.State != reviewcontrol.Unknown || r.Status != reviewcontrol.Sent {
					t.Errorf("%+v, %s", d, r.Status)
				}
			}})
			h.deliver(id, 0)
		})
	}
}

// TestRecordOutlivesTheStore takes the store away while a mail is handed over: its outcome
// is kept when the store is back.
func TestRecordOutlivesTheStore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(1)
	h.sender.to(h.target(id, 0).ToEmail, answer{while: func(context.Context) {
		h.limit(0)
		time.AfterFunc(300*time.Millisecond, func() { h.limit(-1) })
	}})
	if again := h.deliver(id, 0); again != 0 {
		t.Errorf("again in %s", again)
	}
	if d := h.target(id, 0).Delivery; d.State != reviewcontrol.Delivered {
		t.Errorf("%+v", d)
	}
}

func TestSuppressedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(2)
	if _, err := h.suppressed.Add(signedIn(t.Context(), ada), ada.Email, strings.ToUpper(h.target(id, 1).ToEmail), "asked"); err != nil {
		t.Fatal(err)
	}
	h.deliver(id, 1)
	if r := h.review(id); r.Attempted || r.Counts.Suppressed != 1 || r.Status != reviewcontrol.Approved {
		t.Errorf("%+v", r)
	}
	h.deliver(id, 0)
	if r := h.review(id); r.Counts != (reviewcontrol.Counts{Approved: 2, Sent: 1, Suppressed: 1}) || r.Status != reviewcontrol.Sent ||
		len(h.sender.mails()) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAuthoringAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(1)
	h.authoring.say(fault.New(fault.DB, "away").After(time.Second))
	if again := h.deliver(id, 0); again <= 0 || again > time.Minute {
		t.Errorf("again in %s", again)
	}
	if err := h.service.Sync(t.Context(), id); code(err) != fault.DB {
		t.Errorf("%v", err)
	}
	if d := h.target(id, 0).Delivery; d.State != reviewcontrol.Queued || d.Attempts != 0 {
		t.Errorf("%+v", d)
	}
	h.authoring.say(nil)
	h.deliver(id, 0)
	if err := h.service.Sync(t.Context(), id); err != nil {
		t.Error(err)
	}
	if row := h.authoring.row(id); row.Status != "sent" || row.Delivery["sent"] != 1 {
		t.Errorf("%+v", row)
	}
}

func TestHTMLMail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.authoring.draft(1, func(d *draftRow) {
		d.SenderName = new("Kim of the shop")
		d.targets[0].HTML, d.targets[0].Body = true, `<p>Dear <b>Contact</b></p><p><a href="https://shop.example/x">Look</a></p>`
	})
	if _, err := h.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	h.decide(id, 0, reviewcontrol.Approve)
	if _, err := h.service.Finish(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	h.deliver(id, 0)
	m := h.sender.mails()[0]
	if !strings.HasPrefix(m.HTML, "<!doctype html>\r\n") ||
		!strings.Contains(m.HTML, `<p>Dear <b>Contact</b></p><p><a href="https://shop.example/x">Look</a></p>`) ||
		m.Text != "Dear Contact\r\n\r\nLook (https://shop.example/x)\r\n" ||
		m.From != (mailer.Address{Name: "Kim of the shop", Email: "hub@hub.example"}) || m.To.Name != "Contact 0" || m.Subject != "Hello" ||
		!m.Date.Equal(h.clock.Now()) {
		t.Errorf("%+v", m)
	}
}

// TestPace draws places in the line from two replicas.
func TestPace(t *testing.T) {
	t.Parallel()
	slow := func(c *reviewcontrol.Config) { c.PerMinute = 20 } // one in three seconds
	h := newHouse(t, slow)
	other := h.another(slow)
	id := h.approved(8)
	turn := func(s *reviewcontrol.Service, index int) time.Duration {
		t.Helper()
		at, due, err := s.Turn(t.Context(), id, index)
		if err != nil || !due {
			t.Fatalf("%v, %v", due, err)
		}
		return at.Sub(h.clock.Now())
	}
	for i, s := range []*reviewcontrol.Service{h.service, other, h.service, other, h.service} {
		if got, want := turn(s, i), time.Duration(i)*3*time.Second; got != want {
			t.Errorf("turn %d in %s, want %s", i, got, want)
		}
	}
	// A place that is far away is kept, for whichever replica asks again; a near one is not.
	if got := turn(other, 4); got != 12*time.Second {
		t.Errorf("%s", got)
	}
	if got := turn(h.service, 1); got != 15*time.Second {
		t.Errorf("%s", got)
	}
	h.clock.Advance(12*time.Second + time.Minute)
	if got := turn(h.service, 4); got != -time.Minute {
		t.Errorf("%s", got)
	}
	// One that was missed is drawn anew, and nobody catches up on what was not sent.
	h.clock.Advance(time.Second)
	if first, second := turn(h.service, 4), turn(h.service, 5); first != 0 || second != 3*time.Second {
		t.Errorf("%s, %s", first, second)
	}
	for i := range 8 {
		h.deliver(id, i)
	}
	if _, due, err := h.service.Turn(t.Context(), id, 4); due || err != nil {
		t.Errorf("%v, %v", due, err)
	}
}

// TestPaceBesideAClockAhead: a replica whose clock is a day ahead keeps the pace, by its own clock too, and holds the mails of the others
// up for a minute and those that it has drawn.
func TestPaceBesideAClockAhead(t *testing.T) {
	t.Parallel()
	const mails, pace = 5, 10 * time.Second
	h := newHouse(t, func(c *reviewcontrol.Config) { c.Now, c.PerMinute = nil, 6 })
	clock := func() time.Time { return time.Now().Add(24 * time.Hour) }
	ahead := h.another(func(c *reviewcontrol.Config) { c.Now, c.PerMinute = clock, 6 })
	id := h.approved(mails + 1)
	began := clock()
	for _, i := range []int{0, 1, 2, 3, 4, 4} { // the place of the last one is kept with it
		at, due, err := ahead.Turn(t.Context(), id, i)
		if wait, want := at.Sub(began), time.Duration(i)*pace; err != nil || !due || (wait-want).Abs() > pace/2 {
			t.Errorf("its mail %d in %s: %t, %v", i, wait, due, err)
		}
	}
	if at, due, err := h.service.Turn(t.Context(), id, mails); err != nil || !due || time.Until(at) > time.Minute+(mails+1)*pace {
		t.Errorf("the mail of another in %s: %t, %v", time.Until(at), due, err)
	}
}

// TestLost takes every job away: what misses one gets it back.
func TestLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) { c.Now, c.PerMinute = nil, 60_000 })
	waiting, unfinished, intent := h.approved(3), h.queued(1), h.authoring.draft(1)
	h.decide(unfinished, 0, reviewcontrol.Approve)
	h.authoring.say(fault.New(fault.DB, "away").After(time.Second))
	h.exec(`ALTER TABLE review_control.idempotency_keys ADD CONSTRAINT never CHECK (false) NOT VALID`)
	h.authoring.say(nil)
	if _, err := h.send(agent(t.Context()), newKey(), queueing(intent)); err == nil {
		t.Fatal("the store let it through")
	}
	h.exec(`ALTER TABLE review_control.idempotency_keys DROP CONSTRAINT never`)
	imported, err := h.suppressed.StartImport(signedIn(t.Context(), ada), ada.Email, "list.csv", "", []byte("x@y.example\n"))
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`DELETE FROM review_control.river_job`)
	if err := h.store.AddMissingJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.jobs("deliver"); n != 3 { // the rest is not overdue
		t.Errorf("%d deliveries", n)
	}
	h.exec(`UPDATE review_control.reviews SET changed_at = now() - interval '2 min'`)
	h.exec(`UPDATE review_control.imports SET at = now() - interval '2 min'`)
	for range 2 {
		if err := h.store.AddMissingJobs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string]int{"deliver": 3, "complete_queue": 1, "finish_review": 1, "sync_draft": 2, "read_import": 1} {
		if n := h.jobs(kind); n != want {
			t.Errorf("%d jobs %s, want %d", n, kind, want)
		}
	}
	h.run(h.service, "all is done", func() bool {
		in, err := h.suppressed.Import(context.Background(), imported.ID)
		return err == nil && in.Status == suppression.ImportDone && h.authoring.row(waiting).Status == "sent" &&
			h.authoring.row(unfinished).Status == "sent" && h.authoring.row(intent).Status == "in_review"
	})
}

// TestKilled leaves what a killed process leaves: a mail that is being sent, and its job that
// runs nowhere.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) { c.Now = nil })
	id := h.approved(1)
	h.exec(`UPDATE review_control.targets SET progress = 'sending', attempts = 1, progress_at = now() - interval '10 min', since = now() ` +
		`- interval '10 min'`)
	h.exec(`UPDATE review_control.reviews SET attempted = true`)
	h.exec(`UPDATE review_control.river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '10 min', ` +
		`attempted_by = '{dead}' WHERE kind = 'deliver'`)
	h.run(h.service, "the mail is unknown", func() bool { return h.review(id).Counts.Unknown == 1 })
	if r := h.review(id); r.Status != reviewcontrol.Sent || len(h.sender.mails()) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestStartedAgain leaves the same to a process of the same name: it need not wait, and others
// of the same kind keep what they have in hand.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) { c.Now, c.PerMinute = nil, 60_000 })
	id := h.approved(3)
	h.exec(`UPDATE review_control.targets SET progress = 'sending', attempts = 1, progress_at = now(), since = now() WHERE position <> 1`)
	h.exec(`UPDATE review_control.reviews SET attempted = true`)
	h.exec(`UPDATE review_control.river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = ARRAY['other', `+
		`CASE args ->> 'index' WHEN '2' THEN 'other' ELSE $1 END] WHERE kind = 'deliver'`, instance)
	h.run(h.service, "what was in hand is done", func() bool { c := h.review(id).Counts; return c.Unknown == 1 && c.Sent == 1 })
	if p := h.target(id, 2).Delivery.State; p != reviewcontrol.Sending || len(h.sender.mails()) != 1 ||
		h.target(id, 0).Delivery.State != reviewcontrol.Unknown {
		t.Errorf("%s, %d mails", p, len(h.sender.mails()))
	}
}

// TestJobsKeepThePace lets jobs wait for their turn, and put a mail off, on the machine's clock.
func TestJobsKeepThePace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) {
		c.Now, c.PerMinute, c.Pace = nil, 300, mailer.Pace{Retry: 10 * time.Millisecond}
	})
	id := h.approved(4)
	h.sender.to(h.target(id, 2).ToEmail, sending(mailer.Later), answer{refuse: sendError(mailer.Later)})
	start := time.Now()
	h.run(h.service, "all are sent", func() bool { return h.review(id).Status == reviewcontrol.Sent })
	if took := time.Since(start); took < 5*200*time.Millisecond { // six tries, the first at once
		t.Errorf("it took %s", took)
	}
	if d := h.target(id, 2).Delivery; d.Attempts != 2 || d.Delays != 2 || d.State != reviewcontrol.Delivered {
		t.Errorf("%+v", d)
	}
}

// TestJobsFarAway has turns that no job waits for, and some that a stop does not wait for.
func TestJobsFarAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) { c.Now, c.PerMinute = nil, 7 }) // one in 8.6 s, which is nearly too far to wait
	h.approved(4)
	stop := h.start(h.service)
	hubtest.Eventually(t, "one is sent, and two turns are kept", func() bool {
		return len(h.sender.mails()) == 1 && one[int](h, `SELECT count(*) FROM review_control.targets t, review_control.river_job j
			WHERE slot_at IS NOT NULL AND j.kind = 'deliver'
			AND (j.args ->> 'index')::int = position AND j.state IN ('scheduled', 'available')
				AND j.scheduled_at BETWEEN slot_at - interval '6 s' AND slot_at`) == 2
	})
	if took := stop(); took > hubtest.Here(5*time.Second) { // what runs on would be stopped after six
		t.Errorf("it took %s to stop", took)
	}
	if n := one[int](h,
		`SELECT count(*) FROM review_control.river_job WHERE kind = 'deliver' AND finalized_at IS NULL AND attempt = 0`); n != 3 ||
		len(h.sender.mails()) != 1 {
		t.Errorf("%d jobs are left, %d mails sent", n, len(h.sender.mails()))
	}
}

// TestStopWhileSending stops the jobs in the middle of a hand-over: it finishes.
func TestStopWhileSending(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *reviewcontrol.Config) { c.Now, c.PerMinute = nil, 60_000 })
	id := h.approved(1)
	handing := make(chan struct{})
	h.sender.to(h.target(id, 0).ToEmail, answer{while: func(ctx context.Context) {
		close(handing)
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			t.Error("it was broken off")
		}
	}})
	stop := h.start(h.service)
	<-handing
	stop()
	if d := h.target(id, 0).Delivery; d.State != reviewcontrol.Delivered {
		t.Errorf("%+v", d)
	}
}

// TestSyncFindsItDone has authoring be where it shall go already, and where it cannot be.
func TestSyncFindsItDone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(1)
	h.authoring.change(id, func(d *draftRow) { d.Status = "approved" })
	if err := h.service.Sync(t.Context(), id); err != nil {
		t.Error(err)
	}
	h.authoring.change(id, func(d *draftRow) { d.Status = "cancelled" })
	h.deliver(id, 0)
	err := h.service.Sync(t.Context(), id)
	wants(t, err, fault.Conflict)
	if !one[bool](h, `SELECT sync_waiting AND synced < version FROM review_control.reviews`) {
		t.Error("the news are taken for told")
	}
	if err := h.service.Sync(t.Context(), 999); code(err) != fault.NotFound {
		t.Error(err)
	}
}

// TestCountsComeBeforeTheStatus looks at a draft in the moment in which authoring changes its
// status.
func TestCountsComeBeforeTheStatus(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(2)
	h.deliver(id, 0)
	h.deliver(id, 1)
	h.authoring.before = func(x transition) {
		if row := h.authoring.row(id); row.Delivery["sent"] != 2 || row.Decisions["approved"] != 2 {
			t.Errorf("before it is %s: %+v", x.To, row)
		}
	}
	if err := h.service.Sync(t.Context(), id); err != nil || h.authoring.row(id).Status != "sent" {
		t.Errorf("%v, %s", err, h.authoring.row(id).Status)
	}
}

// TestNewsAreTold counts the jobs that a review with many changes makes.
func TestNewsAreTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(5)
	for i := range 4 {
		h.decide(id, i, reviewcontrol.Approve)
	}
	if n := h.jobs("sync_draft"); n != 1 {
		t.Errorf("%d jobs for four decisions", n)
	}
	h.decide(id, 4, reviewcontrol.Approve)
	if n := h.jobs("sync_draft"); n != 2 { // a new status is told at once
		t.Errorf("%d jobs for a new status", n)
	}
	if err := h.service.Sync(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := h.service.Finish(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	h.exec(`DELETE FROM review_control.river_job WHERE kind = 'sync_draft'`)
	h.deliver(id, 0)
	h.deliver(id, 1)
	if n := one[int](h, `SELECT count(*) FROM review_control.river_job WHERE kind = 'sync_draft' AND state = 'scheduled'`); n != 1 {
		t.Errorf("%d jobs for two mails", n)
	}
	// What an older job tells later is not taken for news.
	for i := range 5 {
		h.deliver(id, i)
	}
	for range 2 {
		if err := h.service.Sync(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if row, r := h.authoring.row(id), h.review(id); row.Status != "sent" || row.Delivery["sent"] != 5 || row.ProgressVersion != r.Version {
		t.Errorf("%+v", row)
	}
}

// TestFrom is whom recipients see, and reviewers before them.
func TestFrom(t *testing.T) {
	s := reviewcontrol.New(reviewcontrol.Config{From: mailer.Address{Name: "Hub", Email: "hub@hub.example"}})
	for _, c := range []struct{ draft, want mailer.Address }{
		{mailer.Address{}, mailer.Address{Name: "Hub", Email: "hub@hub.example"}},
		{mailer.Address{Name: "Kim"}, mailer.Address{Name: "Kim", Email: "hub@hub.example"}},
		{mailer.Address{Email: "kim@shop.example"}, mailer.Address{Email: "kim@shop.example"}},
		{mailer.Address{Name: "Kim", Email: "kim@shop.example"}, mailer.Address{Name: "Kim", Email: "kim@shop.example"}},
	} {
		if got := s.From(c.draft); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.draft, got, c.want)
		}
	}
}
