package localserver_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/localserver"
)

// TestServersDieWithAKilledParent runs this test again as a child process that starts
// PostgreSQL and Redis, kills it, and sees the servers end.
func TestServersDieWithAKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child to its parent's life")
	}
	if d := os.Getenv("HUB_TEST_PARENT"); d != "" {
		beParent(d)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "HUB_TEST_PARENT="+dir(t))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // "signal: killed", as wanted
	if len(pids) != 2 {
		t.Fatalf("the parent started %d of 2 servers", len(pids))
	}
	for deadline := time.Now().Add(time.Minute); alive(pids[0]) || alive(pids[1]); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("servers %v live on after their parent", pids)
		}
	}
}

func beParent(dir string) {
	for _, k := range kinds[1:3] {
		s, err := k.start(context.Background(), localserver.Options{Dir: filepath.Join(dir, k.name), Fast: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("pid", s.PID())
	}
	select {} // till it is killed
}
