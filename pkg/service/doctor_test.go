package service_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/service"
)

// patient is the service that the doctor looks at.
func patient() service.Program[service.Settings] {
	return service.Program[service.Settings]{Name: "authoring", Build: func(h *service.Host, _ service.Settings) error {
		h.Neighbour("tester")
		h.Ready("store", func(context.Context) error { return nil })
		h.Check("thing", "HUB_THING", func(context.Context) error {
			if os.Getenv("BROKEN") != "" {
				return fault.New(fault.DB, "Try again.").Because(errors.New("it is broken\nin two places"))
			}
			return nil
		})
		h.Go("task", func(context.Context) error { h.Logger().Error("a task runs"); return nil })
		return nil
	}}
}

// TestDoctor: everything that the settings name is asked, and what is wrong with it is said in one line that names the
// setting, whatever else is wrong.
func TestDoctor(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t)
	if err := audit.Migrate(t.Context(), store.OwnerURL); err != nil {
		t.Fatal(err)
	}
	bare := hubtest.WriteStore(t)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	away := nobody.Addr().String()

	neighbour := run(
		t,
		"",
		append(callertest.Environ("tester", "tester", "authoring"), "HUB_WRITE_STORE_URL=postgres://hub_tester@127.0.0.1:1/hub")...)
	neighbour.Ready(t)
	static := "HUB_STATIC=tester=" + neighbour.Addr(t)
	other := run(
		t,
		"",
		append(callertest.Environ("tester", "tester"), "HUB_WRITE_STORE_URL=postgres://hub_tester@127.0.0.1:1/hub")...)
	other.Ready(t)
	disagree := "it does not believe this process; its HUB_TRUSTED_KEYS need the public half of HUB_SIGNING_KEY as authoring\n"
	own := "HUB_WRITE_STORE_URL=" + store.URL("authoring")
	for name, tt := range map[string]struct {
		environ []string
		code    int
		lines   []string // in the order of what is printed
		wrong   int
	}{
		"well": {[]string{own, static}, 0, []string{"ok     configuration", "ok     write store", "ok     clock", "ok     audit log",
			"ok     ready: store", "ok     neighbour tester", "ok     thing"}, 0},
		"a setting that is none": {[]string{own, "HUB_STALL_TIMEOUT=soon"}, 1,
			[]string{"wrong  configuration: configuration: HUB_STALL_TIMEOUT:"}, 1},
		"nothing is there": {[]string{"HUB_WRITE_STORE_URL=postgres://hub_authoring:x@" + away + "/hub", "HUB_STATIC=tester=" + away,
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + away, "BROKEN=1"}, 1,
			[]string{"ok     configuration", "wrong  write store: ", "wrong  clock: ", "wrong  audit log: ", "ok     ready: store",
				"wrong  collector: OTEL_EXPORTER_OTLP_ENDPOINT: dial", "wrong  neighbour tester: ",
				"wrong  thing: HUB_THING: it is broken in two places\n"}, 6},
		"a role that may do anything": {[]string{"HUB_WRITE_STORE_URL=" + store.OwnerURL, static}, 1,
			[]string{"wrong  write store: HUB_WRITE_STORE_URL logs in as hub, which may do anything there; let it name hub_authoring"}, 1},
		"another service's role": {[]string{"HUB_WRITE_STORE_URL=" + store.URL("query"), static}, 1,
			[]string{"wrong  write store: HUB_WRITE_STORE_URL logs in as hub_query; the role of this service is hub_authoring"}, 1},
		"no migrations": {[]string{"HUB_WRITE_STORE_URL=" + bare.URL("authoring"), static}, 1,
			[]string{"wrong  audit log: audit.calls is not there for this role; run `authoring migrate`"}, 1},
		"a neighbour that is not listed": {[]string{own, "HUB_STATIC="}, 1, []string{"wrong  neighbour tester: ", "(HUB_DISCOVERY=static)"}, 1},
		"a key that the neighbour does not know": {[]string{own, static, "HUB_SIGNING_KEY=" + callertest.Signing("somebody").Reveal()}, 1,
			[]string{"wrong  neighbour tester: at " + neighbour.Addr(t) + ": " + disagree}, 1},
		"a key that one replica does not know": {[]string{own, static + ",tester=" + other.Addr(t)}, 1,
			[]string{"wrong  neighbour tester: at " + other.Addr(t) + ": " + disagree, "ok     thing"}, 1},
		"a replica that is not there": {[]string{own, static + ",tester=" + away}, 1,
			[]string{"wrong  neighbour tester: at " + away + ": ", "(HUB_DISCOVERY=static)"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := hubtest.Launch(t, append(callertest.Environ("authoring", "tester"), tt.environ...), "doctor")
			code, out := p.Wait(t), p.Out.String()
			rest := out
			for _, line := range tt.lines {
				_, after, found := strings.Cut(rest, line)
				if !found {
					t.Errorf("no line %q, or not where it belongs, in\n%s", line, out)
				}
				rest = after
			}
			if n := strings.Count(out, "wrong  "); code != tt.code || n != tt.wrong || strings.Count(out, "\n") < len(tt.lines) {
				t.Errorf("exit %d, %d lines of what is wrong, not %d and %d:\n%s%s", code, n, tt.code, tt.wrong, out, p.Log)
			}
			if strings.Contains(p.Log.String(), "a task runs") {
				t.Errorf("a task ran:\n%s", p.Log)
			}
		})
	}
}

// TestCollectorHasItsSchemesPort, as exporters have it, where the URL names none.
func TestCollectorHasItsSchemesPort(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"http://collector:4318":         "collector:4318",
		"http://collector":              "collector:80",
		"https://collector.example.com": "collector.example.com:443",
		"https://collector/otlp":        "collector:443",
		"http://[::1]":                  "[::1]:80",
		"https://[::1]:4318":            "[::1]:4318",
	} {
		if got, err := service.CollectorAddr(endpoint); got != want || err != nil {
			t.Errorf("%s is at %q, %v", endpoint, got, err)
		}
	}
	for _, endpoint := range []string{"collector:4318", "collector", "http://", "http://:4318"} {
		if got, err := service.CollectorAddr(endpoint); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") {
			t.Errorf("%s is at %q, %v", endpoint, got, err)
		}
	}
}
