package sqlguard_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
	"hub.internal/services/query/sqlguard"
)

var (
	memoryFor  = flag.Duration("memory.for", time.Second, "how long TestMemory runs on each server")
	memorySeed = flag.Uint64("memory.seed", 1, "what the statements of TestMemory are made from")
)

// memoryLimit is what no server may come to take, and step is a rise that is told with what runs at that moment.
const (
	memoryLimit = 1 << 30
	step        = 64 << 20
)

// memorySchema has columns of the sizes that people have, and a thousand rows.
const memorySchema = `
CREATE TABLE m (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(200), note TEXT, bin VARBINARY(64), js JSON, at DATETIME);
INSERT INTO m (name, note, bin, js, at) WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 1000)
  SELECT CONCAT('campaign ', n), REPEAT('note ', n), CHAR(n), JSON_OBJECT('n', n, 'tags', JSON_ARRAY('a', n)), '2026-01-01' FROM r;
`

// TestMemory runs texts that grow, nested in calls, derived tables, WITH lists and aggregates of JSON, as the service runs what
// the guard accepts of them: no server's memory goes beyond a gigabyte, and none goes down.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers")
	}
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		name := fmt.Sprint("memory_", memoryDatabases.Add(1))
		src := localserver.Source{Database: name, Schema: memorySchema, Owner: name + "_owner", OwnerPassword: "o", Reader: name + "_ro",
			ReaderPassword: "r"}
		if err := on.CreateSource(t.Context(), src); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dropAnyway(t, on, src) })
		source, err := mysql.Open(on.DSN(src.Reader, src.ReaderPassword, src.Database), server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		reader := statements.NewReader(source.Server, statements.ReaderOptions{Timeout: 2 * time.Second})
		defer reader.Close()
		var next, accepted, answered, refused, late atomic.Int64
		db, err := on.Admin()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		// Not only what is asked at this moment: a statement may outlive its KILL.
		running := func() string { return strings.Join(statementsOf(t, db, src.Reader), "\n") }
		forgetPeak(on.PID())
		ctx, cancel := context.WithTimeout(t.Context(), *memoryFor)
		defer cancel()
		guarded := sqlguard.Default(16 << 20)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for ctx.Err() == nil || accepted.Load() < 10 {
					g := memoryGen{rand.New(rand.NewPCG(*memorySeed, uint64(next.Add(1)))), 0}
					st, err := guarded.Parse(g.statement())
					if err != nil {
						continue
					}
					accepted.Add(1)
					text, _ := st.Capped(5)
					err = reader.ReadStatement(t.Context(), query.Statement{Text: text, Heavy: st.Heavy()}, &nothing{})
					switch {
					case err == nil:
						answered.Add(1)
					case fault.From(err).Code == fault.Validation:
						refused.Add(1)
					case fault.From(err).Code == fault.DBTimeout, fault.From(err).Code == fault.RateLimit, fault.From(err).Code == fault.DB:
						late.Add(1) // also where no session could be made in time: what is measured is memory
					default:
						t.Errorf("%v: %s", err, text)
					}
				}
			})
		}
		look := time.NewTicker(50 * time.Millisecond)
		defer look.Stop()
		for told := peakOf(on.PID()); ctx.Err() == nil; {
			select {
			case <-look.C:
			case <-on.Done():
				t.Errorf("the server went down: %v", on.Err())
				cancel()
			case <-ctx.Done():
			}
			switch peak := peakOf(on.PID()); {
			case ctx.Err() != nil:
			case peak > memoryLimit:
				t.Errorf("the server takes %d MiB; one of these has done it:\n%s", peak>>20, running())
				cancel()
			case peak > told+step:
				t.Logf("it takes %d MiB, %d more than before, and runs\n%s", peak>>20, (peak-told)>>20, running())
				told = peak
			}
		}
		all.Wait()
		t.Logf("%d statements, %d accepted, %d answered, %d refused by the server, %d too late; at most %d MiB", next.Load(), accepted.Load(),
			answered.Load(), refused.Load(), late.Load(), peakOf(on.PID())>>20)
	})
}

// statementsOf is what a server runs for a user, with the seconds since each was begun.
func statementsOf(t *testing.T, db *sql.DB, user string) (list []string) {
	rows, err := db.QueryContext(context.WithoutCancel(t.Context()),
		"SELECT CONCAT(time, ' s ', command, ' ', COALESCE(info, '')) FROM information_schema.processlist WHERE user = ?", user)
	if err != nil {
		t.Log(err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err == nil && !strings.Contains(text, " Sleep ") {
			list = append(list, text)
		}
	}
	if err := rows.Err(); err != nil {
		t.Log(err)
	}
	return list
}

// dropAnyway drops the database of a server on which statements may run that no KILL ends: then the server is started anew.
func dropAnyway(t *testing.T, server *localserver.SourceServer, src localserver.Source) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	patience, enough := context.WithTimeout(ctx, 10*time.Second)
	defer enough()
	err := server.DropSource(patience, src)
	if err != nil {
		t.Logf("the server is started anew: %v", err)
		server.Kill()
		if err := server.Start(ctx); err != nil {
			t.Fatal(err)
		}
		err = server.DropSource(ctx, src)
	}
	if err != nil {
		t.Error(err)
	}
}

var memoryDatabases atomic.Int64

// nothing is a RowWriter that takes three rows.
type nothing struct{ rows int }

func (*nothing) Arrived(int) bool             { return true }
func (*nothing) Ended()                       {}
func (*nothing) Warned([]tool.Warning)        {}
func (*nothing) Columns([]query.ResultColumn) {}
func (n *nothing) Row(encode query.RowEncoder) bool {
	n.rows++
	_, whole := encode(nil, 1<<20)
	return whole && n.rows < 3
}

