package localserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/localserver"
)

// kind is one kind of server as the life-cycle tests see it.
type kind struct {
	name  string
	start func(context.Context, localserver.Options) (*localserver.Server, error)
}

var kinds = []kind{
	{"mariadb", func(ctx context.Context, o localserver.Options) (*localserver.Server, error) {
		s, err := localserver.StartMariaDB(ctx, o)
		if err != nil {
			return nil, err
		}
		return s.Server, nil
	}},
	{"postgres", func(ctx context.Context, o localserver.Options) (*localserver.Server, error) {
		s, err := localserver.StartPostgres(ctx, o)
		if err != nil {
			return nil, err
		}
		return s.Server, nil
	}},
	{"redis", func(ctx context.Context, o localserver.Options) (*localserver.Server, error) {
		s, err := localserver.StartRedis(ctx, o)
		if err != nil {
			return nil, err
		}
		return s.Server, nil
	}},
	{"consul", func(ctx context.Context, o localserver.Options) (*localserver.Server, error) {
		s, err := localserver.StartConsul(ctx, o)
		if err != nil {
			return nil, err
		}
		return s.Server, nil
	}},
}

// dir is a directory that the servers' users can reach (t.TempDir's parents are 0700 for
// them when the tests run as root).
func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "hub-servers-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func start(t *testing.T, k kind, o localserver.Options) *localserver.Server {
	t.Helper()
	if k.name == "consul" {
		if _, err := localserver.ConsulPath(); err != nil {
			t.Skip(err)
		}
	}
	o.Fast = true
	s, err := k.start(t.Context(), o)
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

func TestLifeOfEachServer(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := start(t, k, localserver.Options{Dir: filepath.Join(dir(t), k.name)})
			port, pid := s.Port(), s.PID()

			stop(t, s)
			if alive(pid) {
				t.Fatalf("process %d lives after Stop", pid)
			}
			if err := s.Start(t.Context()); err != nil {
				t.Fatalf("start after stop: %v", err)
			}
			s.Kill()
			if err := s.Start(t.Context()); err != nil {
				t.Fatalf("start after kill: %v", err)
			}
			if s.Port() != port {
				t.Errorf("port changed from %d to %d over restarts", port, s.Port())
			}
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
			stop(t, s)
			select {
			case <-s.Done():
			default:
				t.Error("Done is open after Stop")
			}
		})
	}
}

func TestTwoInstancesAtOnce(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			a := start(t, k, localserver.Options{Dir: filepath.Join(dir(t), "a")})
			b := start(t, k, localserver.Options{Dir: filepath.Join(dir(t), "b")})
			if a.Port() == b.Port() || a.PID() == b.PID() {
				t.Errorf("two instances share port %d or pid %d", a.Port(), a.PID())
			}
		})
	}
}

// A server whose owner forgot it (here: a second owner of the same directory) is ended
// before a new one starts on its data.
func TestStartTakesOverADirectoryInUse(t *testing.T) {
	for _, k := range kinds[:3] {
		t.Run(k.name, func(t *testing.T) {
			d := filepath.Join(dir(t), k.name)
			old := start(t, k, localserver.Options{Dir: d})
			oldPID := old.PID()
			start(t, k, localserver.Options{Dir: d})
			if alive(oldPID) {
				t.Errorf("the old process %d still lives", oldPID)
			}
		})
	}
}

func TestLongPathsStillGetSockets(t *testing.T) {
	for _, k := range kinds[:2] {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			start(t, k, localserver.Options{Dir: filepath.Join(dir(t), strings.Repeat("long", 20), k.name)})
		})
	}
}

func TestUnreachableDirectoryIsReplacedByALink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs servers as another user")
	}
	parent := dir(t)
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	d := filepath.Join(parent, "redis")
	s := start(t, kinds[2], localserver.Options{Dir: d})
	link, err := os.Readlink(d)
	if err != nil || link != s.Dir() {
		t.Errorf("Readlink = %q, %v; want %q", link, err, s.Dir())
	}
	stop(t, s)
	start(t, kinds[2], localserver.Options{Dir: d}) // the link is followed
	if err := localserver.RemoveDir(d); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(link); !os.IsNotExist(err) {
		t.Errorf("RemoveDir left %s: %v", link, err)
	}
}

func TestAFailedStartSaysWhy(t *testing.T) {
	r := start(t, kinds[2], localserver.Options{Dir: filepath.Join(dir(t), "first")})
	_, err := localserver.StartRedis(t.Context(), localserver.Options{Dir: filepath.Join(dir(t), "second"), Port: r.Port()})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("start on a port in use: %v", err)
	}
}

func stop(t *testing.T, s *localserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

func alive(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", itoa(pid)))
	return err == nil
}
