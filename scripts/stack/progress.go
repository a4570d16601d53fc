package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells a person what is going on: a line per step, a dot per second while it
// lasts, and how long it took.
type progress struct{ out io.Writer }

// say prints a line.
func (p progress) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// step runs work under a title.
func (p progress) step(title string, work func() error) error {
	start := time.Now()
	fmt.Fprintf(p.out, "%s ", title)
	end := make(chan struct{})
	// The dots end before the line does.
	var dots sync.WaitGroup
	dots.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprint(p.out, ".")
			case <-end:
				return
			}
		}
	})
	err := work()
	close(end)
	dots.Wait()
	if err != nil {
		fmt.Fprintln(p.out, "failed")
		return err
	}
	fmt.Fprintf(p.out, " %.1f s\n", time.Since(start).Seconds())
	return nil
}
