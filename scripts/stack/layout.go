package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// layout knows where things lie in a checkout.
// Nothing else in this program joins paths of its own, so that what make reset removes is all there is.
type layout struct{ root string }

// path is one below the repository's root.
func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.root}, elem...)...)
}

// hub holds all that the stack writes but programs; `make reset` removes it. Below it are the data of each server
// and a log for each program.
func (l layout) hub() string             { return l.path(".hub") }
func (l layout) bin(name string) string  { return l.path("bin", name) }
func (l layout) data(name string) string { return l.path(".hub", "data", name) }
func (l layout) log(name string) string  { return l.path(".hub", "log", name+".log") }

// mail is where the sink keeps what was sent, a file each.
func (l layout) mail() string { return l.path(".hub", "mail") }

// provider is where the simulated payment provider keeps what was paid.
func (l layout) provider() string { return l.path(".hub", "pgsim", "journal") }

// webhookSecret is the file in which the echo finds what notifications are signed with.
func (l layout) webhookSecret() string { return l.path(".hub", "state", "webhook-secret") }

// keys is where containers get their signing keys from.
func (l layout) keys() string { return l.path(".hub", "keys") }

// pids maps the name of each running service and server to its process id.
func (l layout) pids() string { return l.path(".hub", "pids.json") }

// scrapes is the configuration of a Prometheus that watches the stack.
func (l layout) scrapes() string { return l.path(".hub", "state", "prometheus.yml") }

// env is the shell file for people and tests.
func (l layout) env() string { return l.path(".hub", "dev.env") }

// state holds secrets, ports and keys; plan is what the supervisor is to run, status what
// it makes of it. All three are private.
func (l layout) state() string { return l.path(".hub", "state", "state.json") }

// plan is what the supervisor is to run, and status what it makes of it; both are private, for they hold secrets.
func (l layout) plan() string   { return l.path(".hub", "state", "plan.json") }
func (l layout) status() string { return l.path(".hub", "state", "status.json") }

// supervisorLock is held by the supervisor while it lives, upLock by a running `up`.
func (l layout) supervisorLock() string { return l.path(".hub", "state", "supervisor.lock") }
func (l layout) upLock() string         { return l.path(".hub", "state", "up.lock") }

// startLock is held by an `up` of any checkout of this user while it chooses ports and starts
// what listens on them.
func startLock() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("hub-start-%d.lock", os.Getuid()))
}

// make creates the directories. Servers may run as other users, so the way to their data
// is open; what is secret lies in state, keys and log, which are closed.
// It changes the mode of a directory that is there, too: an earlier umask may have left it open.
func (l layout) make() error {
	for dir, mode := range map[string]os.FileMode{
		l.hub():              0o755,
		l.path(".hub/data"):  0o755,
		l.path(".hub/state"): 0o700,
		l.path(".hub/log"):   0o700,
		l.mail():             0o700,
		l.path(".hub/pgsim"): 0o700,
		l.keys():             0o700,
		l.path("bin"):        0o755,
	} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
		if err := os.Chmod(dir, mode); err != nil { // whatever the umask said
			return err
		}
	}
	return nil
}
