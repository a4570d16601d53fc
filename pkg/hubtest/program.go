package hubtest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hub.internal/pkg/localserver"
)

// asProgram is the variable that makes a test binary the program that it tests.
const asProgram = "HUB_TEST_AS_PROGRAM"

// ProgramMain is Main for the tests of a program: in a process that Launch started, the test
// binary runs main in place of the tests.
// The same binary is both, so that a test measures the coverage and the races of the program itself.
func ProgramMain(m *testing.M, main func(), last ...func() error) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	Main(m, last...)
}

// Program is the tested program in a process of its own. It ends with the test, and with the
// test binary, also when that is killed.
type Program struct {
	*localserver.Process
	// Out and Log are what it printed so far on standard output and standard error.
	Out, Log *Buffer
}

// Launch starts the program in an environment that holds environ, a PATH, and an empty home
// and directory for temporary files; nothing else is inherited. Of a name that is given
// twice, the last counts. TestMain has to call ProgramMain.
func Launch(t testing.TB, environ []string, args ...string) *Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Without GOCOVERDIR, a binary that measures coverage complains on standard error.
	basics := []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GOCOVERDIR=" + dir}
	p := &Program{Out: &Buffer{}, Log: &Buffer{}}
	program := localserver.Program{Path: self, Args: args, Env: append(basics, environ...), Output: p.Out, Errors: p.Log}
	p.Process, err = localserver.StartProgram(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if strings.Contains(p.Log.String(), "WARNING: DATA RACE") {
			t.Errorf("the program has a data race:\n%s", p.Log)
		}
	})
	return p
}

// Addr waits until the program serves, and is the address of its first listener. The log
// tells it: the system picks the port, so that no two programs want the same.
func (p *Program) Addr(t testing.TB) string {
	t.Helper()
	return p.Listener(t, "")
}

// Listener is Addr for the listener that has this name in the log, such as "operations".
func (p *Program) Listener(t testing.TB, name string) string {
	t.Helper()
	p.eventually(t, "the program serves "+name, func() bool { return p.addr(name) != "" })
	return p.addr(name)
}

// addr is the address that the log tells of a listener; empty while it does not serve.
func (p *Program) addr(listener string) string {
	for line := range strings.Lines(p.Log.String()) {
		var event struct{ Msg, Listener, Addr string }
		if json.Unmarshal([]byte(line), &event) == nil && event.Msg == "serving" && (listener == "" || listener == event.Listener) {
			return event.Addr
		}
	}
	return ""
}

// Get is the status of the answer of the program's first listener to a GET; 0 when it does
// not answer.
func (p *Program) Get(path string) int { return p.GetFrom("", path) }

// GetFrom is Get from the listener of this name.
func (p *Program) GetFrom(listener, path string) int {
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get("http://" + p.addr(listener) + path)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // read to its end, the connection is used again
	return res.StatusCode
}

// Ready waits until the program says that it is ready.
func (p *Program) Ready(t testing.TB) {
	t.Helper()
	p.eventually(t, "the program is ready", func() bool { return p.Get("/readyz") == http.StatusOK })
}

// eventually is Eventually for what the program does while it runs.
func (p *Program) eventually(t testing.TB, what string, ready func() bool) {
	t.Helper()
	Eventually(t, what, func() bool {
		t.Helper()
		if ready() {
			return true
		}
		select {
		case <-p.Done():
			t.Fatalf("before %s: %v", what, p.Err())
		default:
		}
		return false
	})
}

// Signal sends the program a signal.
func (p *Program) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v\n%s", s, err, p.Log)
	}
}

// Wait waits for the program's end and returns its exit code, -1 when a signal ended it. The
// test fails after a minute.
func (p *Program) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.Done():
		return p.ExitCode()
	case <-time.After(Patience):
		t.Fatalf("the program does not end:\n%s", p.Log)
		return -1
	}
}

// Stop ends the program as an orchestrator would, and returns what Wait does.
func (p *Program) Stop(t testing.TB) int {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	return p.Wait(t)
}
