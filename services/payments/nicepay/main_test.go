package nicepay_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/nicepay"
	"hub.internal/services/payments/pgsim"
)

const (
	clientID = "client-of-the-test"
	secret   = "CANARY-SECRET-0123456789"
)

// sim is a simulator, an adapter that speaks with it, and who takes its webhooks.
type sim struct {
	*pgsim.Sim
	url      string
	provider *nicepay.Provider
	clock    *hubtest.Clock

	mu    sync.Mutex
	hooks []webhook
}

// webhook is what the simulator has told.
type webhook struct {
	ContentType string
	Body        []byte
}

func cred() credentials.Unsealed {
	return credentials.NewUnsealed(7, credentials.Sandbox, clientID, secret)
}

// test is what a test and a run of rapid have in common.
type test interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
}

func newSim(t test, auto bool) *sim {
	t.Helper()
	s := &sim{clock: hubtest.NewClock(time.Time{})}
	taker := httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(taker.Close)
	var err error
	s.Sim, err = pgsim.New(pgsim.Config{ClientID: clientID, Secret: secret, WebhookURL: taker.URL, AutoIssue: auto, Now: s.clock.Now,
		Retries: []time.Duration{time.Millisecond, time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	server := httptest.NewServer(s.Sim)
	t.Cleanup(server.Close)
	s.url = server.URL
	if s.provider, err = nicepay.New(nicepay.Config{BaseURL: s.url, Now: s.clock.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.provider.Close)
	return s
}

func (w *sim) take(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	w.hooks = append(w.hooks, webhook{ContentType: r.Header.Get("Content-Type"), Body: body})
	w.mu.Unlock()
	status, kind, text := w.provider.Ack(true)
	out.Header().Set("Content-Type", kind)
	out.WriteHeader(status)
	_, _ = io.WriteString(out, text)
}

func (w *sim) webhooks(t *testing.T) []webhook {
	if err := w.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.hooks
	w.hooks = nil
	return out
}
