package postgres_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/jobs"
	"hub.internal/services/review-control/postgres"
	"hub.internal/services/review-control/suppression"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "")
}

func migrated(t testing.TB) hubtest.WriteStoreDB {
	t.Helper()
	db := hubtest.MigratedStore(t, "review-control", postgres.Migrate)
	return db
}

func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	return postgres.New(hubtest.Pool(t, url))
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// inReview keeps a draft with so many targets as a review.
func inReview(t testing.TB, s *postgres.Store, id reviewcontrol.ID, n int) {
	t.Helper()
	targets := make([]reviewcontrol.Target, n)
	for i := range targets {
		targets[i] = reviewcontrol.Target{Index: i, ExternalID: int64(i), ToEmail: fmt.Sprintf("c%d@partner.example", i), ToName: "Contact"}
	}
	name := fmt.Sprint("key of ", id)
	in := reviewcontrol.Intent{DraftID: id, TargetCount: n, QueuedAt: time.Now(), InputHash: []byte{1},
		Key: write.Key{Principal: "ak_1", Operation: "queue_for_review", Key: name, Fingerprint: sha256.Sum256([]byte(name))}}
	if _, err := s.Intend(t.Context(), in, targets); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), in, tool.Result{Data: []byte("{}")},
		audit.Entry{At: time.Now(), Tool: "queue_for_review", Outcome: audit.OK}); err != nil {
		t.Fatal(err)
	}
}

func TestStoreOfTheHouse(t *testing.T) {
	hubtest.ExerciseStore(t, "review-control", postgres.Migrate, postgres.New)
}

