package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/pkg/rpc"
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
	db := migrated(t)
	check := rpc.Declaration{Path: "/internal/recipients/check", Takes: caller.Neighbour("authoring"), MaxBody: 8 << 20}
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
			// A machine with much else to do may take longer for 32 MiB than the 10 s of a role.
			patient, err := url.Parse(db.URL("authoring"))
			if err != nil {
				t.Fatal(err)
			}
			patient.RawQuery += "&statement_timeout=120000"
			p := start(t, db, "HUB_STATIC=query="+query, "HUB_WRITE_STORE_URL="+patient.String())
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

// TestMemoryOfRowsIsBounded: many who send empty snapshots at once, which are 20 times as much as rows, stay within the memory that there
// is. Who finds none is told so.
func TestMemoryOfRowsIsBounded(t *testing.T) {
	type asked struct {
		Kind string  `json:"kind"`
		IDs  []int64 `json:"ids"`
	}
	type row struct {
		ID  int64          `json:"id"`
		Row map[string]any `json:"row"`
	}
	ids := rpc.Declaration{Path: "/internal/ids/check", Takes: caller.Neighbour("authoring"), MaxBody: 8 << 20}
	rows := rpc.Declaration{Path: "/internal/rows", Takes: caller.Neighbour("authoring")}
	query := contract.Serve(t, "query",
		contract.Fake(t, "query", ids, func(context.Context, asked) (map[string]any, error) {
			return map[string]any{"unknown": 0, "first": []int64{}, "others": []int{}}, nil
		}),
		contract.Fake(t, "query", rows, func(_ context.Context, in asked) (map[string][]row, error) {
			all := make([]row, len(in.IDs))
			for i, id := range in.IDs {
				all[i] = row{id, map[string]any{"partner_id": id, "name": strings.Repeat("x", 600)}}
			}
			return map[string][]row{"rows": all}, nil
		}))
	const limit = 384 << 20
	p := start(t, migrated(t), "HUB_STATIC=query="+query, fmt.Sprint("HUB_MEMORY_LIMIT=", limit>>20, "MiB"))
	client := connect(t, p)
	var b bytes.Buffer
	b.WriteString(`{"name":"n","kind":"partner","targets":[`)
	for i := range 50_000 {
		fmt.Fprintf(&b, `%s{"externalId":%d,"snapshot":{}}`, strings.Repeat(",", min(i, 1)), i)
	}
	b.WriteString(`]}`)
	var stored, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			_, err := callAs(t, client, fmt.Sprint("ak_", i), "create_segment", "many", b.Bytes())
			switch {
			case err == nil:
				stored.Add(1)
			case fault.Is(err, fault.RateLimit):
				refused.Add(1)
			default:
				t.Errorf("%.300v", err)
			}
		})
	}
	all.Wait()
	peak := memory(t, p, "VmHWM")
	t.Logf("%d stored, %d refused: %d MiB at the peak", stored.Load(), refused.Load(), peak>>20)
	if peak > limit || stored.Load() == 0 {
		t.Errorf("%d MiB, %d stored", peak>>20, stored.Load())
	}
}
