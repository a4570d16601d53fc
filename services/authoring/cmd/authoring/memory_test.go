package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
)

// memory is a line of the program's /proc/PID/status in bytes: VmRSS is now, VmHWM the most so far.
func memory(t *testing.T, p *hubtest.Program, line string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Skip("needs /proc:", err)
	}
	for l := range strings.Lines(string(b)) {
		if f := strings.Fields(l); len(f) == 3 && f[0] == line+":" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in %s", line, b)
	return 0
}

// TestMemoryIsBounded sends the largest bodies to a process and reads the most that it
// had resident: at most four times the body beyond what it had before.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("the race detector's own memory is no subject of this test")
	}
	db := migrated(t)
	check := hop.Declaration{Path: "/internal/recipients/check", Takes: caller.Neighbour("authoring"), MaxBody: 8 << 20}
	query := contract.Serve(t, "query", contract.Fake(t, "query", check, func(context.Context, any) (map[string][]int, error) {
		return map[string][]int{"targets": {}}, nil
	}))
	const whole = 32<<20 - 1000
	for _, c := range []struct {
		name, tool, head string
		targets, size    int
		target           func(b *bytes.Buffer, i, padding int)
	}{
		{"50,000 targets, 32 MiB", "create_segment", `{"name":"n","kind":"partner","targets":[`, 50_000, whole,
			func(b *bytes.Buffer, i, padding int) {
				fmt.Fprintf(b, `{"externalId":%d,"snapshot":{"brand_id":%d,"name":"%s"}}`, i, i, strings.Repeat("x", padding))
			}},
		{"50,000 targets, 12 MB", "create_segment", `{"name":"n","kind":"partner","targets":[`, 50_000, 12_000_000,
			func(b *bytes.Buffer, i, padding int) {
				fmt.Fprintf(b, `{"externalId":%d,"snapshot":{"brand_id":%d,"name":"%s"}}`, i, i, strings.Repeat("x", padding))
			}},
		{"10,000 recipients, 32 MiB", "save_message_draft",
			`{"segmentId":"1","name":"n","subjectTemplate":"s {{context.n}}","bodyTemplate":"b","targets":[`, 10_000, whole,
			func(b *bytes.Buffer, i, padding int) {
				fmt.Fprintf(b, `{"externalId":%d,"toEmail":"c%d@partner.example","body":"%s","context":{"n":%d}}`, i, i,
					strings.Repeat("y", padding), i)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, db, "HUB_STATIC=query="+query)
			client := connect(t, p)
			body := func(targets int) []byte {
				var b bytes.Buffer
				b.WriteString(c.head)
				for i := range targets {
					if i > 0 {
						b.WriteByte(',')
					}
					c.target(&b, i, c.size/c.targets-90)
				}
				b.WriteString(`]}`)
				return b.Bytes()
			}
			// The program's own pages are no part of what a body costs: touch them first.
			if _, err := call(t, client, "create_segment", "first", []byte(`{"name":"n","kind":"partner","targets":[]}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := call(t, client, c.tool, c.name, body(500)); err != nil {
				t.Fatal(err)
			}
			b := body(c.targets)
			before := memory(t, p, "VmRSS")
			for i := range 3 {
				if _, err := call(t, client, c.tool, fmt.Sprint(c.name, i), b); err != nil {
					t.Fatal(err)
				}
			}
			peak := memory(t, p, "VmHWM")
			t.Logf(
				"body %d MiB: %d MiB before, %d MiB at the peak: %.2f × body",
				len(b)>>20,
				before>>20,
				peak>>20,
				float64(peak-before)/float64(len(b)),
			)
			if peak-before > 4*int64(len(b)) {
				t.Errorf("%d bytes more for a body of %d", peak-before, len(b))
			}
		})
	}
}
