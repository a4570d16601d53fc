package remote_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
)

// inTwo answers in two halves, the second when told to.
func inTwo(t *testing.T) (i *instance, next chan struct{}, ended chan error) {
	t.Helper()
	next, ended = make(chan struct{}), make(chan error, 1)
	return start(t, "", func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- r.Context().Err() }()
		_, _ = io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		select {
		case <-next:
			_, _ = io.WriteString(w, "second")
		case <-r.Context().Done():
		}
	}), next, ended
}

// TestTheDeadlineIsForTheBeginningOfAStream: whoever reads slowly gets the whole answer; whoever
// takes the answer for themselves keeps their deadline.
func TestTheDeadlineIsForTheBeginningOfAStream(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"streamed": true, "not streamed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, next, ended := inTwo(t)
			client := newClient(t, 0, i.addr)
			ctx := due{t.Context(), time.Now().Add(9 * time.Second), make(chan struct{})}
			response, err := client.Do(ctx, remote.Request{Path: read.Path, Body: read.Body, Stream: streams})
			if err != nil {
				t.Fatal(err)
			}
			defer response.Data.Close()
			close(ctx.passed)
			if !streams {
				if b, err := io.ReadAll(response.Data); err == nil {
					t.Errorf("past the deadline: %q", b)
				}
				return
			}
			close(next)
			if b, err := io.ReadAll(response.Data); err != nil || string(b) != "first second" {
				t.Errorf("%q, %v", b, err)
			}
			if err := <-ended; err != nil {
				t.Errorf("the instance was told %v", err)
			}
		})
	}
}

func TestAStreamEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	i, _, ended := inTwo(t)
	client := newClient(t, 0, i.addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	response, err := client.Do(ctx, remote.Request{Path: read.Path, Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Data.Close()
	cancel()
	if b, err := io.ReadAll(response.Data); err == nil {
		t.Errorf("read %q", b)
	}
	<-ended
}

// TestAStreamThatDoesNotGoOnEnds: an instance that is well and says no more must not keep a call
// for ever.
func TestAStreamThatDoesNotGoOnEnds(t *testing.T) {
	t.Parallel()
	i, next, ended := inTwo(t)
	const stall = 300 * time.Millisecond
	client := remote.New(
		remote.Options{Service: "query", Instancer: sd.FixedInstancer{i.addr}, Keys: keys(t), Logger: slog.New(slog.DiscardHandler),
			Patience: hubtest.Patience, Stall: stall},
	)
	t.Cleanup(client.Close)
	response, err := client.Do(t.Context(), remote.Request{Path: read.Path, Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Data.Close()
	if _, err := io.ReadFull(response.Data, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * stall) // the reader's own pauses do not count
	began := time.Now()
	if b, err := io.ReadAll(response.Data); err == nil || time.Since(began) < stall {
		t.Errorf("after %s: %q, %v", time.Since(began), b, err)
	}
	<-ended
	close(next)
}

// TestASlowReaderKeepsNobodyElseOut: answers that are not read hold the places of their own
// caller, on each way to the service.
func TestASlowReaderKeepsNobodyElseOut(t *testing.T) {
	t.Parallel()
	i := start(t, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	client := newClient(t, 8, i.addr)
	as := func(who caller.Caller) context.Context { return caller.With(t.Context(), who) }
	slow, other := caller.Caller{Kind: caller.Key, CredentialID: "ak_slow"}, caller.Caller{Kind: caller.Key, CredentialID: "ak_other"}
	stream := remote.Request{Path: read.Path, Body: read.Body, Stream: true}
	var unread []*remote.Response
	for range 4 {
		response, err := client.Do(as(slow), stream)
		if err != nil {
			t.Fatal(err)
		}
		unread = append(unread, response)
	}
	if _, err := client.Do(as(slow), stream); !fault.Shed(err) {
		t.Errorf("beyond half of the places: %v", err)
	}
	for _, who := range []caller.Caller{other, {Kind: caller.Visitor, Service: "console"}, {Kind: caller.Service, Service: "gateway"}} {
		if _, err := do(as(who), client, read); err != nil {
			t.Errorf("%+v: %v", who, err)
		}
	}
	for _, response := range unread {
		_ = response.Data.Close()
	}
	if _, err := do(as(slow), client, read); err != nil {
		t.Errorf("once they are closed: %v", err)
	}
}
