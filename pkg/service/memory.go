package service

import (
	"cmp"
	"errors"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"hub.internal/pkg/config"
)

const (
	// memoryShare is how much of its memory a process's heap may take: the rest is for what the
	// garbage collector does not see.
	memoryShare = 0.9
	// bodyShare is how much of that the bodies of requests may take at once. Whoever works on
	// one needs its size again, and more than once.
	bodyShare = 4
	// bodyBytes is what they may take where memory has no limit.
	bodyBytes = 256 << 20
)

// memory is what a process may have.
type memory struct {
	// limit is the soft limit of the Go runtime in bytes; 0 when there is none.
	limit config.Bytes
	// from says who has set it.
	from string
	// bodies is how much of it the bodies of requests may take.
	bodies config.Bytes
	// connections is how many may be open to the listener that takes the calls.
	connections int
}

// limitMemory makes the garbage collector keep within the memory that there is: what GOMEMLIMIT
// says, else nine tenths of HUB_MEMORY_LIMIT, else of the container's (cgroup v1 or v2). With an
// error it has set none.
func limitMemory(s Settings) (m memory, err error) {
	defer func() {
		part := cmp.Or(m.limit/bodyShare, bodyBytes)
		m.bodies, m.connections = cmp.Or(s.BodyBytes, part), mostConnections(s, int64(part))
	}()
	if os.Getenv("GOMEMLIMIT") != "" {
		m = memory{limit: config.Bytes(debug.SetMemoryLimit(-1)), from: "GOMEMLIMIT"}
		if m.limit == math.MaxInt64 {
			m.limit = 0 // off
		}
		return m, nil
	}
	available, from := memlimit.Provider(memlimit.FromCgroup), "container"
	if s.MemoryLimit > 0 {
		available, from = memlimit.Limit(uint64(s.MemoryLimit)), "HUB_MEMORY_LIMIT"
	}
	limit, err := memlimit.ApplyRatio(available, memoryShare)()
	switch {
	case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
		return memory{from: "none"}, nil
	case err != nil:
		return memory{from: "none"}, err
	}
	debug.SetMemoryLimit(int64(limit))
	return memory{limit: config.Bytes(limit), from: from}, nil
}
