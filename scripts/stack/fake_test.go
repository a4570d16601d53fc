package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hub.internal/pkg/inventory"
)

// TestMain lets the test binary play the other parts: bin/stack's hidden sub-command and
// the services.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); {
	case name == "stack":
		quickExit()
		main()
	case slices.Contains(fakes, name):
		fakeProgram(name)
	case os.Getenv("FAKE_NAME") != "":
		fakeService()
	default:
		os.Exit(m.Run())
	}
}

// fakes are the programs that the test binary stands in for.
var fakes = []string{"gateway", "auth", "query", "payments", "gen", mailSink, pgSim, echo}

// noExitSleep spares each fake program the second that the race detector adds to its exit.
const noExitSleep = "GORACE=atexit_sleep_ms=0"

// quickExit starts this process again with noExitSleep, which is read at the start only.
func quickExit() {
	if os.Getenv("GORACE") != "" {
		return
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, append(os.Environ(), noExitSleep))
	}
	panic(err)
}

// fakeProgram is what stands in bin/ under a program's name.
func fakeProgram(name string) {
	quickExit()
	os.Setenv("FAKE_NAME", name)
	if os.Getenv("FAKE_JOURNAL") == "" {
		os.Setenv("FAKE_JOURNAL", "journal") // in the repository's root, where programs are run
	}
	if len(os.Args) == 1 { // the simulator has neither a sub-command nor a flag
		fakeService()
		return
	}
	if len(os.Args) > 2 {
		if answer, known := fakeAnswers[os.Args[1]+" "+os.Args[2]]; known {
			note(name, strings.Join(os.Args[1:min(len(os.Args), 4)], " "))
			fmt.Print(answer)
			return
		}
	}
	switch os.Args[1] {
	case "serve", "--smtp", "--addr": // the sink and the echo have no sub-command
		fakeService()
	case "apikey":
		note(name, "issues "+os.Args[4])
		fmt.Printf("{\"id\":\"1\",\"key\":\"crm_%s\"}\n", os.Args[4])
	case "user":
		if os.Args[2] != "list" {
			note(name, strings.Join(os.Args[2:4], " ")+" "+os.Args[5])
			return
		}
		fmt.Println(`{"users":[{"email":"admin@hub.example"},{"email":"me@hub.example"}]}`)
	default:
		note(name, strings.TrimLeft(os.Args[1], "-"))
	}
}

// fakeAnswers are what commands print that make what a first payment needs.
var fakeAnswers = map[string]string{
	"credential list": `{"credentials":[{"env":"sandbox","active":false}]}`, "credential add": "",
	"app list": `{"apps":[]}`, "app put": "", "app issue-secret": `{"secret":"hss_1","webhook":{"secret":"whsec_1"}}`,
	"link add":   "",
	"keyset new": "keyset-of-auth\n", "keyring new": "keyset-of-payments\n",
}

// fakeService notes its start and its stop in a journal, and serves until SIGTERM.
func fakeService() {
	name := os.Getenv("FAKE_NAME")
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	note(name, "start")
	if os.Getenv("FAKE_CRASH") != "" {
		fmt.Fprintln(
			os.Stderr,
			"HUB_SOMETHING is not set, for "+strings.Repeat("a long reason, ", 50)+"and the remedy is at the end: set it to this",
		)
		os.Exit(3)
	}
	addr := os.Getenv("HUB_ADDR") + os.Getenv("HUB_PGSIM_ADDR")
	if name == echo {
		addr = os.Args[2]
	}
	if addr != "" {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // ends with the process
	}
	<-stop
	time.Sleep(50 * time.Millisecond) // a drain, so that a wrong order of stops shows
	note(name, "stop")
}

// note appends a line to the journal in one write.
func note(name, what string) {
	f, err := os.OpenFile(os.Getenv("FAKE_JOURNAL"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s\n", name, what)
}

// checkout is a repository for one test, with the test binary as each program.
type checkout struct {
	layout
	t *testing.T
}

func newCheckout(t *testing.T) checkout {
	t.Helper()
	// Not t.TempDir: servers that run as other users must be able to reach it.
	root, err := os.MkdirTemp("", "hub-stack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	c := checkout{layout{root}, t}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.path("go.work"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(inventory.File)))
	if err == nil {
		err = os.MkdirAll(c.path("deploy"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(c.path(filepath.FromSlash(inventory.File)), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], c.bin("stack")); err != nil {
		t.Fatal(err)
	}
	return c
}

// fake is the spec of a fake service.
func (c checkout) fake(name string, layer int, env ...string) serviceSpec {
	own := []string{
		"FAKE_NAME=" + name, "FAKE_JOURNAL=" + c.path("journal"),
		noExitSleep,
	}
	return serviceSpec{Name: name, Path: os.Args[0], Layer: layer, Env: append(own, env...)}
}

func (c checkout) journal() []string {
	b, err := os.ReadFile(filepath.Join(c.root, "journal"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(b)), " ", ":"))
}

func (c checkout) pidFile() map[string]int {
	pids := map[string]int{}
	if err := readJSON(c.pids(), &pids); err != nil {
		c.t.Fatal(err)
	}
	return pids
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
