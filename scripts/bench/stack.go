package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/localstack"
	"hub.internal/pkg/postgres"
)

// measured are the services that a read passes, in the order of their start.
var measured = []string{"auth", "query", "gateway"}

// stack is Hub's services over servers of their own.
type stack struct {
	options
	// Held while the benchmark runs: two of them would measure one another.
	lock     *os.File
	sources  []source // MariaDB, which the gateway's calls are answered from, and MySQL if it is measured beside it
	postgres *localserver.Postgres
	redis    *localserver.Redis
	source   localserver.Source
	password string // of all users of all servers, and what keys are digested with
	keys     map[string]caller.SigningKey
	programs inventory.Inventory
	addr     map[string]string               // host:port of each service
	services map[string]*localserver.Process // and the peer, where there is one

	// pids are the processes to measure: services, servers and peers.
	pids map[string]int
	// startTimes are from exec to the first 200 of /readyz, the median of three starts.
	startTimes map[string]time.Duration
	// rssAtStart is the resident memory in bytes before the first call.
	rssAtStart map[string]int64
	// key is an API key with all scopes and limits far above the load.
	key string
}

// source is a server with the sample data.
type source struct {
	*localserver.SourceServer
	// The names of its process, of that of the query service that reads it, and what a target's name ends with.
	name, query, suffix string
}

// startStack builds the programs and starts everything; stop ends it.
func startStack(ctx context.Context, o options, say func(string, ...any)) (s *stack, err error) {
	if missing := localserver.Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("these servers are not installed: %s; `make servers` installs them", strings.Join(missing, ", "))
	}
	s = &stack{options: o, password: rand.Text() + rand.Text(), keys: map[string]caller.SigningKey{}, addr: map[string]string{},
		services: map[string]*localserver.Process{}, pids: map[string]int{},
		startTimes: map[string]time.Duration{}, rssAtStart: map[string]int64{}}
	services, err := inventory.Load(o.root)
	if err != nil {
		return nil, err
	}
	// The pages need more services than a read, and are started only for them.
	names := measured
	if o.pages {
		names = append(slices.Clone(reviewing), measured...)
	}
	if s.programs, err = services.Pick(names...); err != nil {
		return nil, err
	}
	if err := s.makeDirs(); err != nil {
		return nil, err
	}
	begun := s
	defer func() {
		if err != nil {
			begun.stop()
		}
	}()
	say("building the services")
	if err := s.build(ctx); err != nil {
		return nil, err
	}
	say("starting MariaDB, PostgreSQL and Redis")
	if err := s.startServers(ctx); err != nil {
		return nil, err
	}
	if err := s.load(ctx, say); err != nil {
		return nil, err
	}
	say("starting Hub")
	return s, s.startServices(ctx)
}

// makeDirs makes the benchmark's directories and takes its lock, which the kernel drops with this process.
func (s *stack) makeDirs() error {
	// Servers may run as other users, who have to find the way to their data.
	for _, dir := range []string{filepath.Dir(s.dir), s.dir, s.path("bin"), s.path("log")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	lock, err := os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another benchmark runs in %s", s.dir), lock.Close())
	}
	s.lock = lock
	return nil
}

// path is one below the benchmark's directory.
func (s *stack) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// signing is what a service signs with, the same throughout one run.
func (s *stack) signing(name string) caller.SigningKey {
	if _, made := s.keys[name]; !made {
		s.keys[name] = caller.NewSigningKey()
	}
	return s.keys[name]
}

// build builds the programs, which nobody debugs: without a debugger's tables, as those of a release.
func (s *stack) build(ctx context.Context) error {
	return localstack.Build(ctx, s.root, s.path("bin"), append(localstack.Programs(s.programs), "./scripts/gen"), "-ldflags=-s -w")
}

// startServers starts the servers, each on an empty directory.
func (s *stack) startServers(ctx context.Context) (err error) {
	// Everything is made anew: data of an earlier run have another scale or schema.
	for _, name := range []string{"mariadb", "mysql", "postgres", "redis"} {
		// A run that was killed a moment ago may have left a server in it.
		if err := errors.Join(localserver.Reclaim(ctx, s.path(name)), localserver.RemoveDir(s.path(name))); err != nil {
			return err
		}
	}
	mariadb, err := localserver.StartMariaDB(ctx, localserver.Options{Dir: s.path("mariadb")})
	if err != nil {
		return err
	}
	s.sources = append(s.sources, source{&mariadb.SourceServer, "mariadb", "query", ""})
	if s.mysql {
		mysql, err := localserver.StartMySQL(ctx, localserver.Options{Dir: s.path("mysql")})
		if err != nil {
			return err
		}
		s.sources = append(s.sources, source{mysql, "mysql", "query-2", " on MySQL"})
	}
	if s.postgres, err = localserver.StartPostgres(ctx, localserver.Options{Dir: s.path("postgres")}); err != nil {
		return err
	}
	if s.redis, err = localserver.StartRedis(ctx, localserver.Options{Dir: s.path("redis"), Password: s.password}); err != nil {
		return err
	}
	s.pids["postgres"], s.pids["redis"] = s.postgres.PID(), s.redis.PID()
	schema, err := os.ReadFile(filepath.Join(s.root, "deploy", "source", "schema.sql"))
	if err != nil {
		return err
	}
	s.source = localserver.Source{
		Database: "marketplace", Schema: string(schema),
		Owner: localserver.SourceOwner, OwnerPassword: s.password,
		Reader: localserver.SourceReadOnly, ReaderPassword: s.password,
	}
	for _, on := range s.sources {
		s.pids[on.name] = on.PID()
		if err := on.CreateSource(ctx, s.source); err != nil {
			return err
		}
	}
	// Without bounds on connections: none of them is what is measured.
	logins := map[string]postgres.Login{postgres.Owner: {Password: s.password}}
	for _, p := range s.programs {
		logins[p.Role()] = postgres.Login{Password: s.password}
	}
	return postgres.Bootstrap(ctx, s.postgres.SuperuserURL("postgres"), "hub", logins)
}

