package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hub.internal/services/client"
)

func serve(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return &client.Client{URL: s.URL, Source: "HUB_URL", Key: "crm_secret", HTTP: client.NewHTTP()}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://Hub.Example.com/": "https://hub.example.com", " http://127.0.0.1:80 ": "http://127.0.0.1:80",
		"http://localhost/": "http://localhost",
		"http://[::1]:8080": "http://[::1]:8080", "http://a.localhost": "http://a.localhost", "https://x/prefix/": "https://x/prefix",
		"": "", "hub.example.com": "", "localhost:8080": "", "https://": "", "https://:80": "", "ftp://x": "", "http://x": "",
		"http://10.0.0.1":               "",
		"http://127.0.0.1.evil.example": "", "http://localhost.evil.example": "", "https://u@x": "", "https://x?a=b": "", "https://x#a": "",
		"https://x\x00": "",
	} {
		got, err := client.Address(text, "HUB_URL", false)
		if got != want || (err == nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), "HUB_URL ") {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	if got, err := client.Address("http://10.0.0.1", "HUB_URL", true); err != nil || got != "http://10.0.0.1" {
		t.Error(got, err)
	}
}

// TestTheKeyStays: wherever a gateway leads, nothing follows; not to another host, and not on the same one.
func TestTheKeyStays(t *testing.T) {
	t.Parallel()
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{elsewhere.URL + "/x?key=y", "/login", ""} {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/login" {
					asked++
				}
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			})
			_, err := c.Do(t.Context(), client.Request{Method: "POST", Path: "/api/tools/x", Body: []byte("{}")})
			if err == nil || !strings.Contains(err.Error(), "HUB_URL is "+c.URL) || strings.Contains(err.Error(), "key=y") {
				t.Errorf("%d to %q: %v", status, to, err)
			}
		}
	}
	if asked > 0 {
		t.Errorf("%d requests followed", asked)
	}
}

// endless is an answer that does not end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	c := &client.Client{
		URL:    "http://localhost",
		Source: "HUB_URL",
		HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{}, Body: io.NopCloser(endless{})}, nil
		})},
	}
	if _, err := c.Do(
		t.Context(),
		client.Request{Method: "GET", Path: "/"},
	); err == nil ||
		!strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Error(err)
	}
}

func TestWhatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"ok":`)
	})
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	})
	nobody := &client.Client{URL: "http://127.0.0.1:1", Source: "--url", HTTP: client.NewHTTP()}
	for want, c := range map[string]*client.Client{"the answer broke off": cut, "no answer came in time": slow,
		"--url is http://127.0.0.1:1, and nothing answers there": nobody} {
		patience := time.Minute // a loaded machine takes its time to refuse
		if c == slow {
			patience = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := c.Do(ctx, client.Request{Method: "GET", Path: "/"})
		cancel()
		var silent *client.Unreachable
		if !errors.As(err, &silent) || !strings.Contains(err.Error(), want) || silent.Timeout() != (c == slow) {
			t.Errorf("%s: %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slow.Do(ctx, client.Request{Method: "GET", Path: "/"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = nil
	t.Cleanup(untrusted.Close)
	c := &client.Client{URL: untrusted.URL, Source: "HUB_URL", HTTP: client.NewHTTP()}
	for try := 1; ; try++ {
		_, err := c.Do(t.Context(), client.Request{Method: "GET", Path: "/"})
		var silent *client.Unreachable
		if errors.As(err, &silent) && silent.Timeout() && try < 10 {
			continue // a busy machine takes longer for a handshake than it may
		}
		if err == nil || !strings.Contains(err.Error(), "its certificate is not trusted") {
			t.Error(err)
		}
		break
	}
}

// TestCacheHelpsOrDoesNothing: a cache that is damaged, not writable or absent changes no answer.
func TestCacheHelpsOrDoesNothing(t *testing.T) {
	t.Parallel()
	asked, unchanged := 0, 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") == `"a"` {
			unchanged++
			w.WriteHeader(304)
			return
		}
		fmt.Fprint(w, `{"ok":true,"data":{"version":"1","tools":[{"name":"t"}]}}`)
	})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	cache := &client.Cache{Dir: filepath.Join(dir, "cache"), Now: func() time.Time { return now }}
	get := func(cache *client.Cache, age time.Duration) {
		t.Helper()
		if all, err := c.Catalog(t.Context(), cache, age); err != nil || all.Tool("t") == nil || all.Version != "1" {
			t.Fatal(all, err)
		}
	}
	get(cache, time.Hour)
	get(cache, time.Hour)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	now = now.Add(-time.Minute) // a clock that was set back makes nothing younger
	get(cache, time.Hour)
	now = now.Add(2 * time.Hour)
	get(cache, time.Hour)
	if asked != 3 || unchanged != 2 {
		t.Errorf("asked %d times, %d unchanged", asked, unchanged)
	}
	names, err := filepath.Glob(filepath.Join(dir, "cache", "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	for _, damaged := range []string{"", "{", `{"body":"x"}`, `{"at":"2026-01-01T01:59:00Z","etag":"\"a\"","body":{"data":null}}`} {
		if err := os.WriteFile(names[0], []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		get(cache, time.Hour)
	}
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	get(&client.Cache{Dir: blocked, Now: time.Now}, time.Hour)
	get(nil, time.Hour)
}
