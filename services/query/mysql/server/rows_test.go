package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
)

// sent is a connection on which bytes come, some at a time, and then its end.
type sent struct {
	net.Conn
	io.Reader
	most int
}

func (s *sent) Read(b []byte) (int, error) { return s.Reader.Read(b[:min(len(b), s.most)]) }

// packetOf frames a payload.
func packetOf(seq byte, payload ...byte) []byte {
	n := len(payload)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq}, payload...)
}

// drive reads a result as a session does: the driver takes as many bytes as it is given before the rows, then NextRow, then the rest.
func drive(w *Wire, columns int) (before []byte, rows [][]byte, after []byte, err error) {
	if !w.KeepRows() {
		return nil, nil, nil, errors.New("the rows cannot be kept")
	}
	buf := make([]byte, 7)
	for packets := 0; packets < columns; {
		n, err := w.Read(buf)
		if before = append(before, buf[:n]...); err != nil {
			return before, nil, nil, err
		}
		packets = 0
		for rest := before; len(rest) >= headerSize; packets++ {
			size := headerSize + int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16
			if size > len(rest) {
				break
			}
			rest = rest[size:]
		}
	}
	for {
		row, err := w.NextRow()
		if err != nil {
			return before, rows, nil, err
		}
		if row == nil {
			break
		}
		rows = append(rows, slices.Clone(row))
	}
	after, err = io.ReadAll(w)
	return before, rows, after, err
}

// TestRowsAreKeptBack: the driver sees what is before the rows and what is behind them, with the number that it waits for, whether or not
// the server ends the definitions with a packet of their own.
func TestRowsAreKeptBack(t *testing.T) {
	t.Parallel()
	header, column := packetOf(1, 1), packetOf(2, 3, 'd', 'e', 'f')
	for name, c := range map[string]struct {
		definitions [][]byte
		end         []byte // its number is that of the server, which has counted the rows
		want        byte
	}{
		"EOF":   {[][]byte{header, column, packetOf(3, 0xfe, 0, 0, 2, 0)}, packetOf(6, 0xfe, 1, 0, 2, 0), 4},
		"OK":    {[][]byte{header, column}, packetOf(5, 0xfe, 0, 0, 2, 0, 0, 0), 3},
		"error": {[][]byte{header, column}, packetOf(5, 0xff, 0x25, 5, '#', '7', '0', '1', '0', '0', 'x'), 3},
	} {
		definitions := slices.Concat(c.definitions...)
		all := slices.Concat(definitions, packetOf(9, 1, 'a'), packetOf(9, 0xfb), c.end)
		for most := 1; most <= len(all); most++ {
			w := &Wire{Conn: &sent{Reader: bytes.NewReader(all), most: most}, plain: true}
			before, rows, after, err := drive(w, len(c.definitions))
			if err != nil || !bytes.Equal(before, definitions) || len(rows) != 2 || string(rows[0]) != "\x01a" || string(rows[1]) != "\xfb" {
				t.Fatalf("%s, %d bytes at a time: %v before, rows %q: %v", name, most, before, rows, err)
			}
			want := slices.Clone(c.end)
			want[3] = c.want
			if !bytes.Equal(after, want) {
				t.Errorf("%s: the driver sees %v behind the rows, want %v", name, after, want)
			}
			if warned := name != "OK"; w.MayHaveWarned() != warned {
				t.Errorf("%s: may have warned: %t", name, !warned)
			}
		}
	}
}

// TestWithoutRows: a statement that has none, or that failed, is the driver's alone.
func TestWithoutRows(t *testing.T) {
	t.Parallel()
	for _, all := range [][]byte{packetOf(1, 0, 0, 0, 2, 0, 0, 0), packetOf(1, 0xff, 0x15, 4, 'x'), packetOf(1, 0xfb, '/', 'x')} {
		w := &Wire{Conn: &sent{Reader: bytes.NewReader(all), most: 3}, plain: true}
		if _, rows, after, err := drive(w, 0); err != nil || rows != nil || !bytes.Equal(after, all) {
			t.Errorf("%v: rows %v, the driver sees %v: %v", all, rows, after, err)
		}
	}
	if w := (&Wire{}); w.KeepRows() {
		t.Error("rows of an encrypted connection cannot be kept")
	}
}

// FuzzNextRow: whatever a server sends, reading it ends, and holds no more than a packet says.
func FuzzNextRow(f *testing.F) {
	f.Add(slices.Concat(packetOf(1, 1), packetOf(2, 3, 'd', 'e', 'f'), packetOf(3, 1, 'a'), packetOf(4, 0xfe, 0, 0, 2, 0, 0, 0)), byte(2))
	f.Add([]byte{0xff, 0xff, 0xff, 1, 1}, byte(1))
	f.Add(packetOf(1, 0xfc, 1), byte(1))
	f.Fuzz(func(t *testing.T, all []byte, columns byte) {
		w := &Wire{Conn: &sent{Reader: bytes.NewReader(all), most: 1 + int(columns)}, plain: true}
		_, rows, _, _ := drive(w, int(columns))
		length := 0
		for _, row := range rows {
			length += len(row)
			for len(row) > 0 {
				text, rest, err := Field(row)
				if err != nil {
					break
				}
				if len(text)+len(rest) >= len(row) {
					t.Fatalf("%v is cut into %v and %v", row, text, rest)
				}
				row = rest
			}
		}
		if length > len(all) {
			t.Fatalf("%d bytes of rows in %d", length, len(all))
		}
		if w.result != nil && len(w.result.buf) > rowBuffer+2*len(all) {
			t.Fatalf("a buffer of %d bytes for %d", len(w.result.buf), len(all))
		}
	})
}