// load fills the source databases with the same rows.
func (s *stack) load(ctx context.Context, say func(string, ...any)) error {
	for _, on := range s.sources {
		say("loading sample data into %s, scale %g", on.name, s.scale)
		dsn := on.DSN(s.source.Owner, s.source.OwnerPassword, s.source.Database)
		if _, err := localstack.Run(ctx, s.path("bin", "gen"), s.root, nil, "", "--scale", fmt.Sprint(s.scale), "--dsn", dsn); err != nil {
			return err
		}
	}
	return nil
}

// readerDSN is a source database as query and the peers see it.
// It may SELECT and nothing else.
func (s *stack) readerDSN(on source) string {
	return on.DSN(s.source.Reader, s.source.ReaderPassword, s.source.Database)
}

// hub is what package localstack starts the services with: their default settings but for the row limit.
func (s *stack) hub() localstack.Stack {
	return localstack.Stack{
		Root: s.root, Bin: s.path("bin"), Services: s.programs, Processes: s.programs.Names(),
		Addr: func(process string) string { return s.addr[process] },
		Signing: func(service string) (key, trusted string) {
			k := s.signing(service)
			return k.Reveal(), k.Trusted(service)
		},
		Pepper:   s.password,
		StoreURL: func(role string) string { return s.postgres.URL(role, s.password, "hub") },
		RedisURL: func(string) string { return s.redis.URL(0) }, SourceDSN: s.readerDSN(s.sources[0]),
		SMTPAddr: "127.0.0.1:1", MailFrom: "hub@company.example", PublicURL: "http://" + s.addr["gateway"],
		Adjust: func(_ inventory.Service, env map[string]string) {
			// Mails of the console's drafts are to nobody, and never sent.
			env["MCP_MAX_ROW_LIMIT"], env["HUB_DRAFT_RECIPIENTS"] = "10000", "not_b2c"
		},
	}
}

// startServices migrates the store and starts the services, one after the other, for the start times; then it
// issues the load's API key.
func (s *stack) startServices(ctx context.Context) error {
	names := s.programs.Names()
	for _, on := range s.sources[1:] {
		names = append(names, on.query)
	}
	for _, name := range names {
		port, err := localserver.FreePort()
		if err != nil {
			return err
		}
		s.addr[name] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	hub := s.hub()
	if err := hub.Migrate(ctx); err != nil {
		return err
	}
	for _, name := range names {
		p, err := s.programs.Find(localstack.ServiceOf(name))
		if err != nil {
			return err
		}
		settings := hub.Settings(p, name)
		if on := slices.IndexFunc(s.sources, func(on source) bool { return on.query == name }); on >= 0 {
			settings["HUB_SOURCE_DSN"] = s.readerDSN(s.sources[on])
		}
		if err := s.startService(ctx, name, localstack.Environ(settings)); err != nil {
			return err
		}
	}
	for _, name := range names {
		s.rssAtStart[name] = memoryOf(s.pids[name]).resident
	}
	rights := append([]string{"--scopes", "explore,sql,query,author,control"}, localstack.Unlimited()...)
	key, err := hub.IssueKey(ctx, "bench", "hub-bench", rights...)
	s.key = key.Key
	return err
}

// startService starts a service three times, which takes a moment each, and keeps the
// last one running.
func (s *stack) startService(ctx context.Context, name string, env []string) error {
	// An odd number has a median that was measured.
	const starts = 3
	var took []time.Duration
	for i := range starts {
		began := time.Now()
		program := s.path("bin", localstack.ServiceOf(name))
		p, err := s.spawn(name, localserver.Program{Path: program, Args: []string{"serve"}, Env: env, Dir: s.root})
		if err != nil {
			return err
		}
		if err := awaitOK(ctx, p, "http://"+s.addr[name]+"/readyz"); err != nil {
			p.Kill()
			return fmt.Errorf("%s: %w; see %s", name, err, s.path("log", name+".log"))
		}
		took = append(took, time.Since(began))
		if i < starts-1 {
			if err := p.Stop(ctx); err != nil {
				return err
			}
			continue
		}
		s.services[name], s.pids[name] = p, p.PID()
	}
	s.startTimes[name] = median(took)
	return nil
}

// spawn starts a program that writes its log below the benchmark's directory.
func (s *stack) spawn(name string, p localserver.Program) (*localserver.Process, error) {
	log, err := os.OpenFile(s.path("log", name+".log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy
	p.Output = log
	return localserver.StartProgram(p)
}

// stop ends everything; programs and logs stay.
func (s *stack) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, p := range s.services {
		_ = p.Stop(ctx) // killed when it does not stop in time
	}
	if s.redis != nil {
		_ = s.redis.Remove()
	}
	if s.postgres != nil {
		_ = s.postgres.Remove()
	}
	for _, on := range s.sources {
		_ = on.Remove()
	}
	_ = s.lock.Close()
}

// awaitOK waits until url answers; the program's end ends the wait. The pause is short: starts are measured by it.
func awaitOK(ctx context.Context, p *localserver.Process, url string) error {
	const limit = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return localstack.Await(ctx, p, url, 2*time.Millisecond)
}
