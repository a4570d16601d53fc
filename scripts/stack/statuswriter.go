package main

import (
	"log/slog"
	"maps"
	"sync"
	"time"
)

// statusWriter shows the world what runs: it writes status.json and pids.json at each change.
type statusWriter struct {
	layout layout
	log    *slog.Logger

	mu     sync.Mutex
	status status
}

// newStatusWriter begins with no program.
func newStatusWriter(l layout, log *slog.Logger, pid int, digest string) *statusWriter {
	return &statusWriter{layout: l, log: log, status: status{PID: pid, Digest: digest, Programs: map[string]programStatus{}}}
}

// started counts a start after the first as a restart. The last error stays: it says why there was one.
func (b *statusWriter) started(name string, pid int, admin string) {
	b.change(func(s *status) {
		p := s.Programs[name]
		if !p.Since.IsZero() {
			p.Restarts++
		}
		p.PID, p.Since, p.Admin = pid, time.Now(), admin
		s.Programs[name] = p
	})
}

// ended records why a program runs no more, or has not started.
func (b *statusWriter) ended(name string, why error) {
	b.change(func(s *status) {
		p := s.Programs[name]
		p.PID, p.Since, p.Error = 0, time.Now(), why.Error()
		s.Programs[name] = p
	})
}

// remove forgets a program that was stopped on purpose.
func (b *statusWriter) remove(name string) { b.change(func(s *status) { delete(s.Programs, name) }) }

// seen says that the plan of this generation was read. `up` waits for it a moment only.
func (b *statusWriter) seen(generation int64) { b.change(func(s *status) { s.Seen = generation }) }

// applied says that the programs of the plan of this generation were all tried. `up` waits for it before it asks the
// services whether they are ready.
func (b *statusWriter) applied(generation int64) {
	b.change(func(s *status) { s.Applied = generation })
}

// change writes the files after each change. A file that cannot be written is logged, and what runs goes on.
func (b *statusWriter) change(f func(*status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Most changes leave the processes as they are.
	before := pidsOf(b.status)
	f(&b.status)
	after := pidsOf(b.status)
	// pids.json first: who waits for a status may then rely on the pids.
	if !maps.Equal(before, after) {
		if err := writeJSON(b.layout.pids(), after, 0o644); err != nil {
			b.log.Error("cannot write pids.json", "error", err)
		}
	}
	if err := writeJSON(b.layout.status(), b.status, 0o600); err != nil {
		b.log.Error("cannot write status.json", "error", err)
	}
}

// pidsOf lists what runs.
func pidsOf(s status) map[string]int {
	pids := map[string]int{}
	for name, p := range s.Programs {
		if p.PID != 0 {
			pids[name] = p.PID
		}
	}
	return pids
}
