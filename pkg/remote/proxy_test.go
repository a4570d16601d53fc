package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
)

// front serves Proxy as a gateway would and returns its URL.
func front(t *testing.T, c *remote.Client, edit func(*http.Response) error) string {
	t.Helper()
	if edit == nil {
		edit = func(*http.Response) error { return nil }
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := caller.With(r.Context(), caller.Caller{Kind: caller.User, HubUser: "usr_1"})
		if err := c.Proxy(w, r.WithContext(ctx), func(h http.Header) { h.Set("Hub-Added", "1") }, edit); err != nil {
			http.Error(w, "refused "+string(fault.From(err).Code), fault.From(err).Status())
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestProxyPassesAnswersOn(t *testing.T) {
	t.Parallel()
	verify := theirs(t)
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		ctx, err := verify.Accept(r.Context(), r.Header, caller.Browsers())
		if err != nil {
			t.Error(err)
			return
		}
		c := caller.From(ctx)
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Hub-Secret", "1")
		w.Header().Set("X-Own", "2")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(
			w,
			r.Method,
			" ",
			r.URL.RequestURI(),
			" ",
			string(b),
			" ",
			c.HubUser,
			" ",
			err,
			" ",
			r.Header.Get("Hub-Added"),
			" [",
			r.Header.Get("Hub-Forged"),
			"]",
		)
	})
	url := front(t, newClient(t, 0, i.addr), nil)
	req, err := http.NewRequestWithContext(t.Context(), "PUT", url+"/a%2Fb?x=1&y=%20", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Hub-Forged", "1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusTeapot || string(b) != "PUT /a%2Fb?x=1&y=%20 body usr_1 <nil> 1 []" ||
		res.Header.Get("Hub-Secret") != "" ||
		res.Header.Get("X-Own") != "2" {
		t.Errorf("%d %s %v", res.StatusCode, b, res.Header)
	}
}

func TestProxyTriesTheNextInstance(t *testing.T) {
	t.Parallel()
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	url := front(t, newClient(t, 0, free(t), i.addr), nil)
	for range 6 {
		res, err := http.Post(url, "text/plain", strings.NewReader("the whole body"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || string(b) != "the whole body" {
			t.Errorf("%d %s", res.StatusCode, b)
		}
	}
}

// TestProxyDoesNotRepeatWrites counts what reaches an instance that hangs up.
func TestProxyDoesNotRepeatWrites(t *testing.T) {
	t.Parallel()
	i := start(t, "", hangUp)
	url := front(t, newClient(t, 0, i.addr), nil)
	res, err := http.Post(url, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if n := i.calls.Load(); n != 1 || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a write reached it %d times: %d", n, res.StatusCode)
	}
	if code, _ := get(t, url); code != http.StatusServiceUnavailable || i.calls.Load() <= 2 {
		t.Errorf("a read was not tried again: %d, %d calls", code, i.calls.Load())
	}
}

func TestProxyBreaker(t *testing.T) {
	t.Parallel()
	i := start(t, "", hangUp)
	unwell := http.HandlerFunc(hangUp)
	well := *i.probe.Load()
	i.probe.Store(&unwell)
	url := front(t, newClient(t, 0, i.addr), nil)
	for range 6 {
		get(t, url)
	}
	before := i.calls.Load()
	if code, body := get(t, url); code != http.StatusServiceUnavailable || !strings.Contains(body, "E_DB") {
		t.Errorf("%d %s", code, body)
	}
	if sent := i.calls.Load() - before; sent > 0 {
		t.Errorf("the breaker is not open: %d calls", sent)
	}
	answer := http.HandlerFunc(ok)
	i.handle.Store(&answer)
	i.probe.Store(&well)
	hubtest.Eventually(t, "the probe closes it", func() bool { code, _ := get(t, url); return code == 200 })
}

// TestProxyStreams wants the first part before the second is written.
func TestProxyStreams(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "one")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-first:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "two")
	})
	res, err := http.Get(front(t, newClient(t, 0, i.addr), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "one" {
		t.Fatalf("%s %v", b, err)
	}
	close(first)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "two" {
		t.Errorf("%s %v", rest, err)
	}
}

// TestASlowUploadIsItsSendersFault: an exchange whose time is over while its body is still coming is E_VALIDATION, and does not put the
// instance out of order for others. Once the body is there, it is the instance that did not answer.
func TestASlowUploadIsItsSendersFault(t *testing.T) {
	t.Parallel()
	i := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.Method == http.MethodGet {
			return
		}
		<-r.Context().Done()
	})
	c := newClient(t, 0, i.addr)
	send := func(ctx context.Context, body io.Reader, length int64) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/account", body)
		r.ContentLength = length
		return c.Proxy(httptest.NewRecorder(), r, func(http.Header) {}, func(*http.Response) error { return nil })
	}
	for _, length := range []int64{-1, 100, 1 << 20} {
		for range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			coming, sender := io.Pipe()
			go func() {
				_, _ = io.WriteString(sender, "the beginning")
				<-ctx.Done()
				_, _ = io.WriteString(sender, strings.Repeat("x", max(int(length), 100)-len("the beginning")))
				_ = sender.Close()
			}()
			err := send(ctx, coming, length)
			cancel()
			_ = coming.Close()
			if !fault.Is(err, fault.Validation) || remote.Unanswered(err) || remote.Overloaded(err) ||
				!strings.Contains(err.Error(), "did not arrive") {
				t.Fatalf("of %d bytes: %v", length, err)
			}
		}
	}
	url := front(t, c, nil)
	if code, body := get(t, url); code != 200 {
		t.Errorf("another: %d %s", code, body)
	}
	for _, length := range []int64{-1, 9} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := send(ctx, strings.NewReader("all of it"), length); !fault.Is(err, fault.DB) || !remote.Unanswered(err) {
			t.Errorf("a whole one of %d bytes: %v", length, err)
		}
		cancel()
	}
}

