package service_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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

// descriptors names how many files the program may open.
const descriptors = "TEST_NOFILE"

func fewDescriptors() error {
	text := os.Getenv(descriptors)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n})
}

// client is a connection whose answers are read.
type client struct {
	net.Conn
	answers *bufio.Reader
}

// from connects to a listener from this address of the machine's.
func (r running) from(t *testing.T, address, listener string) client {
	t.Helper()
	c, err := r.reach(t, address, listener)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reach is from, with what became of a connection that is refused: that may be before it knows that it is one.
func (r running) reach(t *testing.T, address, listener string) (client, error) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: hubtest.Patience}
	c, err := d.DialContext(t.Context(), "tcp", r.Listener(t, listener))
	if err != nil {
		return client{}, err
	}
	t.Cleanup(func() { c.Close() })
	return client{c, bufio.NewReader(c)}, nil
}

// ask sends a request on the connection and returns its answer's status and whether that ends the connection, or what
// became of it instead.
func (c client) ask(request string) (status int, last bool, err error) {
	if err := c.SetDeadline(time.Now().Add(hubtest.Patience)); err != nil {
		return 0, false, err
	}
	if _, err := io.WriteString(c, request); err != nil {
		return 0, false, err
	}
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, false, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Close, errors.Join(err, resp.Body.Close())
}

func asks(method, path string, more ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(more, "") + "\r\n"
}

// says sends a request, or a part of one, and reads nothing.
func says(request string) func(client) error {
	return func(c client) error { _, err := io.WriteString(c, request); return err }
}

// gone tells whether the connection was closed; one that is open has nothing to say.
func (c client) gone(t *testing.T) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := c.answers.Peek(1)
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// metric is the value of a metric, with its labels.
func (r running) metric(t *testing.T, name string) float64 {
	t.Helper()
	_, metrics := get("http://" + r.Listener(t, "operations") + "/metrics")
	for line := range strings.Lines(metrics) {
		series, value, _ := strings.Cut(line, "} ")
		if label, _, _ := strings.Cut(name, "}"); strings.HasPrefix(series, label) {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("no %s in\n%s", name, metrics)
	return 0
}

// TestWhoHoldsConnectionsKeepsNobodyOut: a client holds twice as many as the program may have descriptors; a call from another
// network is answered at once.
func TestWhoHoldsConnectionsKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	const files = 128
	// What the call may take: it takes a hundredth of that, or the second that who is in a call may keep it waiting; and what
	// holds on by itself does so for longer.
	const soon = 4 * time.Second
	for name, c := range map[string]struct {
		listener, path string
		networks       int
		hold           func(client) error
	}{
		"idle":                 {"internal", "/healthz", 1, says(asks("GET", "/healthz"))},
		"idle, for operations": {"operations", "/metrics", 1, says(asks("GET", "/debug/pprof/symbol"))},
		"silent":               {"internal", "/healthz", files, says("")},
		"half a header":        {"internal", "/healthz", files, says("GET / HTTP/1.1\r\n")},
		"a body":               {"internal", "/healthz", files, says(asks("POST", "/body", "Content-Length: 9\r\n"))},
		"a body not asked":     {"internal", "/healthz", files, says(asks("POST", "/refused", "Content-Length: 9\r\n"))},
		"an answer not read": {"internal", "/healthz", files, func(c client) error {
			return errors.Join(c.Conn.(*net.TCPConn).SetReadBuffer(4<<10), says(asks("GET", "/page"))(c))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, "", with(descriptors+"="+strconv.Itoa(files))...)
			for i := range 2 * files {
				// One that is refused, or closed for another, is no failure.
				if held, err := r.reach(t, fmt.Sprintf("127.1.%d.1", i%c.networks), c.listener); err == nil {
					_ = held.SetDeadline(time.Now().Add(hubtest.Patience))
					_ = c.hold(held)
				}
			}
			began := time.Now()
			hubtest.Eventually(t, "a call is answered", func() bool {
				honest, err := r.reach(t, "127.2.0.1", c.listener)
				if err != nil {
					return false
				}
				status, _, err := honest.ask(asks("GET", c.path))
				return err == nil && status == 200
			})
			if took := time.Since(began); took > soon {
				t.Errorf("after %s", took)
			}
			if used := r.metric(t, `hub_bulkhead_used{bulkhead="connections"}`); used > files {
				t.Errorf("%v connections", used)
			}
		})
	}
}

// TestTheLongestIdleGoesFirst of those of the client's own network, while others have theirs.
func TestTheLongestIdleGoesFirst(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_CONNECTIONS=100", "HUB_NETWORK_CONNECTIONS=4")...)
	knock := func(c client) {
		t.Helper()
		if status, _, err := c.ask(asks("GET", "/healthz")); status != 200 || err != nil {
			t.Fatal(status, err)
		}
	}
	other := r.from(t, "127.2.0.1", "internal")
	knock(other)
	var own []client
	for range 4 {
		own = append(own, r.from(t, "127.1.0.1", "internal"))
		knock(own[len(own)-1])
	}
	// net/http answers before it lets the connection rest.
	hubtest.Eventually(t, "the first has rested and gone", func() bool {
		knock(own[1])
		c := r.from(t, "127.1.0.1", "internal")
		knock(c)
		return own[0].gone(t)
	})
	if other.gone(t) {
		t.Error("another network's went, too")
	}
	if closed := r.metric(t, `hub_connections_closed_total{`); closed < 1 {
		t.Errorf("closed: %v", closed)
	}
}

