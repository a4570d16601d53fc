package main

// Everything that differs between a terminal and a pipe is decided here, once, so that commands ask for a width and
// not for a device.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"hub.internal/services/client/output"
)

// terminal is what the program was started on.
// Commands ask it and never os, which is how tests run them.
type terminal struct {
	// The environment and the standard streams, which a test replaces.
	getenv func(string) string
	in     io.Reader
	// piped tells that in is a pipe or a file: something may be written to it.
	piped bool
	out   io.Writer
	err   io.Writer
	// screen is out's: Width is 0 when that is no terminal. notes is err's.
	screen, notes output.Screen
	// ask reads a line, and secret one that is not shown; nil when nobody is there to answer.
	ask, secret func(ctx context.Context, prompt string) (string, error)
	now         func() time.Time
}

// standardTerminal is what the operating system has handed over.
// ask and secret need standard input, and not standard output, to be a terminal: a person may redirect the answer.
func standardTerminal() terminal {
	t := terminal{getenv: os.Getenv, in: os.Stdin, out: os.Stdout, err: os.Stderr, now: time.Now}
	t.screen, t.notes = screen(os.Stdout), screen(os.Stderr)
	if info, err := os.Stdin.Stat(); err == nil {
		// A closed or empty device, such as /dev/null of a cron job, is neither: nobody waits for it.
		t.piped = info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
	}
	if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
		t.ask = func(ctx context.Context, prompt string) (string, error) {
			return readPrompted(ctx, prompt, func() (string, error) { return readLine(os.Stdin) })
		}
		t.secret = func(ctx context.Context, prompt string) (string, error) { return readHidden(ctx, fd, prompt) }
	}
	return t
}

// screen is the terminal that a file is; its width is 0 where it is none. NO_COLOR (no-color.org) and TERM=dumb take the colours.
func screen(f *os.File) output.Screen {
	if !term.IsTerminal(int(f.Fd())) {
		return output.Screen{}
	}
	// 80 columns is what a terminal has that does not say its size.
	s := output.Screen{Width: 80, Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.Width = width
	}
	return s
}

// readHidden reads a line without showing it. Whatever ends it, the terminal shows again what is typed.
func readHidden(ctx context.Context, fd int, prompt string) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	defer func() {
		_ = term.Restore(fd, before)
		fmt.Fprintln(os.Stderr)
	}()
	return readPrompted(ctx, prompt, func() (string, error) {
		b, err := term.ReadPassword(fd)
		return string(b), err
	})
}

// readPrompted asks, until ctx ends.
// The prompt is on standard error, so that it is not in a redirected answer.
func readPrompted(ctx context.Context, prompt string, read func() (string, error)) (string, error) {
	fmt.Fprint(os.Stderr, prompt)
	return readUntilDone(ctx, read)
}

// readUntilDone returns what read does, or ctx's error when that ends first; read then ends with the program, which is about to.
func readUntilDone[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	// It has room for one, so that the goroutine can end when nobody waits any more.
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// longestLine bounds a line that somebody types, in bytes.
const longestLine = 4096

// readLine reads the first line of r, without its end.
// A line without an end, as the last one of a file may be, is taken as it is; an empty input is io.EOF.
func readLine(r io.Reader) (string, error) {
	text, err := bufio.NewReader(io.LimitReader(r, longestLine)).ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || text == "") {
		return "", err
	}
	return strings.TrimSuffix(text, "\n"), nil
}

// directory is the program's own in one of the user's: where HUB_…_DIR says, or "hub" in what the system has for that.
// It is "" where the system has none, as in a container without HOME.
func (t terminal) directory(name string, system func() (string, error)) string {
	if dir := t.getenv(name); dir != "" {
		return dir
	}
	dir, err := system()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "hub")
}
