package statements

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hub.internal/services/query"
)

// columnTypes are all that both servers have, with what may stand in a column.
var columnTypes = []struct {
	name   string
	values *rapid.Generator[any]
}{
	{"TINYINT", whole(-1<<7, 1<<7-1)}, {"TINYINT UNSIGNED", whole(0, 1<<8-1)}, {"SMALLINT", whole(-1<<15, 1<<15-1)},
	{"SMALLINT UNSIGNED", whole(0, 1<<16-1)}, {"MEDIUMINT", whole(-1<<23, 1<<23-1)}, {"MEDIUMINT UNSIGNED", whole(0, 1<<24-1)},
	{"INT", whole(-1<<31, 1<<31-1)}, {"INT UNSIGNED", whole(0, 1<<32-1)}, {"INT(6) ZEROFILL", whole(0, 1<<32-1)},
	{"BIGINT", whole(-1<<63, 1<<63-1)}, {"BIGINT UNSIGNED", rapid.Uint64().AsAny()}, {"YEAR", whole(1901, 2155)},
	{"FLOAT", rapid.Float32Range(-1e38, 1e38).AsAny()}, {"DOUBLE", rapid.Float64Range(-1e307, 1e307).AsAny()},
	{"DECIMAL(30,10)", rapid.StringMatching(`-?[0-9]{1,20}\.[0-9]{0,10}`).AsAny()},
	{"BIT(1)", whole(0, 1)}, {"BIT(64)", rapid.Uint64().AsAny()},
	{"DATE", rapid.StringMatching(`20[0-9]{2}-0[1-9]-[12][0-8]|0000-00-00`).AsAny()},
	{"TIME(3)", rapid.StringMatching(`-?[0-7][0-9]{2}:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}`).AsAny()},
	{"DATETIME(6)", rapid.StringMatching(`20[0-9]{2}-0[1-9]-[12][0-8] [01][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?`).AsAny()},
	{"CHAR(5)", letters(5)}, {"VARCHAR(300)", letters(300)}, {"TEXT", letters(2000)}, {"LONGTEXT", letters(100_000)},
	{"VARCHAR(20) CHARACTER SET latin1", rapid.SampledFrom([]string{"", "café", "a\"b"}).AsAny()},
	{"ENUM('a', 'b\"c')", rapid.SampledFrom([]string{"a", `b"c`}).AsAny()},
	{"SET('x', 'y')", rapid.SampledFrom([]string{"", "x", "x,y"}).AsAny()},
	{"BINARY(3)", octets(3)}, {"VARBINARY(300)", octets(300)}, {"LONGBLOB", octets(100_000)},
	{"JSON", rapid.SampledFrom([]string{`{"a": [1, null, "x\"y"]}`, "1.50", `""`, "[]"}).AsAny()},
}

// whole are integers from least to most.
func whole(least, most int64) *rapid.Generator[any] { return rapid.Int64Range(least, most).AsAny() }

// letters are texts of up to so many characters, most of them short.
func letters(most int) *rapid.Generator[any] {
	return rapid.OneOf(rapid.StringN(0, min(most, 20), 4*most), rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("x", rapid.IntRange(0, most).Draw(t, "length"))
	})).AsAny()
}

// octets are up to so many bytes, most of them few.
func octets(most int) *rapid.Generator[any] {
	return rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, min(most, 20)), rapid.Custom(func(t *rapid.T) []byte {
		return bytes.Repeat([]byte{0xff}, rapid.IntRange(0, most).Draw(t, "length"))
	})).AsAny()
}

