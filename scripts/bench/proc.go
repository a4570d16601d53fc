package main

// CPU time and memory come from /proc, so that a process needs no help to be measured, and pays nothing for it.

import (
	"github.com/prometheus/procfs"
)

// clockTicks is how many units of /proc/PID/stat make a second: 100 on every Linux.
const clockTicks = 100

// cpuOf is the CPU time in seconds, user and system, that a process and, if asked, its children, living or ended, have used. It is 0
// where there is no /proc.
func cpuOf(pid int, children bool) float64 {
	// PostgreSQL has a process for each connection, nginx one for each core, which have to be found anew each time.
	all, err := procfs.AllProcs()
	if err != nil {
		return 0
	}
	var ticks uint
	for _, p := range all {
		if p.PID != pid && !children {
			continue
		}
		stat, err := p.Stat()
		if err != nil { // it has ended meanwhile
			continue
		}
		if p.PID == pid || stat.PPID == pid {
			ticks += stat.UTime + stat.STime
		}
		if p.PID == pid && children {
			ticks += uint(max(0, stat.CUTime) + max(0, stat.CSTime))
		}
	}
	return float64(ticks) / clockTicks
}

// memory is a process's resident memory in bytes.
type memory struct{ resident, peak int64 }

// memoryOf is zero where there is no /proc.
func memoryOf(pid int) (m memory) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return m
	}
	if status, err := p.NewStatus(); err == nil {
		m = memory{resident: int64(status.VmRSS), peak: int64(status.VmHWM)}
	}
	return m
}
