package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/localstack"
)

// state is what has to stay the same from one start to the next.
type state struct {
	// Names are the callers': a database role, a keyset, a user.
	Secrets map[string]string // made at the first use
	// Signing are the services' signing keys, made at the first use.
	Signing map[string]signingKey
	Ports   map[string]int
	Keys    map[string]localstack.APIKey // API keys by name, as auth issued them
	App     appSecrets                   // of the Connected App
	// Samples are the servers, by name, on which the sample data are, whole.
	Samples    map[string]bool
	Generation int64 // of the plan

	path string
}

// signingKey is what a service signs with, and how the others come to believe it.
type signingKey struct{ Key, Trusted string }

// appSecrets are what the Connected App was given.
type appSecrets struct{ Secret, WebhookSecret string }

// loadState reads the state of the last start; it is empty at the first.
func loadState(l layout) (*state, error) {
	s := &state{Secrets: map[string]string{}, Signing: map[string]signingKey{}, Ports: map[string]int{}, Keys: map[string]localstack.APIKey{},
		Samples: map[string]bool{}, path: l.state()}
	return s, readJSON(s.path, s)
}

// save writes the state for this user's eyes alone.
func (s *state) save() error { return writeJSON(s.path, s, 0o600) }

// secret is a random value of 48 hexadecimal digits, the same at every start.
func (s *state) secret(name string) string {
	if s.Secrets[name] == "" {
		b := make([]byte, 24)
		rand.Read(b) // never fails
		s.Secrets[name] = hex.EncodeToString(b)
	}
	return s.Secrets[name]
}

// signing is the key that a service signs with, the same at every start.
func (s *state) signing(name string) signingKey {
	if s.Signing[name].Key == "" {
		key := caller.NewSigningKey()
		s.Signing[name] = signingKey{Key: key.Reveal(), Trusted: key.Trusted(name)}
	}
	return s.Signing[name]
}

// preferred are the ports to try first. They lie below the range from which the kernel
// takes the ports of outgoing connections, so that they are still free at the next start.
var preferred = map[string]int{
	"gateway": 8080, sampleMariaDB: 13306, sampleMySQL: 13307, "postgres": 15432, "redis": 16379, "consul": 18500,
	mailSink + "-web": 8025, mailSink + "-smtp": 1025,
	pgSim: 8090, echo: 8091, jaeger: 16686, prometheus: 9091,
}

// firstPort is where the search begins for everything else.
const firstPort = 17000

// choosePorts gives each name a port: its last one if that is still free, else the
// preferred one, else the next free. It is called while nothing of ours runs.
// It changes s and does not save it.
func (s *state) choosePorts(names []string, free func(int) bool) error {
	taken := map[int]string{}
	for _, name := range names {
		if p := s.Ports[name]; p != 0 && taken[p] == "" && free(p) {
			taken[p] = name
		} else {
			s.Ports[name] = 0
		}
	}
	for _, name := range names {
		if s.Ports[name] != 0 {
			continue
		}
		p := preferred[name]
		if p == 0 {
			p = firstPort
		}
		// The range of a kernel for outgoing connections begins at 32768.
		for ; taken[p] != "" || !free(p); p++ {
			if p > 32000 {
				return fmt.Errorf("no free port for %s", name)
			}
		}
		taken[p], s.Ports[name] = name, p
	}
	return nil
}

// addPorts gives ports to names that have none yet, while the others run.
func (s *state) addPorts(names []string) error {
	ours := slices.Collect(maps.Values(s.Ports))
	fresh := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return s.Ports[name] != 0 })
	return s.choosePorts(fresh, func(p int) bool { return !slices.Contains(ours, p) && localserver.PortFree(p) })
}

// addr is host:port of the listener with this name, on this machine's own address.
func (s *state) addr(name string) string { return fmt.Sprintf("127.0.0.1:%d", s.Ports[name]) }
