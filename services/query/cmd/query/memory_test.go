package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/rpc"
)

// largest are statements that ask for as much as the source has, in every way. The server
// holds a row as well before it sends it, so they are no larger than they need to be.
func largest() map[string]string {
	times := func(n int, column string) string { return strings.TrimSuffix(strings.Repeat(column+",", n), ",") }
	const none = `and shorten long ones, as LEFT(col, 1000)"}]}`
	return map[string]string{ // and how its answer ends
		"SELECT " + times(12, "plain") + " FROM large WHERE id = 1":        none,
		"SELECT id, " + times(6, "plain") + " FROM large ORDER BY id DESC": none,
		"SELECT plain FROM large WHERE id = 1":                             `"row_count":1,"truncated":false,"row_limit":1000}`,
		"SELECT control FROM large WHERE id = 1":                           none,
		"SELECT plain, control FROM large WHERE id = 2":                    none,
		"SELECT bin FROM large ORDER BY id":                                `or with LIMIT n OFFSET 1"}]}`,
		"SELECT " + times(60, "w.*") + " FROM wide w":                      `name those that you need"}]}}`,
	}
}

// TestLargeAnswersDoNotTakeTheServiceDown: sixty callers at once, of several keys, ask for
// the largest that the source has, and then sixty do not read what they are answered. The
// process keeps to half a GiB, and another key is answered meanwhile.
func TestLargeAnswersDoNotTakeTheServiceDown(t *testing.T) {
	if testing.Short() {
		t.Skip("gigabytes")
	}
	const most = 512 << 20
	adminDSN, readerDSN := hubtest.SourceDB(t)
	admin, err := sql.Open("mysql", adminDSN)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	columns := make([]string, 900)
	for i := range columns {
		columns[i] = fmt.Sprintf("c%d TINYINT", i)
	}
	for _, q := range []string{
		"CREATE TABLE large (id INT PRIMARY KEY, plain LONGTEXT, control LONGTEXT, bin LONGBLOB)",
		"INSERT INTO large VALUES (1, REPEAT('x', 15 << 20), REPEAT('\x01', 15 << 20), REPEAT('b', 10 << 20))",
		"INSERT INTO large VALUES (2, REPEAT('\"', 6 << 20), REPEAT('\x01', 2 << 20), REPEAT('b', 11 << 20))",
		"CREATE TABLE wide (" + strings.Join(columns, ", ") + ")",
	} {
		if _, err := admin.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	store := hubtest.WriteStore(t)
	environ := []string{
		"GOMEMLIMIT=400MiB",
		"HUB_SOURCE_DSN=" + readerDSN,
		"HUB_WRITE_STORE_URL=" + store.URL("query"),
		"HUB_MIGRATE_URL=" + store.OwnerURL,
	}
	if p := run(t, "migrate", environ...); p.Wait(t) != 0 {
		t.Fatalf("migrate: %s", p.Log)
	}
	p := plain(t, environ...)
	p.Ready(t)
	ask := func(ctx context.Context, key, text string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(
			ctx,
			http.MethodPost,
			"http://"+p.Addr(t)+rpc.ToolPath("execute_read_sql"),
			strings.NewReader(fmt.Sprintf(`{"sql":%q}`, text)),
		)
		if err != nil {
			return nil, err
		}
		request.Header = callertest.Header(
			t,
			"query",
			caller.Caller{Kind: caller.Key, Service: "crm", CredentialID: key, RequestID: "req_" + key},
		)
		return http.DefaultClient.Do(request)
	}
	// read asks for an answer and returns its status and its end.
	read := func(key, text string) (int, string) {
		t.Helper()
		r, err := ask(t.Context(), key, text)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		var end tail
		if _, err := io.Copy(&end, r.Body); err != nil {
			t.Error(err)
		}
		return r.StatusCode, string(end)
	}
	type outcome struct{ answered, busy atomic.Int64 }
	judge := func(o *outcome, text, want string, status int, end string) {
		t.Helper()
		switch {
		case status == http.StatusTooManyRequests, status == http.StatusGatewayTimeout: // its turn or its second has passed
			o.busy.Add(1)
		case strings.HasSuffix(end, want):
			o.answered.Add(1)
		default:
			t.Errorf("%.40s: %d …%s, want %s", text, status, end, want)
		}
	}
	// during asks as another key, and for readiness, until the crowd is through.
	during := func(crowd *outcome, through chan struct{}) {
		t.Helper()
		var modest outcome
		for done := false; !done; {
			select {
			case <-through:
				done = true
			default:
			}
			status, end := read("modest", "SELECT 1")
			judge(&modest, "SELECT 1", `"row_limit":1000}`, status, end)
			if p.Get("/readyz") != http.StatusOK {
				t.Error("the service is not ready")
			}
		}
		peak := peakMemory(t, p.PID())
		t.Logf(
			"%d answers and %d refusals, %d and %d to another key, at most %d MiB",
			crowd.answered.Load(),
			crowd.busy.Load(),
			modest.answered.Load(),
			modest.busy.Load(),
			peak>>20,
		)
		if peak > most || crowd.answered.Load() == 0 || modest.answered.Load() <= modest.busy.Load() {
			t.Errorf("the process may take %d MiB, and has to answer the other key", most>>20)
		}
	}

	statements := largest()
	texts := slices.Collect(maps.Keys(statements))
	var alone outcome
	for text, want := range statements {
		for before, tries := alone.answered.Load(), 0; alone.answered.Load() == before && tries < 20; tries++ {
			status, end := read("alone", text)
			judge(&alone, text, want, status, end)
		}
	}
	if n := alone.answered.Load(); n != int64(len(statements)) {
		t.Fatalf("%d of %d answered", n, len(statements))
	}
	t.Run("large", func(*testing.T) {
		var o outcome
		var crowd sync.WaitGroup
		for i := range 60 {
			crowd.Go(func() {
				for j := range 3 {
					text := texts[(i+j)%len(texts)]
					status, end := read(fmt.Sprint("key", i%6), text)
					judge(&o, text, statements[text], status, end)
				}
			})
		}
		through := make(chan struct{})
		go func() { crowd.Wait(); close(through) }()
		during(&o, through)
	})
	t.Run("not read", func(*testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var o outcome
		var crowd sync.WaitGroup
		for i := range 60 {
			crowd.Go(func() {
				r, err := ask(ctx, fmt.Sprint("key", i%6), "SELECT plain FROM large WHERE id = 1")
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { r.Body.Close() })
				if r.StatusCode == http.StatusOK {
					o.answered.Add(1)
				} else {
					o.busy.Add(1)
				}
			})
		}
		through := make(chan struct{})
		go func() { crowd.Wait(); close(through) }()
		during(&o, through)
	})
	// What was held for them is free again.
	hubtest.Eventually(t, "the largest is answered", func() bool {
		status, _ := read("key1", "SELECT plain FROM large WHERE id = 1")
		return status == http.StatusOK
	})
}

// plain serves as the program is built, without the race detector, whose memory is no subject
// of a test.
func plain(t *testing.T, environ ...string) *hubtest.Program {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "query")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := &hubtest.Program{Out: &hubtest.Buffer{}, Log: &hubtest.Buffer{}}
	var err error
	p.Process, err = localserver.StartProgram(localserver.Program{
		Path:   path,
		Args:   []string{"serve"},
		Output: p.Out,
		Errors: p.Log,
		Env: append(
			[]string{"HOME=" + dir, "TMPDIR=" + dir},
			append(callertest.Environ("query", caller.Gateway, "authoring"), environ...)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// tail keeps the last bytes that are written to it.
type tail []byte

func (t *tail) Write(b []byte) (int, error) {
	*t = append(*t, b[max(len(b)-300, 0):]...)
	*t = (*t)[max(len(*t)-300, 0):]
	return len(b), nil
}

// peakMemory is the most that a process has had resident, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no VmHWM in %s", b)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
