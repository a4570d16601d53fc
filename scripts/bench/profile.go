package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// profile is where the CPU time of a service went during a workload.
type profile struct {
	workload, service string
	concurrency       int
	file              string
	flat, own         string // `go tool pprof -top`: by function, and by the function of Hub's that it works for
}

// profileWorkload loads Hub once more and profiles gateway and query meanwhile. That round
// counts nowhere.
func (b *bench) profileWorkload(ctx context.Context, w *workload, concurrency int) error {
	window := max(b.window, 6*time.Second) // of 100 samples a second
	b.say("%-9s c %-2d under the profiler", w.name, concurrency)
	loaded := *b
	opts := *b.stack
	opts.window = window * 2 // the profiles lie within it
	loaded.stack = &opts
	done := make(chan error, 1)
	go func() {
		_, err := loaded.measure(ctx, hubTarget(b.stack), w, concurrency)
		done <- err
	}()
	fetched := make(chan error, 2)
	profiles := []profile{{workload: w.name, service: "gateway"}, {workload: w.name, service: "query"}}
	for i := range profiles {
		p := &profiles[i]
		addr := b.addr[p.service+"-ops"]
		p.concurrency = concurrency
		p.file = b.path(fmt.Sprintf("%s-c%d-%s.pb.gz", w.name, concurrency, p.service))
		go func() {
			fetched <- fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, int(window.Seconds())), p.file)
		}()
	}
	for range profiles {
		if err := <-fetched; err != nil {
			return err
		}
	}
	if err := <-done; err != nil {
		return err
	}
	for _, p := range profiles {
		var err error
		if p.flat, err = b.top(ctx, p); err != nil {
			return err
		}
		if p.own, err = b.top(ctx, p, "-focus=hub.internal", "-show=hub.internal"); err != nil {
			return err
		}
		if rel, err := filepath.Rel(b.root, p.file); err == nil {
			p.file = rel
		}
		b.profiles = append(b.profiles, p)
	}
	return nil
}

// top is pprof's list of the ten greatest functions.
func (b *bench) top(ctx context.Context, p profile, more ...string) (string, error) {
	args := append([]string{"tool", "pprof", "-top", "-nodecount=10"}, append(more, b.path("bin", p.service), p.file)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go tool pprof: %w: %s", err, problems.String())
	}
	return shorten(string(out)), nil
}

// shorten drops pprof's heading and cuts the long names of instantiated functions.
func shorten(top string) string {
	const width = 150
	var b strings.Builder
	for line := range strings.Lines(top) {
		if line = strings.TrimRight(line, "\n"); len(line) > width {
			line = line[:width] + "…"
		}
		if b.Len() > 0 || strings.HasPrefix(line, "Duration:") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func fetch(ctx context.Context, url, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", url, res.Status, content)
	}
	return os.WriteFile(file, content, 0o644)
}
