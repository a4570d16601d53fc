package sqlguard_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// watch logs the progress and looks at the server's memory.
func (r *crashRun) watch(ctx context.Context) {
	look, report := time.NewTicker(200*time.Millisecond), time.NewTicker(10*time.Second)
	defer look.Stop()
	defer report.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-report.C:
			r.log("running")
		case <-look.C:
			size := residentSet(r.server.PID())
			if size > r.greatest.Load() {
				r.greatest.Store(size)
			}
			if size > greatSize {
				r.t.Errorf("the server takes %d MiB; one of these has done it:\n%s", size>>20, strings.Join(r.flying(), "\n"))
				r.server.Kill()
				return
			}
		}
	}
}

// kill ends a connection, and tells how long its thread ran on. While it computes one
// value, REGEXP and a few more look neither at the time limit nor at KILL.
func (r *crashRun) kill(id int64) time.Duration {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), killLimit)
	defer cancel()
	hard := "HARD "
	if r.mysql {
		hard = ""
	}
	if _, err := r.admin.ExecContext(ctx, "KILL "+hard+"CONNECTION "+strconv.FormatInt(id, 10)); err != nil {
		return 0 // it has ended by itself
	}
	for there := 1; there > 0; time.Sleep(20 * time.Millisecond) {
		if err := r.admin.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE id = ?", id).Scan(&there); err != nil {
			if r.alive() {
				r.stuck.Add(1)
			}
			break
		}
	}
	return time.Since(start).Round(time.Millisecond)
}

func (r *crashRun) alive() bool {
	select {
	case <-r.server.Done():
		return false
	default:
		return true
	}
}

// flying are the statements that run.
func (r *crashRun) flying() []string {
	var list []string
	for i := range r.current {
		if f := r.current[i].Load(); f != nil {
			list = append(list, describe(r.gen.seed, f.n, f.text))
		}
	}
	return list
}

// culprit runs what was running, each alone and then after what its session ran before,
// and says which brought the server down.
func (r *crashRun) culprit(flying []string) string {
	for i := range r.current {
		if f := r.current[i].Load(); f != nil && r.brings(f.text) {
			return "it was " + describe(r.gen.seed, f.n, f.text)
		}
	}
	for i := range r.current {
		if f := r.current[i].Load(); f != nil && r.brings(r.recent[i]...) {
			return "it was " + describe(r.gen.seed, f.n, f.text) + "\nafter " + strings.Join(r.recent[i], "\nafter ")
		}
	}
	return "none of these does it alone:\n" + strings.Join(flying, "\n")
}

// brings reports whether the statements, in a session of their own, bring the server down.
func (r *crashRun) brings(statements ...string) bool {
	r.restart()
	conn, _, err := r.connect(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range statements {
		ctx, cancel := context.WithTimeout(r.t.Context(), killLimit)
		rows, err := conn.QueryContext(ctx, text) //nolint:rowserrcheck // a server that dies is what is watched for
		if err == nil {
			for rows.Next() {
			}
			rows.Close() //nolint:sqlclosecheck // one of many in a loop
		}
		cancel()
	}
	select {
	case <-r.server.Done():
		return true
	case <-time.After(time.Second): // a server that aborts has much to write
		return false
	}
}

func (r *crashRun) restart() {
	r.t.Helper()
	if r.alive() {
		return
	}
	if err := r.server.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// residentSet is the memory of a process, 0 where that cannot be told.
func residentSet(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
