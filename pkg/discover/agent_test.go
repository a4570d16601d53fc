package discover_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/hubtest"
)

// agent answers as Consul's does: a question with an index waits for a later one, for 5 minutes unless it says for how long. A hung
// one takes connections and answers nothing.
type agent struct {
	mu    sync.Mutex
	index uint64
	port  int
	hung  bool
}

func newAgent(t testing.TB, index uint64, port int) (*agent, *httptest.Server) {
	t.Helper()
	a := &agent{index: index, port: port}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // before Close, which waits for the questions
	return a, server
}

func (a *agent) become(index uint64, port int, hung bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index, a.port, a.hung = index, port, hung
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, _ := strconv.ParseUint(r.URL.Query().Get("index"), 10, 64)
	wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
	if err != nil {
		wait = 5 * time.Minute
	}
	for end := time.Now().Add(wait); r.Context().Err() == nil; time.Sleep(time.Millisecond) {
		a.mu.Lock()
		index, port, hung := a.index, a.port, a.hung
		a.mu.Unlock()
		if hung || index <= asked && time.Now().Before(end) {
			continue
		}
		w.Header().Set("X-Consul-Index", strconv.FormatUint(index, 10))
		if strings.HasPrefix(r.URL.Path, "/v1/catalog/services") {
			fmt.Fprintf(w, `{"of-%d": ["hub"]}`, port)
		} else {
			fmt.Fprintf(w, `[{"Node": {}, "Service": {"Address": "127.0.0.1", "Port": %d}}]`, port)
		}
		return
	}
}

// TestHungConsulKeepsNobodyFromStarting: whoever wants an Instancer goes on, and is told when the agent answers again.
func TestHungConsulKeepsNobodyFromStarting(t *testing.T) {
	t.Parallel()
	a, server := newAgent(t, 1, 7001)
	a.become(1, 7001, true)
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: server.Listener.Addr().String(), ConsulWait: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), hubtest.Patience)
	defer cancel()
	followers := make(chan *follower, 1)
	go func() { followers <- follow(t, d.Instancer("query")) }()
	w := watch(t, d)
	select {
	case f := <-followers:
		a.become(1, 7001, false)
		hubtest.Eventually(t, "it is found", f.knows("127.0.0.1:7001"))
		hubtest.Eventually(t, "its name is told", w.told("of-7001"))
	case <-ctx.Done():
		t.Fatal("a hung agent keeps us from starting")
	}
}

// TestConsulMayCountFromALowerIndex, as an agent does that was made anew: what it knows since then is heard of at the end of a wait.
func TestConsulMayCountFromALowerIndex(t *testing.T) {
	t.Parallel()
	a, server := newAgent(t, 500, 7001)
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: server.Listener.Addr().String(), ConsulWait: 50 * time.Millisecond})
	f, w := follow(t, d.Instancer("query")), watch(t, d)
	hubtest.Eventually(t, "it is found", f.knows("127.0.0.1:7001"))
	hubtest.Eventually(t, "its name is told", w.told("of-7001"))
	a.become(20, 7002, false)
	server.CloseClientConnections()
	hubtest.Eventually(t, "it is found where it is", f.knows("127.0.0.1:7002"))
	hubtest.Eventually(t, "the other name is told", w.told("of-7002"))
}
