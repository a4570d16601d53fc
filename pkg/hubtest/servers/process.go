package servers

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a started child: one goroutine waits for it and closes done.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; read after done
	tail *tail
}

// startProcess starts argv in dir as who; last is the signal it gets when this process
// dies. What it prints goes to out, and the last lines are kept for error messages.
func startProcess(dir string, who account, out io.Writer, last syscall.Signal, argv []string) (*process, error) {
	p := &process{cmd: command(dir, who, argv), done: make(chan struct{}), tail: &tail{}}
	p.cmd.Stdout = io.MultiWriter(out, p.tail)
	p.cmd.Stderr = p.cmd.Stdout
	// Processes of the server's own that outlive it must not keep Wait waiting for the pipe.
	p.cmd.WaitDelay = time.Second
	dieWithParent(p.cmd, last)

	started := make(chan error, 1)
	go func() {
		// The kernel ties the child's life to the thread that started it, so this
		// goroutine keeps the thread until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// command is exec.Command with the user, a small environment and dir as working directory
// and home.
func command(dir string, who account, argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + os.Getenv("PATH"),
		"HOME=" + dir, "TMPDIR=" + os.TempDir(), "LC_ALL=C.UTF-8", "TZ=UTC",
	}
	who.apply(cmd)
	return cmd
}

// run executes a helper program (initdb and the like) as who and returns its last words
// when it fails.
func run(ctx context.Context, dir string, who account, out io.Writer, argv ...string) error {
	p, err := startProcess(dir, who, out, killSignal, argv)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		<-p.done
		return ctx.Err()
	}
	if p.err != nil {
		return p.exit()
	}
	return nil
}

// until polls check till it succeeds, the process ends or ctx does.
func (p *process) until(ctx context.Context, check func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.exit()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %v (last output: %s)", err, p.tail)
		case <-tick.C:
		}
	}
}

func (p *process) exit() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s): %s", p.cmd.Path, how, p.tail)
}

func (p *process) signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

func (p *process) kill() { _ = p.cmd.Process.Kill() } // an ended process is what we want

// tail keeps the last lines written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 600

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - tailBytes; n > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	}
	return len(b), nil
}

// String is the kept text on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.FieldsFunc(strings.TrimSpace(string(t.buf)), func(r rune) bool { return r == '\n' }), " | ")
}