// TestRowsAreThoseOfTheDriver holds the rows that the wire keeps back to those that the driver reads, over every type and NULL, and where
// lengths change their form (250, 2^16, 2^24).
func TestRowsAreThoseOfTheDriver(t *testing.T) {
	f, ctx := newFixture(t, ReaderOptions{}), t.Context()
	var definitions, places []string
	for i, c := range columnTypes {
		definitions = append(definitions, fmt.Sprintf("c%d %s NULL", i, c.name))
		places = append(places, "?")
	}
	f.exec(t, "CREATE TABLE every (id INT PRIMARY KEY, "+strings.Join(definitions, ", ")+")")
	conn, err := f.admin.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec := func(text string, args ...any) {
		if _, err := conn.ExecContext(ctx, text, args...); err != nil {
			t.Fatalf("%.200s: %v", text, err)
		}
	}
	exec("SET SESSION sql_mode = ''")
	same := func(t rapid.TB, text string) {
		t.Helper()
		var answers [2]collected
		for i, reader := range []*Reader{f.reader, f.driver} {
			answers[i].limit = 1000
			if err := reader.ReadStatement(ctx, query.Statement{Text: text}, &answers[i]); err != nil {
				t.Fatalf("%.200s: %v", text, err)
			}
		}
		if wire, driver := fmt.Sprint(answers[0]), fmt.Sprint(answers[1]); wire != driver {
			t.Fatalf("%.200s:\nthe wire   %.2000s\nthe driver %.2000s", text, wire, driver)
		}
		for _, row := range answers[0].rows {
			if !json.Valid([]byte(row)) {
				t.Fatalf("%.200s: not JSON: %.2000s", text, row)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		exec("DELETE FROM every")
		for id := range rapid.IntRange(0, 3).Draw(t, "rows") {
			values := []any{id}
			for _, c := range columnTypes {
				value := any(nil)
				if rapid.IntRange(0, 3).Draw(t, c.name+" is there") > 0 {
					value = c.values.Draw(t, c.name)
				}
				values = append(values, value)
			}
			exec("INSERT INTO every VALUES (?, "+strings.Join(places, ", ")+")", values...)
		}
		same(t, "SELECT * FROM every ORDER BY id")
	})
	for _, text := range []string{
		"SELECT REPEAT('x', 250), REPEAT('x', 251), REPEAT('x', 65535), REPEAT('x', 65536), NULL, ''",
		"SELECT a.seq, REPEAT('한', 900), a.seq * 1e10 FROM seq_1_to_1000000 a WHERE a.seq < 900",
		"SELECT 1 FROM seq_1_to_1000000 WHERE seq < 0", "SHOW TABLES", "SELECT NULL, NULL",
		"SELECT SUM(c0), AVG(c6), MAX(c19), COUNT(*), 1 / 3, 1e-7, 1.0 FROM every", "SELECT 1 / 0", "EXPLAIN SELECT * FROM every",
	} {
		same(t, text)
	}
}

// sized counts the bytes of what it encodes.
type sized struct {
	collected
	sizes []int
}

func (s *sized) Row(encode query.RowEncoder) bool {
	row, whole := encode(nil, 64<<20)
	s.sizes = append(s.sizes, len(row))
	return whole
}

// TestRowsOfSeveralPackets: a row of more than 16 MiB comes in parts.
func TestRowsOfSeveralPackets(t *testing.T) {
	f := newFixture(t, ReaderOptions{})
	f.exec(t, "CREATE TABLE l (c LONGTEXT)", "INSERT INTO l VALUES (REPEAT('x', 12 << 20))")
	// The second one ends where a packet does: an empty one follows it. A length of more than 65,535 has four bytes.
	for _, text := range []string{"SELECT c, c, c FROM l",
		"SELECT c, LEFT(c, 16777215 - LENGTH(c) - 2 * 4) FROM l", "SELECT c, 7, 'y' FROM l"} {
		var answers [2]sized
		for i, reader := range []*Reader{f.reader, f.driver} {
			if err := reader.ReadStatement(t.Context(), query.Statement{Text: text}, &answers[i]); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		if wire, driver := answers[0].sizes, answers[1].sizes; len(wire) != 1 || wire[0] < 12<<20 || wire[0] != driver[0] {
			t.Errorf("%s: rows of %d bytes by the wire, %d by the driver", text, wire, driver)
		}
		if got := f.value(t, "SELECT 2"); got != "2" {
			t.Errorf("the next statement: %s", got)
		}
	}
}