// TestABrokenUploadIsRefused as a body that cannot be read to its end is everywhere, and its cause is kept.
func TestABrokenUploadIsRefused(t *testing.T) {
	t.Parallel()
	i := start(t, "", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	c := newClient(t, 0, i.addr)
	broken := errors.New("broken")
	for name, body := range map[string]io.Reader{
		"broken off": io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)),
		"too large":  http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("more than that")), 4),
	} {
		for range 6 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/account", body)
			err := c.Proxy(httptest.NewRecorder(), r, func(http.Header) {}, func(*http.Response) error { return nil })
			var large *http.MaxBytesError
			if !fault.Is(err, fault.Validation) || !strings.Contains(err.Error(), "could not be read to its end") ||
				!errors.Is(err, broken) && !errors.As(err, &large) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if code, body := get(t, front(t, c, nil)); code != 200 {
		t.Errorf("another: %d %s", code, body)
	}
}

func TestProxyConcurrencyAndRelease(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	i := start(t, "", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	url := front(t, newClient(t, 1, i.addr), nil)
	done := make(chan struct{})
	go func() { defer close(done); get(t, url) }()
	hubtest.Eventually(t, "one is in flight", func() bool { return i.calls.Load() == 1 })
	if code, _ := get(t, url); code != http.StatusTooManyRequests {
		t.Errorf("beyond the limit: %d", code)
	}
	close(hold)
	<-done
	for range 3 { // the slot is given back, also when the answer is refused
		if code, _ := get(t, url); code != 200 {
			t.Errorf("after it: %d", code)
		}
	}
	refusing := front(t, newClient(t, 1, i.addr), func(*http.Response) error { return errors.New("no") })
	for range 3 {
		if code, _ := get(t, refusing); code != 500 {
			t.Errorf("edit's refusal: %d", code)
		}
	}
}
