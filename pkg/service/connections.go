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
)

// connections bounds how many clients may be connected to a listener: in all, from one network, and from the wider network
// around it. Who comes when there is no room takes the place of the connection that has rested longest, in the narrowest
// of these that is full. A connection on which Hub works is never closed for another; when more than half of all places are
// taken, one whose handler only waits for its client, to send or to read on, rests too, after a second.
type connections struct {
	mu       sync.Mutex
	all      *connectionGroup
	share    int
	networks map[string]*connectionGroup

	refused, closed atomic.Int64
}

// connectionGroup is connections that are bounded together.
type connectionGroup struct {
	name       string
	most, used int
	// resting are those that no handler answers, in the order in which they began to rest: that have said nothing yet,
	// lie idle, or owe the rest of a body that nobody waits for. waiting are those whose handler waits for its client.
	resting, waiting list.List
}

// list is the queue of those that wait for their clients, or of those that rest.
func (c *connectionGroup) list(waiting bool) *list.List {
	if waiting {
		return &c.waiting
	}
	return &c.resting
}

// longest is the one that has rested longest; nil when none may be closed.
func (c *connectionGroup) longest() *slot {
	var p *slot
	if e := c.resting.Front(); e != nil {
		p = e.Value.(*slot)
	}
	if e := c.waiting.Front(); e != nil {
		w := e.Value.(*slot)
		if time.Since(w.since) >= waitingLeast && (p == nil || w.since.Before(p.since)) {
			p = w
		}
	}
	return p
}

// slot is that of one connection.
type slot struct {
	of   *connections
	conn net.Conn
	// in are the groups that it counts for, narrowest first; at is where it rests or waits in each, since then, all nil
	// while it does not.
	in    [3]*connectionGroup
	at    [3]*list.Element
	since time.Time
	// waiting tells which of the two it does.
	waiting bool
	// left is set when the place is another's: no call may begin on the connection.
	left bool
}

// newConnections bounds connections to most in all, and to share from one network.
func newConnections(most, share int) *connections {
	c := &connections{all: &connectionGroup{most: most}, networks: map[string]*connectionGroup{}}
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
func (c *connections) take(conn net.Conn) *slot {
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
func (c *connections) seat(conn net.Conn) (p *slot, last net.Conn) {
	network, wide := networks(conn.RemoteAddr())
	c.mu.Lock()
	defer c.mu.Unlock()
	p = &slot{of: c, conn: conn, in: [3]*connectionGroup{c.group(network, c.share), c.group(wide, wideShares*c.share), c.all}}
	for _, full := range p.in {
		if full.used < full.most {
			continue
		}
		other := full.longest()
		if other == nil {
			return nil, nil
		}
		// The wider groups are those of the one that leaves, too: there is room in all of them.
		other.free()
		last = other.conn
		break
	}
	for _, group := range p.in {
		group.used++
		if group.name != "" {
			c.networks[group.name] = group
		}
	}
	p.enqueue(false)
	return p, last
}

// group is that of a network, which is kept while somebody is in it.
func (c *connections) group(name string, most int) *connectionGroup {
	if there := c.networks[name]; there != nil {
		return there
	}
	return &connectionGroup{name: name, most: min(most, c.all.most)}
}

// networks are the narrowest network of a client, as limits see it, and the widest around it, which one customer of a provider
// usually has at most: an IPv4 /24, an IPv6 /48.
func networks(client net.Addr) (network, wide string) {
	from, err := netip.ParseAddrPort(client.String())
	if err != nil {
		return client.String(), "around " + client.String()
	}
	all := caller.Networks(from.Addr().String())
	return all[0], "around " + all[len(all)-1]
}

// begin takes the connection out of rest for a call. It is false when its place has been given away.
func (p *slot) begin() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.dequeue()
	return !p.left
}

// rest lets the connection rest from now on: no handler answers it.
func (p *slot) rest() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !p.left {
		p.dequeue()
		p.enqueue(false)
	}
}

// wait lets the connection wait for its client, in a crowd. It is false where it does not: there is room, or it rests already.
// After true, begin has to say whether the connection is still there.
func (p *slot) wait() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.left || p.at[0] != nil || p.of.all.used <= p.of.all.most/2 {
		return false
	}
	p.enqueue(true)
	return true
}

// leave gives the place back, once.
func (p *slot) leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.free()
}

// enqueue lets the connection rest or wait, in each of its groups.
func (p *slot) enqueue(waiting bool) {
	p.waiting, p.since = waiting, time.Now()
	for i, group := range p.in {
		p.at[i] = group.list(waiting).PushBack(p)
	}
}

// dequeue takes it out of rest or wait.
func (p *slot) dequeue() {
	for i, group := range p.in {
		if p.at[i] != nil {
			group.list(p.waiting).Remove(p.at[i])
			p.at[i] = nil
		}
	}
}

// free gives the slot back, which may be another's then. A network is forgotten with its last connection.
func (p *slot) free() {
	if p.left {
		return
	}
	p.left = true
	p.dequeue()
	for _, group := range p.in {
		if group.used--; group.used == 0 {
			delete(p.of.networks, group.name)
		}
	}
}

type slotKey struct{}

// withSlot is an http.Server's ConnContext.
func withSlot(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, slotKey{}, c.(*pacedConn).place)
}

// slotOf is the slot of the connection that a request has come by.
func slotOf(r *http.Request) *slot { return r.Context().Value(slotKey{}).(*slot) }

// connState is an http.Server's ConnState.
func connState(c net.Conn, state http.ConnState) {
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
		if !slotOf(r).begin() {
			panic(http.ErrAbortHandler) // nobody would hear the answer
		}
		if c.crowded() {
			if r.URL.Path == discover.AlivePath || r.URL.Path == discover.ReadyPath {
				w.Header().Set("Connection", "close")
			}
			w = closingOnRefusal{w}
		}
		next.ServeHTTP(w, r)
	})
}

// closingOnRefusal ends the connection of a client that is refused.
type closingOnRefusal struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (p closingOnRefusal) WriteHeader(status int) {
	switch status {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusMisdirectedRequest, http.StatusTooManyRequests:
		p.Header().Set("Connection", "close")
	}
	p.ResponseWriter.WriteHeader(status)
}

// Unwrap lets an http.ResponseController find what it needs.
func (p closingOnRefusal) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Flush implements http.Flusher.
func (p closingOnRefusal) Flush() { _ = http.NewResponseController(p.ResponseWriter).Flush() }

// mostConnections is the bound of the listener for calls: what the settings say, else what fits into a quarter of the memory;
// in any case three quarters of the descriptors, because files, stores and neighbours need some, too.
func mostConnections(s Settings, memory int64) int {
	most := cmp.Or(s.Connections, int(memory/connectionBytes))
	if files := descriptors(); files > 0 {
		most = min(most, files/4*3)
	}
	return max(most, 1)
}