// memoryGen writes statements whose values grow.
type memoryGen struct {
	*rand.Rand
	names int
}

func oneOf[T any](g *memoryGen, list ...T) T { return list[g.IntN(len(list))] }

// statement is a query, sometimes in EXPLAIN.
func (g *memoryGen) statement() string {
	q, _ := g.query(1 + g.IntN(5))
	return oneOf(g, "", "", "", "", "", "", "", "", "EXPLAIN ") + q
}

// query is a SELECT whose greatest column is x.
func (g *memoryGen) query(depth int) (text string, column string) {
	if depth <= 0 {
		return "SELECT " + g.grow("name", g.IntN(2)) + " AS x, id FROM m", "x"
	}
	g.names++
	t := "t" + strconv.Itoa(g.names)
	inner, _ := g.query(depth - 1)
	of := t + ".x"
	switch g.IntN(9) {
	case 0, 1:
		return "SELECT " + g.grow(of, g.IntN(4)) + " AS x, 1 AS id FROM (" + inner + ") " + t, "x"
	case 2:
		return "WITH " + t + " AS (" + inner + ") SELECT " + g.grow(of, g.IntN(4)) + " AS x, id FROM " + t + oneOf(g, "", ", m AS m"+t), "x"
	case 3:
		return "SELECT " + g.aggregate(g.grow(of, g.IntN(3))) + " AS x, 1 AS id FROM (" + inner + ") " + t +
			oneOf(g, "", " JOIN m AS j"+t+" ON 1 = 1"), "x"
	case 4:
		return "SELECT " + g.aggregate(g.grow(of, g.IntN(3))) + " AS x, " + t + ".id FROM (" + inner + ") " + t + " GROUP BY " + t + ".id", "x"
	case 5:
		return "SELECT " + strings.Repeat(of+", ", g.IntN(40)) + g.grow(of, 1) + " AS x, id FROM (" + inner + ") " + t, "x"
	case 6:
		return "(SELECT " + g.grow(of, g.IntN(3)) + " AS x, id FROM (" + inner + ") " + t + ") UNION " + oneOf(g, "", "ALL ") +
			"(SELECT 'a', 1)" + oneOf(g, "", " ORDER BY x"), "x"
	case 7:
		return "SELECT " + g.grow("name", 2) + " AS x, (SELECT " + g.grow("x", g.IntN(3)) + ") AS y, id FROM (" + inner + ") " + t +
			" JOIN m USING (id)", "x"
	}
	return "WITH RECURSIVE " + t + " AS (SELECT x, 1 AS id FROM (" + inner + ") s UNION ALL SELECT " + g.grow("x", 1) + ", id + 1 FROM " + t +
		" WHERE id < " + oneOf(g, "5", "50", "1000") + ") SELECT " + g.grow(of, g.IntN(2)) + " AS x, id FROM " + t, "x"
}

func (g *memoryGen) aggregate(of string) string {
	return oneOf(g, "JSON_ARRAYAGG("+of+")", "JSON_ARRAYAGG("+of+")", "JSON_ARRAYAGG(JSON_OBJECT('k', "+of+"))", "JSON_OBJECTAGG(CAST("+of+
		" AS CHAR), "+of+")",
		"GROUP_CONCAT("+of+")", "GROUP_CONCAT(DISTINCT "+of+" ORDER BY 1)", "MAX("+of+")", "COUNT(DISTINCT "+of+")")
}

// grow puts functions around a column.
func (g *memoryGen) grow(of string, times int) string {
	for range times {
		n := oneOf(g, "3", "10", "100", "1000", "10000", "1000000", "16000000", "LEAST(id, 99)", "id * 1000", "id * 60000")
		of = strings.ReplaceAll(oneOf(g, "HEX(?)", "HEX(?)", "HEX(HEX(?))", "JSON_QUOTE(?)", "REPEAT(?, "+n+")", "REPEAT(?, "+n+")",
			"RPAD(?, "+n+", 'ab')",
			"LPAD(?, "+n+", ?)", "CONCAT(?, ?)", "CONCAT(?, ?, ?, ?)", "CONCAT_WS(?, ?, ?)", "REPLACE(?, 'a', ?)",
			"REPLACE(?, 'c', 'ccccccccccc')", "INSERT(?, 2, 1, ?)",
			"TO_BASE64(?)", "QUOTE(?)", "MAKE_SET(7, ?, ?, ?)", "EXPORT_SET(255, ?, ?)", "JSON_ARRAY(?, ?)", "JSON_OBJECT('a', ?, 'b', ?)",
			"JSON_SET('{}', '$.a', ?)",
			"JSON_MERGE_PRESERVE(JSON_ARRAY(?), JSON_ARRAY(?))", "UPPER(?)", "REVERSE(?)", "COALESCE(NULL, ?)",
			"CASE WHEN 1 = 1 THEN ? ELSE '' END", "IF(1, ?, 'a')",
			"CONVERT(? USING utf16)", "CAST(? AS CHAR)", "CAST(? AS BINARY)", "REGEXP_REPLACE(?, 'a', 'bbbbbbb')", "(SELECT ?)",
			"FORMAT(LENGTH(?), 2)",
			"CONCAT(SPACE("+n+"), ?)", "WEIGHT_STRING(?)", "COMPRESSED(?)", "SUBSTRING(?, 1, 1000000)", "ELT(2, ?, ?)"), "?", of)
		if len(of) > 1500 {
			break
		}
	}
	return of
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakOf is the greatest resident set that a process has had, in bytes; 0 where nobody tells.
func peakOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	m := peakLine.FindSubmatch(status)
	if m == nil {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kilobytes << 10
}

// forgetPeak makes the resident set of now the greatest, where that is allowed: other tests use the server, too.
func forgetPeak(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200)
}
