package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// callLimit bounds one call.
const callLimit = 30 * time.Second

// wire is one kept HTTP/1.1 connection. It does less than net/http's client, so that the
// load generator takes little of the machine that it shares with what it measures.
type wire struct {
	// host:port, the connection when there is one, what reads from it, and the last answer's body, whose memory the
	// next one uses.
	addr string
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

// request writes out a POST with a JSON body.
// Headers with several values have a line for each.
func request(addr, path string, header http.Header, body []byte) []byte {
	b := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, addr, len(body))
	for name, values := range header {
		for _, v := range values {
			b = fmt.Appendf(b, "%s: %s\r\n", name, v)
		}
	}
	return append(append(b, "\r\n"...), body...)
}

// ReadResponse has to know the method: the answer to a HEAD has no body.
var postRequest = &http.Request{Method: http.MethodPost}

// statusError is an answer with another status than 200. Its connection stays good.
type statusError struct {
	status int
	body   string // the beginning
}

func (e statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// send sends a request and reads the whole answer, which is good until the next send. Any
// status but 200 is a statusError.
func (w *wire) send(request []byte) ([]byte, error) {
	body, err := w.try(request)
	if err != nil && !errors.As(err, new(statusError)) {
		w.close()
	}
	return body, err
}

// try sends over the kept connection, which it opens where there is none.
func (w *wire) try(request []byte) ([]byte, error) {
	if w.conn == nil {
		conn, err := net.DialTimeout("tcp", w.addr, callLimit)
		if err != nil {
			return nil, err
		}
		// As large as net/http's: what is larger goes to the body at once, also of an answer in chunks.
		w.conn, w.in = conn, bufio.NewReaderSize(conn, 4<<10)
	}
	if err := w.conn.SetDeadline(time.Now().Add(callLimit)); err != nil {
		return nil, err
	}
	if _, err := w.conn.Write(request); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(w.in, postRequest)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if err := w.read(res); err != nil {
		return nil, err
	}
	if res.Close {
		w.close()
	}
	if res.StatusCode != http.StatusOK {
		return nil, statusError{res.StatusCode, string(w.body[:min(len(w.body), 300)])}
	}
	return w.body, nil
}

// read reads a body into the connection's own buffer.
func (w *wire) read(res *http.Response) error {
	if n, err := strconv.Atoi(res.Header.Get("Content-Length")); err == nil {
		if cap(w.body) < n {
			w.body = make([]byte, n)
		}
		w.body = w.body[:n]
		_, err := io.ReadFull(res.Body, w.body)
		return err
	}
	w.body = w.body[:0]
	// An answer in chunks: nobody has said how long it is.
	for {
		if len(w.body) == cap(w.body) {
			w.body = append(w.body, 0)[:len(w.body)]
		}
		n, err := res.Body.Read(w.body[len(w.body):cap(w.body)])
		w.body = w.body[:len(w.body)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// close drops the connection; the next send opens another.
func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}
