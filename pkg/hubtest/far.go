package hubtest

import (
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// Distance is how far away a write store is. It counts the round trips to it: how often a session says something after it has heard an
// answer, however much it says at once.
type Distance struct{ delay, trips atomic.Int64 }

// Set makes each answer of the store take so long from now on.
func (d *Distance) Set(delay time.Duration) { d.delay.Store(int64(delay)) }

// AtMost fails the test when do takes more round trips to the store than most, as long as nothing else goes there. A session that is new,
// or learns a statement, has trips of its own: so do may take more at first.
func (d *Distance) AtMost(t testing.TB, most int, what string, do func()) {
	t.Helper()
	var least int64
	for range 20 {
		before := d.trips.Load()
		do()
		if took := d.trips.Load() - before; took <= int64(most) {
			return
		} else if least == 0 || took < least {
			least = took
		}
	}
	t.Errorf("%s takes %d round trips to the store, and may take %d", what, least, most)
}

// Far is the same database at a Distance, which is none at first. The owner and the superuser are beside it.
func (w WriteStoreDB) Far(t testing.TB) (WriteStoreDB, *Distance) {
	t.Helper()
	store, err := url.Parse(w.URL(services[0]))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	d := &Distance{}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go d.carry(client, store.Host)
		}
	}()
	w.via = listener.Addr().String()
	return w, d
}

// answer is what a store has said, and when it is heard.
type answer struct {
	said  []byte
	heard time.Time
}

// carry carries a session until one of its ends closes it.
func (d *Distance) carry(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	var answered atomic.Bool
	answered.Store(true)
	underway := make(chan answer, 1024)
	go func() {
		defer close(underway)
		for {
			b := make([]byte, 32<<10)
			n, err := server.Read(b)
			if err != nil {
				return
			}
			underway <- answer{b[:n], time.Now().Add(time.Duration(d.delay.Load()))}
		}
	}()
	go func() {
		defer client.Close()
		for a := range underway {
			time.Sleep(time.Until(a.heard))
			answered.Store(true)
			_, _ = client.Write(a.said) // what nobody hears any more is lost
		}
	}()
	_, _ = io.Copy(server, counted{client, func() {
		if answered.Swap(false) {
			d.trips.Add(1)
		}
	}})
}

// counted tells of each read that has read something.
type counted struct {
	io.Reader
	read func()
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.read()
	}
	return n, err
}
