package statements

import (
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/tool"
	"hub.internal/services/query"
)

// capped is a RowWriter that takes most bytes of the network.
type capped struct {
	collected
	arrived, most int
}

func (c *capped) Arrived(n int) bool {
	c.arrived += n
	return c.arrived <= c.most
}

// TestReadingEndsOnTheWire: what is not wanted is neither read nor computed.
func TestReadingEndsOnTheWire(t *testing.T) {
	f := newFixture(t, ReaderOptions{Timeout: 2 * time.Minute})
	f.exec(t, "CREATE TABLE l (c LONGTEXT)", "INSERT INTO l VALUES (REPEAT('x', 15 << 20))")
	for name, text := range map[string]string{
		"one row":   "SELECT c, c, c, c, c, c, c, c FROM l",
		"many rows": "SELECT REPEAT('x', 1000) FROM seq_1_to_1000000, seq_1_to_1000000 b",
		"columns":   "SELECT " + strings.TrimSuffix(strings.Repeat("1,", 3900), ","),
	} {
		t.Run(name, func(t *testing.T) {
			turn := newFate()
			to := &capped{collected: collected{limit: -1}, most: 40_000}
			if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text, Turn: turn}, to); err != nil {
				t.Error(err)
			}
			if to.arrived <= to.most || to.arrived > to.most+readBuffer {
				t.Errorf("%d bytes were read, %d are wanted", to.arrived, to.most)
			}
			wait(t, turn.ended, "the statement ends")
			if got := f.value(t, "SELECT 2"); got != "2" {
				t.Errorf("the next statement: %s", got)
			}
		})
	}
}

// TestLargeRowIsNotKept: what a large row took is not kept in the pool, where the driver took it with its connection.
func TestLargeRowIsNotKept(t *testing.T) {
	f := newFixture(t, ReaderOptions{Sessions: 2})
	f.exec(t, "CREATE TABLE l (c LONGTEXT)", "INSERT INTO l VALUES (REPEAT('x', 1 << 20))")
	for name, reader := range map[string]*Reader{"wire": f.reader, "driver": f.driver} {
		f.reader = reader
		id := func() string { return f.value(t, "SELECT CONNECTION_ID()") }
		first := id()
		f.value(t, "SELECT LEFT(c, 200000) FROM l")
		f.value(t, "SELECT seq, seq, seq, seq FROM seq_1_to_20000")
		if got := id(); got != first {
			t.Errorf("%s: connection %s after small rows, was %s", name, got, first)
		}
		f.value(t, "SELECT LEFT(c, 1000000) FROM l")
		if kept := id() == first; kept != (name == "wire") {
			t.Errorf("%s: kept is %t", name, kept)
		}
	}
}

// readBuffer is more than the driver reads at once when it does not know how much comes.
const readBuffer = 16 << 20

func (c *capped) Ended()                {}
func (c *capped) Warned([]tool.Warning) {}
