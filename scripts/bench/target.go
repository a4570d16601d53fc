package main

// How the parts fit together: a workload (workload.go) is a kind of call with its inputs and
// the SQL that stands for it; a target is something that can answer it, as Hub's REST
// interface, its MCP endpoint, the query service alone, the bare SQL, or a peer. For each
// worker a target opens a session, which prepares its requests once, so that only the call
// itself is measured. Before any load, bench.compare holds every target's answers against
// those of the bare SQL; under load each answer has to be the same bytes again (load.go).
// Goals and verdicts are in goals.go, what is written down in report.go.

// target is something that can answer a workload.
type target struct {
	name string
	// processes are those that work for it, by their names in stack.pids, the source database among them; RSS is
	// shown of the first ones, which are its own.
	processes []string
	own       int
	// open makes a worker's own session.
	open func(*workload) (session, error)
	// read decodes an answer into rows: one value of each of the workload's fields.
	read func(*workload, []byte) ([][]string, error)
}

// session is one worker's connection to a target.
type session interface {
	// call answers the i-th input. The answer is good until the next call, and the same
	// bytes for the same input.
	call(i int) ([]byte, error)
	close()
}
