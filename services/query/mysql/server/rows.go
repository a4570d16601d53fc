package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// The driver makes a Go value of each field of a row, and an interface of each value: half of what a result of 1,000 rows costs. A caller's
// statement is answered as text, which is what the server sends (the text protocol,
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html). So a Wire can keep the rows of a
// result back and hand them over as they came. All else stays the driver's: it sends the statement, reads the columns, and is given the
// packet that ends the rows, by which it learns of an error and of the session's state. Under TLS the bytes are the driver's alone, and the
// rows with them.

// resultState is how far the result that comes has been read.
type resultState int

const (
	atHeader  resultState = iota // the number of columns, an error, or the end of a statement without rows
	inColumns                    // their definitions
	atRows                       // the driver may still ask for the end of the definitions, which older servers send
	inRows
	atEnd // what is left is the driver's
)

// result is the result that comes, of which the driver does not see the rows.
type result struct {
	state   resultState
	buf     []byte // what has come and has not been taken yet is buf[from:to]
	from    int
	to      int
	columns uint64 // whose definitions are to come
	seq     byte   // of the last packet that the driver saw
	whole   int    // bytes from buf[from] on that the driver may take
}

const (
	headerSize = 4         // of a packet: a length of three bytes and a sequence number
	mostPacket = 1<<24 - 1 // a payload of this length goes on in the next packet

	okByte, errorByte, endByte, nullByte = 0x00, 0xff, 0xfe, 0xfb // also: the server wants a file, as a header
)

// rowBuffer is how much is read at once.
const rowBuffer = 32 << 10

var rowBuffers = sync.Pool{New: func() any { return new(make([]byte, rowBuffer)) }}

var errMalformed = errors.New("the server's result is not in the text protocol")

// KeepRows has the rows of the next statement's result wait for NextRow, and reports whether it can. The driver has to be idle.
func (w *Wire) KeepRows() bool {
	if !w.plain {
		return false
	}
	w.result = &result{buf: *rowBuffers.Get().(*[]byte)}
	return true
}

// NextRow is the next row as the server sent it, for Field, good until the next call; nil behind the last one, and then the driver is to be
// asked for the next row: it says how the result has ended. It is for after the driver has read the columns.
func (w *Wire) NextRow() (row []byte, err error) {
	r := w.result
	if r == nil || r.state != atRows && r.state != inRows {
		return nil, nil // the driver has it all
	}
	r.state = inRows
	size, err := w.packet()
	if err != nil {
		return nil, err
	}
	payload := r.buf[r.from+headerSize : r.from+size]
	if first := payload[0]; first == errorByte || first == endByte && size-headerSize < mostPacket {
		r.seq++ // which the driver waits for: it has seen none of the rows
		r.buf[r.from+headerSize-1] = r.seq
		r.state, r.whole = atEnd, size
		return nil, nil
	}
	r.from += size
	return payload, nil
}

// Field cuts the next field off a row; nil stands for NULL.
func Field(row []byte) (text, rest []byte, err error) {
	if len(row) == 0 {
		return nil, nil, errMalformed
	}
	if row[0] == nullByte {
		return nil, row[1:], nil
	}
	length, n := lengthEncoded(row)
	if n == 0 || length > uint64(len(row)-n) {
		return nil, nil, errMalformed
	}
	end := n + int(length)
	return row[n:end:end], row[end:], nil
}

// lengthEncoded reads an integer of one to nine bytes, n of them; 0 when there is none.
func lengthEncoded(b []byte) (value uint64, n int) {
	var size int
	switch b[0] {
	case 0xfc:
		size = 3
	case 0xfd:
		size = 4
	case 0xfe:
		size = 9
	case nullByte, errorByte:
		return 0, 0
	default:
		return uint64(b[0]), 1
	}
	if len(b) < size {
		return 0, 0
	}
	var eight [8]byte
	copy(eight[:], b[1:size])
	return binary.LittleEndian.Uint64(eight[:]), size
}

// packet has a whole packet begin at buf[from], and returns its length with the header. What goes on in further packets is joined.
func (w *Wire) packet() (size int, err error) {
	r := w.result
	for next := 0; ; { // from buf[from] on
		if err := w.fill(next + headerSize); err != nil {
			return 0, err
		}
		header := r.buf[r.from+next:]
		length := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		if next == 0 && length == 0 {
			return 0, errMalformed
		}
		if err := w.fill(next + headerSize + length); err != nil {
			return 0, err
		}
		if next > 0 { // the header of a further packet goes
			at := r.from + next
			r.to = at + copy(r.buf[at:], r.buf[at+headerSize:r.to])
			next -= headerSize
		}
		next += headerSize + length
		if length < mostPacket {
			return next, nil
		}
	}
}

// fill reads until need bytes have come from buf[from] on, and not much more. The meter hears of them before anything is made of them, and
// the buffer grows with what has come, not with what the server says is to come.
func (w *Wire) fill(need int) error {
	r := w.result
	for r.to-r.from < need {
		if r.from > 0 && r.from+need > len(r.buf) {
			r.from, r.to = 0, copy(r.buf, r.buf[r.from:r.to])
		}
		if r.to == len(r.buf) {
			larger := make([]byte, min(need+rowBuffer, 2*len(r.buf)))
			copy(larger, r.buf)
			r.buf = larger
		}
		n, err := w.receive(r.buf[r.to:min(len(r.buf), max(r.from+need, r.to+rowBuffer))])
		if r.to += n; err != nil {
			return err
		}
	}
	return nil
}

// readResult is Read of the driver while the rows are kept back: it gets what is before them and what is behind them.
func (w *Wire) readResult(b []byte) (int, error) {
	r := w.result
	if r.whole == 0 {
		if err := w.before(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.buf[r.from:r.from+r.whole])
	w.remember(r.buf[r.from : r.from+n])
	r.from, r.whole = r.from+n, r.whole-n
	if r.state == atEnd && r.whole == 0 {
		if r.whole = r.to - r.from; r.whole == 0 { // else of a further result, which no statement here has
			w.releaseRows()
		}
	}
	return n, nil
}

// before finds the next packet that the driver is to have, and what follows it.
func (w *Wire) before() error {
	r := w.result
	size, err := w.packet()
	if err != nil {
		return err
	}
	r.seq, r.whole = r.buf[r.from+headerSize-1], size
	payload := r.buf[r.from+headerSize : r.from+size]
	switch r.state {
	case atHeader:
		r.state = inColumns
		if first := payload[0]; first == okByte || first == errorByte || first == nullByte {
			r.state = atEnd
		} else if r.columns, size = lengthEncoded(payload); size == 0 || r.columns == 0 {
			return errMalformed
		}
	case inColumns:
		if r.columns--; r.columns == 0 {
			r.state = atRows
		}
	case atRows: // the end of the definitions
		r.state = inRows
		if payload[0] != endByte || len(payload) != 5 {
			return errMalformed
		}
	default:
		return fmt.Errorf("%w: the driver asks for a row", errMalformed)
	}
	return nil
}

// releaseRows ends the keeping back. What a large row took is not kept.
func (w *Wire) releaseRows() {
	if buf := w.result.buf; len(buf) == rowBuffer {
		rowBuffers.Put(&buf)
	}
	w.result = nil
}

// readable reports whether the rows of a connection can be kept back: not what is encrypted, nor where the driver is to set a deadline for
// each of its reads.
func readable(config *mysqldriver.Config) bool { return config.TLS == nil && config.ReadTimeout == 0 }
