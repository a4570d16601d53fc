package main

// target is something that can answer a workload.
type target struct {
	name string
	// processes are those that work for it, by their names in stack.pids, without the
	// database; RSS is shown of the first ones, which are its own.
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
