package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/rpc"
)

// cgroup names the group that the program enters, as a container's first process is in one.
const cgroup = "TEST_CGROUP"

func enterCgroup() error {
	dir := os.Getenv(cgroup)
	if dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// limited makes a cgroup with a memory limit, v1 or v2, as the machine has it.
func limited(t *testing.T, bytes int64) (dir string) {
	t.Helper()
	for root, file := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		dir, err := os.MkdirTemp(root, "hub-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			hubtest.Eventually(t, "the group is empty", func() bool { return os.Remove(dir) == nil })
		})
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // the kernel has made it, or this is no group
		if err != nil {
			continue
		}
		_, err = fmt.Fprint(f, bytes)
		if err := errors.Join(err, f.Close()); err != nil {
			continue
		}
		return dir
	}
	t.Skip("no cgroup of memory can be made here")
	return ""
}

func TestTheHeapKeepsWithinTheMemoryThatThereIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ   []string
		container int64 // its limit; 0 when there is none
		limit     int64
		logged    string
	}{
		"told": {[]string{"HUB_MEMORY_LIMIT=200MiB"}, 0, 180 << 20,
			`"memory_limit":"180MiB","memory_limit_from":"HUB_MEMORY_LIMIT","body_bytes":"45MiB","connections":1920,` +
				`"connections_of_a_network":960}`},
		"by a file": {[]string{"HUB_MEMORY_LIMIT_FILE=" + file(t, "200MiB\n")}, 0, 180 << 20, `"HUB_MEMORY_LIMIT":"200MiB"`},
		"the operator's word": {[]string{"HUB_MEMORY_LIMIT=200MiB", "GOMEMLIMIT=100MiB"}, 0, 100 << 20,
			`"memory_limit":"100MiB","memory_limit_from":"GOMEMLIMIT","body_bytes":"25MiB"`},
		"the operator's word: none": {[]string{"HUB_MEMORY_LIMIT=200MiB", "GOMEMLIMIT=off"}, 0, 1<<63 - 1,
			`"memory_limit":"0B","memory_limit_from":"GOMEMLIMIT","body_bytes":"256MiB"`},
		"bodies apart": {[]string{"HUB_MEMORY_LIMIT=200MiB", "HUB_BODY_BYTES=7MiB"}, 0, 180 << 20,
			`"body_bytes":"7MiB","connections":1920`},
		"few descriptors": {[]string{"HUB_MEMORY_LIMIT=200MiB", descriptors + "=200"}, 0, 180 << 20,
			`"connections":150,"connections_of_a_network":75`},
		"connections told": {[]string{"HUB_MEMORY_LIMIT=200MiB", "HUB_CONNECTIONS=3000"}, 0, 180 << 20,
			`"connections":3000,"connections_of_a_network":1500`},
		"container": {nil, 400 << 20, 360 << 20,
			`"memory_limit":"360MiB","memory_limit_from":"container","body_bytes":"90MiB"`},
		"told otherwise in container": {[]string{"HUB_MEMORY_LIMIT=200MiB"}, 400 << 20, 180 << 20, `"memory_limit_from":"HUB_MEMORY_LIMIT"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.container != 0 {
				c.environ = append(c.environ, cgroup+"="+limited(t, c.container))
			}
			r := run(t, "", with(c.environ...)...)
			ops := r.Listener(t, "operations")
			_, metrics := get("http://" + ops + "/metrics")
			if want := fmt.Sprintf(
				"\ngo_gc_gomemlimit_bytes %s\n",
				strconv.FormatFloat(float64(c.limit), 'g', -1, 64),
			); !strings.Contains(
				metrics,
				want,
			) {
				i := strings.Index(metrics, "\ngo_gc_gomemlimit_bytes ")
				t.Errorf("want %s, there is %.60s", strings.TrimSpace(want), metrics[max(i, 0):])
			}
			if log := r.Log.String(); strings.Count(log, c.logged) != 1 {
				t.Errorf("want %s in\n%s", c.logged, log)
			}
		})
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// keepers adds /keep, which keeps a body until the program is released, and /kept, which does
// not; X-Account is whose it is.
func keepers(mux *http.ServeMux, released context.Context) {
	keep := func(until <-chan struct{}) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ctx := caller.With(r.Context(), caller.Caller{Kind: caller.Key, CredentialID: r.Header.Get("X-Account")})
			b, err := rpc.ReadBody(ctx, r.Body, r.ContentLength, 32<<20)
			if f := fault.From(err); f != nil {
				w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
				http.Error(w, string(f.Code), f.Status())
				return
			}
			w.(http.Flusher).Flush()
			<-until
			_, _ = fmt.Fprint(w, len(b))
		}
	}
	at := make(chan struct{})
	close(at)
	mux.HandleFunc("POST /keep", keep(released.Done()))
	mux.HandleFunc("POST /kept", keep(at))
}

func (r running) post(t *testing.T, path, account string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+r.Addr(t)+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Account", account)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func sized(mib int) io.Reader { return bytes.NewReader(make([]byte, mib<<20)) }

// unannounced hides how much there is.
func unannounced(mib int) io.Reader { return io.MultiReader(sized(mib)) }

// TestBodiesAreBoundedTogether: beyond what a process may hold of bodies at once, and beyond
// half of it for one caller, a large body is told to come again; small ones are never.
func TestBodiesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_BODY_BYTES=8MiB")...)
	expect := func(what string, resp *http.Response, want int) {
		t.Helper()
		if resp.StatusCode != want {
			b, _ := io.ReadAll(resp.Body)
			t.Errorf("%s: %s %s", what, resp.Status, b)
		}
		if want == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After %q", what, resp.Header.Get("Retry-After"))
		}
	}
	mine := r.post(t, "/keep", "me", sized(3))
	expect("the first", mine, 200)
	expect("beyond the caller's half", r.post(t, "/kept", "me", sized(3)), 429)
	expect("the same without its length", r.post(t, "/kept", "me", unannounced(3)), 429)
	expect("a small one", r.post(t, "/kept", "me", strings.NewReader("{}")), 200)
	theirs := r.post(t, "/keep", "them", sized(7)) // more than the half counts as the half
	expect("another caller's", theirs, 200)
	expect("a third caller's", r.post(t, "/kept", "third", sized(2)), 429)
	r.Signal(t, syscall.SIGUSR1)
	for _, resp := range []*http.Response{mine, theirs} {
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
	}
	for range 5 {
		expect("once they are gone", r.post(t, "/kept", "me", sized(4)), 200)
		expect("once they are gone", r.post(t, "/kept", "them", unannounced(4)), 200)
	}
}

// TestASlowSenderHoldsWhatItHasSent, not what it has announced.
func TestASlowSenderHoldsWhatItHasSent(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_BODY_BYTES=8MiB")...)
	for range 8 {
		c := r.dial(t)
		send(t, c, "POST /keep HTTP/1.1\r\nHost: x\r\nX-Account: me\r\nContent-Length: 4000000\r\n\r\n"+strings.Repeat("x", 70_000))
	}
	var refused atomic.Int64
	for range 5 {
		if resp := r.post(t, "/kept", "me", sized(2)); resp.StatusCode != 200 {
			refused.Add(1)
		}
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("%d of 5 refused", n)
	}
}
