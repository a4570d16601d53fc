package statements

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// spills are statements whose temporary tables grow for as long as one lets them.
var spills = map[string]string{
	"recursive CTE":   "WITH RECURSIVE n AS (SELECT 1 AS i, REPEAT('x', 1000) AS p UNION ALL SELECT i + 1, p FROM n) SELECT COUNT(*) FROM n",
	"UNION in a CTE":  "WITH RECURSIVE n AS (SELECT 1 AS i, REPEAT('x', 1000) AS p UNION SELECT i + 1, p FROM n) SELECT COUNT(*) FROM n",
	"GROUP BY":        "SELECT SHA2(CONCAT(a.seq, '/', b.seq), 512) AS h, COUNT(*) FROM seq_1_to_100000 a, seq_1_to_1000 b GROUP BY h",
	"DISTINCT":        "SELECT DISTINCT SHA2(CONCAT(a.seq, '/', b.seq), 512) FROM seq_1_to_100000 a, seq_1_to_1000 b ORDER BY 1",
	"ORDER BY a join": "SELECT a.seq, b.seq, SHA2(a.seq, 256) AS h FROM seq_1_to_100000 a, seq_1_to_1000 b ORDER BY h, b.seq",
	"window":          "SELECT RANK() OVER (PARTITION BY a.seq ORDER BY RAND()) FROM seq_1_to_100000 a, seq_1_to_1000 b",
	"UNION": "SELECT COUNT(*) FROM (SELECT seq, REPEAT('x', 1000) FROM seq_1_to_10000000 UNION SELECT seq, REPEAT('y', 1000) " +
		"FROM seq_1_to_10000000) x",
	"INTERSECT": "SELECT COUNT(*) FROM (SELECT seq, REPEAT('x', 1000) FROM seq_1_to_10000000 INTERSECT SELECT seq, REPEAT('x', " +
		"1000) FROM seq_1_to_10000000) x",
	"derived table": "SELECT COUNT(*) FROM (SELECT a.seq, REPEAT('x', 1000) AS p FROM seq_1_to_10000000 a ORDER BY RAND() LIMIT 9999999) x",
}

// TestTemporarySpaceIsBounded on a server of the test's own, whose temporary files are counted.
func TestTemporarySpaceIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a disk")
	}
	const most = 8 << 20
	m := hubtest.NewMariaDB(t)
	admin, err := m.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, q := range []string{"CREATE DATABASE d", "CREATE USER ro IDENTIFIED BY 'pw'", "GRANT SELECT ON d.* TO ro"} {
		exec(t, admin, q)
	}
	s := openSource(t, m.DSN("ro", "pw", "d"), server.Options{})
	r := NewReader(s, ReaderOptions{TmpBytes: most})
	defer r.Close()
	total := int64(0)
	for name, text := range spills {
		t.Run(name, func(t *testing.T) {
			seen := watchTemporaryFiles(t, m.PID())
			err := r.ReadStatement(t.Context(), query.Statement{Text: text}, &collected{limit: -1})
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Validation || !strings.Contains(f.Message, "temporary space") {
				t.Errorf("got %v", err)
			} else if d, ok := f.Details.(statementDetails); !ok || d.DBErrno != 1114 || d.Violations[0].Rule != "sql.server" {
				t.Errorf("details %+v", f.Details)
			}
			// A table's data; its index, and what a sort of that much takes, come on top.
			n := seen()
			if total += n; n > 4*most {
				t.Errorf("%d MiB of temporary files", n>>20)
			}
		})
	}
	if total < most {
		t.Errorf("only %d bytes of temporary files were seen", total)
	}
	got := &collected{limit: 1}
	if err := r.ReadStatement(t.Context(), query.Statement{Text: "SELECT @@tmp_disk_table_size"}, got); err != nil ||
		got.rows[0] != "[8388608]" {
		t.Errorf("%v %v", got.rows, err)
	}
	// Where the server allows less, less it is.
	exec(t, admin, "SET GLOBAL tmp_disk_table_size = 1048576")
	got = &collected{limit: 1}
	less := NewReader(s, ReaderOptions{TmpBytes: most})
	defer less.Close()
	if err := less.ReadStatement(t.Context(), query.Statement{Text: "SELECT @@tmp_disk_table_size"}, got); err != nil ||
		got.rows[0] != "[1048576]" {
		t.Errorf("%v %v", got.rows, err)
	}
}

// watchTemporaryFiles returns what tells the most bytes that a server's open temporary files have
// had since.
func watchTemporaryFiles(t *testing.T, pid int) func() int64 {
	t.Helper()
	var most atomic.Int64
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			most.Store(max(most.Load(), temporaryFiles(pid)))
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	return func() int64 { close(over); watching.Wait(); return most.Load() }
}

// temporaryFiles is the size of what a process has open below a folder tmp.
func temporaryFiles(pid int) (sum int64) {
	links, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	for _, link := range links {
		name, err := os.Readlink(link)
		if err != nil || filepath.Base(filepath.Dir(name)) != "tmp" {
			continue
		}
		if info, err := os.Stat(link); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
