package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// TestNothingIsLostAndNothingIsSentTwice kills what sends mails while it does, up to 20 times
// at random: each approved mail arrives once, or is told of as unknown.
func TestNothingIsLostAndNothingIsSentTwice(t *testing.T) {
	const (
		kills    = 20
		workers  = 4
		approved = 140
		rejected = 10
	)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server := hubtest.NewPostgres(t)
	// Taking a mail takes a while, on both sides of the moment from which on it has arrived.
	slow := func() error { time.Sleep(50 * time.Millisecond); return nil }
	s := start(t, options{raced: true, postgres: server, smtp: localserver.SMTPHooks{Read: slow, Kept: slow}, env: []string{
		"HUB_DRAFT_RECIPIENTS=not_b2c",
		"HUB_SEND_PER_MINUTE=600",
		fmt.Sprint("HUB_SEND_WORKERS=", workers),
		"HUB_SEND_TIMEOUT=1s",
		"HUB_SEND_RETRY=200ms",
	}})
	ada := s.person("Ada Lovelace", "reviewer")
	id := s.queued(t, s.draft(t, draftOptions{targets: approved + rejected, madeUp: true}))
	p := s.signedIn(t, ada, "/drafts/"+id)
	for i := range rejected {
		p.Open(fmt.Sprintf("/drafts/%s/targets/%d", id, i))
		p.Button("Reject").Click()
		p.Target(i).Shows("Rejected")
	}
	for left := approved; left > 0; {
		p.Open("/drafts/" + id + "?decision=pending")
		left -= p.rows()
		p.LookThrough()
		p.role("you have read", false, "button").Click()
	}
	p.SeesEnd(fmt.Sprintf("%d mails are on their way.", approved))
	p.close()

	victims := map[string]struct {
		kill  func()
		start func()
	}{
		"review-control": {func() { s.process["review-control"].Kill() }, func() { s.start("review-control") }},
		"authoring":      {func() { s.process["authoring"].Kill() }, func() { s.start("authoring") }},
		"postgres":       {func() { server.Kill() }, func() { mustStart(t, server.Start) }},
		"smtp":           {func() { s.smtp.Kill() }, func() { mustStart(t, func(context.Context) error { return s.smtp.Start() }) }},
	}
	names := []string{"review-control", "review-control", "postgres", "smtp", "authoring"}
	killed := map[string]int{}
	at := time.Now()
	arrived := func() int { return len(s.smtp.Mails()) }
	hubtest.Eventually(t, "mails arrive", func() bool { return arrived() > 0 })
	done := 0
	for ; done < kills && arrived() < approved-40; done++ { // on a slow machine, more arrive between two
		time.Sleep(time.Duration(random.IntN(900)) * time.Millisecond)
		name := names[random.IntN(len(names))]
		killed[name]++
		victims[name].kill()
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		victims[name].start()
	}
	t.Logf("killed %v in %s; %d mails had arrived by then", killed, time.Since(at).Round(time.Second), arrived())
	if n := arrived(); n == approved || done < kills/4 {
		t.Errorf("%d of %d mails had arrived when the killing ended, after %d times: it was not in the middle of it", n, approved, done)
	}

	// What a dead process was working on is taken up again after a while. The other tests run meanwhile.
	t.Parallel()
	states := func() map[string]int {
		count := map[string]int{}
		for _, state := range s.progress(t, id) {
			count[state]++
		}
		return count
	}
	status := func() string {
		return query[string](t, s, `SELECT status FROM authoring.drafts WHERE id = $1::bigint`, id)[0]
	}
	for deadline := time.Now().Add(8 * time.Minute); status() != "sent"; time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the draft is %s: %v", status(), states())
		}
	}
	t.Logf("sent %s after the first kill: %v", time.Since(at).Round(time.Second), states())
	mails := map[string]int{}
	for _, m := range s.smtp.Mails() {
		mails[m.DeliveredTo]++
	}
	unknown := 0
	for i, state := range s.progress(t, id) {
		got := mails[fmt.Sprintf("person%03d@company.example", i)]
		switch {
		case i < rejected && (state != "" || got != 0):
			t.Errorf("rejected target %d is %q and got %d mails", i, state, got)
		case i < rejected:
		case state == "sent" && got == 1:
		case state == "unknown" && got <= 1:
			unknown++
		default:
			t.Errorf("target %d is %q and got %d mails", i, state, got)
		}
	}
	// Authoring has its part before a mail is handed over.
	if most := workers * (done - killed["authoring"]); unknown > most {
		t.Errorf("%d mails are unknown; %v explain %d", unknown, killed, most)
	}
	p = s.signedIn(t, ada, "/drafts/"+id)
	if unknown > 0 {
		p.Sees("in doubt")
	}
	p.Sees(fmt.Sprintf("%d of %d sent", approved-unknown, approved))
	d := s.listed(t, id)
	hubtest.Eventually(t, "list_drafts counts all", func() bool {
		d = s.listed(t, id)
		return d.Delivery.Sent == approved-unknown && d.Delivery.Unknown == unknown
	})
	if strings.Contains(s.logs.String(), "panic") {
		t.Error("a service has panicked")
	}
}

func mustStart(t *testing.T, start func(context.Context) error) {
	t.Helper()
	if err := start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// progress is what became of each target's mail, in order.
func (s *suite) progress(t testing.TB, draft string) []string {
	t.Helper()
	return query[string](t, s, `SELECT progress FROM review_control.targets WHERE draft_id = $1::bigint ORDER BY position`, draft)
}

// decisions is how often somebody decided on a target.
func (s *suite) decisions(t testing.TB, draft string, index int) int {
	t.Helper()
	return query[int](t, s, `SELECT count(*) FROM review_control.decisions WHERE draft_id = $1::bigint AND position = $2`, draft, index)[0]
}

// auditedTools are those that the audit log has rows of.
func (s *suite) auditedTools(t testing.TB) []string {
	t.Helper()
	return query[string](t, s, `SELECT DISTINCT tool FROM audit.calls`)
}

// query asks the write store as its administrator.
func query[T any](t testing.TB, s *suite, sql string, args ...any) []T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hubtest.Patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.store.SuperuserURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return list
}
