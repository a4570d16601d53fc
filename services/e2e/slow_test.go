package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
)

// TestOperationsAreApart: what tells of a process, and can load it, answers to nobody who can
// send it calls, neither outside nor among the neighbours.
func TestOperationsAreApart(t *testing.T) {
	s := start(t, options{})
	status := func(addr, path string) int {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for _, name := range everyProcess {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/symbol", "/debug/pprof/cmdline",
			"/debug/vars", "//metrics", "/%6detrics", "/healthz/../metrics"} {
			if got := status(s.addr[name], path); got != http.StatusNotFound && got != http.StatusUnauthorized {
				t.Errorf("%s answers %d to %s", name, got, path)
			}
		}
		for path, want := range map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/healthz": 404, "/internal/manifest": 404, "/": 404} {
			if got := status(s.ops[name], path); got != want {
				t.Errorf("%s answers %d to %s for operations, want %d", name, got, path, want)
			}
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200} {
			if got := status(s.addr[name], path); got != want {
				t.Errorf("%s answers %d to %s", name, got, path)
			}
		}
	}
	t.Run("what they show is what dashboards and alerts may name", s.metricsAreListed)
}

// unread connects with a small window, sends a request again and again, and never reads: its
// connection is gone when it returns.
func unread(ctx context.Context, addr, request string) error {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(hubtest.Patience)); err != nil {
		return err
	}
	for many := strings.Repeat(request, 64); ; {
		if _, err := io.WriteString(c, many); errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the connection is still there")
		} else if err != nil {
			return nil
		}
	}
}

// TestReadersThatNeverRead opens 200 connections each way and reads nothing: they are given up,
// and meanwhile cost little and keep nobody out.
func TestReadersThatNeverRead(t *testing.T) {
	const readers = 200
	const stall = 3 * time.Second
	s := start(t, options{env: []string{"HUB_STALL_TIMEOUT=" + stall.String(), "HUB_FAILED_AUTH_BURST=10000"}})
	slow := s.issue(
		"--scopes",
		allScopes,
		"--user-per-minute",
		"600000",
		"--user-burst",
		"10000",
		"--service-per-minute",
		"600000",
		"--service-burst",
		"10000",
	).Key
	// About a megabyte, so that no system takes all of it off the gateway's hands.
	sql := `{"sql":"SELECT REPEAT('x', 1000000) AS text"}`
	for _, c := range []struct{ name, request string }{
		{"the API's description", "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"the catalog", "GET /api/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + slow + "\r\n\r\n"},
		{"an asset", "GET /assets/gateway/x/htmx.js HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"a page", "GET /login HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"},
		{"a tool's answer", fmt.Sprintf("POST /api/tools/execute_read_sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: "+
			"Bearer %s\r\nContent-Length: %d\r\n\r\n%s", slow, len(sql), sql)},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := resident(t, s.process["gateway"].PID())
			var wg sync.WaitGroup
			for range readers {
				wg.Go(func() {
					if err := unread(t.Context(), s.addr["gateway"], c.request); err != nil {
						t.Error(err)
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			began, most := time.Now(), int64(0)
			for waiting := true; waiting; {
				select {
				case <-done:
					waiting = false
				case <-time.After(200 * time.Millisecond):
					most = max(most, resident(t, s.process["gateway"].PID()))
					if r := s.call("get_brand", `{"brandId":1}`); !r.OK {
						t.Errorf("another caller gets %s", r.raw)
					}
				}
			}
			t.Logf(
				"%d readers were given up after %s; the gateway had %d MiB more",
				readers,
				time.Since(began).Round(time.Millisecond),
				(most-before)>>20,
			)
			if most-before > 48<<20 {
				t.Errorf("the gateway took %d MiB for %d readers that read nothing", (most-before)>>20, readers)
			}
		})
	}
}

// resident is a process's memory in bytes; 0 where there is no /proc.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte("VmRSS:"))
	fields := strings.Fields(string(rest))
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestASlowLineGetsItsAnswer reads a large answer for longer than its call may take, and sends a
// large body for longer than that: both arrive whole.
func TestASlowLineGetsItsAnswer(t *testing.T) {
	s := start(t, options{env: []string{"MCP_QUERY_TIMEOUT_MS=4000"}})
	const deadline = 9 * time.Second // the statement's and five
	c, err := net.Dial("tcp", s.addr["gateway"])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const size = 8_000_000
	sql := fmt.Sprintf(
		`{"sql":"SELECT REPEAT('x', %d) AS text FROM category a, category b, category c LIMIT 800"}`,
		size/800,
	) // no heavy statement, which has less time
	if _, err := fmt.Fprintf(
		c,
		"POST /api/tools/execute_read_sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		s.key,
		len(sql),
		sql,
	); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	resp, err := http.ReadResponse(bufio.NewReaderSize(&slowLine{c, size / 10}, 100<<10), nil) // it takes ten seconds
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if took := time.Since(
		began,
	); err != nil || resp.StatusCode != 200 || bytes.Count(b, []byte("x")) < size || !bytes.HasSuffix(b, []byte("}}")) ||
		took < deadline {
		t.Errorf("after %s: %s, %d bytes, %v", took, resp.Status, len(b), err)
	}

	// create_segment has ten seconds, from when its input is there.
	target := `{"externalId":%d,"snapshot":{"text":"` + strings.Repeat("y", 10_000) + `"}}`
	var body bytes.Buffer
	body.WriteString(`{"name":"slow","kind":"partner","targets":[`)
	for i := range 120 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, target, i+1)
	}
	body.WriteString(`]}`)
	began = time.Now()
	req, err := http.NewRequestWithContext(
		t.Context(),
		"POST",
		s.url+"/api/tools/create_segment",
		&slowBody{&body, 10_000, 100 * time.Millisecond},
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Idempotency-Key", "slow")
	resp, err = http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if took := time.Since(began); resp.StatusCode != 200 || took < 10*time.Second {
		t.Errorf("after %s: %s %.300s", took, resp.Status, answer)
	}
}

// slowLine brings so many bytes a second.
type slowLine struct {
	net.Conn
	perSecond int
}

func (s *slowLine) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b[:min(len(b), s.perSecond/10)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.perSecond))
	return n, err
}

