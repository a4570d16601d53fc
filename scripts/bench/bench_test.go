package main

import (
	"context"
	"encoding/xml"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/localserver"
)

// TestSmoke runs the whole benchmark with the smallest load, so that it does not rot. It
// holds no figure to anything.
func TestSmoke(t *testing.T) {
	if missing := localserver.Missing(); len(missing) > 0 {
		t.Skip("missing servers: ", missing, "; `make servers` installs them")
	}
	// Not t.TempDir: servers that run as other users must be able to reach it.
	dir, err := os.MkdirTemp("", "hub-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := readOptions(t, "--seconds 0.05 --rounds 1 --peers=false --scale 0.02")
	wants := []string{"| 64 | hub |", "| 8 | limit |", "| 1 | straightforward |", "| gateway |", "added by the gateway, point",
		"go1.", "| the list of 200 drafts |", "a draft of 200 targets, p99",
		"| answered in the flood |", "| win-back | search_brands",
		"| flood: calls a second that failed otherwise than by a refusal | ≤ 0 | 0 | reached |"}
	if _, missing := localserver.SideBySideMySQL.Root(); missing == nil {
		o.mysql, wants = true, append(wants, "| 16 | service on MySQL |", "| 8 | limit on MySQL |")
	}
	if err != nil {
		t.Fatal(err)
	}
	o.dir, o.grow = dir, []float64{0.05, 0.1}
	var out, progress strings.Builder
	if err := run(t.Context(), o, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	written, err := os.ReadFile(dir + "/report.md")
	if err != nil || string(written) != out.String() {
		t.Errorf("report.md is not what was printed (%v)", err)
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	lines := map[string]string{floodName: "quiet key", growthName: "win-back"}
	for _, name := range workloadNames() {
		lines[name] = "hub"
	}
	for name, line := range lines {
		drawn, err := os.ReadFile(dir + "/plots/" + name + ".svg")
		if err != nil || !strings.Contains(string(drawn), ">"+line+"</text>") {
			t.Errorf("the plot of %s: %v: %s", name, err, drawn)
		}
	}
	for line := range strings.Lines(progress.String()) {
		if strings.Contains(line, "errors") && !strings.HasSuffix(strings.TrimSpace(line), "errors 0") {
			t.Error(strings.TrimSpace(line))
		}
	}
}

// readOptions is what a command line asks for.
func readOptions(t *testing.T, line string) (read options, err error) {
	t.Helper()
	c := command(func(_ context.Context, o options, _, _ io.Writer) error { read = o; return nil })
	c.SetArgs(strings.Fields(line))
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	err = c.ExecuteContext(t.Context())
	return read, err
}

func TestOptions(t *testing.T) {
	for _, args := range []string{"--only nothing", "--rounds 0", "--seconds 0", "extra", "--scale x"} {
		if _, err := readOptions(t, args); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	o, err := readOptions(t, "--only point,rows1000 --seconds 0.2 --mysql")
	if err != nil || len(o.only) != 2 || !o.mysql || o.window != 200*time.Millisecond {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestRateCountsPartsOfCalls(t *testing.T) {
	begin := time.Now()
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	call := func(from, to float64) timedCall { return timedCall{at(from), at(to).Sub(at(from))} }
	// Ten seconds; calls of 4 s back to back: 2.5 of them are within.
	m := sum([]*worker{{calls: []timedCall{call(-1, 3), call(3, 7), call(7, 11)}}}, begin, at(10))
	if m.rate < 0.249 || m.rate > 0.251 || m.p50 != 4*time.Second {
		t.Errorf("rate %v, p50 %v", m.rate, m.p50)
	}
}

func TestMedian(t *testing.T) {
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Error(m)
	}
	if m := median([]time.Duration{4, 2}); m != 3 {
		t.Error(m)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"2026-01-31 09:00:00": "2026-01-31T09:00:00", "2026-01-31T09:00:00Z": "2026-01-31T09:00:00",
		"2026-01-31T09:00:00.000Z": "2026-01-31T09:00:00",
		"봄-신상":                     "봄-신상", "12": "12",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDrawing(t *testing.T) {
	drawn := drawing(panel{"calls < others", []string{"1", "16"}, []line{{"hub", []float64{10, 30}}, {"peer", []float64{math.NaN(), 15}}}})
	if err := xml.Unmarshal([]byte(drawn), new(struct{ XMLName xml.Name })); err != nil {
		t.Fatalf("%v in %s", err, drawn)
	}
	// 30 lies below 40, the end of the axis; a value that is not there has no point.
	for what, n := range map[string]int{"<circle ": 3, `cy="83.5"`: 1, ">40<": 1, "calls &lt; others": 1, "NaN": 0} {
		if got := strings.Count(drawn, what); got != n {
			t.Errorf("%d times %s, not %d: %s", got, what, n, drawn)
		}
	}
}

func TestFloodCounts(t *testing.T) {
	times := func(n int, each time.Duration) (took []time.Duration) {
		for range n {
			took = append(took, each)
		}
		return took
	}
	b := &bench{flood: &flood{base: measurement{p99: 10 * time.Millisecond}, sustainable: 100}}
	b.flood.count([]*floodCaller{{took: times(150, 20*time.Millisecond), refused: 40}, {took: times(30, 20*time.Millisecond), failed: 2}},
		&floodCaller{took: times(9, 40*time.Millisecond), refused: 1}, 2*time.Second)
	var missed []string
	for _, v := range b.floodVerdicts() {
		if !v.reached {
			missed = append(missed, v.what+" "+v.got)
		}
	}
	want := "flood: calls of the quiet key that were not answered 1, " +
		"flood: p99 of the quiet key 4.00 × that of the quiet key alone, flood: calls a second that failed otherwise than by a refusal 1"
	if got := strings.Join(missed, ", "); got != want || b.flood.answered != 94.5 {
		t.Errorf("%v answered, missed: %s", b.flood.answered, got)
	}
}

func TestDifference(t *testing.T) {
	a, b := [][]string{{"1", "x"}}, [][]string{{"1", "y"}}
	if difference(a, a) != "" || difference(a, b) == "" || difference(a, nil) == "" {
		t.Error("difference is wrong")
	}
}
