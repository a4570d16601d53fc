package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"hub.internal/scripts/program"
)

// supervisor keeps the programs of the plan running.
type supervisor struct {
	layout layout
	// What the world is shown, and the units that run, by their names. Only the goroutine of supervise touches units.
	status *statusWriter
	log    *slog.Logger
	units  map[string]*unit
}

// supervise runs till ctx ends and then stops everything in order. A value on hangup makes
// it read the plan again. Its own death, however it comes, is its children's too (on
// Linux), so that a new supervisor finds the field clear.
func supervise(ctx context.Context, l layout, hangup <-chan os.Signal, logTo io.Writer) error {
	lock, err := acquireSupervisorLock(ctx, l)
	if err != nil {
		return err
	}
	defer lock.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	digest, err := program.Digest(self)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(logTo, nil))
	s := &supervisor{layout: l, status: newStatusWriter(l, log, os.Getpid(), digest), log: log, units: map[string]*unit{}}
	log.Info("supervisor started", "pid", os.Getpid())
	for {
		s.apply(ctx)
		select {
		case <-hangup:
		case <-ctx.Done():
			s.stopAll()
			log.Info("supervisor stopped")
			return nil
		}
	}
}

// acquireSupervisorLock takes the supervisor's lock. It tries for a second: who asks whether a supervisor
// lives holds the lock for a moment too.
func acquireSupervisorLock(ctx context.Context, l layout) (lock *os.File, err error) {
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = poll(limited, nil, func() (bool, error) {
		var err error
		lock, err = lockFile(l.supervisorLock())
		if errors.Is(err, errLocked) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errors.New("another supervisor runs already")
	}
	return lock, err
}

// apply reads the plan and makes what runs agree with it: servers first, and services once
// each server has been tried.
func (s *supervisor) apply(ctx context.Context) {
	var p plan
	if err := readJSON(s.layout.plan(), &p); err != nil {
		s.log.Error("the plan cannot be read; what runs goes on", "error", err)
		return
	}
	s.status.seen(p.Generation)
	var servers, services []*unit
	wanted := map[string]string{}
	for _, spec := range p.Servers {
		u := s.server(spec)
		servers, wanted[u.name] = append(servers, u), u.key
	}
	for _, spec := range p.Services {
		u := s.service(spec)
		services, wanted[u.name] = append(services, u), u.key
	}
	var obsolete []*unit
	for name, u := range s.units {
		if wanted[name] != u.key {
			obsolete = append(obsolete, u)
		}
	}
	// Stopped first: a changed program needs its port again.
	s.stop(obsolete)
	// A server that fails to start is tried again and holds up nobody: services say themselves what they miss.
	s.startAndWait(ctx, servers)
	s.startAndWait(ctx, services)
	if ctx.Err() == nil {
		s.status.applied(p.Generation)
	}
}

// startAndWait launches the units that do not run yet and waits till each was tried.
func (s *supervisor) startAndWait(ctx context.Context, units []*unit) {
	for _, u := range units {
		if s.units[u.name] == nil {
			s.units[u.name] = u
			u.launch()
		}
	}
	for _, u := range units {
		select {
		case <-s.units[u.name].attempted:
		case <-ctx.Done():
			return
		}
	}
}

// stopAll stops everything, in the order of the layers.
func (s *supervisor) stopAll() {
	s.stop(slices.Collect(maps.Values(s.units)))
}

// stop ends units layer by layer, those of one layer at the same time.
func (s *supervisor) stop(units []*unit) {
	slices.SortFunc(units, func(a, b *unit) int { return cmp.Compare(a.layer, b.layer) })
	for len(units) > 0 {
		n := 1
		for n < len(units) && units[n].layer == units[0].layer {
			n++
		}
		var layer sync.WaitGroup
		for _, u := range units[:n] {
			layer.Go(u.stop)
			delete(s.units, u.name)
		}
		layer.Wait()
		units = units[n:]
	}
}

// Layers in the order they stop: who calls, who is called, what they stand on.
const (
	layerEdge = iota
	layerServices
	layerServers
)

// service is a unit of one of Hub's programs.
func (s *supervisor) service(spec serviceSpec) *unit {
	return &unit{
		name: spec.Name, key: key(spec), layer: spec.Layer, start: serviceStarter(s.layout, spec), status: s.status, log: s.log,
	}
}

// server is a unit of a database, of Redis or of Consul.
func (s *supervisor) server(spec serverSpec) *unit {
	return &unit{
		name: spec.Name, key: key(spec), layer: layerServers, start: serverStarter(s.layout, spec), status: s.status, log: s.log,
	}
}
