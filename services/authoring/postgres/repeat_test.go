package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/authoring/postgres"
	"hub.internal/services/authoring/repeat"
)

// BenchmarkEarlier asks about a draft of 10,000 targets beside 100 drafts of as many, 20 of them recent: a house that writes to 100,000
// contacts of 50,000 partners. It reports what PostgreSQL says of its time.
func BenchmarkEarlier(b *testing.B) {
	db := hubtest.MigratedStore(b, "authoring", postgres.Migrate)
	super, err := pgxpool.New(b.Context(), db.SuperuserURL)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(super.Close)
	for _, statement := range []string{
		`INSERT INTO authoring.segments (name, kind, created_at, target_count, service, external_user_id, credential_id, hub_user)
			VALUES ('s', 'partner', now(), 0, '', '', '', '')`,
		`INSERT INTO authoring.drafts (name, status, segment_id, subject_template, body_template, created_at, queued_at, moved_at, target_count,
				service, external_user_id, credential_id, hub_user, pending)
			SELECT 'd', CASE WHEN i > 98 THEN 'in_review' ELSE 'sent' END, 1, 's', 'b', t, t, t, 10000, '', '', '', '', 0
			FROM (SELECT i, now() - make_interval(hours => (101 - i) * 8) AS t FROM generate_series(1, 100) i) x`,
		`INSERT INTO authoring.draft_targets (draft_id, position, external_id, to_email, to_name, subject, body, text_hash, address_hash)
			SELECT d, p, c / 2, 'contact' || c, 'n', '', '', hashint8extended(d * 100000 + c, 0), ('x' || substr(encode(sha256(('contact' || c ||
				'@partner.example')::bytea), 'hex'), 1, 16))::bit(64)::bigint
			FROM (SELECT d, p, (d * 7919 + p * 13) % 100000 AS c FROM generate_series(1, 100) d, generate_series(0, 9999) p) x`,
		`VACUUM ANALYZE authoring.draft_targets`, `VACUUM ANALYZE authoring.drafts`,
	} {
		if _, err := super.Exec(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	store := postgres.New(hubtest.Pool(b, db.URL("authoring")))
	targets := make([]repeat.Target, 10_000)
	for i := range targets {
		targets[i] = repeat.Target{Partner: int64(i * 5), Email: fmt.Sprintf("Contact%d@partner.example", i*10), Text: new(int64(i))}
	}
	since := time.Now().Add(-7 * 24 * time.Hour)
	var found map[int]repeat.Mail
	for b.Loop() {
		if found, err = store.Earlier(b.Context(), 0, nil, &since, targets); err != nil {
			b.Fatal(err)
		}
	}
	texts, addresses, partners := make([]int64, 10_000), make([]int64, 10_000), make([]int64, 10_000)
	for i, t := range targets {
		texts[i], addresses[i], partners[i] = *t.Text, repeat.Address(t.Email), t.Partner
	}
	var plan []string
	for range 3 { // the first has to load its pages
		rows, _ := super.Query(b.Context(), "EXPLAIN (ANALYZE, TIMING OFF) "+postgres.EarlierMails, texts, addresses, partners, int64(0), nil,
			since)
		if plan, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			b.Fatal(err)
		}
	}
	var took float64
	if _, scanErr := fmt.Sscanf(plan[len(plan)-1], "Execution Time: %f", &took); err != nil || scanErr != nil || len(found) != len(targets) {
		b.Fatalf("%d earlier mails, %v, %v", len(found), err, scanErr)
	}
	b.ReportMetric(took, "PostgreSQL-ms")
}
