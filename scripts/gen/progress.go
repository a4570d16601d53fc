package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// progress reports the loading of one table after the other: on a terminal a line
// that keeps changing, elsewhere a line now and then and one at the end.
type progress struct {
	out      io.Writer
	terminal bool
	every    time.Duration
}

func newProgress(f *os.File) progress {
	info, err := f.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" {
		return progress{f, true, 100 * time.Millisecond}
	}
	return progress{f, false, 5 * time.Second}
}

// track reports about a table until the answered function is called. The other
// function counts rows, from any goroutine.
func (p progress) track(name string, total int64) (loaded func(rows int64), done func()) {
	var rows atomic.Int64
	start := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	line := func() string {
		n, seconds := rows.Load(), time.Since(start).Seconds()
		percent := int64(100)
		if total > 0 {
			percent = n * 100 / total
		}
		return fmt.Sprintf("%-21s %3d %% %11d rows %7.1f s", name, percent, n, seconds)
	}
	show := func(ending string) {
		if p.terminal {
			fmt.Fprint(p.out, "\r\x1b[K"+line()+ending)
		} else {
			fmt.Fprint(p.out, line()+"\n")
		}
	}
	go func() {
		defer close(stopped)
		tick := time.NewTicker(p.every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show("")
			case <-stop:
				return
			}
		}
	}()
	done = func() {
		close(stop)
		<-stopped
		show("\n")
	}
	return func(n int64) { rows.Add(n) }, done
}
