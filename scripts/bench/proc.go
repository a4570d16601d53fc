package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// clockTicks is how many units of /proc/PID/stat make a second: 100 on every Linux.
const clockTicks = 100

// cpuOf is the CPU time in seconds, user and system, that a process and, if asked, its
// living descendants have used. It is 0 where there is no /proc.
func cpuOf(pid int, descendants bool) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0
	}
	last := 13
	if descendants {
		last = 15
	}
	var ticks int64
	for _, f := range fields[11:last] { // utime, stime; then those of children that have ended
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	total := float64(ticks) / clockTicks
	if descendants {
		for _, child := range childrenOf(pid) {
			total += cpuOf(child, true)
		}
	}
	return total
}

func childrenOf(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// memory is a process's resident memory in bytes.
type memory struct{ resident, peak int64 }

// memoryOf is zero where there is no /proc.
func memoryOf(pid int) (m memory) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[2] != "kB" {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			m.resident = n << 10
		case "VmHWM:":
			m.peak = n << 10
		}
	}
	return m
}
