package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/schema"
	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

func TestMain(m *testing.M) {
	// Each life of an app or of a link is dozens of transactions; -rapid.checks asks for more than these.
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	hubtest.Main(m)
}

const (
	pepper    = "pepper-0123456789abcdef0123456789"
	oldPepper = "before-0123456789abcdef0123456789"
)

// desk is a service on a store of its own, with a clock and everything it said.
type desk struct {
	*auth.Service
	config auth.Config
	db     hubtest.WriteStoreDB
	clock  *hubtest.Clock
	log    *bytes.Buffer
	told   *told
	ctx    context.Context
}

// told remembers notices.
type told struct {
	mu  sync.Mutex
	ids []string
}

func (n *told) Changed(_ context.Context, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids = append(n.ids, id)
}

// counting counts what reaches the store.
type counting struct {
	auth.Store
	mu            sync.Mutex
	finds, touchs int
}

func (c *counting) Find(ctx context.Context, h []auth.Hash) (auth.HashedKey, bool, error) {
	c.mu.Lock()
	c.finds++
	c.mu.Unlock()
	return c.Store.Find(ctx, h)
}

func (c *counting) Touch(ctx context.Context, id string, at time.Time, every time.Duration) error {
	c.mu.Lock()
	c.touchs++
	c.mu.Unlock()
	return c.Store.Touch(ctx, id, at, every)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	db := hubtest.MigratedStore(t, "auth", postgres.Migrate)
	store := postgres.New(hubtest.Pool(t, db.URL("auth")))
	peppers, err := auth.NewPeppers(pepper, "")
	if err != nil {
		t.Fatal(err)
	}
	// The audit log has partitions from this month on, so the clock starts now.
	clock := hubtest.NewClock(time.Now().UTC().Truncate(time.Millisecond))
	d := &desk{db: db, clock: clock, log: &bytes.Buffer{}, told: &told{}}
	d.config = auth.Config{Store: store, Peppers: peppers, Notices: d.told, Now: clock.Now,
		Logger: slog.New(slog.NewJSONHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	d.Service = auth.New(d.config)
	d.ctx = caller.With(t.Context(), caller.Caller{Kind: caller.User, Service: "auth-cli", ExternalUserID: "ada", RequestID: "req_1"})
	return d
}

func (d *desk) issue(t *testing.T, change ...func(*auth.Issue)) (auth.Key, auth.Secret) {
	t.Helper()
	in := auth.Issue{Name: "agent", Scopes: []string{"query", "explore"}}
	for _, f := range change {
		f(&in)
	}
	k, secret, err := d.Issue(d.ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func (d *desk) verify(t *testing.T, s auth.Secret) auth.Key {
	t.Helper()
	k, err := d.Verify(d.ctx, s.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (d *desk) wantStatus(t *testing.T, s auth.Secret, want auth.Status) {
	t.Helper()
	if got := d.verify(t, s).Status(d.clock.Now()); got != want {
		t.Errorf("status %s, want %s", got, want)
	}
}

type auditRow struct {
	Tool, Outcome, Service, User, RequestID string
	Count                                   int
	Detail                                  map[string]any
}

func (d *desk) audit(t *testing.T) []auditRow {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(
		t.Context(),
		`SELECT tool, outcome, service, external_user_id, request_id, count, detail FROM audit.calls ORDER BY at, tool`,
	)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[auditRow])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestIssue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, secret := d.issue(t)
	want := auth.Key{
		ID:       k.ID,
		Name:     "agent",
		Service:  k.ID,
		Head:     secret.Head(),
		Tail:     secret.Tail(),
		PepperID: d.config.Peppers.IDs()[0],
		Scopes: []string{
			"explore",
			"query",
		},
		Limits:    auth.Limits{UserPerMinute: 120, UserBurst: 60, ServicePerMinute: 1200, ServiceBurst: 300},
		CreatedBy: "ada",
		CreatedAt: d.clock.Now(),
	}
	if !reflect.DeepEqual(k, want) {
		t.Errorf("issued %+v, want %+v", k, want)
	}
	if !strings.HasPrefix(k.ID, "ak_") || len(k.ID) != 29 {
		t.Errorf("id %q", k.ID)
	}
	if got := d.verify(t, secret); !reflect.DeepEqual(got, want) {
		t.Errorf("verified %+v, want %+v", got, want)
	}
	full, _ := d.issue(t, func(in *auth.Issue) {
		*in = auth.Issue{
			Name:     "한국 에이전트",
			Scopes:   auth.Scopes(),
			Service:  "crm-bot",
			Lifetime: 90 * 24 * time.Hour,
			Limits:   auth.Limits{UserPerMinute: 6_000_000, UserBurst: 100_000, ServicePerMinute: 1, ServiceBurst: 2},
		}
	})
	got, chain, err := d.Get(d.ctx, full.ID)
	if err != nil || !reflect.DeepEqual(chain, []string{full.ID}) || !reflect.DeepEqual(got, full) || got.Service != "crm-bot" ||
		!got.ExpiresAt.Equal(d.clock.Now().Add(90*24*time.Hour)) || !slices.Equal(got.Scopes, auth.Scopes()) {
		t.Errorf("got %+v, %v, %v", got, chain, err)
	}
}

func TestIssueRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, c := range map[string]struct {
		change func(*auth.Issue)
		want   string
	}{
		"no name":         {func(in *auth.Issue) { in.Name = "" }, "name must be 1 to 100"},
		"blank name":      {func(in *auth.Issue) { in.Name = "  " }, "name must be"},
		"long name":       {func(in *auth.Issue) { in.Name = strings.Repeat("é", 101) }, "name must be"},
		"terminal escape": {func(in *auth.Issue) { in.Name = "a\x1b[2J" }, "name must be"},
		"bidi override":   {func(in *auth.Issue) { in.Name = "a\u202eb" }, "name must be"},
		"not UTF-8":       {func(in *auth.Issue) { in.Name = "a\xff" }, "name must be"},
		"no scopes":       {func(in *auth.Issue) { in.Scopes = nil }, "at least one scope"},
		"unknown scope": {func(in *auth.Issue) { in.Scopes = []string{"query", "admin"} },
			`unknown scope "admin"; the scopes are explore, sql, query, author, control, admin:read, admin:write`},
		"empty scope":  {func(in *auth.Issue) { in.Scopes = []string{"query", ""} }, `unknown scope ""`},
		"service":      {func(in *auth.Issue) { in.Service = "a b" }, "service must be"},
		"long service": {func(in *auth.Issue) { in.Service = strings.Repeat("a", 101) }, "service must be"},
		"past":         {func(in *auth.Issue) { in.Lifetime = -time.Hour }, "expires must be"},
		"too soon":     {func(in *auth.Issue) { in.Lifetime = time.Second }, "expires must be"},
		"too late":     {func(in *auth.Issue) { in.Lifetime = 11 * 366 * 24 * time.Hour }, "expires must be"},
		"no limit": {func(in *auth.Issue) { in.Limits = auth.DefaultLimits(); in.Limits.UserBurst = 0 },
			"user-burst must be between 1 and 10000000"},
		"high limit": {func(in *auth.Issue) { in.Limits = auth.DefaultLimits(); in.Limits.ServicePerMinute = 10_000_001 },
			"service-per-minute must be"},
	} {
		t.Run(name, func(t *testing.T) {
			in := auth.Issue{Name: "agent", Scopes: []string{"query"}}
			c.change(&in)
			if _, _, err := d.Issue(d.ctx, in); !fault.Is(err, fault.Validation) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, _, err := d.Issue(
		t.Context(),
		auth.Issue{Name: "agent", Scopes: []string{"query"}},
	); !fault.Is(err, fault.Validation) ||
		!strings.Contains(err.Error(), "actor") {
		t.Errorf("nobody issued a key: %v", err)
	}
	_, _, err := d.Issue(d.ctx, auth.Issue{Service: "!"})
	for _, path := range []string{"/name", "/service", "/scopes"} {
		if !slices.ContainsFunc(schema.ViolationsOf(err), func(v schema.Violation) bool { return v.Path == path }) {
			t.Errorf("%v does not speak of %s", err, path)
		}
	}
	if page, _, err := d.List(d.ctx, auth.KeyFilter{}); err != nil || len(page) != 0 {
		t.Errorf("keys were made: %v, %v", page, err)
	}
}

func TestUnknownAndMalformedGetTheSameAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	store := &counting{Store: d.config.Store}
	d.config.Store = store
	s := auth.New(d.config)
	_, malformed := s.Verify(d.ctx, "crm_"+strings.Repeat("x", 42))
	if store.finds != 0 {
		t.Error("a malformed key reached the store")
	}
	_, unknown := s.Verify(d.ctx, auth.NewSecret().Reveal())
	if store.finds != 1 {
		t.Errorf("%d reads", store.finds)
	}
	if !fault.Is(unknown, fault.AuthInvalid) || !reflect.DeepEqual(fault.From(unknown), fault.From(malformed)) {
		t.Errorf("unknown: %v, malformed: %v", unknown, malformed)
	}
}

// TestVerifyComparesTheHash gives Verify a store that answers with another key than the one asked for.
func TestVerifyComparesTheHash(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, secret := d.issue(t)
	d.config.Store = confused{d.config.Store, d.config.Peppers.Hashes(secret)}
	if _, err := auth.New(d.config).Verify(d.ctx, auth.NewSecret().Reveal()); !fault.Is(err, fault.AuthInvalid) {
		t.Errorf("another key's row was taken: %v", err)
	}
}

type confused struct {
	auth.Store
	hashes []auth.Hash
}

func (c confused) Find(ctx context.Context, _ []auth.Hash) (auth.HashedKey, bool, error) {
	return c.Store.Find(ctx, c.hashes)
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, secret := d.issue(t, func(in *auth.Issue) { in.Lifetime = time.Hour })
	other, otherSecret := d.issue(t)
	d.clock.Advance(time.Second)
	at := d.clock.Now()
	got, err := d.Revoke(d.ctx, k.ID, "leaked in a log")
	if err != nil || !got.RevokedAt.Equal(at) || got.RevokeReason != "leaked in a log" {
		t.Fatalf("%+v, %v", got, err)
	}
	d.wantStatus(t, secret, auth.Revoked)
	d.wantStatus(t, otherSecret, auth.Active)
	d.clock.Advance(2 * time.Hour)
	d.wantStatus(t, secret, auth.Revoked) // and not expired
	again, err := d.Revoke(d.ctx, k.ID, "again")
	if err != nil || !again.RevokedAt.Equal(at) || again.RevokeReason != "leaked in a log" {
		t.Errorf("revoked twice: %+v, %v", again, err)
	}
	if !slices.Equal(d.told.ids, []string{k.ID, k.ID}) {
		t.Errorf("told %v", d.told.ids)
	}
	for _, id := range []string{"ak_" + strings.Repeat("0", 26), "", "%", other.ID + "'", "a\x00b", "\xff", strings.Repeat("x", 10_000)} {
		if _, err := d.Revoke(d.ctx, id, "reason"); !fault.Is(err, fault.NotFound) {
			t.Errorf("revoke %.40q: %v", id, err)
		}
	}
	for _, reason := range []string{"", " ", "a\nb", strings.Repeat("a", 501)} {
		if _, err := d.Revoke(d.ctx, other.ID, reason); !fault.Is(err, fault.Validation) {
			t.Errorf("reason %.40q: %v", reason, err)
		}
	}
	d.wantStatus(t, otherSecret, auth.Active)
}

func TestExpire(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, secret := d.issue(t, func(in *auth.Issue) { in.Lifetime = time.Hour })
	d.clock.Advance(time.Hour - time.Nanosecond)
	d.wantStatus(t, secret, auth.Active)
	d.clock.Advance(time.Nanosecond)
	d.wantStatus(t, secret, auth.Expired)
	if _, err := d.Rotate(d.ctx, k.ID, time.Hour); !fault.Is(err, fault.Conflict) {
		t.Errorf("an expired key was rotated: %v", err)
	}
	if _, err := d.Rescope(d.ctx, k.ID, nil, []string{"sql"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("an expired key got scopes: %v", err)
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lifetime := 30 * 24 * time.Hour
	k, secret := d.issue(t, func(in *auth.Issue) {
		in.Lifetime, in.Limits = lifetime, auth.Limits{UserPerMinute: 1, UserBurst: 2, ServicePerMinute: 3, ServiceBurst: 4}
	})
	d.clock.Advance(24 * time.Hour)
	now := d.clock.Now()
	r, err := d.Rotate(d.ctx, k.ID, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	n := r.Successor
	if n.ID == k.ID || n.Name != k.Name || n.Service != k.Service || n.Limits != k.Limits || !slices.Equal(n.Scopes, k.Scopes) ||
		n.RotatedFrom != k.ID ||
		!n.ExpiresAt.Equal(now.Add(lifetime)) ||
		!n.CreatedAt.Equal(now) {
		t.Errorf("successor %+v of %+v", n, k)
	}
	if r.Old.RotatedTo != n.ID || !r.Old.ExpiresAt.Equal(now.Add(24*time.Hour)) || !slices.Equal(r.Chain, []string{k.ID, n.ID}) {
		t.Errorf("rotation %+v", r)
	}
	if !slices.Equal(d.told.ids, []string{k.ID}) { // a gateway that cannot ask would let it in beyond its new end
		t.Errorf("told %v, want %s", d.told.ids, k.ID)
	}
	d.wantStatus(t, secret, auth.Active)
	d.wantStatus(t, r.Secret, auth.Active)
	if _, err := d.Rotate(d.ctx, k.ID, 0); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), n.ID) {
		t.Errorf("rotated twice: %v", err)
	}
	d.clock.Advance(24 * time.Hour)
	d.wantStatus(t, secret, auth.Expired)
	d.wantStatus(t, r.Secret, auth.Active)

	at0, err := d.Rotate(d.ctx, n.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.wantStatus(t, r.Secret, auth.Expired)
	d.wantStatus(t, at0.Secret, auth.Active)
	if !slices.Equal(d.told.ids, []string{k.ID, n.ID}) {
		t.Errorf("told %v, want %s and %s", d.told.ids, k.ID, n.ID)
	}
	want := []string{k.ID, n.ID, at0.Successor.ID}
	for _, id := range want {
		if _, chain, err := d.Get(d.ctx, id); err != nil || !slices.Equal(chain, want) {
			t.Errorf("chain of %s: %v, %v; want %v", id, chain, err, want)
		}
	}
	for _, overlap := range []time.Duration{-1, 30*24*time.Hour + 1} {
		if _, err := d.Rotate(d.ctx, at0.Successor.ID, overlap); !fault.Is(err, fault.Validation) {
			t.Errorf("overlap %v: %v", overlap, err)
		}
	}
}

func TestRotateNeverProlongs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, _ := d.issue(t, func(in *auth.Issue) { in.Lifetime = time.Hour })
	r, err := d.Rotate(d.ctx, k.ID, 24*time.Hour)
	if err != nil || !r.Old.ExpiresAt.Equal(*k.ExpiresAt) {
		t.Errorf("the old key expires at %v, %v; want %v", r.Old.ExpiresAt, err, k.ExpiresAt)
	}
	forever, _ := d.issue(t)
	if r, err = d.Rotate(d.ctx, forever.ID, time.Hour); err != nil || r.Successor.ExpiresAt != nil {
		t.Errorf("the successor of a lasting key expires: %+v, %v", r.Successor, err)
	}
}

func TestOnlyOneRotationWins(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, _ := d.issue(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = d.Rotate(d.ctx, k.ID, time.Hour) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	if page, _, err := d.List(d.ctx, auth.KeyFilter{}); won != 1 || err != nil || len(page) != 2 {
		t.Errorf("%d rotations won; keys: %v, %v", won, page, err)
	}
}

func TestRescope(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, secret := d.issue(t)
	if _, err := d.Rescope(d.ctx, k.ID, nil, []string{"admin:read", "sql", "sql"}); err != nil {
		t.Fatal(err)
	}
	if got := d.verify(t, secret).Scopes; !slices.Equal(got, []string{"sql", "admin:read"}) {
		t.Errorf("scopes %v", got)
	}
	if !slices.Equal(d.told.ids, []string{k.ID}) {
		t.Errorf("told %v", d.told.ids)
	}
	for name, scopes := range map[string][]string{"none": nil, "unknown": {"root"}, "case": {"SQL"}} {
		if _, err := d.Rescope(d.ctx, k.ID, nil, scopes); !fault.Is(err, fault.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whoever adds one on a page that still shows what was taken away gives nothing back.
	had := []string{"explore", "query", "control"}
	if _, err := d.Rescope(d.ctx, k.ID, had, append(had, "author")); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "sql, admin:read now") {
		t.Errorf("a page that is old: %v", err)
	}
	if got, err := d.Rescope(d.ctx, k.ID, []string{"admin:read", "sql"}, []string{"sql"}); err != nil || len(got.Scopes) != 1 {
		t.Errorf("%v, %v", got.Scopes, err)
	}
	if _, err := d.Revoke(d.ctx, k.ID, "over"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Rescope(d.ctx, k.ID, nil, []string{"sql"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a revoked key got scopes: %v", err)
	}
}

func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	store := &counting{Store: d.config.Store}
	d.config.Store = store
	d.Service = auth.New(d.config)
	k, secret := d.issue(t)
	used := func() *time.Time {
		got, _, err := d.Get(d.ctx, k.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got.LastUsedAt
	}
	if used() != nil {
		t.Error("a fresh key was used")
	}
	first := d.clock.Now()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { _, _ = d.Verify(d.ctx, secret.Reveal()) })
	}
	wg.Wait()
	if got := used(); got == nil || !got.Equal(first) {
		t.Fatalf("last used %v, want %v", got, first)
	}
	before := store.touchs
	d.clock.Advance(time.Minute - time.Millisecond)
	d.verify(t, secret)
	if got := used(); !got.Equal(first) || store.touchs != before {
		t.Errorf("written again within a minute: %v", got)
	}
	// Another replica that read the key before the write does not write again either.
	if err := store.Touch(d.ctx, k.ID, d.clock.Now(), time.Minute); err != nil || !used().Equal(first) {
		t.Errorf("last used %v, %v", used(), err)
	}
	d.clock.Advance(time.Millisecond)
	d.verify(t, secret)
	if got := used(); !got.Equal(first.Add(time.Minute)) || store.touchs != before+2 {
		t.Errorf("last used %v, want %v", got, first.Add(time.Minute))
	}
	if _, err := d.Revoke(d.ctx, k.ID, "over"); err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(time.Hour)
	d.verify(t, secret)
	if got := used(); !got.Equal(first.Add(time.Minute)) {
		t.Errorf("a refused key counts as used: %v", got)
	}
}

// TestVerifyDoesNotWaitForLastUse verifies while a change holds the key's row.
func TestVerifyDoesNotWaitForLastUse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, secret := d.issue(t)
	err := d.config.Store.Change(d.ctx, k.ID, func(k auth.Key) (auth.Change, error) {
		// Who waits does so until we have ended, or ten seconds.
		hubtest.Within(t, 5*time.Second, "Verify while the row is locked", func() { d.wantStatus(t, secret, auth.Active) })
		return auth.Change{Key: k, Audit: audit.Entry{At: d.clock.Now(), Tool: "test", Outcome: audit.OK}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(d.log.String(), "not recorded") {
		t.Errorf("log: %s", d.log)
	}
}

type broken struct{ auth.Store }

func (broken) Touch(context.Context, string, time.Time, time.Duration) error {
	return errors.New("the disk is full")
}

func TestVerifyAnswersWhenLastUseCannotBeWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, secret := d.issue(t)
	d.config.Store = broken{d.config.Store}
	d.Service = auth.New(d.config)
	d.wantStatus(t, secret, auth.Active)
	if log := d.log.String(); !strings.Contains(log, "the disk is full") || !strings.Contains(log, k.ID) {
		t.Errorf("log: %s", log)
	}
}

func TestPeppersRotate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	with := func(current, previous string) *auth.Service {
		c := d.config
		var err error
		if c.Peppers, err = auth.NewPeppers(current, previous); err != nil {
			t.Fatal(err)
		}
		return auth.New(c)
	}
	before, both, after := with(oldPepper, ""), with(pepper, oldPepper), with(pepper, "")
	old, oldSecret, err := before.Issue(d.ctx, auth.Issue{Name: "old", Scopes: []string{"query"}})
	if err != nil {
		t.Fatal(err)
	}
	_, freshSecret, err := both.Issue(d.ctx, auth.Issue{Name: "fresh", Scopes: []string{"query"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s      *auth.Service
		secret auth.Secret
		ok     bool
	}{
		"before, old": {before, oldSecret, true}, "before, fresh": {before, freshSecret, false},
		"both, old": {both, oldSecret, true}, "both, fresh": {both, freshSecret, true},
		"after, old": {after, oldSecret, false}, "after, fresh": {after, freshSecret, true},
	} {
		if _, err := c.s.Verify(d.ctx, c.secret.Reveal()); (err == nil) != c.ok || err != nil && !fault.Is(err, fault.AuthInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unverifiable := func(s *auth.Service) int {
		n, _, err := s.UnverifiableKeys(d.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := unverifiable(both); n != 0 {
		t.Errorf("%d unverifiable keys with both peppers", n)
	}
	if n := unverifiable(after); n != 1 {
		t.Errorf("%d unverifiable keys after", n)
	}
	// Rotating the key moves it to the current pepper: then the old one can go.
	r, err := both.Rotate(d.ctx, old.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := after.Verify(d.ctx, r.Secret.Reveal()); err != nil || unverifiable(after) != 0 {
		t.Errorf("after the rotation: %v, %d unverifiable keys", err, unverifiable(after))
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const keys = 405
	want := make([]string, keys)
	for i := range want {
		k, _ := d.issue(t, func(in *auth.Issue) { in.Name = fmt.Sprint("agent ", i) })
		want[keys-1-i] = k.ID
		d.clock.Advance(time.Millisecond)
	}
	var got []string
	sizes := []int{}
	for after := ""; ; {
		page, next, err := d.List(d.ctx, auth.KeyFilter{After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range page {
			got = append(got, k.ID)
		}
		sizes = append(sizes, len(page))
		if after = next; next == "" {
			break
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(sizes, []int{200, 200, 5}) {
		t.Errorf("pages of %v; %d ids", sizes, len(got))
	}
}

func TestEverythingIsAudited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	step := func() { d.clock.Advance(time.Millisecond) }
	k, secret := d.issue(t)
	step()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		step()
	}
	must(d.Rescope(d.ctx, k.ID, nil, []string{"sql"}))
	r, err := d.Rotate(d.ctx, k.ID, time.Hour)
	must(r, err)
	must(d.Revoke(d.ctx, k.ID, "over"))
	_, _, err = d.Get(d.ctx, k.ID)
	must(nil, err)
	_, _, err = d.List(d.ctx, auth.KeyFilter{})
	must(nil, err)
	rows := d.audit(t)
	var tools []string
	for _, row := range rows {
		tools = append(tools, row.Tool)
		if row.Outcome != "ok" || row.Service != "auth-cli" || row.User != "ada" || row.RequestID != "req_1" {
			t.Errorf("row %+v", row)
		}
	}
	if want := []string{
		"apikey.issue",
		"apikey.scopes",
		"apikey.rotate",
		"apikey.revoke",
		"apikey.show",
		"apikey.list",
	}; !slices.Equal(
		tools,
		want,
	) {
		t.Fatalf("audited %v, want %v", tools, want)
	}
	if rows[0].Detail["id"] != k.ID || rows[2].Detail["rotated_from"] != k.ID || rows[2].Detail["id"] != r.Successor.ID ||
		rows[3].Detail["reason"] != "over" ||
		rows[5].Count != 2 {
		t.Errorf("rows %+v", rows)
	}
	// A refused change leaves no trace and no half of itself.
	if _, err := d.Rescope(d.ctx, k.ID, nil, []string{"sql"}); err == nil || len(d.audit(t)) != len(rows) {
		t.Errorf("after a refusal: %v, %d rows", err, len(d.audit(t)))
	}
	d.verify(t, secret)
	all, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []auth.Secret{secret, r.Secret} {
		hash := fmt.Sprintf("%x", d.config.Peppers.Hashes(s)[0])
		for where, text := range map[string]string{"audit log": string(all), "log": d.log.String()} {
			for _, part := range []string{s.Reveal(), s.Reveal()[8:42], hash, pepper} {
				if strings.Contains(text, part) {
					t.Errorf("the %s holds a secret: %s", where, text)
				}
			}
		}
	}
}

// TestNothingWithoutItsAuditRow takes the right to write the audit log away.
func TestNothingWithoutItsAuditRow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, secret := d.issue(t)
	conn, err := pgx.Connect(t.Context(), d.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `REVOKE INSERT ON audit.calls FROM hub_service`); err != nil {
		t.Fatal(err)
	}
	_, _, issueErr := d.Issue(d.ctx, auth.Issue{Name: "b", Scopes: []string{"query"}})
	_, revokeErr := d.Revoke(d.ctx, k.ID, "over")
	_, scopesErr := d.Rescope(d.ctx, k.ID, nil, []string{"sql"})
	_, rotateErr := d.Rotate(d.ctx, k.ID, 0)
	_, _, showErr := d.Get(d.ctx, k.ID)
	for name, err := range map[string]error{"issue": issueErr, "revoke": revokeErr, "scopes": scopesErr, "rotate": rotateErr,
		"show": showErr} {
		if err == nil {
			t.Errorf("%s went through", name)
		}
	}
	if got := d.verify(t, secret); got.Status(d.clock.Now()) != auth.Active || !slices.Equal(got.Scopes, k.Scopes) || got.RotatedTo != "" {
		t.Errorf("the key changed: %+v", got)
	}
	if len(d.told.ids) != 0 {
		t.Errorf("told %v", d.told.ids)
	}
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM auth.api_keys`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d keys, %v", n, err)
	}
}