func TestWhatTheRoleMayNotDo(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	inReview(t, open(t, db.URL("review-control")), 1, 2)
	role := connect(t, db.URL("review-control"))
	for name, sql := range map[string]string{
		"delete a review":              `DELETE FROM review_control.reviews`,
		"delete its targets":           `DELETE FROM review_control.targets`,
		"change a recipient":           `UPDATE review_control.targets SET to_email = 'x'`,
		"change who made a draft":      `UPDATE review_control.reviews SET created_by = 'x'`,
		"change who queued a draft":    `UPDATE review_control.reviews SET credential_id = 'x'`,
		"change a decision":            `UPDATE review_control.decisions SET choice = 'approved'`,
		"delete decisions":             `DELETE FROM review_control.decisions`,
		"change a suppression":         `UPDATE review_control.suppressions SET reason = 'x'`,
		"rewrite its history":          `UPDATE review_control.suppression_events SET reason = 'x'`,
		"delete its history":           `DELETE FROM review_control.suppression_events`,
		"delete an import":             `DELETE FROM review_control.imports`,
		"delete what an import missed": `DELETE FROM review_control.import_problems`,
		"end the pace":                 `DELETE FROM review_control.pace`,
		"empty a table":                `TRUNCATE review_control.targets`,
		"empty the jobs":               `TRUNCATE review_control.river_job`,
		"change the schema":            `ALTER TABLE review_control.reviews ADD COLUMN x int`,
		"drop a trigger":               `DROP TRIGGER reviews_keep ON review_control.reviews`,
		"change jobs' migrations":      `DELETE FROM review_control.river_migration`,
		"make a table":                 `CREATE TABLE review_control.x (a int)`,
		"read the audit log":           `SELECT * FROM audit.calls`,
		"delete from the audit log":    `DELETE FROM audit.calls`,
		"become the owner":             `SET ROLE hub`,
	} {
		_, err := role.Exec(t.Context(), sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargest takes the largest draft through the store, which ends a statement at 10 s.
func TestLargest(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	s, ctx := open(t, db.URL("review-control")), t.Context()
	const n = 10_000
	start := time.Now()
	lap := func(what string) {
		t.Logf("%s: %s", what, time.Since(start).Round(time.Millisecond))
		start = time.Now()
	}
	inReview(t, s, 1, n)
	lap("queue")
	at, super := time.Now(), connect(t, db.SuperuserURL)
	if _, err := super.Exec(ctx, `UPDATE review_control.targets SET choice = 'approved', revision = 1; UPDATE review_control.reviews `+
		`SET pending = 1, approved = 9999; UPDATE review_control.targets SET choice = 'pending' WHERE position = 0`); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	_, err := s.Update(ctx, 1, []int{0}, func(u *reviewcontrol.Transaction) error {
		u.Targets[0].Decision = reviewcontrol.Decision{Choice: reviewcontrol.Approve, At: &at, Revision: 2}
		u.Review.Counts, u.Review.Status = reviewcontrol.Counts{Approved: n}, reviewcontrol.Approved
		u.Steps = []reviewcontrol.Step{{Kind: reviewcontrol.Decided, Target: &u.Targets[0]},
			{Kind: reviewcontrol.Moved, From: reviewcontrol.InReview, To: reviewcontrol.Approved}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lap("last decision")
	for range 2 {
		if _, err := s.Finish(ctx, 1, time.Now()); err != nil {
			t.Fatal(err)
		}
		lap("finish")
	}
	var jobs, tokens int
	if err := super.QueryRow(ctx, `SELECT count(*) FROM review_control.river_job WHERE kind = 'deliver'`).Scan(&jobs); err != nil ||
		jobs != n {
		t.Errorf("%d jobs, %v", jobs, err)
	}
	if err := super.QueryRow(ctx, `SELECT count(DISTINCT unsubscribe_token) FROM review_control.targets `+
		`WHERE length(unsubscribe_token) = 16`).Scan(&tokens); err != nil || tokens != n {
		t.Errorf("%d tokens, %v", tokens, err)
	}
	start = time.Now()
	if _, err := super.Exec(ctx, `DELETE FROM review_control.river_job WHERE (args ->> 'index')::int % 2 = 0`); err != nil {
		t.Fatal(err)
	}
	if err := s.AddMissingJobs(ctx); err != nil {
		t.Fatal(err)
	}
	lap("add missing jobs")
	if err := super.QueryRow(ctx, `SELECT count(*) FROM review_control.river_job WHERE kind = 'deliver'`).Scan(&jobs); err != nil ||
		jobs != n {
		t.Errorf("%d jobs, %v", jobs, err)
	}
	start = time.Now()
	if _, err := s.Update(ctx, 1, nil,
		func(u *reviewcontrol.Transaction) error { u.Review.Status = reviewcontrol.Cancelled; return nil }); err != nil {
		t.Fatal(err)
	}
	lap("cancel")
}

func TestPlans(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	super := connect(t, db.SuperuserURL)
	_, err := super.Exec(t.Context(), `
		INSERT INTO review_control.reviews (draft_id, status, target_count, pending, approved, synced, queued_at, changed_at, actor, note,
			created_by, hub_user, external_user, sender_name, sender_email, credential_id, tool, key, fingerprint, caller, input_hash)
			SELECT n, CASE n % 100 WHEN 0 THEN 'approved' WHEN 1 THEN 'draft' WHEN 3 THEN 'in_review' ELSE 'sent' END, 1, 0, 1,
				CASE n % 100 WHEN 2 THEN 0 ELSE 1 END, now(), now() - make_interval(mins => n), '', '', '', '', '', '', '', '', '', n::text, '',
					'{}', '' FROM generate_series(1, 20000) n;
		INSERT INTO review_control.targets (draft_id, position, external_id, to_email, to_name, mailings, choice, progress, unsubscribe_token)
			SELECT d, p, p, 'a@b.example', '', 10000, CASE p % 100 WHEN 0 THEN 'pending' WHEN 1 THEN 'rejected' ELSE 'approved' END,
				CASE p % 100 WHEN 2 THEN 'failed' ELSE 'sent' END, uuid_send(gen_random_uuid()) FROM generate_series(1, 4) d, generate_series(0,
					9999) p;
		INSERT INTO review_control.suppressions SELECT 'u' || n || '@d' || n % 1000 || '.example', 'd' || n % 1000 || '.example', '', '',
			'import', '', now() FROM generate_series(1, 200000) n;
		INSERT INTO review_control.decisions SELECT 1, p, 1, 'approved', '', now(), '', '' FROM generate_series(0, 9999) p;
		UPDATE review_control.targets SET flags = 1 WHERE position % 100 = 0;
		UPDATE review_control.targets SET variant = position % 99 + 1, inspected_hash = 'x' WHERE position > 0;
		INSERT INTO review_control.variants SELECT d, n, sha256(n::text::bytea), '', '{}', 101 FROM generate_series(1, 400) d,
			generate_series(1, 99) n;
		INSERT INTO review_control.presence SELECT n, 'p' || p || '@hub.example', '', now() FROM generate_series(1, 20000) n,
			generate_series(1, 3) p;
		INSERT INTO review_control.imports (name, reason, by, at, status, lines, data) SELECT '', '', '', now(), 'done', 1, ''
			FROM generate_series(1, 5000);
		INSERT INTO review_control.import_problems SELECT i, l, '', '' FROM generate_series(1, 20) i, generate_series(1, 1000) l;
		ANALYZE`)
	if err != nil {
		t.Fatal(err)
	}
	role := connect(t, db.URL("review-control"))
	type statement struct {
		sql  string
		args []any
	}
	targets := func(f reviewcontrol.TargetFilter) statement {
		f.Limit = 51
		sql, args := postgres.ListTargets(2, f)
		return statement{sql, args}
	}
	for mode, statements := range map[string]map[string]statement{
		"auto": {
			"a review": {postgres.OneReview, []any{77}}, "reviews": {postgres.ManyReviews, []any{[]int64{1, 70, 999}}},
			"a target": {postgres.OneTarget, []any{2, 5000}}, "locked targets": {postgres.LockTargets, []any{2, []int64{5000, 7}}},
			"mails to an address":           {postgres.MailsTo, []any{"a@b", "a@b\U0010FFFF", 51}},
			"targets":                       targets(reviewcontrol.TargetFilter{After: 9000}),
			"pending":                       targets(reviewcontrol.TargetFilter{Choice: reviewcontrol.Pending, After: 100}),
			"failed":                        targets(reviewcontrol.TargetFilter{State: reviewcontrol.Failed, After: 100}),
			"flagged first":                 targets(reviewcontrol.TargetFilter{FlaggedFirst: true, After: 9000}),
			"flagged first, from the begin": targets(reviewcontrol.TargetFilter{FlaggedFirst: true, After: -1}),
			"flagged first, what is left":   targets(reviewcontrol.TargetFilter{FlaggedFirst: true, Choice: reviewcontrol.Pending, After: 700}),
			"back":                          targets(reviewcontrol.TargetFilter{FlaggedFirst: true, Back: true, After: 300}),
			"a variant":                     targets(reviewcontrol.TargetFilter{Variant: 7, After: 100}),
			"what is left of it":            targets(reviewcontrol.TargetFilter{Variant: 7, Choice: reviewcontrol.Pending, After: -1}),
			"like no other": targets(reviewcontrol.TargetFilter{Variant: reviewcontrol.NoVariant, Choice: reviewcontrol.Pending,
				After: -1}),
			"variants": {postgres.Variants, []any{2}},
			"a token": {`SELECT draft_id FROM review_control.targets WHERE unsubscribe_token = $1`,
				[]any{[]byte("0123456789abcdef")}},
			"suppressed": {`SELECT email_key FROM review_control.suppressions WHERE email_key = ANY ($1)`,
				[]any{[]string{"u1@d1.example", "x"}}},
			"history": {`SELECT choice FROM review_control.decisions WHERE draft_id = $1 AND position = $2 ORDER BY revision DESC`,
				[]any{1, 77}},
			"imports": {`SELECT id FROM review_control.imports ORDER BY id DESC LIMIT $1`, []any{20}},
			"bad lines": {
				`SELECT line FROM review_control.import_problems WHERE import_id = $1 AND line > $2 ORDER BY line LIMIT $3`, []any{5, 100, 50}},
			"who made what is open": {postgres.OpenMakers, nil}, "news for a list": {postgres.AheadOf, []any{100}},
			"flags of a list":                  {postgres.FlaggedOf, []any{[]int64{1, 2, 3, 77}}},
			"why mails are rejected":           {postgres.RejectionsOf, []any{2}},
			"what was rejected last":           {postgres.NewestRejections, []any{2}},
			"who is there":                     {postgres.PresentAt, []any{[]int64{1, 2, 3, 77}, time.Now(), "a@b.example"}},
			"who was there":                    {postgres.ForgetPresence, []any{time.Now().Add(-time.Hour)}},
			"the backlog":                      {postgres.Backlog, []any{time.Now().Add(time.Minute)}},
			"how many authoring does not know": {postgres.Unsynced, []any{10_000}},
			"lost intents":                     {postgres.MissingIntents, []any{60}}, "lost inspections": {postgres.MissingInspections, []any{60}},
			"lost ends": {postgres.MissingFinishes, []any{60}}, "lost news": {postgres.MissingSyncs, []any{60}},
			"lost imports": {postgres.MissingImports, []any{60}},
		},
		"force_custom_plan": {
			"suppressions": {postgres.ListSuppressions, []any{"u19%", "u199@x", 51}}, "all": {postgres.ListSuppressions, []any{"%", "u199@x", 51}},
			"a domain": {postgres.ListSuppressionsOfDomain, []any{"d77.example%", "", "", 51}},
			"domains":  {postgres.ListSuppressionsOfDomain, []any{"d7%", "d77.example", "u77@d77.example", 51}},
		},
	} {
		if _, err := role.Exec(t.Context(), `SET plan_cache_mode = `+mode); err != nil {
			t.Fatal(err)
		}
		for name, c := range statements {
			plan := hubtest.Plan(t, role, c.sql, c.args...)
			unread := regexp.MustCompile(`Seq Scan on (river_job|targets t \(never executed\))`)
			whole := regexp.MustCompile(`Seq Scan|rows=[12]0000|Removed by Filter: \d{4}`)
			if whole.MatchString(unread.ReplaceAllString(plan, "")) {
				t.Errorf("%s:\n%s", name, plan)
			}
		}
	}
}

// TestALongLineIsTended: what misses its job is found by reading each side once, so that many mails
// that wait for their turn do not make it a search through all jobs for each of them.
func TestALongLineIsTended(t *testing.T) {
	t.Parallel()
	rows, err := connect(t, migrated(t).URL("review-control")).Query(t.Context(), `EXPLAIN `+postgres.MissingDeliveries)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, "SetOp") {
		t.Errorf("%v\n%s", err, plan)
	}
}

// TestRunnerWaitsForTheStore starts the jobs before there is a server, takes it away under
// them, and stops them.
func TestRunnerWaitsForTheStore(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	db := hubtest.WriteStoreOn(t, server)
	if err := postgres.Migrate(t.Context(), db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	s := open(t, db.URL("review-control"))
	server.Kill()
	service := reviewcontrol.New(reviewcontrol.Config{Store: s})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		runner := jobs.Runner(service, nil, suppression.New(s, nil), s, 1)
		runner.Pool, runner.Service, runner.Schema, runner.Logger = hubtest.Pool(t, db.URL("review-control")), "review-control",
			"review_control", slog.New(slog.DiscardHandler)
		ended <- runner.Run(ctx)
	}()
	imported := func() {
		t.Helper()
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
		in, err := s.AddImport(t.Context(), suppression.Import{Status: suppression.ImportWaiting, Lines: 1}, []byte("x@y.example"),
			audit.Entry{At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, "the file is read", func() bool {
			now, err := s.Import(t.Context(), in.ID)
			return err == nil && now.Status == suppression.ImportDone
		})
	}
	imported()
	server.Kill()
	hubtest.Eventually(t, "not ready", func() bool { return fault.Is(s.Ready(t.Context()), fault.DB) })
	imported()
	start := time.Now()
	stop()
	if err := <-ended; err != nil || time.Since(start) > hubtest.Patience {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
