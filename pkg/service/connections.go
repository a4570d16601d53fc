package service

import (
	"cmp"
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/discover"
)

const (
	// connectionBytes is what a connection costs at rest: a goroutine, two buffers and the system's part of it come to 19 to 24 KiB.
	connectionBytes = 24 << 10
	// operationsConnections bounds those for operations: a scraper and a few people.
	operationsConnections = 64
	// networkShare is the part of the edge's connections that one network may have, a 20th, and neighbourShare that of an
	// internal listener, a half: its callers are few, and each keeps many.
	networkShare, neighbourShare = 20, 2
	// waitingLeast is how long a client in a call may keep it waiting before its connection may be another's, in a crowd.
	waitingLeast = time.Second
	// wideShares is how many networks' shares the wider network around them may have: an IPv4 /24, an IPv6 /48.
	wideShares = 4
	// wide4 and wide6 are the prefixes that one customer of a provider usually has at most.
	wide4, wide6 = 24, 48
)

// connections bounds how many clients may be connected to a listener: in all, from one network, and from the wider network
// around it. Who comes when there is no room takes the place of the connection that has rested longest, in the narrowest
// of these that is full. A connection on which Hub works is never closed for another; when more than half of all places are
// taken, one whose handler only waits for its client, to send or to read on, rests too, after a second.
type connections struct {
	mu       sync.Mutex
	all      *crowd
	share    int
	networks map[string]*crowd

	refused, closed atomic.Int64
}

// crowd is connections that are bounded together.
type crowd struct {
	name       string
	most, used int
	// resting are those that no handler answers, in the order in which they began to rest: that have said nothing yet,
	// lie idle, or owe the rest of a body that nobody waits for. waiting are those whose handler waits for its client.
	resting, waiting list.List
}

func (c *crowd) list(waiting bool) *list.List {
	if waiting {
		return &c.waiting
	}
	return &c.resting
}

// longest is the one that has rested longest; nil when none may be closed.
func (c *crowd) longest() *place {
	var p *place
	if e := c.resting.Front(); e != nil {
		p = e.Value.(*place)
	}
	if e := c.waiting.Front(); e != nil {
		w := e.Value.(*place)
		if time.Since(w.since) >= waitingLeast && (p == nil || w.since.Before(p.since)) {
			p = w
		}
	}
	return p
}

// place is that of one connection.
type place struct {
	of   *connections
	conn net.Conn
	// in are the crowds that it counts for, narrowest first; at is where it rests or waits in each, since then, all nil
	// while it does not.
	in    [3]*crowd
	at    [3]*list.Element
	since time.Time
	// waiting tells which of the two it does.
	waiting bool
	// left is set when the place is another's: no call may begin on the connection.
	left bool
}

func newConnections(most, share int) *connections {
	c := &connections{all: &crowd{most: most}, networks: map[string]*crowd{}}
	c.limit(share)
	return c
}

// limit sets how many connections one network may have. It holds for networks that come after it.
func (c *connections) limit(share int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.share = min(max(share, 1), c.all.most)
}

// use is what telemetry shows: the bound, how many there are, and how often somebody was refused.
func (c *connections) use() (limit, used, refused int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.all.most), int64(c.all.used), c.refused.Load()
}

// crowded tells that more than half of all places are taken: from then on clients are hurried.
func (c *connections) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.used > c.all.most/2
}

// take gives the connection a place, which may be another's until now. It is nil when all that could make room are answered.
func (c *connections) take(conn net.Conn) *place {
	p, last := c.seat(conn)
	if last != nil {
		c.closed.Add(1)
		_ = last.Close() // it is gone either way
	}
	if p == nil {
		c.refused.Add(1)
	}
	return p
}

// seat is take, and returns the connection that has to be closed for it.
func (c *connections) seat(conn net.Conn) (p *place, last net.Conn) {
	network, wide := networks(conn.RemoteAddr())
	c.mu.Lock()
	defer c.mu.Unlock()
	p = &place{of: c, conn: conn, in: [3]*crowd{c.crowd(network, c.share), c.crowd(wide, wideShares*c.share), c.all}}
	for _, full := range p.in {
		if full.used < full.most {
			continue
		}
		other := full.longest()
		if other == nil {
			return nil, nil
		}
		// The wider crowds are those of the one that leaves, too: there is room in all of them.
		other.vacate()
		last = other.conn
		break
	}
	for _, crowd := range p.in {
		crowd.used++
		if crowd.name != "" {
			c.networks[crowd.name] = crowd
		}
	}
	p.settle(false)
	return p, last
}