// TestACallIsNeverCutForAnother: a network whose connections are all answered gets no more, others do.
func TestACallIsNeverCutForAnother(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_CONNECTIONS=100", "HUB_NETWORK_CONNECTIONS=4")...)
	calls := make([]client, 4)
	for i := range calls {
		calls[i] = r.from(t, "127.1.0.1", "internal")
		if _, err := io.WriteString(calls[i], asks("GET", "/slow")); err != nil {
			t.Fatal(err)
		}
		if _, err := calls[i].answers.Peek(1); err != nil { // the call has begun
			t.Fatal(err)
		}
	}
	if c, err := r.reach(t, "127.1.0.1", "internal"); err == nil {
		if status, _, err := c.ask(asks("GET", "/healthz")); err == nil {
			t.Errorf("one too many was answered %d", status)
		}
	}
	if status, _, err := r.from(t, "127.2.0.1", "internal").ask(asks("GET", "/healthz")); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if refused := r.metric(t, `hub_bulkhead_refusals_total{bulkhead="connections"}`); refused != 1 {
		t.Errorf("refused: %v", refused)
	}
	r.Signal(t, syscall.SIGUSR1)
	for _, c := range calls {
		if status, _, err := c.ask(""); status != 200 || err != nil {
			t.Errorf("%d, %v", status, err)
		}
	}
	// What has ended makes room.
	if status, _, err := r.from(t, "127.1.0.1", "internal").ask(asks("GET", "/healthz")); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

// TestNeighbouringNetworksHaveAShareTogether: an IPv4 /24 that of four.
func TestNeighbouringNetworksHaveAShareTogether(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_CONNECTIONS=200", "HUB_NETWORK_CONNECTIONS=5")...)
	for i := range 60 {
		r.from(t, fmt.Sprintf("127.1.0.%d", 1+i), "internal")
	}
	hubtest.Eventually(t, "all have come", func() bool { return r.metric(t, `hub_connections_closed_total{`) == 40 })
	if used := r.metric(t, `hub_bulkhead_used{bulkhead="connections"}`); used > 20 {
		t.Errorf("used: %v", used)
	}
}

// TestInACrowdWhoIsRefusedLeaves: more than half of all places are taken.
func TestInACrowdWhoIsRefusedLeaves(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_CONNECTIONS=40", "HUB_NETWORK_CONNECTIONS=39")...)
	for path, ends := range map[string]bool{"GET /healthz": true, "GET /readyz": true, "POST /refused": true, "GET /nothing": true,
		"POST /kept": false} {
		method, path, _ := strings.Cut(path, " ")
		if _, last, err := r.from(t, "127.1.0.1", "internal").ask(asks(method, path)); err != nil || last {
			t.Errorf("%s: %t, %v", path, last, err)
		}
		defer func() {
			if _, last, err := r.from(t, "127.1.0.1", "internal").ask(asks(method, path)); err != nil || last != ends {
				t.Errorf("%s in a crowd: %t, %v", path, last, err)
			}
		}()
	}
	for range 30 {
		if _, _, err := r.from(t, "127.1.0.1", "internal").ask(asks("POST", "/kept")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingFollowsARequestOfDoubtfulEnd: what another reader may take for a part of its body, or for a request of its own, is
// not answered.
func TestNothingFollowsARequestOfDoubtfulEnd(t *testing.T) {
	t.Parallel()
	r := run(t, "", keys...)
	const next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		request string
		answers int
	}{
		"a length":              {asks("POST", "/body", "Content-Length: 4\r\n") + "body", 2},
		"chunks and a length":   {asks("POST", "/body", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + "4\r\nbody\r\n0\r\n\r\n", 1},
		"chunks":                {asks("POST", "/body", "Transfer-Encoding: chunked\r\n") + "4\r\nbody\r\n0\r\n\r\n", 1},
		"chunks that end there": {asks("POST", "/body", "Content-Length: 99\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 1},
		"chunks of HTTP/1.0":    {"POST /body HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", 1},
		"both of HTTP/1.0": {"POST /body HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: " +
			"4\r\n\r\nbody", 1},
		"chunks, for operations": {asks("POST", "/metrics", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 1},
	} {
		listener := "internal"
		if strings.HasSuffix(name, "operations") {
			listener = "operations"
		}
		conn := r.from(t, "127.0.0.1", listener)
		if _, err := io.WriteString(conn, c.request+next); err != nil {
			t.Fatal(err)
		}
		answers := 0
		for {
			if _, _, err := conn.ask(""); err != nil {
				break
			}
			if answers++; answers == 2 {
				break
			}
		}
		if answers != c.answers {
			t.Errorf("%s: %d answers", name, answers)
		}
	}
}

// TestTheEdgeSharesItsConnectionsOut among networks, unless all come through a proxy.
func TestTheEdgeSharesItsConnectionsOut(t *testing.T) {
	t.Parallel()
	for mode, share := range map[string]int{"": 500, "public": 50, "proxied": 1000} {
		r := run(t, mode, with("HUB_CONNECTIONS=1000")...)
		hubtest.Eventually(t, "the share is told", func() bool {
			return strings.Contains(r.Log.String(), fmt.Sprintf(`"connections":1000,"connections_of_a_network":%d`, share))
		})
	}
	r := run(t, "public", with("HUB_CONNECTIONS=1000", "HUB_NETWORK_CONNECTIONS=7")...)
	hubtest.Eventually(t, "the setting is told", func() bool { return strings.Contains(r.Log.String(), `"connections_of_a_network":7`) })
}
