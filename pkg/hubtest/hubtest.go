// Package hubtest is what Hub's tests stand on: real private servers, a fresh database per
// test, the tested program as a process, a clock that tests move, a receiver of traces, and
// the import rules.
//
// A test package that uses servers has
//
//	func TestMain(m *testing.M) { hubtest.Main(m) }
//
// and that of a program has ProgramMain there, for Launch.
//
// Servers start when the first test asks for them, are shared by the tests of the package,
// and end with the test binary, also when it is killed. Nothing is mocked here: a test that
// wants a stopped or hung server takes one of its own (NewRedis and the like) and stops or
// pauses it.
package hubtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/localserver"
)

// Main runs the tests, then what the package wants done at the end, and then ends the servers
// that the tests shared.
func Main(m *testing.M, last ...func() error) {
	code := m.Run()
	for _, end := range append(last, mariaDB.end, mySQLBeside.end, mariaDBBeside.end, postgres.end, redis.end, consul.end, workspace.remove) {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "hubtest:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// The servers that the tests of one binary share.
var (
	mariaDB = shared[*localserver.MariaDB]{name: "mariadb", start: localserver.StartMariaDB}
	// Beside the system: `make servers` fetches them.
	mySQLBeside   = shared[*localserver.SourceServer]{name: "mysql", start: localserver.StartMySQL}
	mariaDBBeside = shared[*localserver.MariaDB]{name: "mariadb", start: localserver.StartSideBySideMariaDB}

	postgres = shared[*localserver.Postgres]{name: "postgres", start: localserver.StartPostgres}
	redis    = shared[*localserver.Redis]{name: "redis", start: localserver.StartRedis}
	consul   = shared[*localserver.Consul]{name: "consul", start: localserver.StartConsul}
)

// server is what the kinds of server have in common.
type server interface {
	comparable
	Remove() error
}

// shared is a server that starts at its first use.
type shared[S server] struct {
	// name is the beginning of its directory's name.
	name  string
	start func(context.Context, localserver.Options) (S, error)

	// What get has found out: the server, or why there is none.
	once   sync.Once
	server S
	err    error
}

// get is the server, which it starts at its first use; the test fails where it does not start.
func (s *shared[S]) get(t testing.TB) S {
	t.Helper()
	needServers(t)
	s.once.Do(func() {
		var dir string
		if dir, s.err = workspace.dir(s.name); s.err == nil {
			// Not the test's context: the server outlives the test that came first.
			s.server, s.err = s.start(context.Background(), localserver.Options{Dir: dir, Fast: true, Beside: besideStores()})
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

// end removes the server if it was started.
func (s *shared[S]) end() error {
	var none S
	if started := s.server != none && s.err == nil; started {
		return s.server.Remove()
	}
	return nil
}

// startOwn starts a server for one test alone.
func startOwn[S server](t testing.TB, name string, start func(context.Context, localserver.Options) (S, error)) S {
	t.Helper()
	needServers(t)
	dir, err := workspace.dir(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := start(t.Context(), localserver.Options{Dir: dir, Fast: true, Beside: besideStores()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// needServers fails a test that lacks a server, or what is named beside them.
func needServers(t testing.TB, also ...string) {
	t.Helper()
	if missing := localserver.Missing(also...); len(missing) > 0 {
		flag := ""
		if len(also) > 0 {
			flag = " --browser"
		}
		t.Fatalf("missing servers: %s; `go run ./scripts/stack install%s` in the repository's root installs them",
			strings.Join(missing, " "), flag)
	}
}

// MariaDB is the shared MariaDB server.
func MariaDB(t testing.TB) *localserver.MariaDB { t.Helper(); return mariaDB.get(t) }

// Postgres is the shared PostgreSQL server.
func Postgres(t testing.TB) *localserver.Postgres { t.Helper(); return postgres.get(t) }

// Chromium is the program of the browser. The test fails where there is none.
func Chromium(t testing.TB) string {
	t.Helper()
	path, err := localserver.ChromiumPath()
	if err != nil {
		t.Fatalf("%v; `go run ./scripts/stack install --browser` in the repository's root installs the package %s, "+
			"or HUB_CHROMIUM names a Chrome",
			err, localserver.Chromium)
	}
	return path
}

// Redis is the shared Redis server; see RedisURL for a database of one's own.
func Redis(t testing.TB) *localserver.Redis { t.Helper(); return redis.get(t) }

// Consul is the shared Consul agent. The test is skipped where there is no binary.
func Consul(t testing.TB) *localserver.Consul { t.Helper(); needConsul(t); return consul.get(t) }

// NewMariaDB starts a MariaDB server that the test may stop, kill and pause.
func NewMariaDB(t testing.TB) *localserver.MariaDB {
	t.Helper()
	return startOwn(t, "mariadb", localserver.StartMariaDB)
}

// NewSource starts a server of sources that the test may stop, kill and pause: that which HUB_TEST_SOURCE names, as for SourceDB.
func NewSource(t testing.TB) *localserver.SourceServer {
	t.Helper()
	switch os.Getenv(sourceVariable) {
	case "mysql":
		return startOwn(t, "mysql", localserver.StartMySQL)
	case "mariadb-next":
		return &startOwn(t, "mariadb", localserver.StartSideBySideMariaDB).SourceServer
	}
	return &NewMariaDB(t).SourceServer
}

// CopiedMariaDB starts two MariaDB servers, each of which copies the other, that the test may stop, kill and
// pause.
func CopiedMariaDB(t testing.TB) (a, b *localserver.MariaDB) {
	t.Helper()
	numbered := func(id int) *localserver.MariaDB {
		return startOwn(t, "mariadb", func(ctx context.Context, o localserver.Options) (*localserver.MariaDB, error) {
			o.ServerID = id
			return localserver.StartMariaDB(ctx, o)
		})
	}
	a, b = numbered(1), numbered(2)
	for _, copy := range []func() error{func() error { return b.Copy(t.Context(), a) }, func() error { return a.Copy(t.Context(), b) }} {
		if err := copy(); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// NewPostgres starts a PostgreSQL server that the test may stop, kill and pause.
func NewPostgres(t testing.TB) *localserver.Postgres {
	t.Helper()
	return startOwn(t, "postgres", localserver.StartPostgres)
}

// NewRedis starts a Redis server that the test may stop, kill and pause.
func NewRedis(t testing.TB) *localserver.Redis {
	t.Helper()
	return startOwn(t, "redis", localserver.StartRedis)
}

// RedisCluster starts a cluster of three Redis servers, and a replica of the first that takes its place when it goes;
// the test may stop, kill and pause them. The URL names one node, which finds the others.
func RedisCluster(t testing.TB) (masters []*localserver.Redis, replica *localserver.Redis, url string) {
	t.Helper()
	node := func() *localserver.Redis {
		return startOwn(t, "redis", func(ctx context.Context, o localserver.Options) (_ *localserver.Redis, err error) {
			if o.ClusterPort, err = localserver.FreePort(); err != nil {
				return nil, err
			}
			return localserver.StartRedis(ctx, o)
		})
	}
	masters, replica = []*localserver.Redis{node(), node(), node()}, node()
	if err := localserver.JoinRedis(t.Context(), masters, replica); err != nil {
		t.Fatal(err)
	}
	return masters, replica, "redis://" + masters[1].Addr() + "?cluster=true&addr=" + masters[2].Addr()
}

// SentineledRedis starts a Redis server with a replica, and three sentinels that promote the replica when the server goes; the test may
// stop, kill and pause both. The URL names the sentinels.
func SentineledRedis(t testing.TB) (master, replica *localserver.Redis, url string) {
	t.Helper()
	master, replica = NewRedis(t), NewRedis(t)
	var sentinels []*localserver.Sentinel
	for range 3 {
		sentinels = append(sentinels, startOwn(t, "sentinel", func(ctx context.Context, o localserver.Options) (*localserver.Sentinel, error) {
			return localserver.StartSentinel(ctx, o, master)
		}))
	}
	if err := localserver.Watch(t.Context(), master, replica, sentinels); err != nil {
		t.Fatal(err)
	}
	return master, replica, fmt.Sprintf("redis://%s/0?master_name=%s&addr=%s&addr=%s",
		sentinels[0].Addr(), localserver.SentinelMaster, sentinels[1].Addr(), sentinels[2].Addr())
}

// NewHAProxy starts a HAProxy in front of source servers. The test is skipped where there is none.
func NewHAProxy(t testing.TB, servers ...*localserver.SourceServer) *localserver.HAProxy {
	t.Helper()
	if _, err := localserver.SideBySideHAProxy.Root(); err != nil {
		t.Skip(err)
	}
	return startOwn(t, "haproxy", func(ctx context.Context, o localserver.Options) (*localserver.HAProxy, error) {
		return localserver.StartHAProxy(ctx, o, servers...)
	})
}

// NewDNS starts a DNS server with these records, which answers for hub.test.
func NewDNS(t testing.TB, records ...localserver.SRV) *localserver.DNS {
	t.Helper()
	needServers(t, localserver.DNSServer)
	return startOwn(t, "dns", func(ctx context.Context, o localserver.Options) (*localserver.DNS, error) {
		return localserver.StartDNS(ctx, o, records...)
	})
}

// NewConsul starts a Consul agent that the test may stop, kill and pause.
func NewConsul(t testing.TB) *localserver.Consul {
	t.Helper()
	needConsul(t)
	return startOwn(t, "consul", localserver.StartConsul)
}

// needConsul skips the test where scripts/consul has not built the agent: it takes minutes, and most machines have
// none.
func needConsul(t testing.TB) {
	t.Helper()
	if _, err := localserver.ConsulPath(); err != nil {
		t.Skip(err)
	}
}

// cleanupContext bounds work in a Cleanup, where the test's own context has ended.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}
