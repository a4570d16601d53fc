package auth_test

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/service"
	"hub.internal/services/auth/apps"
)

// toldOfApp is what payments is told of an app.
type toldOfApp struct {
	ServiceCode    string   `json:"service_code"`
	Status         string   `json:"status"`
	RedirectURLs   []string `json:"redirect_urls"`
	Origins        []string `json:"origins"`
	WebhookSecrets []string `json:"webhook_secrets"`
}

// asks returns how a process asks about an app.
func (f *fleet) asks(t *testing.T, process string, log *hubtest.Buffer) func(code string) (toldOfApp, error) {
	t.Helper()
	mux := http.NewServeMux()
	logger := slog.New(slog.NewJSONHandler(log, nil))
	service.Operations(
		rpc.Server{Mux: mux, Keys: callertest.Keys(t, "auth", caller.Gateway, "payments", "admin"), Logger: logger},
		apps.Operations(f.Service)...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := remote.New(
		remote.Options{
			Service:   "auth",
			Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
			Keys:      callertest.Keys(t, process),
			Logger:    logger,
			Patience:  hubtest.Patience,
		},
	)
	t.Cleanup(client.Close)
	return func(code string) (toldOfApp, error) {
		return remote.Operation[map[string]string, toldOfApp]{Path: apps.SettingsPath, Repeatable: true}.
			Call(caller.Alone(t.Context(), process), client, map[string]string{"service_code": code})
	}
}

// TestWebhookSecrets: the first comes with the first shared secret, another takes its place with a day in which both are
// signed with, and a revoked app has none.
func TestWebhookSecrets(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	log := &hubtest.Buffer{}
	ask := f.asks(t, "payments", log)
	f.create(t, "shop")
	secrets := func(want ...string) {
		t.Helper()
		got, err := ask("shop")
		if want == nil {
			want = []string{}
		}
		if err != nil || !reflect.DeepEqual(got.WebhookSecrets, want) || got.ServiceCode != "shop" ||
			!reflect.DeepEqual(got.RedirectURLs, []string{"https://shop.example/back"}) ||
			len(got.Origins) != 0 {
			t.Errorf("%+v %v, want %v", got, err, want)
		}
	}
	secrets()
	issued, err := f.IssueSecret(f.ctx, "shop")
	if err != nil || issued.Webhook == nil {
		t.Fatalf("%+v %v", issued, err)
	}
	first := issued.Webhook.Token.Reveal()
	if key, err := base64.StdEncoding.DecodeString(
		strings.TrimPrefix(first, "whsec_"),
	); err != nil || len(key) != 32 ||
		!strings.HasPrefix(first, "whsec_") {
		t.Errorf("%d bytes, %v", len(key), err)
	}
	if masked := fmt.Sprintf("%v %+v %#v", issued, issued.Webhook.Token, *issued.Webhook); strings.Contains(masked, first[8:]) {
		t.Errorf("it shows itself: %s", masked)
	}
	secrets(first)
	if _, err := f.RevokeSecret(f.ctx, "shop", issued.ID); err != nil {
		t.Fatal(err)
	}
	if again, err := f.IssueSecret(f.ctx, "shop"); err != nil || again.Webhook != nil {
		t.Errorf("another shared secret made another webhook secret: %+v %v", again, err)
	}
	if _, err := f.RevokeSecret(f.ctx, "shop", issued.Webhook.ID); code(err) != fault.NotFound {
		t.Errorf("revoked as a shared one: %v", err)
	}
	second, err := f.RotateWebhookSecret(f.ctx, "shop")
	if err != nil || second.Replaced == nil || second.Replaced.ID != issued.Webhook.ID ||
		!second.Replaced.ExpiresAt.Equal(f.clock.Now().Add(24*time.Hour)) {
		t.Fatalf("%+v %v", second, err)
	}
	secrets(second.Token.Reveal(), first)
	if _, err := f.RotateWebhookSecret(f.ctx, "shop"); code(err) != fault.Conflict {
		t.Errorf("a third: %v", err)
	}
	f.clock.Advance(24*time.Hour - time.Millisecond)
	secrets(second.Token.Reveal(), first)
	f.clock.Advance(time.Millisecond)
	secrets(second.Token.Reveal())
	if err := f.store.Reap(f.ctx, f.clock.Now(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := f.owner.QueryRow(
		t.Context(),
		`SELECT count(*) FROM auth.app_webhook_secrets WHERE sealed IS NOT NULL`,
	).Scan(
		&left,
	); err != nil ||
		left != 1 {
		t.Errorf("%d are kept after the overlap, %v", left, err)
	}
	if _, err := f.Suspend(f.ctx, "shop", "x"); err != nil {
		t.Fatal(err)
	}
	if got, err := ask("shop"); err != nil || got.Status != "SUSPENDED" || len(got.WebhookSecrets) != 1 {
		t.Errorf("suspended: %+v %v", got, err)
	}
	if _, err := f.Revoke(f.ctx, "shop", "shop", "over"); err != nil {
		t.Fatal(err)
	}
	if got, err := ask("shop"); err != nil || got.Status != "REVOKED" || len(got.WebhookSecrets) != 0 {
		t.Errorf("revoked: %+v %v", got, err)
	}
	if err := f.owner.QueryRow(
		t.Context(),
		`SELECT count(*) FROM auth.app_webhook_secrets WHERE sealed IS NOT NULL`,
	).Scan(
		&left,
	); err != nil ||
		left != 0 {
		t.Errorf("%d are not destroyed, %v", left, err)
	}
	if _, err := f.RotateWebhookSecret(f.ctx, "shop"); code(err) != fault.Conflict {
		t.Errorf("a revoked app gets one: %v", err)
	}
	if _, err := ask("nobody\x00"); code(err) != fault.NotFound {
		t.Errorf("nobody's: %v", err)
	}
	var everything string
	if err := f.owner.QueryRow(
		t.Context(),
		`SELECT (SELECT string_agg(s::text, '') FROM auth.app_webhook_secrets s) || (SELECT string_agg(c::text, '') FROM audit.calls c)`,
	).Scan(
		&everything,
	); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{first, second.Token.Reveal()} {
		if strings.Contains(everything+log.String(), secret[8:30]) {
			t.Error("the store or the log holds a secret")
		}
	}
}

// TestAnAppFromBeforeGetsItsWebhookSecret: its shared secret was issued when there were no others.
func TestAnAppFromBeforeGetsItsWebhookSecret(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.create(t, "shop")
	if s, err := f.RotateWebhookSecret(f.ctx, "shop"); err != nil || s.Replaced != nil {
		t.Errorf("%+v %v", s, err)
	}
}

// TestOnlyPaymentsIsTold: the secrets are nobody else's, not the gateway's either.
func TestOnlyPaymentsIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.create(t, "shop")
	for _, process := range []string{caller.Gateway, "admin"} {
		if got, err := f.asks(t, process, &hubtest.Buffer{})("shop"); err == nil {
			t.Errorf("%s is told %+v", process, got)
		}
	}
}

// TestASealInAnotherTableDoesNotOpen: what was sealed to sign tokens with is no webhook secret.
func TestASealInAnotherTableDoesNotOpen(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.create(t, "shop")
	s, err := f.IssueSecret(f.ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.owner.Exec(
		t.Context(),
		`UPDATE auth.app_webhook_secrets SET sealed = (SELECT sealed FROM auth.app_secrets WHERE id = $1)`,
		s.ID,
	); err != nil {
		t.Fatal(err)
	}
	if got, err := f.asks(t, "payments", &hubtest.Buffer{})("shop"); err == nil {
		t.Errorf("it opens: %+v", got)
	}
}
