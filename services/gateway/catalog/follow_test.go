package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/catalog"
)

// owners serve manifests, at a server each.
type owners struct {
	t       *testing.T
	log     *hubtest.Buffer
	catalog *catalog.Catalog
	clients *catalog.Clients
	// names is what discovery tells.
	names chan []string

	mu      sync.Mutex
	servers map[string]*httptest.Server
	says    map[string]func() io.Reader
	asked   map[string]int
}

func newOwners(t *testing.T) *owners {
	t.Helper()
	o := &owners{
		t:       t,
		log:     &hubtest.Buffer{},
		names:   make(chan []string),
		servers: map[string]*httptest.Server{},
		says:    map[string]func() io.Reader{},
		asked:   map[string]int{},
	}
	logger := slog.New(slog.NewJSONHandler(o.log, nil))
	o.catalog = catalog.New(logger)
	o.clients = catalog.NewClients(func(name string) *remote.Client {
		o.mu.Lock()
		defer o.mu.Unlock()
		addr := "127.0.0.1:1"
		if s := o.servers[name]; s != nil {
			addr = strings.TrimPrefix(s.URL, "http://")
		}
		return remote.New(
			remote.Options{
				Service:   name,
				Instancer: sd.FixedInstancer{addr},
				Keys:      callertest.Keys(t, caller.Gateway),
				Logger:    logger,
				Patience:  hubtest.Patience,
			},
		)
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := o.catalog.Follow(ctx, o.clients, func(ctx context.Context, tell func([]string)) error {
			for {
				select {
				case names := <-o.names:
					tell(names)
				case <-ctx.Done():
					return nil
				}
			}
		}); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done; o.clients.Close() })
	return o
}

// serve makes a service that says this when it is asked for its manifest.
func (o *owners) serve(name string, says func() io.Reader) {
	o.t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET "+rpc.ManifestPath, func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked[name]++
		says := o.says[name]
		o.mu.Unlock()
		if r.Header.Get(caller.Header) == "" {
			o.t.Error("no token")
		}
		_, _ = io.Copy(w, says())
	})
	server := httptest.NewServer(mux)
	o.t.Cleanup(server.Close)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.servers[name], o.says[name] = server, says
}

func (o *owners) say(name string, says func() io.Reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.says[name] = says
}

func (o *owners) times(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[name]
}

func manifest(service string, tools ...string) func() io.Reader {
	m := tool.Manifest{Service: service, Tools: []tool.Spec{}}
	for i, name := range tools {
		m.Tools = append(
			m.Tools,
			tool.Spec{Name: name, Position: i + 1, Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)},
		)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return func() io.Reader { return bytes.NewReader(b) }
}

// TestNewcomersAreFollowed: what discovery tells of while the gateway runs is asked for its manifest; liars
// are refused, and the others go on.
func TestNewcomersAreFollowed(t *testing.T) {
	t.Parallel()
	o := newOwners(t)
	o.serve("first", manifest("first", "one"))
	o.serve("second", manifest("second", "two"))
	o.serve("thief", manifest("thief", "three", "one"))
	o.serve("masked", manifest("first", "four"))
	o.serve("endless", func() io.Reader { return io.LimitReader(endless{}, 100<<20) })
	o.names <- []string{"first"}
	hubtest.Eventually(t, "the first is known", func() bool { return o.catalog.Entry("one") != nil })
	o.names <- []string{"endless", "first", "gateway", "masked", "Not A Name", "../x", "second", "thief"}
	hubtest.Eventually(t, "the second is known", func() bool { return o.catalog.Entry("two") != nil })
	for _, name := range []string{"thief", "masked", "endless"} {
		hubtest.Eventually(t, name+" is told of", func() bool {
			for line := range strings.Lines(o.log.String()) {
				if strings.Contains(line, `"level":"ERROR","msg":"manifest refused","owner":"`+name+`"`) {
					return true
				}
			}
			return false
		})
	}
	if o.catalog.Entry("three") != nil || o.catalog.Entry("four") != nil || o.catalog.Entry("one").Service != "first" {
		t.Error("a liar was believed")
	}
	for _, name := range []string{"gateway", "Not A Name", "../x"} {
		if o.clients.Client(name) != nil {
			t.Errorf("%s is a service", name)
		}
	}
	// The thief's claim is fine once its owner has given it up, and the one who has gone keeps its tools.
	o.names <- []string{}
	o.say("first", manifest("first", "five"))
	hubtest.Eventually(t, "the claim holds", func() bool { e := o.catalog.Entry("one"); return e != nil && e.Service == "thief" })
	if o.catalog.Entry("two") == nil || o.catalog.Entry("five") == nil {
		t.Error("a service that discovery no longer lists lost its tools")
	}
}

// TestAManifestIsCompiledOnce, however often it is read, also when it is refused.
func TestAManifestIsCompiledOnce(t *testing.T) {
	t.Parallel()
	o := newOwners(t)
	o.serve("first", manifest("first", "one"))
	o.serve("second", manifest("second", "two"))
	o.serve("thief", manifest("thief", "one"))
	o.serve("broken", func() io.Reader {
		return strings.NewReader(`{"service":"broken","tools":[{"name":"x","input_schema":{"oneOf":[]}}]}`)
	})
	o.names <- []string{"first"}
	hubtest.Eventually(t, "the first is known", func() bool { return o.catalog.Entry("one") != nil })
	o.names <- []string{"second", "thief", "broken"}
	hubtest.Eventually(t, "each was asked three times", func() bool {
		return o.times("first") > 2 && o.times("second") > 2 && o.times("thief") > 2 && o.times("broken") > 2
	})
	if n := o.catalog.Compiled(); n != 4 {
		t.Errorf("%d manifests compiled, want 4", n)
	}
	if n := strings.Count(o.log.String(), "manifest refused"); n != 2 {
		t.Errorf("told %d times that 2 are refused", n)
	}
	entry := o.catalog.Entry("one")
	o.say("second", manifest("second", "two", "three"))
	hubtest.Eventually(t, "a tool more", func() bool { return o.catalog.Entry("three") != nil })
	if n := o.catalog.Compiled(); n != 5 || o.catalog.Entry("one") != entry {
		t.Errorf("%d manifests compiled, want 5: another's change compiles nobody else's", n)
	}
}

// endless is spaces.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// BenchmarkTake reads the manifest of 100 tools again.
func BenchmarkTake(b *testing.B) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("tool_", i))
	}
	content, err := io.ReadAll(manifest("one", names...)())
	if err != nil {
		b.Fatal(err)
	}
	var m tool.Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		b.Fatal(err)
	}
	c := catalog.New(slog.New(slog.DiscardHandler))
	for b.Loop() {
		if err := c.Update(m); err != nil {
			b.Fatal(err)
		}
	}
	if c.Compiled() != 1 {
		b.Errorf("compiled %d times", c.Compiled())
	}
}
