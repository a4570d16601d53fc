package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// control is `up`'s and `down`'s end of the supervisor: files and signals.
type control struct{ layout layout }

const (
	// answerLimit is how long a healthy supervisor may take to read a plan.
	answerLimit = 5 * time.Second
	// applyLimit is how long servers and services may take to be started once: a crash
	// recovery, or a drain of calls in flight.
	applyLimit = 2 * time.Minute
	// pollPause is between two looks at something that is waited for.
	pollPause = 20 * time.Millisecond
	// stopLimit covers the grace of each layer.
	stopLimit = 2 * time.Minute
)

// errUnresponsive says that the supervisor lives but does not react.
var errUnresponsive = errors.New("the supervisor does not react")

// pid is the living supervisor, or 0.
func (c control) pid() (int, error) { return lockHolder(c.layout.supervisorLock()) }

// status is what the supervisor has written last; the zero value before its first word.
func (c control) status() (s status, err error) {
	err = readJSON(c.layout.status(), &s)
	return s, err
}

// run makes the supervisor run the plan: it starts one when none lives, and waits until
// each program has been started, or has failed to.
func (c control) run(ctx context.Context, p plan) (status, error) {
	if err := writeJSON(c.layout.plan(), p, 0o600); err != nil {
		return status{}, err
	}
	pid, err := c.pid()
	if err != nil {
		return status{}, err
	}
	// It never says anything where the supervisor was there before.
	exited := make(<-chan error)
	if pid == 0 {
		if pid, exited, err = c.spawn(); err != nil {
			return status{}, err
		}
	} else if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return status{}, fmt.Errorf("supervisor %d: %w", pid, err)
	}
	// Two waits, because a supervisor that hangs is known within seconds, and a database may take minutes to recover.
	err = c.await(ctx, answerLimit, exited, func(s status) bool { return s.PID == pid && s.Seen >= p.Generation })
	if errors.Is(err, context.DeadlineExceeded) {
		return status{}, errUnresponsive
	}
	if err != nil {
		return status{}, err
	}
	if err := c.await(ctx, applyLimit, exited, func(s status) bool { return s.Applied >= p.Generation }); err != nil {
		return status{}, fmt.Errorf("programs did not start: %w", err)
	}
	return c.status()
}

// spawn starts a supervisor in a session of its own: it outlives this program and the
// terminal.
func (c control) spawn() (pid int, exited <-chan error, err error) {
	// What a killed supervisor left must not be taken for the new one's.
	for _, path := range []string{c.layout.status(), c.layout.pids()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, nil, err
		}
	}
	log, err := openLog(c.layout.log("supervisor"))
	if err != nil {
		return 0, nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.layout.bin("stack"), "supervise")
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.layout.root, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	// This goroutine ends with the supervisor or, as it should, with this program.
	end := make(chan error, 1)
	go func() {
		if err := cmd.Wait(); err != nil {
			end <- fmt.Errorf("supervisor ended: %w", err)
		} else {
			end <- errors.New("supervisor ended")
		}
	}()
	return cmd.Process.Pid, end, nil
}

// await polls the status until it is as wanted.
func (c control) await(ctx context.Context, limit time.Duration, exited <-chan error, wanted func(status) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return poll(ctx, exited, func() (bool, error) {
		s, err := c.status()
		return err == nil && wanted(s), err
	})
}

// stop ends the supervisor with all it runs.
// It succeeds where none lives. One that does not end within stopLimit is killed.
func (c control) stop(ctx context.Context) error {
	pid, err := c.pid()
	if err != nil || pid == 0 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if err := c.awaitEnd(limited); err == nil || ctx.Err() != nil {
		return err
	}
	return c.kill(ctx)
}

// kill ends a supervisor that does not react; its programs die with it.
// The kernel ends the children: each is tied to it (localserver.StartProgram).
func (c control) kill(ctx context.Context) error {
	pid, err := c.pid()
	if err != nil || pid == 0 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return c.awaitEnd(limited)
}

// awaitEnd waits until the kernel has dropped the supervisor's lock, which it does however the process ends.
func (c control) awaitEnd(ctx context.Context) error {
	return poll(ctx, nil, func() (bool, error) {
		pid, err := c.pid()
		return pid == 0 && err == nil, err
	})
}

// poll asks every few milliseconds until the answer is yes, an error, or ctx ends.
func poll(ctx context.Context, exited <-chan error, ask func() (bool, error)) error {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case err := <-exited:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
