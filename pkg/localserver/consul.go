package localserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Consul is a running Consul agent in development mode: its state is in memory.
type Consul struct{ *Server }

// StartConsul starts a Consul agent and returns when it has a leader. It needs the binary
// that ConsulPath names.
func StartConsul(ctx context.Context, o Options) (*Consul, error) {
	s, err := newServer(ctx, "consul", o, flavor{
		prepare: prepareConsul,
		command: consulCommand,
		ready:   consulReady,
		stop:    syscall.SIGINT,
	})
	return &Consul{s}, err
}

// prepareConsul copies the program beside the agent's files when the user it runs as cannot
// reach it: it is built into root's own cache.
func prepareConsul(_ context.Context, s *Server) error {
	program, err := ConsulPath()
	if err != nil || s.who.test("-x", program) {
		return err
	}
	return exec.Command("cp", program, consulCopy(s)).Run()
}

// consulCopy is where a copy of the program lies that the agent's user can reach.
func consulCopy(s *Server) string { return filepath.Join(s.dir, "consul-"+ConsulVersion) }

// node names the agent after its directory, so that it can be told from another agent
// that has the port already.
func node(s *Server) string { return "hub-" + pathHash(s.dir) }

// consulCommand starts the agent with every listener that Hub does not use switched off. Its
// working directory has no "mdb" and the like, with which development mode refuses to start.
func consulCommand(s *Server) ([]string, error) {
	program, err := ConsulPath()
	if err != nil {
		return nil, err
	}
	if executable(consulCopy(s)) {
		program = consulCopy(s)
	}
	// Consul wants ports for its own protocols, which nobody here speaks.
	server, err := FreePort()
	if err != nil {
		return nil, err
	}
	gossip, err := FreePort()
	if err != nil {
		return nil, err
	}
	return []string{program, "agent", "-dev", "-node", node(s), "-bind", "127.0.0.1", "-client", "127.0.0.1",
		"-http-port", strconv.Itoa(s.port), "-server-port", strconv.Itoa(server), "-serf-lan-port", strconv.Itoa(gossip),
		"-serf-wan-port", "-1", "-dns-port", "-1", "-grpc-port", "-1", "-grpc-tls-port", "-1",
		"-disable-host-node-id", "-log-level", "warn"}, nil
}

// consulReady wants this agent, and not another one at the port, to have elected a leader.
func consulReady(ctx context.Context, s *Server) error {
	var self struct{ Config struct{ NodeName string } }
	if err := getJSON(ctx, "http://"+s.Addr()+"/v1/agent/self", &self); err != nil {
		return err
	}
	if self.Config.NodeName != node(s) {
		return fmt.Errorf("another Consul agent (%s) answers on port %d", self.Config.NodeName, s.port)
	}
	var leader string
	if err := getJSON(ctx, "http://"+s.Addr()+"/v1/status/leader", &leader); err != nil {
		return err
	}
	if leader == "" {
		return fmt.Errorf("no leader yet")
	}
	return nil
}

// getJSON decodes what a GET answers with 200.
func getJSON(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
