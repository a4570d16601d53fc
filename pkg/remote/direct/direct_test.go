package direct_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/remote/direct"
)

func transport(t testing.TB) *direct.Transport {
	d := &direct.Transport{Large: &http.Transport{DialContext: (&net.Dialer{}).DialContext, MaxIdleConns: 64, MaxIdleConnsPerHost: 64,
		IdleConnTimeout: time.Minute, DisableCompression: true, ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10}}
	t.Cleanup(d.CloseIdleConnections)
	return d
}

// echo answers what it is asked, and counts the connections that it accepts.
func echo(t testing.TB) (*httptest.Server, *atomic.Int64) {
	var accepted atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Asked", r.Method+" "+r.URL.String())
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			accepted.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, &accepted
}

func ask(ctx context.Context, d http.RoundTripper, method, url string, body []byte) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	resp, err := d.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, b, err
}

func TestRequestsAndAnswersTravelWhole(t *testing.T) {
	server, accepted := echo(t)
	d := transport(t)
	for _, n := range []int{0, 1, 2048, 16 << 10, 16<<10 + 1, 1 << 20} {
		body := bytes.Repeat([]byte("0123456789"), n/10+1)[:n]
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodHead} {
			resp, b, err := ask(t.Context(), d, method, server.URL+"/a%20b?c=d", body)
			if err != nil {
				t.Fatal(n, method, err)
			}
			if got := resp.Header.Get("X-Asked"); got != method+" /a%20b?c=d" || method != http.MethodHead && !bytes.Equal(b, body) {
				t.Errorf("%d bytes: %s, %d bytes back", n, got, len(b))
			}
		}
	}
	if n := accepted.Load(); n != 2 { // one of direct's, one of net/http's
		t.Errorf("%d connections were made", n)
	}
}

// TestAClosedConnectionIsNotUsed: what a server closes while it is idle costs no request.
func TestAClosedConnectionIsNotUsed(t *testing.T) {
	server, accepted := echo(t)
	d := transport(t)
	for i := range 3 {
		if _, _, err := ask(t.Context(), d, http.MethodPost, server.URL, []byte("a write")); err != nil {
			t.Fatal(i, err)
		}
		server.CloseClientConnections()
	}
	if n := accepted.Load(); n != 3 {
		t.Errorf("%d connections were made", n)
	}
}

// TestABodyThatIsLeftEndsItsConnection, and one of which only the end was not asked for does not.
func TestABodyThatIsLeftEndsItsConnection(t *testing.T) {
	server, accepted := echo(t)
	d := transport(t)
	for _, c := range []struct{ size, read, connections int }{
		{1000, 1000, 1}, {1000, 1000, 1}, {10_000, 10, 1}, {10, 10, 2}, {10, 0, 2}, {10, 10, 3},
	} {
		req, _ := http.NewRequest(http.MethodPost, server.URL, bytes.NewReader(make([]byte, c.size)))
		resp, err := d.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, c.read)); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		resp.Body.Close()
		if err := resp.Body.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("read after it was closed: %v", err)
		}
		if n := accepted.Load(); n != int64(c.connections) {
			t.Errorf("%+v: %d connections", c, n)
		}
	}
}

// TestTheContextEndsAnExchange while nothing is answered and in the middle of an answer, with its cause.
func TestTheContextEndsAnExchange(t *testing.T) {
	begun := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or nobody notices that the caller has gone
		if r.URL.Path == "/half" {
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
		}
		begun <- true
		<-r.Context().Done()
	}))
	defer server.Close()
	d := transport(t)
	why := errors.New("the reader has gone")
	for _, path := range []string{"/", "/half"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-begun; cancel(why) }()
		if _, _, err := ask(ctx, d, http.MethodPost, server.URL+path, []byte("{}")); !errors.Is(err, why) {
			t.Errorf("%s: %v", path, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := ask(over, d, http.MethodGet, server.URL, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// lying accepts connections and answers each request with the same bytes.
func lying(t testing.TB, answer string, thenCloses bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if _, err := io.WriteString(c, answer); err != nil || thenCloses {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestWhatIsNoAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":           "",
		"a banner":          "220 mail.example ESMTP\r\n",
		"half a header":     "HTTP/1.1 200 OK\r\nContent-Len",
		"an endless header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"many headers":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 400_000) + "\r\n",
		"only interim":      strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"another protocol":  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
		"HTTP/2":            "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a short body":      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab",
		"a broken chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"trailers":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n",
		"sudden trailers":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			resp, b, err := ask(t.Context(), transport(t), http.MethodPost, lying(t, answer, true), []byte("{}"))
			if err == nil {
				t.Errorf("%s, %q", resp.Status, b)
			}
		})
	}
}

// TestNobodyGetsAnothersAnswer: what comes behind an answer is nobody's, and its connection is not used again.
func TestNobodyGetsAnothersAnswer(t *testing.T) {
	one := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	url := lying(t, one+"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", false)
	d := transport(t)
	for range 3 {
		if _, b, err := ask(t.Context(), d, http.MethodPost, url, []byte("{}")); err != nil || string(b) != "ok" {
			t.Errorf("%q, %v", b, err)
		}
	}
	hints := lying(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+one, false)
	for range 3 {
		if resp, b, err := ask(t.Context(), d, http.MethodPost, hints, []byte("{}")); err != nil || string(b) != "ok" || resp.StatusCode != 200 {
			t.Errorf("%q, %v", b, err)
		}
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	closed := make(chan bool, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- true
		}
	}
	server.Start()
	defer server.Close()
	brief, long := transport(t), transport(t)
	brief.Large.IdleConnTimeout = time.Millisecond
	for _, d := range []*direct.Transport{brief, long} {
		if _, _, err := ask(t.Context(), d, http.MethodGet, server.URL, nil); err != nil {
			t.Fatal(err)
		}
	}
	<-closed
	long.CloseIdleConnections()
	<-closed
}

// FuzzAnswer holds what a lying server sends to net/http's own reading of it: the same status and body, or no answer.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.0 500 No\r\n\r\nuntil it closes",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		url := lying(t, answer, true)
		d := transport(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		resp, b, err := ask(ctx, d, http.MethodPost, url, []byte("{}"))
		wantResp, want, wantErr := ask(ctx, d.Large, http.MethodPost, url, []byte("{}"))
		switch {
		case err == nil && wantErr != nil:
			t.Errorf("%q: %s %q, and net/http says %v", answer, resp.Status, b, wantErr)
		case err == nil && (resp.StatusCode != wantResp.StatusCode || !bytes.Equal(b, want)):
			t.Errorf("%q: %s %q, not %s %q", answer, resp.Status, b, wantResp.Status, want)
		}
	})
}

const serve = "HUB_DIRECT_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serve) != "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Println(l.Addr())
		answer := bytes.Repeat([]byte("x"), 300)
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = w.Write(answer)
		}))
		return
	}
	os.Exit(m.Run())
}

// BenchmarkSmall asks a process of its own for 300 bytes, by this client and by net/http's.
func BenchmarkSmall(b *testing.B) {
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serve+"=1")
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(addr)
	d := transport(b)
	for name, by := range map[string]http.RoundTripper{"direct": d, "net-http": d.Large} {
		for _, c := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, c), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(max(c/2, 1))
				one := func() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if _, _, err := ask(ctx, by, http.MethodPost, url, []byte(`{"campaignId":12}`)); err != nil {
						b.Error(err)
					}
				}
				if c == 1 {
					for b.Loop() {
						one()
					}
					return
				}
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						one()
					}
				})
			})
		}
	}
}
