package hubtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hub.internal/pkg/hubtest"
)

// main is the program that TestProgram launches.
func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if os.Args[1] != "serve" {
		for _, setting := range os.Environ() {
			fmt.Println(setting)
		}
		logger.Error("this command is unknown")
		os.Exit(3)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", os.Getenv("LISTEN"))
	if err != nil {
		panic(err)
	}
	http.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	go func() { _ = http.Serve(listener, nil) }()
	logger.Info("serving", "addr", listener.Addr().String())
	<-ctx.Done()
}

func TestProgram(t *testing.T) {
	t.Setenv("OF_THE_TESTS", "x")
	p := hubtest.Launch(t, []string{"LISTEN=nowhere", "LISTEN=127.0.0.1:0"}, "serve")
	p.Ready(t)
	if got := p.Get("/nothing"); got != http.StatusNotFound || !strings.HasPrefix(p.Addr(t), "127.0.0.1:") {
		t.Errorf("%d from %s", got, p.Addr(t))
	}
	if code := p.Stop(t); code != 0 || p.Get("/readyz") != 0 {
		t.Errorf("exit %d\n%s", code, p.Log)
	}
	p = hubtest.Launch(t, []string{"LISTEN=127.0.0.1:0"}, "serve")
	p.Ready(t)
	p.Kill()
	if code := p.Wait(t); code != -1 {
		t.Errorf("killed: exit %d", code)
	}
	p = hubtest.Launch(t, []string{"SETTING=1"}, "other")
	code := p.Wait(t)
	var names []string
	for line := range strings.Lines(p.Out.String()) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(
		names,
		" ",
	); code != 3 || got != "GOCOVERDIR HOME HUB_TEST_AS_PROGRAM PATH SETTING TMPDIR" || strings.Contains(p.Log.String(), "SETTING") ||
		!strings.Contains(p.Log.String(), "unknown") {
		t.Errorf("exit %d, environment %s, log %s", code, got, p.Log)
	}
}
