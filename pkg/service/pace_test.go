package service_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
)

const large = 8 << 20

// transfers adds what the tests of slow peers call. Each handler logs its end.
func transfers(logger *slog.Logger, mux *http.ServeMux) {
	mux.HandleFunc("GET /large", func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(bytes.Repeat([]byte("x"), large))
		logger.Info("transfer", "path", "/large", "error", fmt.Sprint(err))
	})
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 256<<10)) })
	mux.HandleFunc("POST /body", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			// What comes after the body is not the sender's to hurry.
			wait, _ := time.ParseDuration(r.URL.Query().Get("then"))
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				err = r.Context().Err()
			}
		}
		logger.Info("transfer", "path", "/body", "bytes", n, "error", fmt.Sprint(err))
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	})
	mux.HandleFunc("POST /refused", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("GET /late", func(w http.ResponseWriter, r *http.Request) {
		wait, _ := time.ParseDuration(r.URL.Query().Get("after"))
		time.Sleep(wait)
		_, _ = io.WriteString(w, "late")
	})
}

// ended waits for the end of a transfer and returns its error.
func (r running) ended(t *testing.T, path string) (err string) {
	t.Helper()
	hubtest.Eventually(t, path+" has ended", func() bool {
		for _, event := range r.events() {
			if event["msg"] == "transfer" && event["path"] == path {
				err = event["error"].(string)
			}
		}
		return err != ""
	})
	return err
}

// dial connects with a small window, so that the system takes little off the program's hands.
func (r running) dial(t *testing.T) net.Conn {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	c, err := d.DialContext(t.Context(), "tcp", r.Addr(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// givenUp sends on without ever reading, until the peer has given the connection up.
func givenUp(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(hubtest.Patience)); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := io.WriteString(c, text)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection is still there")
		}
		if err != nil {
			return
		}
		text = "x"
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAReaderThatStallsIsCutOff(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"one large answer": "GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
		// Each is small enough for the system to take; together they are not.
		"many small ones":   strings.Repeat("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 20_000),
		"without a handler": strings.Repeat("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 40_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, "", with("HUB_STALL_TIMEOUT=500ms")...)
			givenUp(t, r.dial(t), request)
			if name == "one large answer" {
				if err := r.ended(t, "/large"); !strings.Contains(err, "timeout") && !strings.Contains(err, "timed out") {
					t.Errorf("the handler was told %s", err)
				}
			}
		})
	}
}

func TestASlowReaderGetsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	const stall = 2 * time.Second
	r := run(t, "", with("HUB_STALL_TIMEOUT="+stall.String(), "HUB_LEAST_RATE=256KiB")...)
	c, err := net.Dial("tcp", r.Addr(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send(t, c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
	began := time.Now()
	resp, err := http.ReadResponse(bufio.NewReaderSize(&slowly{c, 128 << 10, 100 * time.Millisecond}, 128<<10), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if took := time.Since(began); n != large || err != nil || took < 2*stall {
		t.Errorf("%d bytes in %s: %v", n, took, err)
	}
}

// slowly is a connection that is read so many bytes at a time, and then left alone.
type slowly struct {
	net.Conn
	most  int
	pause time.Duration
}

func (s *slowly) Read(b []byte) (int, error) {
	time.Sleep(s.pause)
	n, err := io.ReadAtLeast(s.Conn, b[:min(len(b), s.most)], 1)
	return n, err
}

// TestAReaderAboveTheLeastRateIsNotCutOff though it takes longer for what is written at a time than it may stall.
func TestAReaderAboveTheLeastRateIsNotCutOff(t *testing.T) {
	t.Parallel()
	const stall = time.Second
	r := run(t, "", with("HUB_STALL_TIMEOUT="+stall.String(), "HUB_LEAST_RATE=8KiB")...)
	c := r.dial(t)
	send(t, c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
	began := time.Now()
	n, err := io.CopyN(io.Discard, &slowly{c, 2 << 10, 50 * time.Millisecond}, 192<<10)
	if took := time.Since(began); err != nil || took < 4*stall {
		t.Errorf("%d bytes in %s: %v", n, took, err)
	}
}

func TestAReaderBelowTheLeastRateIsCutOff(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_STALL_TIMEOUT=1s", "HUB_LEAST_RATE=1MiB")...)
	c := r.dial(t)
	send(t, c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
	n, err := io.Copy(io.Discard, &slowly{c, 1024, 20 * time.Millisecond}) // it never stalls
	if err == nil || n >= large {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := r.ended(t, "/large"); !strings.Contains(err, "timeout") && !strings.Contains(err, "timed out") {
		t.Errorf("the handler was told %s", err)
	}
}

func TestNobodyElseIsHurried(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_STALL_TIMEOUT=300ms")...)
	c := r.dial(t)
	answers := bufio.NewReader(c)
	expect := func(want string) {
		t.Helper()
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != want {
			t.Errorf("%q, %v", b, err)
		}
	}
	for range 2 { // the second time on the same connection, with what the first has left of deadlines
		send(t, c, "GET /late?after=1s HTTP/1.1\r\nHost: x\r\n\r\n")
		expect("late")
		send(t, c, "POST /body?then=1s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
		expect("4")
		time.Sleep(time.Second) // idle
	}
	send(t, c, "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	expect("")
	time.Sleep(time.Second)
	send(t, c, "GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
	expect("late")
}

func TestASlowBodyArrivesWhole(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_STALL_TIMEOUT=2s", "HUB_LEAST_RATE=16KiB")...)
	c := r.dial(t)
	const pieces, size = 50, 8 << 10
	send(t, c, fmt.Sprintf("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", pieces*size))
	for range pieces {
		time.Sleep(100 * time.Millisecond)
		send(t, c, strings.Repeat("x", size))
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != strconv.Itoa(pieces*size) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestASenderThatStallsIsCutOff(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"body":          "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
		"chunked body":  "POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
		"when asked to": "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, "", with("HUB_STALL_TIMEOUT=500ms")...)
			c := r.dial(t)
			givenUp(t, c, request)
			if err := r.ended(t, "/body"); !strings.Contains(err, "timeout") && !strings.Contains(err, "timed out") {
				t.Errorf("the handler was told %s", err)
			}
		})
	}
	t.Run("one that nobody reads", func(t *testing.T) {
		t.Parallel()
		r := run(t, "", with("HUB_STALL_TIMEOUT=500ms")...)
		givenUp(t, r.dial(t), "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
	})
}

// TestNoOtherProtocol: a connection has one call at a time.
func TestNoOtherProtocol(t *testing.T) {
	t.Parallel()
	r := run(t, "", keys...)
	c := r.dial(t)
	send(t, c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 505") && !strings.HasPrefix(line, "HTTP/1.1 400") {
		t.Errorf("%q, %v", line, err)
	}
}
