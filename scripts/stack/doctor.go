package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// doctor asks each service's own doctor, with the settings that the stack gives the service, and prints what they say, service by
// service; they look at the same time.
func doctor(ctx context.Context, l layout, out io.Writer) error {
	// The settings are those that the running services were started with, and not what this shell would give them.
	var p plan
	if err := readJSON(l.plan(), &p); err != nil {
		return err
	}
	services := slices.DeleteFunc(p.Services, func(s serviceSpec) bool { return !slices.Equal(s.Args, []string{"serve"}) })
	if len(services) == 0 {
		return errors.New("nothing is set up here yet: make up")
	}
	findings := make([][]byte, len(services))
	failed := make([]bool, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() {
			cmd := exec.CommandContext(ctx, s.Path, "doctor")
			cmd.Env = s.Env
			var failure bytes.Buffer
			cmd.Stderr = &failure
			var err error
			findings[i], err = cmd.Output()
			// A doctor that cannot even start has found something too.
			if failed[i] = err != nil; failed[i] && !bytes.Contains(findings[i], []byte("wrong  ")) {
				said, _, _ := strings.Cut(failure.String(), "\n")
				findings[i] = fmt.Appendf(findings[i], "wrong  program: %s\n", strings.TrimSuffix(err.Error()+": "+said, ": "))
			}
		})
	}
	all.Wait()
	for i, s := range services {
		for lines := bufio.NewScanner(bytes.NewReader(findings[i])); lines.Scan(); {
			fmt.Fprintf(out, "%-15s %s\n", s.Name, lines.Text())
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if slices.Contains(failed, true) {
		return errors.New("something is wrong: see the lines above that say so")
	}
	return nil
}
