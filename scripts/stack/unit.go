package main

import (
	"context"
	"log/slog"
	"time"
)

// running is a started program, whatever it is.
type running interface {
	PID() int
	Done() <-chan struct{}
	Err() error
	Stop(context.Context) error
}

// starter starts a program and says where its administrator connects, if it has one.
type starter func(context.Context) (program running, admin string, err error)

// unit is a program that the supervisor keeps running: one goroutine starts it, waits for
// its end and starts it again, until the unit is stopped.
type unit struct {
	name  string
	key   string // what it was made from
	layer int    // lower layers stop first
	start starter

	status    *statusWriter
	log       *slog.Logger
	cancel    context.CancelFunc
	attempted chan struct{} // closed after the first start, good or bad
	ended     chan struct{} // closed when the goroutine has ended
}

const (
	// A program that ended once is back at once; one that ends again and again takes no machine.
	firstPause = 20 * time.Millisecond
	longPause  = 900 * time.Millisecond // a crashed program is back within a second
	// steady is how long a program has to run for its next crash to count as the first.
	steady = 10 * time.Second
)

// launch begins the unit's goroutine, which stop ends.
func (u *unit) launch() {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel, u.attempted, u.ended = cancel, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(u.ended)
		u.run(ctx)
	}()
}

// stop ends the program and the goroutine, and waits for both.
// It may take as long as grace.
func (u *unit) stop() {
	u.cancel()
	<-u.ended
	u.status.remove(u.name)
}

// run starts the program again and again, with a pause that doubles from firstPause to longPause (exponential
// backoff) and begins anew after steady.
func (u *unit) run(ctx context.Context) {
	pause := firstPause
	for first := true; ; first = false {
		began := time.Now()
		program, admin, err := u.start(ctx)
		if err == nil {
			u.status.started(u.name, program.PID(), admin)
			u.log.Info("started", "name", u.name, "pid", program.PID())
		} else {
			u.status.ended(u.name, err)
		}
		if first {
			close(u.attempted)
		}
		if err == nil {
			if err = u.watch(ctx, program); err != nil {
				u.status.ended(u.name, err)
			}
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			pause = firstPause
		}
		u.log.Warn("starting it again", "name", u.name, "after", pause, "because", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, longPause)
	}
}

// watch waits for the program's end and returns why it ended, or stops it when the unit is
// stopped.
func (u *unit) watch(ctx context.Context, program running) error {
	select {
	case <-program.Done():
		return program.Err()
	case <-ctx.Done():
	}
	// The unit's own context has ended, and the program still gets its time.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := program.Stop(limited); err != nil {
		u.log.Warn("stopped by force", "name", u.name, "because", err)
	} else {
		u.log.Info("stopped", "name", u.name)
	}
	return nil
}
