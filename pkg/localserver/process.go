package localserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Program is a program to run as a child of this process: one of Hub's own, or a helper.
type Program struct {
	Path string
	Args []string
	Env  []string // all of it: nothing is inherited
	Dir  string
	// Output receives what the program prints, and Errors, when set, its standard error
	// apart. A file is handed to the program itself, anything else is copied to.
	Output, Errors io.Writer

	as account
	// end is what Stop sends, and what the program gets when this process dies. Where it is 0, Stop sends SIGTERM, and
	// the death of this process kills the program.
	end syscall.Signal
}

// Process is a started child. One goroutine waits for it.
type Process struct {
	// The child; what Stop sends; closed when it has ended; and its last words for an error.
	cmd  *exec.Cmd
	stop syscall.Signal
	done chan struct{}
	err  error // how it ended; read after done
	tail *tail
}

// StartProgram starts a program.
// An error means that no process was started.
func StartProgram(p Program) (*Process, error) {
	c := &Process{cmd: exec.Command(p.Path, p.Args...), stop: cmp.Or(p.end, syscall.SIGTERM), done: make(chan struct{}), tail: &tail{}}
	c.cmd.Dir, c.cmd.Env = p.Dir, p.Env
	if c.cmd.Env == nil {
		c.cmd.Env = []string{} // nil would mean this process's
	}
	c.cmd.Stdout = c.output(p.Output)
	c.cmd.Stderr = c.cmd.Stdout // one pipe keeps the order of the two
	if p.Errors != nil {
		c.cmd.Stderr = c.output(p.Errors)
	}
	// Processes of the program's own that outlive it must not keep Wait waiting for the pipe;
	// on a busy machine, its last words take their time.
	c.cmd.WaitDelay = 5 * time.Second
	p.as.apply(c.cmd)
	dieWithParent(c.cmd, cmp.Or(p.end, syscall.SIGKILL))

	started := make(chan error, 1)
	go func() {
		// The kernel ties the child's life to the thread that started it, so this
		// goroutine keeps the thread until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			if errors.Is(c.err, exec.ErrWaitDelay) {
				c.err = nil // it ended well itself; the rest of its output does not matter
			}
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// output is where what the program prints goes.
func (p *Process) output(w io.Writer) io.Writer {
	if _, isFile := w.(*os.File); isFile || w == nil {
		return w
	}
	return io.MultiWriter(w, p.tail)
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended, with its last words; valid once Done is closed.
func (p *Process) Err() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	if words := p.tail.String(); words != "" {
		how += ": " + words
	}
	return fmt.Errorf("%s ended with %s", filepath.Base(p.cmd.Path), how)
}

// ExitCode is the process's exit code, -1 when a signal ended it; valid once Done is closed.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends the process a signal.
// A process that has ended is os.ErrProcessDone.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Stop asks the process to end and waits for it; when ctx ends first the process is killed
// and the context's error returned.
func (p *Process) Stop(ctx context.Context) error {
	// A paused process would not hear the request.
	if err := p.Resume(); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err := p.cmd.Process.Signal(p.stop); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s was killed: it did not stop in time: %w", filepath.Base(p.cmd.Path), ctx.Err())
	}
}

// Kill ends the process and all its descendants at once, as a power cut would.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return // its number may be another's by now
	default:
	}
	tree := descendants(p.PID()) // PostgreSQL's backends outlive their parent for a moment
	_ = p.cmd.Process.Kill()     // an ended process is what we want
	signalAll(tree, syscall.SIGKILL)
	<-p.done
}

// Pause freezes the process and its descendants: connections stay open, nothing answers.
// It returns when no thread runs any more. Resume ends it.
func (p *Process) Pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	all := append(descendants(p.PID()), p.PID())
	signalAll(all, syscall.SIGSTOP)
	// A thread that computes or waits in the kernel sees the signal a little later.
	for deadline := time.Now().Add(time.Second); running(all) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Resume lets a paused process go on; on a running one it does nothing.
func (p *Process) Resume() error {
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	signalAll(descendants(p.PID()), syscall.SIGCONT)
	return nil
}

// until polls check till it succeeds, the process ends or ctx does.
func (p *Process) until(ctx context.Context, check func() error) error {
	err := Poll(ctx, p, 10*time.Millisecond, check)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (last output: %s)", err, p.tail)
	}
	return err
}

// Poll is the one way to wait here: it repeats check with a pause until that returns nil. It ends with an error when ctx ends, which
// wraps what check said last, and when the process does, where there is one.
func Poll(ctx context.Context, p *Process, pause time.Duration, check func() error) error {
	var ended <-chan struct{} // nil, which never ends, without a process
	if p != nil {
		ended = p.done
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return p.Err()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-tick.C:
		}
	}
}

// signalAll signals every process; one that has ended meanwhile needs no signal.
func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}
