package localserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dieWithParent makes the kernel send the child a signal when its parent dies, however it
// dies.
func dieWithParent(cmd *exec.Cmd, last syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = last
}

// Reclaim ends servers of an earlier run that still live in dir: a server whose parent
// was killed a moment ago, or PostgreSQL's backends after their postmaster died. All the
// servers work with their data directory as current directory, which tells them apart
// from a process that merely got the number in an old pid file. A directory that is a link
// stands for where it leads (Options.Dir), and one that is not there for no server.
func Reclaim(ctx context.Context, dir string) error {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		// SIGTERM first, so that a database ends as it should; after five seconds SIGKILL.
		left := livingIn(dir)
		if len(left) == 0 {
			return nil
		}
		sig := syscall.SIGTERM
		if time.Now().After(deadline) {
			sig = syscall.SIGKILL
		}
		signalAll(left, sig)
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %v of an earlier run still use %s", left, dir)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// livingIn lists the processes whose current directory is dir or below it.
func livingIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is valid
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || (cwd != dir && !strings.HasPrefix(cwd, dir+"/")) {
			continue // ended meanwhile, another user's, or somewhere else
		}
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
		if isServer(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isServer keeps a person's shell that stands in the directory out of harm.
func isServer(pid int) bool {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return false
	}
	name := strings.TrimSpace(string(comm))
	return slices.Contains([]string{"mariadbd", "mysqld", "postgres", "redis-server"}, name) ||
		strings.HasPrefix(name, "consul") || // the version is part of the file's name
		strings.HasPrefix(name, "ld-linux") // starts the servers that lie beside the system
}

// descendants lists the processes below pid.
func descendants(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				pids = append(append(pids, child), descendants(child)...)
			}
		}
	}
	return pids
}

// running tells whether a thread of the processes is not stopped.
func running(pids []int) bool {
	for _, pid := range pids {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, task := range tasks {
			b, err := os.ReadFile(task)
			if err != nil {
				continue
			}
			// The state follows the name, which is in parentheses and may hold any character.
			if _, state, found := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " "); found && state[0] != 'T' {
				return true
			}
		}
	}
	return false
}
