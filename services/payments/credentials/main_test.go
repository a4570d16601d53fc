package credentials_test

import (
	"context"
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/seal"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

var update = flag.Bool("update", false, "write the answers of the examples instead of comparing them")

// What a provider gave, and nobody may see again.
const (
	canaryID     = "S2_canary0clientid0af4543a0be4d49"
	canarySecret = "canary0secret0e8e1a9f2f8a64bb09d3e"
)

var _ payments.Credentials = (*credentials.Service)(nil)

// safe is credentials on a store of their own, with a clock.
type safe struct {
	*credentials.Service
	store  *postgres.Store
	keyset string
	owner  *pgx.Conn
	clock  *hubtest.Clock
	logs   *hubtest.Buffer
	ctx    context.Context
}

func newSafe(t *testing.T) *safe {
	t.Helper()
	db := hubtest.MigratedStore(t, "payments", postgres.Migrate)
	s := &safe{
		store: postgres.New(hubtest.Pool(t, db.URL("payments"))),
		clock: hubtest.NewClock(time.Now().UTC().Truncate(time.Millisecond)),
		logs:  new(hubtest.Buffer),
	}
	var err error
	if s.keyset, err = seal.NewKeyset(); err == nil {
		s.owner, err = pgx.Connect(t.Context(), db.OwnerURL)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.owner.Close(context.Background()) })
	s.Service = s.with(t, s.keyset)
	s.ctx = caller.With(
		t.Context(),
		caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: "ada@example.com", Email: "ada@example.com", HubUser: "usr_1"},
	)
	return s
}

// with is the service under another keyset.
func (s *safe) with(t *testing.T, keyset string) *credentials.Service {
	t.Helper()
	box, err := seal.Open(keyset)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.New(credentials.Config{Store: s.store, Sealer: box, Now: s.clock.Now,
		Logger: slog.New(slog.NewTextHandler(s.logs, nil))})
}

func (s *safe) add(t *testing.T, env credentials.Env, v credentials.Values) credentials.Credential {
	t.Helper()
	c, err := s.Add(s.ctx, credentials.NicePay, env, v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func values(n string) credentials.Values {
	return credentials.Values{ClientID: "S2_client_" + n + "_4d49a98122e0", Secret: "secret-of-" + n + "-e8e1a9f2f8a64bb0"}
}

func (s *safe) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.owner.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}