// slowBody is sent so many bytes at a time.
type slowBody struct {
	io.Reader
	most  int
	pause time.Duration
}

func (s *slowBody) Read(b []byte) (int, error) {
	time.Sleep(s.pause)
	return s.Reader.Read(b[:min(len(b), s.most)])
}

// TestLargeBodiesTakeTurns: whoever sends a large body slowly holds their own share of the memory
// for bodies, and is told to come again for more; nobody else is.
func TestLargeBodiesTakeTurns(t *testing.T) {
	s := start(t, options{env: []string{"HUB_BODY_BYTES=8MiB"}})
	slow := s.issue("--scopes", allScopes).Key
	const size = 3 << 20
	c, err := net.Dial("tcp", s.addr["gateway"])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	head := fmt.Sprintf(
		"POST /api/tools/create_segment HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nIdempotency-Key: "+
			"1\r\nContent-Length: %d\r\n\r\n",
		slow,
		size,
	)
	if _, err := io.WriteString(c, head+strings.Repeat(" ", size/2)); err != nil {
		t.Fatal(err)
	}
	padding := strings.Repeat(" ", size)
	body := `{"name":"n","kind":"partner","targets":[]}` + padding
	var refused reply
	hubtest.Eventually(t, "the share of the slow one is taken", func() bool {
		refused = s.call("create_segment", body, "Authorization", "Bearer "+slow, "Idempotency-Key", "2")
		return !refused.OK
	})
	if refused.status != http.StatusTooManyRequests || refused.Error.Code != "E_RATE_LIMIT" || !refused.Error.Retryable ||
		refused.header.Get("Retry-After") != "1" || string(refused.Error.Details) != `{"retryAfter":1,"scope":"body"}` {
		t.Errorf("%d %v %s", refused.status, refused.header, refused.raw)
	}
	if r := s.call("create_segment", body, "Idempotency-Key", "3"); !r.OK {
		t.Errorf("another caller's: %s", r.raw)
	}
	if r := s.call(
		"create_segment",
		`{"name":"n","kind":"partner","targets":[]}`,
		"Authorization",
		"Bearer "+slow,
		"Idempotency-Key",
		"4",
	); !r.OK {
		t.Errorf("a small one of the same caller: %s", r.raw)
	}
	c.Close()
	hubtest.Eventually(t, "it comes through once the slow one has gone", func() bool {
		return s.call("create_segment", body, "Authorization", "Bearer "+slow, "Idempotency-Key", "2").OK
	})
}