// crowd is that of a network, which is kept while somebody is in it.
func (c *connections) crowd(name string, most int) *crowd {
	if there := c.networks[name]; there != nil {
		return there
	}
	return &crowd{name: name, most: min(most, c.all.most)}
}

// networks are the network of a client, as limits see it, and the wider one around it.
func networks(client net.Addr) (network, wide string) {
	from, err := netip.ParseAddrPort(client.String())
	if err != nil {
		return client.String(), "around " + client.String()
	}
	addr := from.Addr().Unmap().WithZone("")
	bits := wide6
	if addr.Is4() {
		bits = wide4
	}
	return caller.Network(addr.String()), "around " + netip.PrefixFrom(addr, bits).Masked().String()
}

// begin takes the connection out of rest for a call. It is false when its place has been given away.
func (p *place) begin() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.rise()
	return !p.left
}

// rest lets the connection rest from now on: no handler answers it.
func (p *place) rest() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !p.left {
		p.rise()
		p.settle(false)
	}
}

// wait lets the connection wait for its client, in a crowd. It is false where it does not: there is room, or it rests already.
// After true, begin has to say whether the connection is still there.
func (p *place) wait() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.left || p.at[0] != nil || p.of.all.used <= p.of.all.most/2 {
		return false
	}
	p.settle(true)
	return true
}

// leave gives the place back, once.
func (p *place) leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.vacate()
}

func (p *place) settle(waiting bool) {
	p.waiting, p.since = waiting, time.Now()
	for i, crowd := range p.in {
		p.at[i] = crowd.list(waiting).PushBack(p)
	}
}

func (p *place) rise() {
	for i, crowd := range p.in {
		if p.at[i] != nil {
			crowd.list(p.waiting).Remove(p.at[i])
			p.at[i] = nil
		}
	}
}

func (p *place) vacate() {
	if p.left {
		return
	}
	p.left = true
	p.rise()
	for _, crowd := range p.in {
		if crowd.used--; crowd.used == 0 {
			delete(p.of.networks, crowd.name)
		}
	}
}

type placeKey struct{}

// placed is an http.Server's ConnContext.
func placed(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, c.(*pacedConn).place)
}

func placeOf(r *http.Request) *place { return r.Context().Value(placeKey{}).(*place) }

// changed is an http.Server's ConnState.
func changed(c net.Conn, state http.ConnState) {
	switch p := c.(*pacedConn).place; state {
	case http.StateIdle:
		p.rest()
	case http.StateClosed, http.StateHijacked:
		p.leave()
	case http.StateNew, http.StateActive: // it rests until its handler begins
	}
}

// answer keeps a connection while next answers it. In a crowd it goes with an answer that helps nobody who is known.
func (c *connections) answer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !placeOf(r).begin() {
			panic(http.ErrAbortHandler) // nobody would hear the answer
		}
		if c.crowded() {
			if r.URL.Path == discover.AlivePath || r.URL.Path == discover.ReadyPath {
				w.Header().Set("Connection", "close")
			}
			w = parting{w}
		}
		next.ServeHTTP(w, r)
	})
}

// parting ends the connection of a client that is refused.
type parting struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (p parting) WriteHeader(status int) {
	switch status {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusMisdirectedRequest, http.StatusTooManyRequests:
		p.Header().Set("Connection", "close")
	}
	p.ResponseWriter.WriteHeader(status)
}

// Unwrap lets an http.ResponseController find what it needs.
func (p parting) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Flush implements http.Flusher.
func (p parting) Flush() { _ = http.NewResponseController(p.ResponseWriter).Flush() }

// mostConnections is the bound of the listener for calls: what the settings say, else what fits into a quarter of the memory;
// in any case three quarters of the descriptors, because files, stores and neighbours need some, too.
func mostConnections(s Settings, memory int64) int {
	most := cmp.Or(s.Connections, int(memory/connectionBytes))
	if files := descriptors(); files > 0 {
		most = min(most, files/4*3)
	}
	return max(most, 1)
}
