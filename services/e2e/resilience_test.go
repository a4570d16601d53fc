package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
)

// TestResilience breaks one thing after the other in a stack with two gateways; each part but the last mends what it has broken.
func TestResilience(t *testing.T) {
	s := start(t, options{gateways: 2})
	for _, part := range []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"a service dies", aServiceDies},
		{"a service hangs", aServiceHangs},
		{"a caller leaves", aCallerLeaves},
		{"Redis is away", redisIsAway},
		{"a key is revoked", aKeyIsRevoked},
		{"any start order", anyStartOrder},
		{"SIGTERM", termFinishesCalls},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, s) })
	}
}

// aServiceDies kills query under load: no call hangs, every answer is the
// tool's or E_DB, the catalog stays whole, and the tools are back when the process is.
func aServiceDies(t *testing.T, s *suite) {
	s.process["query"].Kill()
	var took []time.Duration
	for range 20 {
		r := s.call("get_brand", `{"brandId":1}`)
		if r.Error.Code != "E_DB" || r.status != 503 || !r.Error.Retryable || r.header.Get("Retry-After") == "" {
			t.Fatalf("while query is down: %s", r.raw)
		}
		took = append(took, r.took)
	}
	slices.Sort(took)
	t.Logf("E_DB after %s (median), %s (slowest)", took[10], took[19])
	r, err := s.send(context.Background(), s.url, "GET", "/api/tools", "")
	if err != nil || r.Count != tools(t) {
		t.Errorf("the catalog while query is down: %v %s", err, r.raw)
	}
	s.start("query")
	hubtest.Eventually(t, "query's tools answer again", func() bool { return s.call("get_brand", `{"brandId":1}`).OK })
}

func TestKillUnderLoad(t *testing.T) {
	s := start(t, options{raced: true})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]int{}
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				r, err := s.send(
					context.Background(),
					s.url,
					"POST",
					"/api/tools/execute_read_sql",
					`{"sql":"SELECT * FROM campaign ORDER BY campaign_id","limit":200}`,
				)
				code := r.Error.Code
				switch {
				case err != nil:
					// The service died while its answer was on its way: the connection is cut, and
					// half an answer does not look whole.
					code = "cut"
				case code == "" && r.Count != 200:
					code = "short"
				}
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	for range 3 {
		before := func() int { mu.Lock(); defer mu.Unlock(); return codes[""] }()
		hubtest.Eventually(t, "calls succeed", func() bool { mu.Lock(); defer mu.Unlock(); return codes[""] > before+20 })
		s.process["query"].Kill()
		s.start("query")
	}
	s.ready("query")
	stop()
	wg.Wait()
	for code := range codes {
		if code != "" && code != "E_DB" && code != "E_RATE_LIMIT" && code != "cut" {
			t.Errorf("answers %v", codes)
		}
	}
	t.Logf("answers %v", codes)
}

// aServiceHangs: a stopped process still accepts connections.
func aServiceHangs(t *testing.T, s *suite) {
	if err := s.process["query"].Pause(); err != nil {
		t.Fatal(err)
	}
	first := s.call("get_brand", `{"brandId":1}`)
	if first.Error.Code != "E_DB" || first.took > hubtest.Patience/2 {
		t.Errorf("after %s: %s", first.took, first.raw)
	}
	hubtest.Within(t, time.Second, "a call once it is known", func() {
		if next := s.call("get_brand", `{"brandId":1}`); next.Error.Code != "E_DB" {
			t.Errorf("once it is known, after %s: %s", next.took, next.raw)
		}
	})
	if r, err := s.send(context.Background(), s.url, "GET", "/api/tools", ""); err != nil || !r.OK {
		t.Errorf("others are untouched: %v %s", err, r.raw)
	}
	if err := s.process["query"].Resume(); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "query answers again", func() bool { return s.call("get_brand", `{"brandId":1}`).OK })
}

// redisIsAway stops and hangs Redis: every call is answered in time, and the
// limits hold: a key has its burst in Redis once, and once in a replica that Redis does not answer in time.
func redisIsAway(t *testing.T, s *suite) {
	limited := s.issue("--scopes", "query", "--user-per-minute", "1", "--user-burst", "5").Key
	began, allowed := time.Now(), 0
	check := func(when string) {
		t.Helper()
		for range 10 {
			hubtest.Within(t, 2*time.Second, "a call "+when, func() {
				if r := s.call("get_brand", `{"brandId":1}`); !r.OK {
					t.Errorf("%s, after %s: %s", when, r.took, r.raw)
				}
			})
		}
		for range 12 {
			if r := s.call("list_categories", "{}", "Authorization", "Bearer "+limited); r.Error.Code != "E_RATE_LIMIT" {
				allowed++
			}
		}
		if most := 2 * (5 + int(time.Since(began).Minutes())); allowed > most {
			t.Errorf("%s: %d calls were let through, and %d may be", when, allowed, most)
		}
	}
	check("with Redis")
	if err := s.redis.Pause(); err != nil {
		t.Fatal(err)
	}
	check("while Redis hangs")
	if err := s.redis.Resume(); err != nil {
		t.Fatal(err)
	}
	s.redis.Kill()
	check("without Redis")
	if err := s.redis.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the shared limits are back", func() bool {
		r, err := s.send(t.Context(), "http://"+s.addr["gateway"], "POST", "/api/tools/get_brand", `{"brandId":1}`)
		return err == nil && r.OK
	})
}

