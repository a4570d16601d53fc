package reviewcontrol_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/service"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/backlog"
	"hub.internal/services/review-control/mailer"
)

// TestBacklog tells admin, and nobody else, what waits and what went wrong lately.
func TestBacklog(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mux, quiet := http.NewServeMux(), slog.New(slog.DiscardHandler)
	service.Operations(rpc.Server{Mux: mux, Keys: callertest.Keys(t, "review-control", "admin", "authoring"), Logger: quiet},
		backlog.Operations(h.store)...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	ask := remote.Operation[backlog.Request, backlog.Response]{Path: backlog.Path, Repeatable: true}
	wants := func(what string, since time.Time, want backlog.Response) {
		t.Helper()
		got, err := ask.Call(t.Context(), h.remote("review-control", server.URL, callertest.Keys(t, "admin")), backlog.Request{Since: since})
		if err != nil {
			t.Fatal(err)
		}
		if (got.Oldest == nil) != (want.Oldest == nil) || want.Oldest != nil && !got.Oldest.Equal(*want.Oldest) {
			t.Errorf("%s: the oldest is of %v, want %v", what, got.Oldest, want.Oldest)
		}
		if got.Oldest = want.Oldest; got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	lately := time.Now().Add(-time.Hour)
	wants("nothing", lately, backlog.Response{})
	first := h.queued(3)
	queued := h.review(first).QueuedAt
	h.clock.Advance(time.Hour)
	h.queued(2)
	h.decide(first, 0, reviewcontrol.Approve)
	wants("two drafts, a mail decided on", lately, backlog.Response{Drafts: 2, Mails: 4, Oldest: &queued})
	h.exec(`UPDATE review_control.reviews SET status = 'cancelled'`)
	sent := h.approved(3)
	wants("approved", lately, backlog.Response{ToSend: 3})
	for index, answers := range [][]answer{nil, {sending(mailer.Never)}, {sending(mailer.Perhaps)}} {
		h.sender.to(h.target(sent, index).ToEmail, answers...)
		h.deliver(sent, index)
	}
	wants("sent, or not", lately, backlog.Response{Failed: 1, Unknown: 1})
	wants("since later", time.Now().Add(time.Hour), backlog.Response{})
	if got, err := ask.Call(t.Context(), h.remote("review-control", server.URL, callertest.Keys(t, "authoring")),
		backlog.Request{}); err == nil {
		t.Errorf("authoring is told %+v", got)
	}
}
