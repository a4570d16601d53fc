package postgres_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "TestStoreOfTheHouse|TestWhatTheRoleMayNotDo|TestPlans|TestPlanOfNews")
}

func migrated(t testing.TB) hubtest.WriteStoreDB {
	t.Helper()
	db := hubtest.MigratedStore(t, "authoring", postgres.Migrate)
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

func key(name string) write.Key {
	return write.Key{Principal: "ak_1", Operation: "create_segment", Key: name, Fingerprint: sha256.Sum256([]byte(name))}
}

func record(id authoring.ID) (tool.Result, audit.Entry, error) {
	return tool.Result{
			Head: tool.Head{Count: 1},
			Data: []byte(`{"id":"` + id.String() + `"}`),
		}, audit.Entry{
			At:      time.Now(),
			Tool:    "create_segment",
			Outcome: audit.OK,
		}, nil
}

func numbered(n int, then error) authoring.SegmentTargets {
	return func(yield func(authoring.SegmentTarget, error) bool) {
		for i := range n {
			if !yield(authoring.SegmentTarget{ExternalID: int64(i), Snapshot: fmt.Appendf(nil, `{"n":%d}`, i)}, nil) {
				return
			}
		}
		if then != nil {
			yield(authoring.SegmentTarget{}, then)
		}
	}
}

func segment(n int) authoring.Segment {
	return authoring.Segment{Name: "n", Kind: authoring.Partner, CreatedAt: time.Now().UTC().Truncate(time.Millisecond), TargetCount: n}
}

func count(t testing.TB, db hubtest.WriteStoreDB, table string) (n int) {
	t.Helper()
	if err := connect(t, db.SuperuserURL).QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestStoreOfTheHouse(t *testing.T) {
	hubtest.ExerciseStore(t, "authoring", postgres.Migrate, postgres.New)
}

func TestWhatTheRoleMayNotDo(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	s := open(t, db.URL("authoring"))
	if _, err := s.AddSegment(t.Context(), key("k"), segment(3), numbered(3, nil), record); err != nil {
		t.Fatal(err)
	}
	role := connect(t, db.URL("authoring"))
	for name, sql := range map[string]string{
		"delete segments":           `DELETE FROM authoring.segments`,
		"change a segment":          `UPDATE authoring.segments SET name = 'x'`,
		"change evidence":           `UPDATE authoring.segment_targets SET snapshot = '{}'`,
		"delete evidence":           `DELETE FROM authoring.segment_targets`,
		"change a draft's body":     `UPDATE authoring.drafts SET body_template = 'x'`,
		"change a draft's subject":  `UPDATE authoring.drafts SET subject_template = 'x'`,
		"change who made a draft":   `UPDATE authoring.drafts SET credential_id = 'x'`,
		"delete drafts":             `DELETE FROM authoring.drafts`,
		"change a recipient":        `UPDATE authoring.draft_targets SET to_email = 'x'`,
		"delete recipients":         `DELETE FROM authoring.draft_targets`,
		"rewrite history":           `UPDATE authoring.draft_transitions SET to_status = 'sent'`,
		"delete history":            `DELETE FROM authoring.draft_transitions`,
		"empty a table":             `TRUNCATE authoring.draft_targets`,
		"change the schema":         `ALTER TABLE authoring.drafts ADD COLUMN x int`,
		"make a table":              `CREATE TABLE authoring.x (a int)`,
		"read the audit log":        `SELECT * FROM audit.calls`,
		"delete from the audit log": `DELETE FROM audit.calls`,
		"become the owner":          `SET ROLE hub`,
	} {
		_, err := role.Exec(t.Context(), sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBrokenSequenceLeavesNothing ends COPY in its middle: by an error of ours, and by the
// store when a row is one that it cannot keep.
func TestBrokenSequenceLeavesNothing(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	s := open(t, db.URL("authoring"))
	broken := errors.New("broken")
	if _, err := s.AddSegment(
		t.Context(),
		key("k"),
		segment(5000),
		numbered(5000, broken),
		record,
	); !errors.Is(err, broken) &&
		(err == nil || !strings.Contains(err.Error(), "broken")) {
		t.Errorf("an error of ours: %v", err)
	}
	twice := func(yield func(authoring.SegmentTarget, error) bool) {
		for t, err := range numbered(10, nil) {
			for range 2 {
				if !yield(t, err) {
					return
				}
			}
		}
	}
	if _, err := s.AddSegment(t.Context(), key("k"), segment(20), twice, record); !pgstore.IsUnique(err, "segment_targets_pkey") {
		t.Errorf("a target twice: %v", err)
	}
	failing := func(authoring.ID) (tool.Result, audit.Entry, error) {
		return tool.Result{}, audit.Entry{}, broken
	}
	if _, err := s.AddSegment(t.Context(), key("k"), segment(3), numbered(3, nil), failing); !errors.Is(err, broken) {
		t.Errorf("an answer that fails: %v", err)
	}
	for _, table := range []string{"authoring.segments", "authoring.segment_targets", "authoring.idempotency_keys", "audit.calls"} {
		if n := count(t, db, table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	if a, err := s.AddSegment(t.Context(), key("k"), segment(3), numbered(3, nil), record); err != nil || a.Replayed {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestCallerGoesAway cancels a call in the middle of COPY; the connections stay usable.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	s := open(t, db.URL("authoring"))
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		slow := func(yield func(authoring.SegmentTarget, error) bool) {
			for t, err := range numbered(3000, nil) {
				if t.ExternalID == 1500 {
					cancel()
				}
				if !yield(t, err) {
					return
				}
			}
		}
		if _, err := s.AddSegment(ctx, key(fmt.Sprint(i)), segment(3000), slow, record); err == nil {
			t.Error("a cancelled call succeeded")
		}
		cancel()
	}
	if a, err := s.AddSegment(t.Context(), key("0"), segment(3), numbered(3, nil), record); err != nil || a.Replayed {
		t.Errorf("%+v, %v", a, err)
	}
	if n := count(t, db, "authoring.segment_targets"); n != 3 {
		t.Errorf("%d targets", n)
	}
}

// plan is a statement whose plan is asked for.
type plan struct {
	sql  string
	args []any
}

func planned(sql string, args []any) plan { return plan{sql, args} }

// TestPlans asks for the plan of each list on tables that are worth an index.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	super := connect(t, db.SuperuserURL)
	_, err := super.Exec(t.Context(), `
		INSERT INTO authoring.segments (name, kind, created_at, target_count, service, external_user_id, credential_id, hub_user)
			SELECT 'n', CASE n % 50 WHEN 0 THEN 'campaign' ELSE 'partner' END, now(), 1, '', '', '', '' FROM generate_series(1, 20000) n;
		INSERT INTO authoring.segment_targets SELECT n, 0, n, '{}', CASE n % 50 WHEN 0 THEN n END FROM generate_series(1, 20000) n;
		INSERT INTO authoring.drafts (name, status, segment_id, subject_template, body_template, created_at, target_count, pending, service,
			external_user_id, credential_id, hub_user, queued_at)
			SELECT 'n', CASE n % 50 WHEN 0 THEN 'in_review' WHEN 1 THEN 'draft' ELSE 'sent' END, n, 's', 'b', now(), 3, 3, '', '', '', '',
				CASE n % 50 WHEN 1 THEN NULL ELSE now() - n * interval '1 minute' END FROM generate_series(1, 20000) n;
		INSERT INTO authoring.draft_targets SELECT n, p, n, 'a@b.example', '', '', '', '{}' FROM generate_series(1, 20000) n,
			generate_series(0, 2) p;
		ANALYZE authoring.segments, authoring.segment_targets, authoring.drafts, authoring.draft_targets`)
	if err != nil {
		t.Fatal(err)
	}
	role := connect(t, db.URL("authoring"))
	recipients := make([]int64, authoring.MaxDraftTargets)
	for i := range recipients {
		recipients[i] = int64(i)
	}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		if _, err := role.Exec(t.Context(), `SET plan_cache_mode = `+mode); err != nil {
			t.Fatal(err)
		}
		review := []authoring.Status{authoring.InReview}
		for name, c := range map[string]plan{
			"segments":           planned(postgres.ListSegments(authoring.SegmentFilter{Limit: 20})),
			"segments of a kind": planned(postgres.ListSegments(authoring.SegmentFilter{Kind: authoring.Campaign, Limit: 20})),
			"segments behind an offset": planned(
				postgres.ListSegments(authoring.SegmentFilter{Kind: authoring.Campaign, Offset: 300, Limit: 20})),
			"a segment of a list":     planned(postgres.ListSegments(authoring.SegmentFilter{ID: 77, Limit: 20})),
			"a draft of a list":       planned(postgres.ListDrafts(authoring.DraftFilter{ID: 77, Statuses: review, Limit: 20})),
			"drafts behind an offset": planned(postgres.ListDrafts(authoring.DraftFilter{Offset: 300, Limit: 20})),
			"drafts of a status behind an offset": planned(
				postgres.ListDrafts(authoring.DraftFilter{Statuses: review, Offset: 300, Limit: 20})),
			"what is rejected":                  {postgres.RejectedOf, []any{[]int64{1, 77, 999}}},
			"outside a segment":                 {postgres.OutsideSegmentOfPartners, []any{777, recipients}},
			"outside a segment of campaigns":    {postgres.OutsideSegmentOfOthers, []any{800, recipients}},
			"a draft":                           {postgres.OneDraft, []any{777}},
			"targets":                           {postgres.SelectTargets, []any{777, -1, 64}},
			"targets of a segment of campaigns": {postgres.SelectTargets, []any{800, -1, 64}},
			"named targets": {postgres.NamedTargets,
				[]any{777, -1, 64, []int64{1, 2}}},
			"drafts":             planned(postgres.ListDrafts(authoring.DraftFilter{After: 15000, Limit: 20})),
			"drafts of a status": planned(postgres.ListDrafts(authoring.DraftFilter{Statuses: review, Limit: 20})),
			"drafts of statuses": planned(postgres.ListDrafts(authoring.DraftFilter{Statuses: append(review, authoring.Drafted), Limit: 20})),
			"drafts by the queue": planned(postgres.ListDrafts(authoring.DraftFilter{Statuses: review, ByQueue: true, After: 500, Limit: 20,
				Others: true, Makers: []authoring.Maker{{CreatedBy: "x"}},
				Ahead: []authoring.StatusAhead{{DraftID: "7", Status: authoring.InReview}}})),
		} {
			plan := hubtest.Plan(t, role, c.sql, c.args...)
			if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "rows=20000") {
				t.Errorf("%s, %s:\n%s", name, mode, plan)
			}
		}
	}
}

// TestPlanOfNews asks for the plan of a page of a draft that is just there, with a segment that
// is: until the server has looked at them, it knows nothing of either.
func TestPlanOfNews(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"partner", "brand"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			db := migrated(t)
			_, err := connect(t, db.SuperuserURL).Exec(t.Context(), `
				ALTER TABLE authoring.segment_targets SET (autovacuum_enabled = false);
				ALTER TABLE authoring.draft_targets SET (autovacuum_enabled = false);
				INSERT INTO authoring.segments (name, kind, created_at, target_count, service, external_user_id, credential_id, hub_user)
					VALUES ('n', '`+kind+`', now(), 10000, '', '', '', '');
				INSERT INTO authoring.segment_targets SELECT s.id, n, n, '{}', CASE s.kind WHEN 'brand' THEN n END
					FROM authoring.segments s, generate_series(0, 9999) n;
				INSERT INTO authoring.drafts (name, status, segment_id, subject_template, body_template, created_at, target_count, pending,
					service, external_user_id, credential_id, hub_user)
					SELECT 'n', 'in_review', s.id, 's', 'b', now(), 10000, 10000, '', '', '', '' FROM authoring.segments s;
				INSERT INTO authoring.draft_targets SELECT d.id, n, n, 'a@b.example', '', '', '', '{}'
					FROM authoring.drafts d, generate_series(0, 9999) n`)
			if err != nil {
				t.Fatal(err)
			}
			var page []int64
			for i := range int64(20) {
				page = append(page, 9980+i)
			}
			plan := hubtest.Plan(
				t,
				connect(t, db.URL("authoring")),
				postgres.NamedTargets,
				1,
				-1,
				64,
				page,
			)
			// Each of the 20 targets finds its snapshot, and reads no other.
			if !regexp.MustCompile(`segment_targets.* \(actual rows=1 loops=20\)`).MatchString(plan) {
				t.Errorf("the plan is\n%s", plan)
			}
		})
	}
}

// TestSnapshotsAreReadOnce: a batch of targets of one partner reads and sends the partner's snapshots once; each may have 32 MiB.
func TestSnapshotsAreReadOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"partner", "brand"} {
		db := migrated(t)
		_, err := connect(t, db.SuperuserURL).Exec(t.Context(), `
			INSERT INTO authoring.segments (name, kind, created_at, target_count, service, external_user_id, credential_id, hub_user)
				VALUES ('n', '`+kind+`', now(), 1, '', '', '', '');
			INSERT INTO authoring.segment_targets SELECT s.id, 0, 1, '{"a":1}', CASE s.kind WHEN 'brand' THEN 1 END FROM authoring.segments s;
			INSERT INTO authoring.drafts (name, status, segment_id, subject_template, body_template, created_at, target_count, pending,
				service, external_user_id, credential_id, hub_user)
				SELECT 'n', 'in_review', s.id, 's', 'b', now(), 200, 200, '', '', '', '' FROM authoring.segments s;
			INSERT INTO authoring.draft_targets SELECT d.id, n, 1 + n % 2, 'a@b.example', '', '', '', '{}'
				FROM authoring.drafts d, generate_series(0, 199) n`)
		if err != nil {
			t.Fatal(err)
		}
		plan := hubtest.Plan(t, connect(t, db.URL("authoring")), postgres.SelectTargets, 1, -1, 64)
		if !regexp.MustCompile(`segment_targets.* \(actual rows=(1|0|0.50) loops=2\)`).MatchString(plan) {
			t.Errorf("%s: the plan is\n%s", kind, plan)
		}
		err = open(t, db.URL("authoring")).DraftTargets(t.Context(), 1, -1, nil, func(target authoring.StoredTarget) (bool, error) {
			if got, want := len(target.Snapshots), 1-target.Index%2; got != want {
				t.Errorf("%s: target %d of partner %d has %d snapshots", kind, target.Index, target.ExternalID, got)
			}
			return true, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestStoreStops takes a server of its own.
func TestStoreStops(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	db := hubtest.WriteStoreOn(t, server)
	if err := postgres.Migrate(t.Context(), db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	s := open(t, db.URL("authoring"))
	if _, err := s.AddSegment(t.Context(), key("k"), segment(3), numbered(3, nil), record); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	hubtest.Eventually(t, "not ready", func() bool { return fault.Is(s.Ready(t.Context()), fault.DB) })
	if _, err := s.AddSegment(t.Context(), key("k2"), segment(3), numbered(3, nil), record); !fault.Is(err, fault.DB) {
		t.Errorf("add: %v", err)
	}
	if _, _, err := s.StoredAnswer(t.Context(), key("k")); !fault.Is(err, fault.DB) {
		t.Errorf("answered: %v", err)
	}
	if _, err := s.Segments(t.Context(), authoring.SegmentFilter{Limit: 20}); !fault.Is(err, fault.DB) {
		t.Errorf("list: %v", err)
	}
	if _, err := s.Transition(t.Context(), 1, authoring.Transition{}, authoring.Origin{}, time.Now()); !fault.Is(err, fault.DB) {
		t.Errorf("transition: %v", err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "ready again", func() bool { return s.Ready(t.Context()) == nil })
	if a, found, err := s.StoredAnswer(t.Context(), key("k")); err != nil || !found || !a.Replayed || string(a.Data) != `{"id":"1"}` {
		t.Errorf("after the crash: %+v, %t, %v", a, found, err)
	}
}