// aKeyIsRevoked: at once by notice, within two seconds without one.
func aKeyIsRevoked(t *testing.T, s *suite) {
	replicas := []string{"http://" + s.addr["gateway"], "http://" + s.addr["gateway-2"]}
	use := func(url, key string) string {
		r, err := s.send(t.Context(), url, "POST", "/api/tools/list_categories", "{}", "Authorization", "Bearer "+key)
		if err != nil {
			t.Fatal(err)
		}
		return r.Error.Code
	}
	// stops is how long a key is of use after it was revoked: the shortest of some, for the machine
	// may be busy.
	stop := func() time.Duration {
		t.Helper()
		key := s.issue("--scopes", "query")
		for _, url := range replicas {
			if code := use(url, key.Key); code != "" {
				t.Fatalf("before it is revoked: %s", code)
			}
		}
		s.run("auth", s.env["auth"], "apikey", "revoke", key.ID, "--reason", "test")
		revoked := time.Now()
		hubtest.Eventually(t, "the key is refused everywhere", func() bool {
			return use(replicas[0], key.Key) == "E_AUTH_REVOKED" && use(replicas[1], key.Key) == "E_AUTH_REVOKED"
		})
		return time.Since(revoked)
	}
	stops := func(limit time.Duration) (took time.Duration) {
		t.Helper()
		for range 5 {
			if took = stop(); took <= hubtest.Here(limit) {
				break
			}
		}
		return took
	}
	took := stops(1500 * time.Millisecond)
	t.Logf("refused everywhere %s after the command ended", took)
	if took > hubtest.Here(1500*time.Millisecond) {
		t.Errorf("the notice did not arrive: refused after %s", took)
	}
	s.redis.Kill()
	if took := stops(3 * time.Second); took > hubtest.Here(3*time.Second) {
		t.Errorf("without notices: refused after %s", took)
	}
	if err := s.redis.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// termFinishesCalls: readiness fails, the call that runs is answered, exit 0.
func termFinishesCalls(t *testing.T, s *suite) {
	answered := make(chan reply, 1)
	go func() {
		r, err := s.send(context.Background(), s.url, "POST", "/api/tools/execute_read_sql", `{"sql":"SELECT SLEEP(5)"}`)
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	hubtest.Eventually(t, "the statement runs", func() bool { return running(t, "SELECT SLEEP(5)") > 0 })
	for _, name := range []string{"gateway", "query"} {
		if err := s.process[name].Stop(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := <-answered; !r.OK {
		t.Errorf("the call in flight: %s", r.raw)
	}
	for _, name := range []string{"gateway", "query"} {
		if err := s.process[name].Err(); !strings.Contains(err.Error(), "exit status 0") {
			t.Errorf("%s ended with %v, want exit 0", name, err)
		}
	}
}

// anyStartOrder: a gateway that starts alone serves the committed catalog, and its tools
// come to life as the services do.
func anyStartOrder(t *testing.T, s *suite) {
	for _, name := range []string{"gateway", "auth", "query"} {
		s.process[name].Kill()
	}
	s.start("gateway")
	hubtest.Eventually(t, "the gateway listens", func() bool {
		resp, err := http.Get(s.url + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	if r := s.call("get_brand", `{"brandId":1}`); r.Error.Code != "E_DB" {
		t.Errorf("without auth: %s", r.raw)
	}
	s.start("auth")
	hubtest.Eventually(t, "the catalog is served", func() bool {
		r, err := s.send(t.Context(), s.url, "GET", "/api/tools", "")
		return err == nil && r.Count == tools(t)
	})
	if r := s.call("get_brand", `{"brandId":1}`); r.Error.Code != "E_DB" || !strings.Contains(r.Error.Message, "query") {
		t.Errorf("without query: %s", r.raw)
	}
	s.start("query")
	hubtest.Eventually(t, "query's tools answer", func() bool { return s.call("get_brand", `{"brandId":1}`).OK })
}

// aCallerLeaves: the caller hangs up, and a second later nothing of its
// statement runs on the server.
func aCallerLeaves(t *testing.T, s *suite) {
	leave := func(id string) (took time.Duration) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		left := make(chan error, 1)
		go func() {
			_, err := s.send(ctx, s.url, "POST", "/api/tools/execute_read_sql", `{"sql":"SELECT SLEEP(17)"}`, "X-Request-Id", id)
			left <- err
		}()
		hubtest.Eventually(t, "the statement runs", func() bool { return running(t, "SELECT SLEEP(17)") > 0 })
		hubtest.Within(t, 2*time.Second, "another call meanwhile", func() {
			if r := s.call("get_brand", `{"brandId":1}`); !r.OK {
				t.Errorf("another call meanwhile, after %s: %s", r.took, r.raw)
			}
		})
		leave()
		if err := <-left; err == nil {
			t.Error("the call was answered")
		}
		began := time.Now()
		hubtest.Eventually(t, "the statement has ended", func() bool { return running(t, "SELECT SLEEP(17)") == 0 })
		took = time.Since(began)
		hubtest.Eventually(t, "the call is in the audit log", func() bool { return len(s.audited(id)) == 1 })
		return took
	}
	took := leave("left-0")
	for i := 1; took > time.Second && i < 5; i++ { // the machine may be busy
		took = leave(fmt.Sprint("left-", i))
	}
	if took > hubtest.Here(time.Second) {
		t.Errorf("the statement ran on for %s", took)
	}
}
